"""``hologram.dask``: graphs with compiled blockwise layers give what they give without, in the same types, and are traced once for each shape."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, UntracedWarning
from tests.support.runner.libraries import library

pytestmark = pytest.mark.filterwarnings("ignore::hologram.errors.FallbackWarning")  # for NumPy's functions that Dask calls on blocks
dask = library("dask")
da = library("dask.array")

generator = np.random.default_rng(0)
A = generator.normal(size=(24, 12))
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda d: da.sin(d) * 2 + 1,
    "standardise": lambda d: (d - d.mean(0)) / d.std(0),
    "reductions": lambda d: d.sum(axis=1) + d.max(axis=1) - d.prod(axis=1),
    "argmax": lambda d: d.argmax(axis=0),
    "cumsum": lambda d: d.cumsum(axis=0),
    "nanmean": lambda d: da.nanmean(da.where(d > 1, np.nan, d), axis=0),
    "matmul": lambda d: d @ d.T,
    "tensordot": lambda d: da.tensordot(d, d, axes=((0,), (0,))),
    "einsum": lambda d: da.einsum("ij,kj->ik", d, d),
    "stencil": lambda d: d.map_overlap(lambda b: (b + np.roll(b, 1, 0) + np.roll(b, -1, 1)) / 3, depth=1, boundary="periodic"),
    "blocks with their places": lambda d: d.map_blocks(lambda b, block_info=None: b * (1 + block_info[0]["chunk-location"][0]), dtype=d.dtype),
    "fft": lambda d: da.fft.rfft(d.rechunk((24, 4)), axis=0),
    "svd": lambda d: da.linalg.svd(d.rechunk((8, 12)))[1],
    "qr": lambda d: (lambda q, r: q @ r)(*da.linalg.qr(d.rechunk((8, 12)))),
    "sort": lambda d: d.rechunk((24, 4)).map_blocks(np.sort, axis=0),
    "topk": lambda d: da.topk(d, 3, axis=0),
    "argtopk": lambda d: da.argtopk(d, 3, axis=0),
    "masked": lambda d: d[d > 0] * 2,
    "indexed": lambda d: (d[3:20:2, ::-1] + 1)[[2, 0]],
    "assigned": lambda d: _assigned(d.copy()),
    "clip and round": lambda d: d.clip(-1, 1).round(1),
    "integers": lambda d: (d * 10).astype("int64") // 3 + (d > 0).sum(axis=0),
    "division of integers": lambda d: (d * 10).astype("int64") / 7,
    "complex": lambda d: (d + 1j * d).conj().real,
    "other arrays": lambda d: d + da.from_array(A, chunks=(5, 5)),
    "keyword": lambda d: d.map_blocks(lambda b, scale: b * scale, scale=3.0),
}


def _assigned(d: Any) -> Any:
    d[3:5] = 0
    d[d > 1] = 1.0
    return d


def source(kind: str, chunks: Any = (8, 6)) -> Any:
    return da.from_array(hg.tensor(A) if kind == "tensors" else A, chunks=chunks)


@pytest.mark.parametrize("kind", ["tensors", "arrays"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_fused_programs_give_what_dask_gives(name: str, kind: str) -> None:
    wanted = PROGRAMS[name](source("arrays")).compute(scheduler="sync")
    if name == "division of integers" and kind == "tensors":
        wanted = wanted.astype(np.float32)  # the type of such quotients of Tensors
    array = PROGRAMS[name](source(kind))
    found = hg.dask.fuse(array).compute(scheduler="sync")
    assert type(found) is (hg.Tensor if kind == "tensors" else np.ndarray)
    assert found.dtype == wanted.dtype == (array.dtype if kind == "arrays" else wanted.dtype)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-10 if wanted.dtype != np.float32 else 1e-6, atol=1e-12)


STEPS: list[Callable[[Any], Any]] = [
    lambda d: d * 2 - 1,
    lambda d: np.tanh(d),
    lambda d: d + d.mean(axis=0),
    lambda d: d.T,
    lambda d: da.where(d > 0, d, -0.5 * d),
    lambda d: d.rechunk((4, 5)),
    lambda d: d[1:],
    lambda d: d.map_blocks(lambda b: b - b.min()),
    lambda d: da.concatenate([d, d], axis=1),
    lambda d: d / (1 + abs(d)).sum(axis=1, keepdims=True),
]


@settings(max_examples=8)
@given(st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=5), st.integers(3, 24), st.integers(3, 12), st.booleans())
def test_chains_of_operations(steps: list[int], rows: int, columns: int, tensors: bool) -> None:
    fused, plain = source("tensors" if tensors else "arrays", (rows, columns)), source("arrays", (rows, columns))
    for step in steps:
        fused, plain = STEPS[step](fused), STEPS[step](plain)
    found = hg.dask.fuse(fused).compute(scheduler="sync")
    np.testing.assert_allclose(np.asarray(found), plain.compute(scheduler="sync"), rtol=1e-9, atol=1e-9)


def test_one_trace_serves_all_blocks_of_a_shape() -> None:
    traced = []

    def function(block: Any) -> Any:
        traced.append(block.shape)
        return hnp.tanh(block) * 2

    d = da.from_array(hg.tensor(np.ones((40, 6))), chunks=(8, 6))
    total = hg.dask.fuse((d.map_blocks(function, meta=d._meta) + 1).sum())
    assert float(total.compute(scheduler="threads")) == pytest.approx(240 * (1 + 2 * np.tanh(1)))
    assert traced == [(8, 6)]


def test_a_block_in_several_places_is_one_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the compiler knows of ``x.T @ x`` that both factors are the same. Where they are others, it is another program."""
    from hologram.dask.blocks import TracedStage

    counts: list[int] = []
    traced = TracedStage._traced_at

    def noted(self: TracedStage, places: Any, *arrays: Any) -> list[Any]:
        counts.append(len(arrays))
        return traced(self, places, *arrays)

    monkeypatch.setattr(TracedStage, "_traced_at", noted)
    values = np.random.default_rng(0).standard_normal((40, 6))
    for blocks, arguments in (((20, 6), {1}), ((20, 3), {1, 2})):
        counts.clear()
        x = da.from_array(values, chunks=blocks).map_blocks(hg.asarray, meta=hg.tensor(np.empty((0, 0))))
        product = hg.dask.fuse(x.T @ x)
        np.testing.assert_allclose(np.asarray(product.compute(scheduler="synchronous")), values.T @ values, rtol=1e-12)
        assert set(counts) == arguments


