"""Scans along the last axis in C, a page at one time: bits of the reference, for every length, dtype, monoid and what stands around the scan."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hologram.backends.c.analysis.scans import find_turns, neighbours
from hologram.backends.c.grid import MAX_ITEMS, scans
from hologram.backends.c.source import Program
from hologram.graph.kernel.ir import Loop
from hologram.graph.pipeline import compile_to_plan
from hologram.ir.interpreter import evaluate
from hologram.ir.node import Node
from tests.support.building import Draft, kernels
from tests.support.devices.c_harness import run
from tests.support.needs import needs_compilers
from tests.support.optable import mismatch, seeded

LENGTHS = (1, 3, 15, 16, 20, 33, 130, 1000, 3071, 3072, 3073, 6404, 9219, 20_000)
TYPES = [
    ("cuda", "float32"),
    ("cuda", "float16"),
    ("metal", "bfloat16"),
    ("cuda", "float64"),
    ("metal", "int32"),
    ("cuda", "int64"),
    ("cuda", "uint8"),
]
OPS = ("cumsum", "cumprod", "cummax", "cummin")


def _values(x: Node, rng: np.random.Generator) -> np.ndarray:
    if x.dtype.kind == "b":
        return rng.random(x.shape) < 0.7
    if x.dtype.is_float:
        values = 1 + rng.standard_normal(x.shape) / 30
        for rare in (np.nan, -0.0, np.inf):
            values[rng.random(x.shape) < 1e-4] = rare
        return values.astype(x.dtype.np)
    return rng.integers(0, 9, x.shape).astype(x.dtype.np)


def _check(outputs: Callable[[Draft], list[Node]], dialect: str, tmp_path: Path, **options: Any) -> None:
    d = Draft()
    graph = d.graph(*outputs(d))
    arrays = [_values(x, seeded(x.shape, str(x.dtype), i)) for i, x in enumerate(graph.inputs)]
    got = run(compile_to_plan(graph, "exact"), arrays, tmp_path, dialect=dialect, **options)
    for g, w in zip(got, evaluate(graph, arrays), strict=True):
        assert not mismatch(g, w, 0).any(), w.shape


@pytest.mark.crossed
@needs_compilers
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("dialect", "dtype"), TYPES)
def test_scans_of_every_length_and_dtype_give_the_reference(dialect: str, dtype: str, reverse: bool, tmp_path: Path) -> None:
    """Each length with an operation of its own."""

    def outputs(d: Draft) -> list[Node]:
        return [d(OPS[(i + reverse) % 4], d.input(1 + i % 3, n, dtype=dtype), 1, reverse) for i, n in enumerate(LENGTHS)]

    _check(outputs, dialect, tmp_path)


def _kept(d: Draft) -> list[Node]:
    """What is read before the scan and used after it, whole vectors and not, from one row and from several."""
    out = []
    for shape in ((2, 3072), (2, 77), (1, 5000)):
        x, y, m = d.input(*shape), d.input(*shape), d.input(shape[1], dtype="bool")
        s = d("cumsum", d("select", d.spread(m, shape, 1), d("mul", x, y), x), 1, False)
        out += [d("div", d("sqrt", x), s), d("mul", s, d("cast", d.spread(m, shape, 1), "float32"))]
    return out


def _several(d: Draft) -> list[Node]:
    """In one loop, of one dtype and of two; totals beside running values."""
    x, y = d.input(3, 2000), d.input(3, 2000, dtype="float64")
    s, t = d("cumsum", x, 1, False), d("cummax", x, 1, False)
    u = d("cumprod", y, 1, False)
    return [d("add", d("sub", s, t), d("cast", u, "float32")), d.part(s, 1, 1999, 2000), d.part(d("cummin", x, 1, False), 1, 1999, 2000)]


def _nested(d: Draft) -> list[Node]:
    """A scan of a scan, and of what is computed from two."""
    x = d.input(2, 1100)
    s = d("cumsum", x, 1, False)
    t = d("cumsum", d("mul", s, x), 1, False)
    return [s, t, d("cummax", d("sub", t, s), 1, False)]


def _after_rows(d: Draft) -> list[Node]:
    """Rows that a reduction has written to scratch."""
    x, y = d.input(3, 300), d.input(2, 128)
    squares = d("square", x)
    return [
        d("cumsum", d("div", squares, d.over_rows("reduce_sum", squares)), 1, False),
        d("cumsum", d("sub", y, d.over_rows("reduce_max", y)), 1, True),
    ]


def _places(d: Draft) -> list[Node]:
    """Parts of rows, beginning on and off a vector's edge, strided, and elements at indices that a scan has found."""
    x = d.input(3, 1200)
    out = [d("cumsum", d.part(x, 1, a, b), 1, False) for a, b in ((0, 1024), (4, 1028), (3, 1027), (8, 1107))]
    out.append(d("cumsum", d.part(x, 1, 0, 1200, 2), 1, False))
    index = d("cumsum", d.input(40, dtype="int32"), 0, False)
    return [*out, d.take(d.input(500), index, 0)]


