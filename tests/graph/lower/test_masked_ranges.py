"""Reductions under masks run over the elements that count alone, with the bits of the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hologram.graph.kernel.ir import Loop
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.ir.node import Node
from hologram.ir.symbolic import var
from hologram.primitives.reductions import PAGE
from tests.support.building import Draft, kernels, scheduled
from tests.support.devices.c_harness import run as run_in_c
from tests.support.kernel_interpreter import run_schedule
from tests.support.needs import needs_compilers
from tests.support.optable import compiler, mismatch, seeded

REDUCTIONS = [
    ("reduce_sum", "float32", 0.0), ("reduce_sum", "float32", -0.0), ("reduce_sum", "float64", 0.0), ("reduce_sum", "int32", 0),
    ("reduce_max", "float32", 0.5), ("reduce_max", "float64", -np.inf), ("reduce_min", "int64", 3), ("reduce_max", "uint8", 0),
    ("reduce_prod", "float32", 1.0), ("reduce_sum", "float32", 1.0), ("reduce_sum", "float16", 0.0),
]  # fmt: skip
SIZES = (63, 64, 65, 96, 200, 1000, PAGE, PAGE + 100)


def masked(d: Draft, conditions: Any, x: Node, other: Node, is_inverted: bool, op: str) -> Node:
    """A reduction along the last axis of ``x`` where the indices fulfil ``conditions``, (op, end, offset) each, and of ``other`` elsewhere."""
    last = x.ndim - 1
    mask = None
    for compare, end, offset in conditions:
        i = d("iota", (x.shape[last],), 0, end.dtype.name)
        i = d.spread(d("add", i, d.spread(d.const(offset, end.dtype.name), i.shape)) if offset else i, x.shape, last)
        end = d.spread(end, x.shape, *range(end.ndim))
        this = d(compare, i, end) if offset % 2 == 0 else d({"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq"}[compare], end, i)
        mask = this if mask is None else d("and", mask, this)
    assert mask is not None
    fill = d.spread(other, x.shape)
    mask, parts = (d("not", mask), (fill, x)) if is_inverted else (mask, (x, fill))
    return d(op, d("select", mask, *parts), (last,))


def run(graph: Graph, arrays: list[np.ndarray]) -> None:
    (want,) = evaluate(graph, arrays)
    for got in (run_schedule(scheduled(graph), arrays)[0], compiler()(graph, precision="exact").run_numpy(arrays)[0]):
        assert not mismatch(got, want, 0).any(), (got, want)


@given(
    st.sampled_from(REDUCTIONS),
    st.sampled_from(SIZES),
    st.sampled_from([None, 3]),
    st.lists(
        st.tuples(st.sampled_from(["lt", "le", "gt", "ge", "eq"]), st.sampled_from(["int64", "int32"]), st.integers(0, 2)), min_size=1, max_size=3
    ),
    st.booleans(),
    st.data(),
)
def test_bits_are_those_of_all_elements(reduction: Any, n: int, rows: int | None, conditions: Any, is_inverted: bool, data: Any) -> None:
    op, dtype, other = reduction
    d = Draft()
    shape = (n,) if rows is None else (rows, n)
    x = d.input(*shape, dtype=dtype)
    ends = [d.input(*shape[:-1], dtype=kind) for _, kind, _ in conditions]
    chosen = [(name, end, offset) for (name, _, offset), end in zip(conditions, ends, strict=True)]
    graph = d.graph(masked(d, chosen, x, d.const(other, dtype), is_inverted and len(chosen) == 1, op))
    rng = seeded(data.draw(st.integers(0, 10**6)))
    values = rng.standard_normal(shape) if np.dtype(dtype).kind == "f" else rng.integers(0, 50, shape)
    values = np.where(rng.random(shape) < 0.1, np.nan, values) if op == "reduce_max" and dtype == "float32" else values
    values = np.full(shape, -0.0) if data.draw(st.integers(0, 5)) == 0 and np.dtype(dtype).kind == "f" else values
    places = [-(2**31), -1, 0, 1, 31, 32, 33, 62, 63, n // 2, n - 33, n - 1, n, n + 1, 2**31 - 1]
    places = [st.sampled_from([*places, -(2**63), 2**63 - 1] if kind == "int64" else places) for _, kind, _ in conditions]
    given_ends = [
        np.array([data.draw(p) for _ in range(rows or 1)], kind).reshape(shape[:-1]) for p, (_, kind, _) in zip(places, conditions, strict=True)
    ]
    run(graph, [values.astype(dtype), *given_ends])


@pytest.mark.parametrize("compare", ["lt", "gt"])
def test_a_loop_ends_where_nothing_counts_any_more(compare: str) -> None:
    d = Draft()
    x, end = d.input(1000), d.input(dtype="int64")
    (kernel,) = kernels(scheduled(d.graph(masked(d, [(compare, end, 0)], x, d.const(0.0), False, "reduce_sum"))))
    (loop,) = [s for s in kernel.walk() if isinstance(s, Loop) and s.accs]
    assert (loop.limit not in (None, 1000)) == (compare == "lt") and (loop.start != 0) == (compare == "gt")


@pytest.mark.parametrize("other", [1.0, np.nan])
def test_what_counts_elsewhere_is_not_left_out(other: float) -> None:
    d = Draft()
    x, end = d.input(1000), d.input(dtype="int64")
    (kernel,) = kernels(scheduled(d.graph(masked(d, [("lt", end, 0)], x, d.const(other), False, "reduce_sum"))))
    assert not [s for s in kernel.walk() if isinstance(s, Loop) and s.limit is not None]


@pytest.mark.parametrize("compare", ["lt", "ge"])
@pytest.mark.parametrize("reduction", [("reduce_sum", 0.0), ("reduce_max", -np.inf)], ids=str)
def test_columns_that_count_from_or_up_to_places_of_their_own(reduction: Any, compare: str) -> None:
    """Lanes lie across columns, so no range is that of all of them; one that is the same for all columns is taken."""
    op, other = reduction
    d = Draft()
    x, end = d.input(100, 130), d.input(dtype="int64")
    row, column = (d("iota", x.shape, axis, "int64") for axis in (0, 1))
    fill = d.spread(d.const(other), x.shape)
    for k, bound in enumerate([column, d.spread(end, x.shape)]):
        graph = d.graph(d(op, d("select", d(compare, row, bound), x, fill), (0,)))
        (kernel,) = kernels(scheduled(graph))
        (loop,) = [s for s in kernel.walk() if isinstance(s, Loop) and s.accs]
        assert (loop.limit is not None) == (k == 1)
        run(graph, [seeded(op).standard_normal(n.shape).astype(n.dtype.np) if n.ndim else np.array(37) for n in graph.inputs])


def test_columns_of_windows_that_leave_an_axis_of_symbolic_extent() -> None:
    """What is beyond the end changes no maximum, but begins at another row in each lane."""

    def graph(n: Any) -> Graph:
        d = Draft()
        x = d("pad", d.input(n), d.const(-np.inf), (0,), (69,))
        return d.graph(d("reduce_max", d("windows", x, (70,), (1,), (1,)), (0,)))

    executable = compiler()(graph(var("n0", 1)), precision="exact")
    for n in (5, 200):
        x = seeded(n).standard_normal(n).astype(np.float32)
        (want,), (got,) = evaluate(graph(n), [x]), executable.run_numpy([x])
        assert not mismatch(got, want, 0).any()


@needs_compilers
@pytest.mark.parametrize("reduction", REDUCTIONS[:4] + REDUCTIONS[6:8], ids=str)
def test_devices_keep_the_bits(reduction: Any, tmp_path: Path) -> None:
    """Ranges with both ends, of rows: near the ends, empty, and whole."""
    op, dtype, other = reduction
    d = Draft()
    x, first, end = d.input(8, 300, dtype=dtype), d.input(8, dtype="int64"), d.input(8, dtype="int64")
    graph = d.graph(masked(d, [("ge", first, 0), ("lt", end, 0)], x, d.const(other, dtype), False, op))
    rng = seeded(op)
    values = rng.standard_normal((8, 300)) if np.dtype(dtype).kind == "f" else rng.integers(0, 50, (8, 300))
    arrays = [values.astype(dtype), np.array([-5, 0, 31, 64, 200, 299, 300, 32]), np.array([400, 300, 32, 63, 100, 300, 301, 289])]
    (got,), (want,) = run_in_c(scheduled(graph), arrays, tmp_path), evaluate(graph, arrays)
    assert not mismatch(got, want, 0).any(), (got, want)
