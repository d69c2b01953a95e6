"""Scatters of many updates on devices: sorted by places, in runs; few places are counted. The order is the reference's where it matters."""

from __future__ import annotations

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.c.analysis.gemm import GPU_TILE
from hologram.graph.kernel.verify import verify_kernel
from hologram.graph.legalize import sorts
from hologram.graph.pipeline import compile_to_plan
from hologram.ir.interpreter import evaluate
from tests.support.building import Draft, kernels
from tests.support.devices.c_harness import new_folder, run
from tests.support.graphs.scatters import SCATTERS, scattered
from tests.support.needs import needs_compilers, needs_opencl
from tests.support.optable import mismatch, seeded


@needs_compilers
@pytest.mark.parametrize("updates", [12, 200])
@pytest.mark.parametrize("dialect", ["c", "cuda", "metal"])
def test_indices_are_compared_whole(dialect: str, updates: int) -> None:
    """What is out of range stays so, though its lower half be in range."""
    d, rng = Draft(), seeded("far", updates)
    x, i, u = d.input(50), d.input(updates, dtype="int64"), d.input(updates)
    indices = rng.integers(0, 50, updates)
    indices[:8] = [2**32 + 3, 3 - 2**32, 2**63 - 1, -(2**63), 2**32 - 1, 2**31, -(2**31), 50]
    arrays = [np.zeros(50, np.float32), indices, np.ones(updates, np.float32)]
    graph = d.graph(d.scatter("scatter_add", x, i, u, 0, 0))
    (got,) = run(compile_to_plan(graph, "standard", GPU_TILE), arrays, new_folder(), "standard", dialect=dialect)
    np.testing.assert_array_equal(got, np.bincount(indices[8:], minlength=50))


@pytest.mark.crossed
@needs_compilers
@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("name", SCATTERS)
def test_sorted_scatters_give_the_reference(name: str, uniform: bool, everything: bool) -> None:
    turn = list(SCATTERS).index(name) + uniform
    graph, arrays = scattered(name, uniform)
    for dialect in ("c", "cuda", "metal") if everything else [("c", "cuda", "metal")[turn % 3]]:
        for precision in ("exact", "standard") if everything else [("exact", "standard")[turn % 2]]:
            schedule = compile_to_plan(graph, precision, GPU_TILE)
            for k in kernels(schedule):
                verify_kernel(k)
            assert not any(g.nodes[0].op.kind == "scatter" for g in schedule.groups)  # type: ignore[union-attr]
            (got,), (want,) = run(schedule, arrays, new_folder(), precision, dialect=dialect), evaluate(graph, arrays)
            if precision == "exact" or got.dtype.kind != "f":
                assert not mismatch(got, want, 0).any(), (dialect, precision)
            else:
                np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


WINDOWS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], int]] = {
    "neighbours": ("scatter_add", (9, 20), (300,), (0, 1), (1, 1), 0),
    "apart": ("scatter_set", (7, 3, 11), (200,), (0, 2), (1, 1), 0),
    "overlapping": ("scatter_add", (30, 4), (150,), (0,), (5,), 0),
    "corners": ("scatter_max", (12, 5, 13), (140,), (0, 2), (2, 3), 0),
    "shared": ("scatter_mul", (2, 9, 8), (2, 130), (1, 2), (2, 1), 1),
    "one": ("scatter_set", (50, 70), (), (0, 1), (3, 40), 0),
    "few": ("scatter_add", (6, 5, 40), (2, 3), (0, 1), (2, 1), 0),
}


@pytest.mark.costly(3)
@needs_compilers
@pytest.mark.parametrize("dialect", ["c", "cuda", "metal"])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name: str, dialect: str) -> None:
    """Of several axes, of more than one element, some of them outside: sorted by where their elements go, or one after the other."""
    op, shape, places, axes, sizes, batch = WINDOWS[name]
    d, rng = Draft(), seeded(name)
    size_of = dict(zip(axes, sizes, strict=True))
    window = [size_of.get(a, n) for a, n in enumerate(shape) if a >= batch]
    x, u = d.input(*shape, dtype="int32"), d.input(*places, *window, dtype="int32")
    starts = [d.input(*places, dtype="int32") for _ in axes]
    graph = d.graph(d(op, x, u, *starts, axes, batch))
    arrays = [rng.integers(1, 9, n.shape).astype(np.int32) for n in (x, u)]
    arrays += [rng.integers(-1, shape[a] - n + 2, places).astype(np.int32) for a, n in zip(axes, sizes, strict=True)]
    schedule = compile_to_plan(graph, "exact", GPU_TILE)
    for k in kernels(schedule):
        verify_kernel(k)
    (got,), (want,) = run(schedule, arrays, new_folder(), dialect=dialect), evaluate(graph, arrays)
    np.testing.assert_array_equal(got, want)


def test_few_updates_go_one_after_the_other() -> None:
    d = Draft()
    x, i, u = d.input(50), d.input(100, dtype="int32"), d.input(100)
    schedule = compile_to_plan(d.graph(d.scatter("scatter_add", x, i, u, 0, 0)), "standard", GPU_TILE)
    assert [g.nodes[0].op.kind for g in schedule.groups] == ["scatter"]  # type: ignore[union-attr]


def test_no_item_has_more_than_the_root_of_all_updates() -> None:
    d, m = Draft(), 2**20
    schedule = compile_to_plan(d.graph(d.scatter("scatter_add", d.input(1000), d.input(m, dtype="int32"), d.input(m), 0, 0)), "standard", GPU_TILE)
    cuts = {g.nodes[0].attrs[3] for g in schedule.groups if g.nodes[0].op.kind == "runs"}  # type: ignore[union-attr]
    assert cuts == {1024}


def test_a_histogram_is_one_reading_of_its_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorts, "radix_sorted", None)
    n = 2**24
    f = hg.jit(lambda x: hnp.bincount(x, length=255), device="null")
    compiled = f.lower(hg.ShapeDtypeStruct((n,), "uint8")).compile()
    assert compiled.reduction().kernels <= 4 and compiled.memory_analysis().peak < n // 8


@needs_compilers
def test_numbers_of_updates_of_another_type() -> None:
    """Updates that are all alike though nothing has simplified them: -1, as bytes 255, 700 times."""
    d = Draft()
    updates = d("cast", d.spread(d("cast", d.const(-1, "int8"), "uint8"), (700,)), "int32")
    graph = d.graph(d.scatter("scatter_add", d.input(200, dtype="int32"), d.input(700, dtype="int32"), updates, 0, 0))
    schedule = compile_to_plan(graph, "exact", GPU_TILE)
    assert not any(g.nodes[0].op.kind == "runs" for g in schedule.groups)  # type: ignore[union-attr]
    indices = seeded("bytes").integers(0, 200, 700).astype(np.int32)
    (got,) = run(schedule, [np.ones(200, np.int32), indices], new_folder())
    np.testing.assert_array_equal(got, 1 + 255 * np.bincount(indices, minlength=200))


@needs_opencl
def test_histograms_of_any_length() -> None:
    f = hg.jit(lambda x: hnp.bincount(x, length=300), device="opencl", dynamic=True)
    for n in (3, 4000):
        x = seeded("bins", n).integers(0, 310, n)
        np.testing.assert_array_equal(np.asarray(f(x)), np.bincount(x, minlength=310)[:300])
