"""Sorts as kernels of devices: rows by tiles in shared memory, longer ones by merging or by digits; the order is the reference's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes
from hologram.backends.c.analysis.gemm import GPU_TILE, MATRIX_UNIT_TILE
from hologram.backends.c.dialects import DIALECTS
from hologram.backends.c.grid import Mapping
from hologram.backends.c.scalars import Scalars
from hologram.graph.fusion.groups import Group
from hologram.graph.kernel.verify import verify_kernel
from hologram.graph.legalize import radix_plan, sorts
from hologram.graph.legalize.radix_plan import layout
from hologram.graph.library.sort.merge import TILE_BYTES
from hologram.graph.pipeline import compile_to_plan
from hologram.graph.schedule.tiles import GpuTileConfig
from hologram.ir.interpreter import evaluate
from hologram.ir.symbolic import var
from tests.support.building import Draft, kernels
from tests.support.devices.c_harness import run
from tests.support.graphs.sorts import BY_DIGITS, SORTS, graph_of
from tests.support.needs import needs_compilers, needs_opencl
from tests.support.optable import mismatch, seeded

pytestmark = pytest.mark.costly(2)


def _values(shape: tuple[int, ...], dtype: str, few: bool) -> np.ndarray:
    """Any values, or ``few`` different ones, the least and the greatest among them."""
    d, rng = dtypes.of(dtype), seeded(dtype, shape, few)
    if d.is_float:
        special = rng.choice(np.array([np.nan, -np.nan, -0.0, 0.0, np.inf, -np.inf, 1.0, -3.5]), shape)
        return (special if few else rng.standard_normal(shape)).astype(d.np)
    if d.kind == "b":
        return rng.random(shape) < 0.3
    ends = np.iinfo(d.np)
    some = rng.choice(np.array([ends.min, ends.max, 0, 1], d.np), shape)
    return some if few else rng.integers(ends.min, ends.max, shape, d.np, endpoint=True)  # type: ignore[no-any-return, call-overload]


@pytest.mark.costly(2)
@needs_compilers
@pytest.mark.parametrize("name", SORTS)
def test_sorts_give_the_reference(name: str, tmp_path: Path, everything: bool) -> None:
    shape, dtype, *_ = SORTS[name]
    graph = graph_of(name)
    schedule = compile_to_plan(graph, "exact", GPU_TILE)
    for k in kernels(schedule):
        verify_kernel(k)
    turn = list(SORTS).index(name)
    able = ["c", "cuda"] if "64" in dtype and dtype.startswith("float") else ["c", "cuda", "metal"]
    for dialect in able if everything else [able[turn % len(able)]]:
        for few in (False, True):
            array = _values(shape, dtype, few)
            (got,), (want,) = run(schedule, [array], tmp_path, dialect=dialect), evaluate(graph, [array])
            assert not mismatch(got, want, 0).any(), (dialect, few)


def test_long_rows_are_merged_and_nothing_is_left_to_the_host() -> None:
    schedule = compile_to_plan(graph_of("long_rows"), "standard", GPU_TILE)
    assert all(k.ready is None for k in kernels(schedule))
    merges = [k for k in kernels(schedule) if len(k.scratch) == 1]
    assert len(merges) == 2  # runs of 2,048 and of 4,096
    assert sum(b.size * b.dtype.itemsize for k in merges for b in k.scratch) == 2 * TILE_BYTES  # type: ignore[misc]


@pytest.mark.costly(3)
@needs_compilers
@pytest.mark.parametrize("name", BY_DIGITS)
def test_sorts_by_digits_give_the_reference(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, everything: bool) -> None:
    monkeypatch.setattr(sorts, "is_worth", lambda *_: True)
    monkeypatch.setattr(
        radix_plan, "MAX_UNBLOCKED_TILES", 0 if name in ("floats", "order_of_bytes") else radix_plan.MAX_UNBLOCKED_TILES
    )  # tiles are summed in blocks
    shape, dtype, *_ = BY_DIGITS[name]
    graph = graph_of(name)
    turn = list(BY_DIGITS).index(name)
    able = ["cuda", "c"] if dtype == "float64" else ["cuda", "c", "metal"]
    for dialect in able if everything else [able[turn % len(able)]]:
        schedule = compile_to_plan(graph, "exact", MATRIX_UNIT_TILE if dialect == "cuda" else GPU_TILE)
        for k in kernels(schedule):
            verify_kernel(k)
        for few in (False, True) if everything else [turn % 2 == 0]:
            array = _values(shape, dtype, few)
            (got,), (want,) = run(schedule, [array], tmp_path, dialect=dialect), evaluate(graph, [array])
            assert not mismatch(got, want, 0).any(), (dialect, few)


def test_passes_are_as_few_as_keys_have_digits() -> None:
    def moves(shape: tuple[int, ...], dtype: str, op: str = "sort") -> int:
        d = Draft()
        schedule = compile_to_plan(d.graph(d(op, d.input(*shape, dtype=dtype), len(shape) - 1, False)), "exact", MATRIX_UNIT_TILE)
        assert all(k.ready is None for k in kernels(schedule))
        return sum(g.nodes[0].op.name == "digit_move" for g in schedule.groups if isinstance(g, Group))

    long = 2**24
    assert [moves((long,), dtype) for dtype in ("uint8", "float16", "float32", "int64")] == [1, 2, 4, 8]
    assert [moves((long,), dtype, "argsort") for dtype in ("uint8", "bfloat16", "float32", "float64")] == [1, 2, 4, 8]
    assert moves((2**16,), "float32") == moves((2**20, 16), "uint8") == 0  # few launches, and rows that would not fill their tiles
    assert moves((var("n"),), "float32") == 4


def test_a_long_sort_takes_two_arrays_of_items_and_counters() -> None:
    n = 2**24
    for dtype, op, item in (("float32", "sort", 4), ("int8", "sort", 1), ("float32", "argsort", 8)):
        d = Draft()
        schedule = compile_to_plan(d.graph(d(op, d.input(n, dtype=dtype), 0, False)), "exact", MATRIX_UNIT_TILE)
        assert schedule.allocate({}).arena_bytes <= 2.3 * n * item


@pytest.mark.parametrize("shared_bytes", [32 * 1024, 48 * 1024])
def test_tiles_fit_in_shared_memory(shared_bytes: int) -> None:
    for itemsize in (1, 2, 4, 8):
        found = layout(itemsize, shared_bytes)
        assert found.own % 2 and found.tile // radix_plan.COUNTING_ITEMS <= radix_plan.MAX_COUNTED and found.at_once >= 4
    for name in BY_DIGITS:
        schedule = compile_to_plan(graph_of(name), "exact", GpuTileConfig(128, 128, None, shared_bytes))
        dialect = DIALECTS["cuda" if shared_bytes == 48 * 1024 else "metal"]
        if dialect.double or "double" not in name:
            assert not any(Mapping(k, Scalars(dialect)).in_workspace for k in kernels(schedule))


@needs_opencl
def test_rows_of_unknown_length() -> None:
    f = hg.jit(hnp.argsort, device="opencl", dynamic=True)
    for n in (3, 50_000):
        x = seeded("length", n).integers(0, 100, n).astype(np.int8)
        np.testing.assert_array_equal(np.asarray(f(x)), np.argsort(x, kind="stable"))
    assert f.lower(x).compile().reduction().host_calls == 0


@needs_opencl
def test_any_number_of_rows() -> None:
    """The rows' number may be a symbol: it counts chunks, not passes."""
    f = hg.jit(lambda x: hnp.sort(x, axis=1), device="opencl", dynamic={0: [0]})
    for rows in (3, 70):
        x = seeded("rows", rows).standard_normal((rows, 6)).astype(np.float32)
        np.testing.assert_array_equal(np.asarray(f(x)), np.sort(x, axis=1))


@needs_opencl
def test_what_is_made_of_sorts_runs_on_the_device() -> None:
    def parts(x: Any) -> Any:
        return hnp.median(x), hnp.sort(x)[::-1][:5], hnp.take(x, hnp.argsort(x))

    x = seeded("parts").standard_normal(50).astype(np.float32)
    f = hg.jit(parts, device="opencl", precision="exact")
    assert f.lower(x).compile().reduction().host_calls == 0
    for got, want in zip(f(x), hg.jit(parts, precision="exact")(x), strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
