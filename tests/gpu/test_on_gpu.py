"""The whole op table, random graphs and whole functions on a real device: ``make test-gpu``.

``HOLOGRAM_TEST_DEVICE`` names it, else it is the first GPU.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis.strategies import SearchStrategy

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.build import build
from hologram.backends.cuda import library
from hologram.backends.device.backend import DeviceBackend
from hologram.ir import devices
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.primitives import Op
from tests.support.graphs.random_graphs import arguments, exact_graphs, seeds
from tests.support.graphs.small_graphs import small_graphs
from tests.support.op_batches import KINDS, batch_graph, runs_alone
from tests.support.optable import assert_agree, cases_of, mismatch, rows

NAME = os.environ.get("HOLOGRAM_TEST_DEVICE") or devices.accelerator()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(NAME is None, reason="there is no GPU: hg.devices() says why")]
BATCH = 64  # cases of a program
PARTS = 8  # of the random graphs, for as many processes
SAMPLE = ["softmax", "products", "halves", "updated"]


def compiled(graph: Graph, precision: str = "exact") -> Any:
    device = devices.find(str(NAME))
    reason = device.why_not(precision, False)
    if reason is not None:
        pytest.skip(reason)
    return build(DeviceBackend(device), graph, precision)


@pytest.mark.parametrize("row", [r for k in KINDS for r in rows(k) if runs_alone(r)], ids=lambda r: r.name)
def test_the_device_gives_the_reference(row: Op, everything: bool) -> None:
    """Every row, in exact precision: bitwise where the row is exact."""
    cases = tuple(cases_of(row, everything))
    for some in (cases[i : i + BATCH] for i in range(0, len(cases), BATCH)):
        graph, arrays = batch_graph(some), [a for case in some for a in case[2]]
        for case, got, want in zip(some, compiled(graph).run_numpy(arrays), evaluate(graph, arrays), strict=True):
            assert_agree(case, got, want)


@pytest.mark.parametrize("part", range(PARTS))
def test_random_graphs_are_bitwise_the_reference(part: int, everything: bool) -> None:
    _agree_on(exact_graphs(), part, everything)


@pytest.mark.parametrize("part", range(PARTS))
def test_gathers_scatters_and_products_too(part: int, everything: bool) -> None:
    _agree_on(small_graphs(), part, everything)


def _agree_on(graphs: SearchStrategy[Graph], part: int, everything: bool) -> None:
    @seed(part)
    @settings(max_examples=50 if everything else 5)
    @given(graphs, seeds)
    def check(graph: Graph, seed: int) -> None:
        arrays = arguments(graph, seed, special=True)
        for got, want in zip(compiled(graph).run_numpy(arrays), evaluate(graph, arrays), strict=True):
            assert not mismatch(got, want, 0).any()

    check()


def _softmax(x: Any) -> Any:
    e = hnp.exp(x - hnp.max(x, axis=1, keepdims=True))
    return e / hnp.sum(e, axis=1, keepdims=True)


FUNCTIONS: dict[str, Any] = {
    "softmax": _softmax,
    "products": lambda x: hnp.tanh(x @ x.T) @ x,
    "halves": lambda x: hnp.astype(hnp.astype(x, "bfloat16") @ hnp.astype(x.T, "bfloat16"), "float32"),
    "updated": lambda x: x.at[2:5].add(1.0)[::-1],
    "sums": lambda x: (hnp.sum(x), hnp.sum(x, axis=0), hnp.max(x, axis=1), hnp.argmax(x)),
    "running": lambda x: hnp.cumulative_sum(x, axis=1),
    "sorted": lambda x: (hnp.sort(x, axis=1), hnp.argsort(x, axis=0)),
    "gradient": hg.grad(lambda x: hnp.sum(_softmax(x @ x.T))),
    "scan": lambda x: hg.scan(lambda c, row: (c * 0.5 + row, hnp.max(c)), x[0], x),
    "while_loop": lambda x: hg.while_loop(lambda c: hnp.sum(c) < 1e6, lambda c: c * 2, hnp.abs(x)),
}
SHAPES = [(64, 64), (37, 300), (300, 1111)]


def _agree(name: str, shape: tuple[int, int], calls: int) -> None:
    f, rtol = FUNCTIONS[name], 2e-2 if name == "halves" else 1e-4
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    on_device, want = hg.jit(f, device=NAME), hg.jit(f)(x)
    for _ in range(calls):
        for g, w in zip(hg.tree.leaves(on_device(x)), hg.tree.leaves(want), strict=True):
            np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=rtol, atol=10 * rtol)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_agree_with_the_cpu(name: str, shape: tuple[int, int]) -> None:
    """Four calls each: the first runs kernel by kernel, the others as one launch where the backend captures."""
    _agree(name, shape, 4)


@pytest.mark.parametrize("name", SAMPLE)
def test_sample(name: str) -> None:
    """What a sanitizer looks at."""
    _agree(name, (65, 130), 3)


@pytest.mark.skipif(not str(NAME).startswith("cuda"), reason="only CUDA's products are a library's")
@pytest.mark.parametrize("spec", ["ij,jk->ik", "ji,kj->ik", "bij,bjk->bik", "bji,bkj->bik", "bij,jk->bik", "bij,bjk->ikb"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_products_of_the_library(monkeypatch: pytest.MonkeyPatch, spec: str, dtype: str) -> None:
    monkeypatch.setattr(library, "MIN_FLOPS", 1.0)
    sizes, rng = {"b": 3, "i": 200, "j": 304, "k": 264}, np.random.default_rng(3)
    x, y = (rng.standard_normal([sizes[i] for i in part]) for part in spec.partition("->")[0].split(","))
    a, b = (hg.device_put(hnp.astype(hg.asarray(v), dtype), NAME) for v in (x, y))
    device: Any = devices.find(str(NAME))
    before = device.counts["library_calls"]
    got = hg.jit(lambda a, b: hnp.tanh(hnp.einsum(spec, a, b) * 0.01), device=NAME)(a, b)
    want = np.tanh(np.einsum(spec, x, y) * 0.01)
    np.testing.assert_allclose(np.asarray(got.astype("float64")), want, atol={"bfloat16": 0.02, "float16": 3e-3, "float32": 1e-5}.get(dtype, 1e-12))
    assert device.counts["library_calls"] == before + 1


def test_subnormals_are_kept() -> None:
    x = np.array([1e-40, -3e-42, 1e-38], np.float32)
    if devices.find(str(NAME)).why_not("exact", False) is not None:
        pytest.skip("the device may flush them")
    assert np.array_equal(np.asarray(hg.jit(lambda x: x * 0.5 + x, device=NAME, precision="exact")(x)), x * np.float32(0.5) + x)


def test_results_are_the_same_from_run_to_run() -> None:
    x = np.random.default_rng(1).standard_normal(3_000_000).astype(np.float32)
    f = hg.jit(lambda x: (hnp.sum(x), hnp.sum(hnp.exp(x))), device=NAME)
    results = [[np.asarray(y).tobytes() for y in f(x)] for _ in range(5)]
    assert all(r == results[0] for r in results)


def test_captured_calls_of_tensors_go_without_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values, in a chain of calls that are begun before the first is done, and in a stream of its own."""
    device: Any = devices.find(str(NAME))
    if getattr(getattr(device, "cuda", None), "addresses", None) is None:
        pytest.skip("native code has no functions of the driver to call")
    rng = np.random.default_rng(2)
    params = {f"w{i}": np.linalg.qr(rng.standard_normal((64, 64)))[0].astype(np.float32) for i in range(10)}
    x = rng.standard_normal((64, 64)).astype(np.float32)

    def layers(params: Any, x: Any) -> Any:
        for w in params.values():
            x = hnp.cos(x @ w) * 0.5
        return x

    def by_python(*_: Any) -> Any:
        raise AssertionError("a call went through Python")

    f, on_cpu = hg.jit(layers, device=NAME), hg.jit(layers)
    for stream in (contextlib.nullcontext(), hg.stream(NAME)):
        with stream:
            there, y = hg.device_put((params, x), NAME)
            for _ in range(200):  # by now there are as many events as are in use at one time
                y = f(there, y)
            hg.block_until_ready(y)
            y = hg.device_put(x, NAME)
            with monkeypatch.context() as patch:
                patch.setattr(device.executable, "run", by_python)
                for _ in range(50):
                    y = f(there, y)
            want = x
            for _ in range(50):
                want = np.asarray(on_cpu(params, want))
            np.testing.assert_allclose(np.asarray(y), want, rtol=1e-3, atol=1e-4)


def test_memory_comes_back() -> None:
    device = devices.find(str(NAME))
    f = hg.jit(lambda x: hnp.tanh(x) @ x, device=NAME)
    x = hg.device_put(np.ones((500, 500), np.float32), NAME)
    live = []
    for _ in range(6):
        hg.block_until_ready(f(x))
        live.append(device.runtime.pool.statistics()["live"])
    assert live[-1] == live[2]


@pytest.mark.skipif(not str(NAME).startswith("cuda"), reason="only CUDA arrays pass between libraries without a copy")
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_arrays_pass_without_a_copy(library: str) -> None:
    other = pytest.importorskip(library)
    make = other.arange if library == "cupy" else lambda n, dtype: other.arange(n, dtype=dtype, device="cuda")
    x = make(1000, dtype=other.float32)
    y = hg.jit(lambda x: x * 2 + 1, device=NAME)(x)
    back = other.from_dlpack(y)
    assert (back == x * 2 + 1).all() and (back.data.ptr if library == "cupy" else back.data_ptr()) == y.__cuda_array_interface__["data"][0]