AROUND = {"kept": _kept, "several": _several, "nested": _nested, "after_rows": _after_rows, "places": _places}


@pytest.mark.crossed
@needs_compilers
@pytest.mark.parametrize("dialect", ["cuda", "metal", "c"])
@pytest.mark.parametrize("name", AROUND)
def test_what_stands_around_scans_gives_the_reference(name: str, dialect: str, tmp_path: Path) -> None:
    if dialect == "metal" and name == "several":
        pytest.skip("float64")
    _check(AROUND[name], dialect, tmp_path, groups=2)


def _scan_loops(outputs: Callable[[Draft], list[Node]]) -> tuple[list[Loop], str]:
    d = Draft()
    plan = kernels(d.schedule(*outputs(d)))
    loops = [s for k in plan for s in k.walk() if isinstance(s, Loop) and s.kind == "lanes" and scans(s)]
    return loops, Program(plan, "cuda").text


@pytest.mark.parametrize(("dtype", "width"), [("float32", 4), ("float16", 4), ("float64", 2)])
def test_a_page_has_two_barriers_and_whole_vectors(dtype: str, width: int) -> None:
    loops, text = _scan_loops(lambda d: [d("cumsum", d.input(8 * 3072, dtype=dtype), 0, False)])
    assert len(loops) == 2  # totals, and the scan
    for loop in loops:
        turns = find_turns(loop, MAX_ITEMS)
        assert turns is not None and turns.neighbours == neighbours(loop) == width
        assert turns.elements * MAX_ITEMS == 3072
    kinds = {"float32": "f32", "float16": "u16", "float64": "f64"}
    for name in ("kernel0", "kernel2"):
        body = text.partition(f"{name}(")[2].partition("\n}")[0]
        assert body.count("__syncthreads();") == 2 and f"*(const hg_{kinds[dtype]}x{width} *)(b0 + " in body
    assert f"*(hg_{kinds[dtype]}x{width} *)(b2 + " in body


def test_totals_need_no_running_values() -> None:
    """The last of a group of 16 is a tree's: of an item's own neighbours, and of two exchanges."""
    _, text = _scan_loops(lambda d: [d("cumsum", d.input(8 * 3072), 0, False)])
    totals, scan = (text.partition(f"{name}(")[2].partition("\n}")[0] for name in ("kernel0", "kernel2"))
    assert totals.count("hg_up(") == 2 and scan.count("hg_up(") == 11
    assert not re.search(r"hg_before\w+\[hg_turn", totals) and re.search(r"hg_before\w+\[hg_turn", scan)


def test_rows_off_the_edge_of_vectors_are_taken_one_by_one() -> None:
    (loop,), _ = _scan_loops(lambda d: [d("cumsum", d.input(5, 3071), 1, False)])
    turns = find_turns(loop, MAX_ITEMS)
    assert turns is not None and (turns.neighbours, turns.turns, turns.vectors) == (1, 12, frozenset())
