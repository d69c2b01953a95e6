"""Scalar replacement: loops give what they gave, bit by bit, and what the next steps read is a carry where its place is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.dtypes import float64, uint8
from hologram.graph.legalize import scalar_replacement
from hologram.graph.legalize.scalar_replacement import replace_elements
from hologram.graph.pipeline import canonicalise
from hologram.ir.graph import Body, Graph, bodies
from hologram.ir.interpreter import evaluate
from hologram.ir.leaves import input_
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE
from hologram.primitives.control import with_bodies
from hologram.settings import override

Function = Callable[..., Any]
RNG = np.random.default_rng(0)
X = RNG.uniform(0, 0.5, 20)
GRID = RNG.standard_normal((7, 9))


def _loops(graph: Graph) -> Iterator[Node]:
    for n in graph.nodes():
        if n.op.name in ("scan", "while"):
            yield n
        for b in bodies(n):
            yield from _loops(b.graph)


def _replaced(graph: Graph) -> Graph:
    """The pass on a graph, and on the graphs inside of it: what the pipeline does, without the rest of legalization."""
    graph, build = replace_elements(graph), Builder()
    image: dict[Node, Node] = {}
    for n in graph.nodes():
        attrs = with_bodies(n, [Body(_replaced(b.graph)) for b in bodies(n)]) if bodies(n) else n.attrs
        image[n] = build(n.op, tuple([image[x] for x in n.inputs]), attrs)
    return graph.mapped(image)


def _gathers(f: Function, *args: Any) -> int:
    """How many reads are left in the innermost loop."""
    *_, inner = _loops(_replaced(canonicalise(hg.make_graph(f)(*args), "standard")))
    return sum(n.op.name == "gather" for n in bodies(inner)[-1].graph.nodes())


def _check(f: Function, *args: Any) -> None:
    """The program means the same, bit by bit, after the pass."""
    graph = canonicalise(hg.make_graph(f)(*args), "standard")
    arrays = [np.asarray(a) for a in args]
    for a, b in zip(evaluate(_replaced(graph), arrays), evaluate(graph, arrays), strict=True):
        assert a.tobytes() == b.tobytes()


def _run(f: Function, *args: Any) -> None:
    """Its code gives the same bits with the pass and without it, which are about those of the interpreter."""
    found = hg.tree.leaves(hg.jit(f, precision="exact")(*args))
    with override(disabled_passes=("replace_elements",)):
        without = hg.tree.leaves(hg.jit(f, precision="exact")(*args))
    for a, b, want in zip(found, without, evaluate(hg.make_graph(f)(*args), [np.asarray(a) for a in args]), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
        np.testing.assert_allclose(np.asarray(a), want, rtol=1e-6)


def _recurrence(x: Any) -> Any:
    return hg.fori_loop(1, 20, lambda i, x: x.at[i].set(x[i - 1] * 0.5 + x[i]), x)


def _three_back(x: Any) -> Any:
    return hg.fori_loop(3, 20, lambda i, x: x.at[i].set(x[i - 3] * 0.5 - x[i - 1] + x[i]), x)


def _down(x: Any) -> Any:
    return hg.fori_loop(1, 20, lambda i, x: x.at[19 - i].set(x[20 - i] * 0.5), x)


def _stencil(x: Any) -> Any:
    """``x[i + 1]`` is read again as ``x[i]``."""
    return hg.fori_loop(1, 19, lambda i, x: x.at[i - 1].set(x[i] + x[i + 1]), x)


def _same_place(x: Any) -> Any:
    return hg.fori_loop(0, 20, lambda i, x: x.at[3].set(x[3] * 0.5 + i), x)


def _two_updates(x: Any) -> Any:
    return hg.fori_loop(1, 19, lambda i, x: x.at[i].set(x[i - 1] + 1).at[i + 1].set(x[i] * 0.5), x)


def _table(t: Any) -> Any:
    def element(i: Any, j: Any, t: Any) -> Any:
        return t.at[i, j].set(hnp.maximum(t[i, j - 1], t[i - 1, j]) + t[i - 1, j - 1])

    return hg.fori_loop(1, 7, lambda i, t: hg.fori_loop(1, 9, lambda j, t: element(i, j, t), t), t)


def _triangle(t: Any) -> Any:
    """A while loop inside, which may make no step."""
    return hg.fori_loop(0, 7, lambda i, t: hg.fori_loop(1, i, lambda j, t: t.at[i, j].set(t[i, j - 1] + 1), t), t)


def _windows(t: Any) -> Any:
    return hg.fori_loop(1, 9, lambda j, t: t.at[2:5, j].set(t[2:5, j - 1] + 1), t)


def _scanned(x: Any) -> Any:
    def step(carry: Any, y: Any) -> Any:
        i, x = carry
        x = x.at[i].set(x[i - 1] * y)
        return (i + 1, x), x[i - 1]

    return hg.scan(step, (hnp.asarray(1), x), hnp.arange(10) * 0.1)


FORWARDED = [  # with the reads that are left
    (_recurrence, X, 1),
    (_three_back, X, 1),
    (_down, X, 0),
    (_stencil, X, 1),
    (_same_place, X, 0),
    (_table, GRID, 1),
    (_triangle, GRID, 0),
    (_windows, GRID, 0),
]


@pytest.mark.parametrize(("f", "x", "left"), FORWARDED)
def test_what_the_next_steps_read_is_carried(f: Function, x: Any, left: int) -> None:
    assert _gathers(f, x) == left
    _check(f, (x * 100).astype(np.int32))
    _run(f, x)


@pytest.mark.parametrize("f", [_two_updates, _scanned])
def test_chains_of_updates_and_stacked_results(f: Function) -> None:
    _check(f, X)


def _unknown(x: Any, at: Any) -> Any:
    """The second update may be anywhere."""
    return hg.fori_loop(1, 20, lambda i, x: x.at[at[i]].set(7.0).at[i].set(x[i - 1] + 1), x)


def _unknown_first(x: Any, at: Any) -> Any:
    return hg.fori_loop(1, 20, lambda i, x: x.at[i].set(x[i - 1] + 1).at[at[i]].set(7.0), x)


def _added(x: Any, at: Any) -> Any:
    return hg.fori_loop(1, 20, lambda i, x: x.at[i].add(x[i - 1]), x)


def _overlap(x: Any, at: Any) -> Any:
    """Windows that meet without being the same."""
    return hg.fori_loop(0, 9, lambda i, x: hg.lax.dynamic_update_slice(x, hg.lax.dynamic_slice(x, (2 * i,), (3,)) * 0.5, (2 * i + 1,)), x)


def _overlap_then_same(x: Any, at: Any) -> Any:
    """The window of the step before meets the one that is read, that of two steps before is the same."""
    return hg.fori_loop(0, 9, lambda i, x: hg.lax.dynamic_update_slice(x, hg.lax.dynamic_slice(x, (i,), (3,)) * 0.5 + i, (i + 2,)), x)


def _columns(x: Any, at: Any, apart: int) -> Any:
    """Two columns, which may be one."""
    t, k, m = x.reshape(4, 5), at[0] % 5, (at[0] + at[1] * 0 + apart) % 5

    def step(i: Any, t: Any) -> Any:
        return t.at[i, k].set(t[i - 1, k] + 1).at[i, m].set(t[i, k] * 2)

    return hg.fori_loop(1, 4, step, t)


def _same_column(x: Any, at: Any) -> Any:
    return _columns(x, at, 0)


def _other_column(x: Any, at: Any) -> Any:
    return _columns(x, at, 1)


def _read_by_others(x: Any, at: Any) -> Any:
    return hg.fori_loop(1, 20, lambda i, x: x.at[i].set(x[i - 1] + x.sum()), x)


@pytest.mark.parametrize("f", [_unknown, _unknown_first, _added, _overlap, _overlap_then_same, _same_column, _other_column, _read_by_others])
def test_what_is_not_known_is_read_from_memory(f: Function) -> None:
    at = RNG.integers(0, 20, 20)
    for x in (X, (X * 100).astype(np.int64)):
        _check(f, x, at)


def test_long_windows_stay_in_memory() -> None:
    x = RNG.standard_normal((20, 1 + scalar_replacement.MAX_BYTES // 8))
    f = _recurrence
    assert _gathers(f, x) == 2
    assert _gathers(f, x[:, 1:]) == 1
    _check(f, x)


@pytest.mark.parametrize("start", [-30, 0, 19, 20, 40])
def test_loops_that_make_no_step_read_nothing(start: int) -> None:
    """The first value is read before it is known whether there is a step."""

    def f(x: Any, first: Any, last: Any) -> Any:
        return hg.while_loop(lambda c: c[0] < last, lambda c: (c[0] + 1, c[1].at[c[0]].set(c[1][c[0] - 1] + 1)), (first, x))

    _check(f, X, np.int64(start), np.int64(start + 3))
    with override(checked=True):
        _run(f, X, np.int64(start), np.int64(start))


def test_ranges_that_hold_in_steps_alone() -> None:
    """Indices need no clamps in steps, but in front of a loop that makes none."""

    def f(x: Any) -> Any:
        def step(c: Any) -> Any:
            return c[0] + 1, c[1].at[c[0]].set(c[1][c[0] - 1] + 1)

        return hg.fori_loop(1, 3000, lambda i, x: hg.while_loop(lambda c: c[0] < 20, step, (i, x))[1], x)

    assert _gathers(f, X) == 0
    with override(checked=True):
        _run(f, X)


def test_first_values_of_steps_that_are_not_made() -> None:
    def f(x: Any) -> Any:
        return hg.fori_loop(18, 20, lambda i, x: x.at[i + 3].set(x[i] * 2), x)

    with override(checked=True):
        _run(f, X)


def test_short_loops() -> None:
    for length in range(5):
        _check(lambda x, n=length: hg.fori_loop(3, 3 + n, lambda i, x: x.at[i].set(x[i - 3] + x[i - 2]), x), X)


@pytest.mark.parametrize("factor", [1, -1])
def test_counters_that_wrap(factor: int) -> None:
    """Places are compared as the program computes them: here in 8 bits."""
    b = Builder()
    i, x = b(input_, (), (0, (), "uint8", None)), b(input_, (), (1, (256,), "float64", None))

    def place(k: int) -> Node:
        return b.make("add", i, b.const(k % 256, uint8))

    read = b(TABLE["gather"], (x, place(9)), ((0,), (1,), 0))
    value = b.make("mul", read, b.const(0.5, float64))
    written = b(TABLE["scatter_set"], (x, value, place(9 + factor)), ((0,), 0))
    body = Body(Graph([i, x], [place(factor), written]))
    loop = b(TABLE["scan"], (b.const(120 + 120 * factor, uint8), x2 := b(input_, (), (0, (256,), "float64", None))), (body, 0, 2, 40, False))
    graph = Graph([x2], [b(TABLE["project"], (loop,), (1, (256,), "float64"))])
    after = replace_elements(graph)
    assert not any(n.op.name == "gather" for loop in _loops(after) for n in bodies(loop)[0].graph.nodes())
    array = RNG.standard_normal(256)
    np.testing.assert_array_equal(evaluate(after, [array])[0], evaluate(graph, [array])[0])


@pytest.mark.parametrize("f", [_recurrence, _three_back, _down, _stencil, _same_place])
def test_derivatives_and_batches(f: Function) -> None:
    _check(hg.grad(lambda x: (f(x) ** 2).sum()), X)
    _check(hg.vmap(f), RNG.standard_normal((3, 20)))
    _check(hg.vmap(f, in_axes=1), RNG.standard_normal((20, 4)))
    _check(lambda x: hg.jvp(f, (x,), (x,)), X)


# --- random loops --------------------------------------------------------------------------------------------------------

offsets = st.integers(-3, 3)
updates = st.tuples(offsets, st.lists(offsets, min_size=1, max_size=3), st.sampled_from(["set", "add", "max"]))
steps = st.lists(updates, min_size=1, max_size=3)


def _random(step: list[Any], stride: int, first: int, length: int, clip: bool, dynamic: bool) -> Function:
    """A loop of updates at places relative to a counter, each of elements beside it, in the array as it is then."""

    def f(x: Any, zero: Any) -> Any:
        def body(t: Any, carry: Any) -> Any:
            x, read = carry
            i = first + stride * t
            for at, beside, how in step:
                places = [hnp.clip(i + k, 0, 11) if clip else i + k for k in (at, *beside)]
                value = sum(x[p] * (k + 2) for k, p in enumerate(places[1:]))
                x = getattr(x.at[places[0]], {"set": "set", "add": "add", "max": "max"}[how])(value % 11 if x.dtype.kind == "i" else value * 0.3)
                read = read + x[places[1]]
            return x, read

        return hg.fori_loop(zero if dynamic else 0, zero + length if dynamic else length, body, (x, x[0]))

    return f


@settings(max_examples=60, deadline=None)
@given(steps, st.sampled_from([1, -1, 2, 0]), st.integers(-2, 12), st.integers(0, 8), st.booleans(), st.booleans(), st.booleans())
@example([(0, [-1, -2], "set")], 1, 2, 8, False, False, False)
@example([(0, [-1], "set"), (1, [0], "set")], 1, 2, 8, False, False, True)
@example([(0, [1], "set"), (-1, [0], "add")], -1, 9, 8, True, False, True)
def test_random_loops(step: list[Any], stride: int, first: int, length: int, clip: bool, dynamic: bool, integers: bool) -> None:
    x = np.arange(12) if integers else RNG.uniform(-1, 1, 12)
    _check(_random(step, stride, first, length, clip, dynamic), x, np.int64(0))