def test_results_are_computed_when_a_task_ends() -> None:
    pending = []

    def look(key: Any, result: Any, *rest: Any) -> None:
        if not str(key).startswith("finalize"):  # what puts the blocks together for the caller
            pending.extend(key for x in (result if isinstance(result, (list, tuple)) else [result]) if type(x) is hg.Tensor and x._storage is None)

    d = source("tensors")
    program = d[1:].rechunk((5, 5)).cumsum(axis=0) + da.concatenate([d, d])[:23]
    with dask.callbacks.Callback(posttask=look):
        hg.dask.fuse(program).compute(scheduler="sync")
    assert not pending


def test_the_optimiser_of_all_arrays() -> None:
    with dask.config.set(array_optimize=hg.dask.optimize, scheduler="sync"):
        one, two = dask.compute(source("tensors").sum(axis=0), source("tensors").mean())
    np.testing.assert_allclose(np.asarray(one), A.sum(axis=0))
    assert float(two) == pytest.approx(A.mean())


def test_several_arrays_and_a_fused_one_in_further_operations() -> None:
    d = source("tensors")
    one, two = hg.dask.fuse(d + 1, (d * 2).sum(axis=0))
    found = hg.dask.fuse(one * two).compute(scheduler="sync")
    np.testing.assert_allclose(np.asarray(found), (A + 1) * (A * 2).sum(axis=0))


def test_random_blocks_differ() -> None:
    r = da.random.default_rng(0).normal(size=(20, 20), chunks=10)
    scaled = da.random.default_rng(1).normal(loc=r, scale=2.0, size=(20, 20), chunks=10)
    for array in (r * 2, scaled + 1):
        np.testing.assert_array_equal(hg.dask.fuse(array).compute(scheduler="sync"), array.compute(scheduler="sync"))


def draws(b: Any) -> Any:
    return b + np.random.normal(size=b.shape)


def branches(b: Any) -> Any:
    return b if b.sum() > 0 else -b


@pytest.mark.parametrize("function", [draws, branches])
def test_what_cannot_be_traced_runs_as_it_is(function: Callable[[Any], Any]) -> None:
    d = source("tensors", (12, 12))
    program = hg.dask.fuse(d.map_blocks(function, meta=d._meta) * 2 + 1)
    with pytest.warns(UntracedWarning, match=f"runs {function.__name__} without compiling"):
        found = np.asarray(program.compute(scheduler="sync"))
    blocks = [A[:12], A[12:]]
    if function is branches:
        np.testing.assert_allclose(found, np.concatenate([2 * branches(b) + 1 for b in blocks]))
    else:
        noise = (found - 1) / 2 - A
        assert abs(noise[:12] - noise[12:]).max() > 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program.compute(scheduler="sync")  # said once


def test_errors_of_functions_are_users() -> None:
    def fails(b: Any) -> Any:
        raise LookupError("no such block")

    d = source("tensors")
    with pytest.warns(UntracedWarning), pytest.raises(LookupError, match="no such block"):
        hg.dask.fuse(d.map_blocks(fails, meta=d._meta)).compute(scheduler="sync")


def test_blocks_are_not_written_to() -> None:
    def function(b: Any) -> Any:
        b[0] = 0.0
        return b

    d = source("tensors")
    x = d.map_blocks(function, meta=d._meta)
    found = hg.dask.fuse(x + d).compute(scheduler="sync")
    wanted = A.copy()
    wanted[::8] = 0
    np.testing.assert_allclose(np.asarray(found), wanted + A)


def test_tensors_beside_dask_arrays() -> None:
    d, x = source("arrays"), hg.tensor(A)
    for found in (d + x, x + d, np.add(x, d)):
        assert isinstance(found, da.Array)
        np.testing.assert_allclose(np.asarray(found.compute(scheduler="sync")), 2 * A)


def test_precision() -> None:
    d = source("tensors")
    found = hg.dask.fuse(d * 3.0 + 1.0, precision="exact").compute(scheduler="sync")
    np.testing.assert_array_equal(np.asarray(found), A * 3.0 + 1.0)
    with pytest.raises(ArgumentError, match="precision is"):
        hg.dask.fuse(d, precision="low")


def test_other_objects_are_refused() -> None:
    with pytest.raises(ArgumentError, match="fuse takes Dask arrays, not ndarray"):
        hg.dask.fuse(A)


def test_percentiles_of_tensors() -> None:
    d = da.from_array(hg.tensor(A[:, 0]), chunks=8)
    found = da.percentile(d, [10, 50, 90]).compute(scheduler="sync")
    np.testing.assert_allclose(np.asarray(found), da.percentile(da.from_array(A[:, 0], chunks=8), [10, 50, 90]).compute(scheduler="sync"))
