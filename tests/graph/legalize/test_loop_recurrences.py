"""Shorter recurrences: loops give what they gave, bit by bit, and what a step waits for enters last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.legalize.loop_recurrences import shorten_recurrences
from hologram.graph.pipeline import canonicalise
from hologram.ir.graph import Graph, bodies
from hologram.ir.interpreter import evaluate
from hologram.ir.node import Node

OPS: dict[str, tuple[Callable[[Any, Any], Any], ...]] = {
    "f": (hnp.maximum, hnp.minimum, hnp.add),
    "i": (hnp.maximum, hnp.minimum, hnp.add, hnp.multiply, hnp.bitwise_xor, hnp.bitwise_and),
    "u": (hnp.maximum, hnp.minimum, hnp.add, hnp.multiply, hnp.bitwise_or),
}
DTYPES = ("float64", "float32", "int64", "int8", "uint8", "uint64")


def _special(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers among which many are equal, at the ends of their type, or none."""
    if dtype.kind == "f":
        return rng.choice(np.array([0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan], dtype), shape)
    ends = np.iinfo(dtype)
    return rng.choice(np.array([ends.min, ends.min + 1 if ends.min else 1, 0, 1, 2, 3, ends.max - 1, ends.max], dtype), shape)


def _step(seed: int, kind: str) -> Callable[[Any, Any], Any]:
    """A random step of two carries and a row of four numbers: trees of few ops, and choices."""

    def step(carry: Any, row: Any) -> Any:
        rng = np.random.default_rng(seed)
        values = [carry[0], carry[1], *[row[k] for k in range(4)]]

        def value() -> Any:
            return values[rng.integers(len(values))]

        for _ in range(rng.integers(2, 7)):
            f = OPS[kind][rng.integers(len(OPS[kind]))]
            made = value()
            for _ in range(rng.integers(1, 4)):
                made = f(made, value()) if rng.random() < 0.5 else f(value(), made)
            if rng.random() < 0.6:
                sides = (made, value()) if rng.random() < 0.5 else (value(), made)
                made = hnp.where(row[rng.integers(4)] == row[rng.integers(4)], *sides)
            values.append(made)
        return (values[-1], values[-2] if rng.random() < 0.5 else carry[0]), values[-1]

    return step


def _bits(a: np.ndarray) -> np.ndarray:
    """The bits of numbers; of all that are none, the same."""
    a = np.where(np.isnan(a), np.array(np.nan, a.dtype), a) if a.dtype.kind == "f" else a
    return a.view(f"u{a.dtype.itemsize}")


@given(seed=st.integers(0, 10**6), dtype=st.sampled_from(DTYPES))
def test_results_are_the_same(seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    d = np.dtype(dtype)
    step = _step(seed, d.kind)
    rows, first = _special(rng, d, (12, 4)), _special(rng, d, (2,))

    def f(rows: Any, first: Any) -> Any:
        return hg.scan(step, (first[0], first[1]), rows)[1]

    graph = canonicalise(hg.make_graph(f)(rows, first), "exact")
    (want,) = evaluate(graph, [rows, first])
    (got,) = evaluate(shorten_recurrences(graph), [rows, first])
    assert np.array_equal(_bits(got), _bits(want)), f"{graph}\n{shorten_recurrences(graph)}"
    assert np.array_equal(_bits(np.asarray(hg.jit(f, precision="exact")(rows, first))), _bits(want))


# --- what a step waits for ---------------------------------------------------------------------------------------------


def _body(f: Callable[..., Any], *args: Any) -> tuple[Graph, Graph]:
    """The body of the only loop of a function, before and after the pass."""
    graph = canonicalise(hg.make_graph(f)(*args), "exact")
    found = [next(bodies(n)[-1].graph for n in g.nodes() if bodies(n)) for g in (graph, shorten_recurrences(graph))]
    return found[0], found[1]


def _chain(body: Graph, carry: Node) -> list[str]:
    """The ops from a carry to the only carry's next value, along the longest way."""
    ways: dict[Node, list[str]] = {carry: []}
    for n in body.nodes():
        before = [ways[x] for x in n.inputs if x in ways]
        if before:
            ways[n] = [*max(before, key=len), *([n.op.name] if n.op.kind == "elementwise" else [])]
    return ways[body.outputs[0]]


def _carried(step: Callable[[Any, Any], Any], dtype: Any) -> tuple[list[str], list[str]]:
    rows = np.ones((5, 4), dtype)

    def f(rows: Any) -> Any:
        return hg.scan(lambda c, row: (step(c, row),) * 2, hnp.zeros((), dtype), rows)[1]

    before, after = _body(f, rows)
    return _chain(before, before.inputs[0]), _chain(after, after.inputs[0])


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_late_operands_of_a_tree_enter_last(dtype: Any) -> None:
    chains = _carried(lambda c, row: row[0] + hnp.minimum(row[1], hnp.minimum(row[2], hnp.minimum(c, row[3]))), dtype)
    assert chains == (["min", "min", "min", "add"], ["min", "add"])


@pytest.mark.parametrize("op", [hnp.maximum, hnp.minimum])
@pytest.mark.parametrize("first", [False, True])
def test_a_choice_of_an_extreme_takes_one_comparison(op: Any, first: bool) -> None:
    def step(c: Any, row: Any) -> Any:
        longest = op(row[0], c)
        return hnp.where(row[1] == row[2], *((longest, row[3]) if first else (row[3], longest)))

    before, after = _carried(step, np.int64)
    assert len(before) == 2 and before[-1] == "select"
    assert after == ["lt", "select"]


def test_floats_are_added_in_their_order() -> None:
    before, after = _carried(lambda c, row: ((c + row[0]) + row[1]) + row[2], np.float64)
    assert before == after == ["add", "add", "add"]


def test_what_others_read_stays() -> None:
    def f(rows: Any) -> Any:
        def step(c: Any, row: Any) -> Any:
            inner = hnp.minimum(c, row[0])
            return hnp.minimum(inner, row[1]), inner

        return hg.scan(step, hnp.zeros((), np.int64), rows)[1]

    before, after = _body(f, np.ones((5, 4), np.int64))
    assert len(after.nodes()) == len(before.nodes())
