"""Sorts as kernels of devices: rows by tiles in shared memory, long ones by merging; the order is the reference's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from building import Draft, kernels
from c_harness import run
from needs import needs_compilers, needs_opencl
from optable import mismatch, seeded

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes
from hologram.backends.c.products import PANELS
from hologram.backends.reference import evaluate
from hologram.graph.schedule import Schedule
from hologram.graph.sort_kernels import TILE_BYTES
from hologram.graph.verify import verify_kernel
from hologram.symbolic import var
from hologram.trace.node import Graph

LONG = TILE_BYTES // 4 + 700  # float32: more than a tile of merging, and no whole number of them
# shape, type, op, axis, descending
SORTS: dict[str, tuple[tuple[int, ...], str, str, int, bool]] = {
    "one_row": ((7,), "float32", "sort", 0, False),
    "one_element": ((3, 1), "float32", "argsort", 1, False),
    "short_rows": ((3, 50), "int8", "sort", 1, True),
    "many_short_rows": ((300, 8), "float32", "argsort", 1, False),
    "columns": ((33, 5, 4), "bfloat16", "argsort", 0, True),
    "long_rows": ((2, LONG), "float32", "sort", 1, False),
    "whole_tiles": ((8192,), "uint32", "sort", 0, True),
    "order_of_wide_keys": ((5300,), "int64", "argsort", 0, True),
    "order_of_narrow_keys": ((5000, 2), "float16", "argsort", 0, False),
    "wide_keys": ((9000,), "uint64", "sort", 0, False),
    "doubles": ((2, 2500), "float64", "argsort", 1, False),
}


def graph_of(name: str, d: Draft | None = None) -> Graph:
    shape, dtype, op, axis, descending = SORTS[name]
    d = d or Draft()
    return d.graph(d(op, d.input(*shape, dtype=dtype), axis, descending))


def _values(shape: tuple[int, ...], dtype: str, few: bool) -> np.ndarray:
    """Any values, or ``few`` different ones, the least and the greatest among them."""
    d, rng = dtypes.of(dtype), seeded(dtype, shape, few)
    if d.is_float:
        special = rng.choice(np.array([np.nan, -np.nan, -0.0, 0.0, np.inf, -np.inf, 1.0, -3.5]), shape)
        return (special if few else rng.standard_normal(shape)).astype(d.np)
    ends = np.iinfo(d.np)
    some = rng.choice(np.array([ends.min, ends.max, 0, 1], d.np), shape)
    return some if few else rng.integers(ends.min, ends.max, shape, d.np, endpoint=True)  # type: ignore[no-any-return, call-overload]


@needs_compilers
@pytest.mark.parametrize("name", SORTS)
def test_sorts_give_the_reference(name: str, tmp_path: Path, everything: bool) -> None:
    shape, dtype, *_ = SORTS[name]
    graph = graph_of(name)
    schedule = Schedule(graph, "exact", PANELS)
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
    schedule = Schedule(graph_of("long_rows"), "standard", PANELS)
    assert all(k.ready is None for k in kernels(schedule))
    merges = [k for k in kernels(schedule) if len(k.scratch) == 1]
    assert len(merges) == 2  # runs of 2,048 and of 4,096
    assert sum(b.size * b.dtype.itemsize for k in merges for b in k.scratch) == 2 * TILE_BYTES  # type: ignore[misc]


def test_rows_of_unknown_length_stay_a_routine() -> None:
    d = Draft()
    schedule = Schedule(d.graph(d("sort", d.input(4, var("n")), 1, False)), "standard", PANELS)
    assert [k.ready is not None for k in kernels(schedule)].count(True) == 1


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
