"""Work that a loop's steps have in common: done before the loop, packed before it, held where it is made of constants. Values, places and limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.canonical import licm
from hologram.graph.pipeline import canonicalise
from hologram.ir.graph import Graph, bodies
from hologram.ir.node import Node
from hologram.settings import override
from tests.support.comparing import same_canonically, same_values

Function = Callable[..., Any]


def _array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32)


def _loop(graph: Graph) -> Node:
    return next(n for n in graph.nodes() if n.op.kind == "control")


def _inside(f: Function, *args: Any) -> set[str]:
    """The ops in the bodies of the first loop of ``f``, in canonical form."""
    graph = canonicalise(hg.make_graph(f)(*args), "standard")
    return {n.op.name for b in bodies(_loop(graph)) for n in b.graph.nodes()}


def _outside(f: Function, *args: Any) -> set[str]:
    return {n.op.name for n in canonicalise(hg.make_graph(f)(*args), "standard").nodes()}


# --- work before loops -----------------------------------------------------------------------------------------------


def _scan(w: Any, x: Any) -> Any:
    return hg.scan(lambda c, row: (hnp.maximum(c @ hnp.floor(w), row), c.sum()), x[0], x)


def _fori(w: Any, x: Any) -> Any:
    return hg.fori_loop(0, 6, lambda i, c: hnp.maximum(c @ hnp.floor(w), x[i]), x[0])


def _while(w: Any, x: Any) -> Any:
    return hg.while_loop(lambda c: c[1] < hnp.floor(w).max() + 3, lambda c: (hnp.maximum(c[0] @ hnp.floor(w), 1.0), c[1] + 1), (x[0], 0.0))


@pytest.mark.parametrize("f", [_scan, _fori, _while])
def test_work_is_done_before_loops(f: Function) -> None:
    w, x = np.abs(_array(64, 64)), _array(6, 64)
    assert "floor" not in _inside(f, w, x)
    assert "floor" in _outside(f, w, x)
    same_values(f, w / 8, x)


def test_counters_and_casts() -> None:
    def f(w: Any, x: Any) -> Any:
        def step(c: Any, row: Any) -> Any:
            return c * hnp.cos(hnp.arange(64) * 0.1) + row @ w.astype("bfloat16").astype("float32"), None

        return hg.scan(step, x[0], x)[0]

    inside = _inside(f, _array(64, 64), _array(80, 64))
    assert "cos" not in inside and "iota" not in inside


def test_nested_loops_give_up_what_neither_changes() -> None:
    def f(w: Any, x: Any) -> Any:
        def outer(c: Any, row: Any) -> Any:
            return hg.scan(lambda d, _: (hnp.maximum(d * hnp.floor(w), row), None), c, None, length=5)[0], None

        return hg.scan(outer, x[0], x)[0]

    w, x = _array(3000), _array(4, 3000)
    (body,) = bodies(_loop(canonicalise(hg.make_graph(f)(w, x), "standard")))
    assert "floor" not in str(body)
    same_values(f, w, x)


def test_what_stays_in_bodies() -> None:
    def grows(w: Any, x: Any) -> Any:  # cheap, and larger than what it is made of
        return hg.scan(lambda c, row: (hnp.maximum(c, w[:, None] - w[None, :]) + row.sum(), None), hnp.zeros((64, 64)), x)

    def read_twice(w: Any, x: Any) -> Any:  # cheap, and beside what it is made of
        return hg.scan(lambda c, row: (c @ w + (c * c) @ -w, None), x, None, length=4)

    def expensive_in_vain(w: Any, x: Any) -> Any:  # expensive, in a loop that may not run
        return hg.while_loop(lambda c: c.sum() < 0, lambda c: c @ (w @ w), x)

    def little(w: Any, x: Any) -> Any:
        return hg.scan(lambda c, row: (c * hnp.exp(w[0, 0]) + row, None), x[0], x)

    w, x = _array(128, 128), _array(40, 128)
    assert "sub" in _inside(grows, w[0, :64], x)
    assert "neg" in _inside(read_twice, w, x) or "sub" in _inside(read_twice, w, x)
    assert _outside(expensive_in_vain, w, x).isdisjoint({"mul", "reduce_sum"})
    assert "exp" in _inside(little, w, x)


def test_what_may_fail_stays_in_bodies() -> None:
    calls = []

    def f(w: Any, x: Any) -> Any:
        def seen(v: np.ndarray) -> np.ndarray:
            calls.append(1)
            return np.exp(v)

        return hg.while_loop(lambda c: c.sum() < 0, lambda c: c + hg.pure_callback(seen, w, w), x)

    x = np.abs(_array(9000))
    np.testing.assert_array_equal(np.asarray(hg.jit(f)(x, x)), x)
    assert not calls


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(w: Any, x: Any) -> Any:
        return hg.scan(lambda c, row: (c + hnp.exp(hnp.sin(w[:, None] - w[None, :])) * row.sum(), None), hnp.zeros((64, 64)), x)

    w, x = _array(64), _array(5, 8)
    assert "sin" not in _inside(f, w, x)
    monkeypatch.setattr(licm, "MAX_VALUE_BYTES", 4 * 64 * 64 - 1)
    assert "sin" in _inside(f, _array(64), _array(6, 8))
    monkeypatch.undo()
    monkeypatch.setattr(licm, "MAX_HOISTED_BYTES", 4 * 64 * 64 - 1)
    assert "sin" in _inside(f, _array(64), _array(7, 8))


OPERATIONS: list[Function] = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    hnp.maximum,
    lambda a, b: hnp.abs(a),
    lambda a, b: a.T,
    lambda a, b: a @ b / 64,
    lambda a, b: hnp.where(hnp.arange(24) < 9, a, b),
    lambda a, b: hnp.broadcast_to(a.max(axis=0), (24, 24)),
]


@given(data=st.data())
def test_random_bodies(data: st.DataObject) -> None:
    """Expressions of what changes and what does not, in each kind of loop."""
    steps = data.draw(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8))
    kind = data.draw(st.sampled_from(["scan", "reverse", "while", "nested"]))

    def value(pool: list[Any]) -> Any:
        for op, i, j in steps:
            made = OPERATIONS[op](pool[i % len(pool)], pool[j % len(pool)])
            pool.append(hnp.clip(made, -8, 8))
        return pool[-1]

    def f(w: Any, v: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            return value([w, v, c, x]), c[0]

        if kind == "while":
            return hg.while_loop(lambda s: s[1] < 3, lambda s: (step(s[0], xs[0])[0], s[1] + 1), (xs[1], 0))[0]
        if kind == "nested":
            return hg.scan(lambda c, x: (hg.scan(step, c, xs)[0], None), xs[0], None, length=2)[0]
        return hg.scan(step, xs[0], xs, reverse=kind == "reverse")

    same_canonically(f, [_array(24, 24), _array(24, 24, seed=1), _array(3, 24, 24)])


# --- panels ----------------------------------------------------------------------------------------------------------


def _panels(f: Function, *args: Any) -> list[tuple[int, ...]]:
    """The shapes of what is packed before the first loop of ``f``."""
    node = _loop(hg.jit(f).lower(*args).compile().executable.execution_plan.graph)
    return [x.shape for x in node.inputs if len(x.shape) == 3 and x.op.name in ("transpose", "leaf", "project")]


def _cell(w: Any, c: Any) -> Any:
    return hnp.clip(c @ w.T, -1, 1)


@pytest.mark.costly(3)
@pytest.mark.parametrize("rows", [1, 8, 33])
def test_weights_of_loops_are_held_in_panels(rows: int) -> None:
    w, x = hg.tensor(_array(320, 320) / 20), _array(rows, 320)

    def scanned(x: Any) -> Any:
        return hg.scan(lambda c, _: (_cell(w, c), c.sum()), x, None, length=6)

    def looped(x: Any) -> Any:
        return hg.while_loop(lambda c: c[1] < 6, lambda c: (_cell(w, c[0]), c[1] + 1), (x, 0))[0]

    def chosen(x: Any) -> Any:
        return hg.cond(x[0, 0] > 0, lambda x: _cell(w, x), lambda x: x - x @ w, x)

    def nested(x: Any) -> Any:
        return hg.scan(lambda c, _: (hg.scan(lambda d, _: (_cell(w, d), None), c, None, length=5)[0], None), x, None, length=4)[0]

    for f in (scanned, looped, chosen, nested):
        ahead = hg.jit(f).lower(x).compile().executable.execution_plan.initializer
        assert ahead is not None and (5, 320, 64) in [v.shape for v in ahead.graph.outputs], f.__name__
        same_values(f, x)
        with override(hold_limit=0):
            same_values(f, x)


@pytest.mark.parametrize("rows", [1, 60])
def test_arguments_are_packed_once_a_call(rows: int) -> None:
    def f(w: Any, x: Any) -> Any:
        return hg.scan(lambda c, _: (_cell(w, c), None), x, None, length=6)[0]

    def few(w: Any, x: Any) -> Any:
        return hg.scan(lambda c, _: (_cell(w, c), None), x, None, length=2)[0]

    w, x = _array(320, 320) / 20, _array(rows, 320)
    assert _panels(f, w, x) == [(5, 320, 64)]
    assert not _panels(few, w, x)
    same_values(f, w, x)


def test_branches_pack_nothing_that_calls_may_change() -> None:
    def f(w: Any, x: Any) -> Any:
        return hg.cond(x[0, 0] > 0, lambda x: _cell(w, x), lambda x: x, x)

    w, x = _array(320, 320) / 20, _array(60, 320)
    assert not _panels(f, w, x)
    same_values(f, w, x)


def test_branches_in_loops_read_panels() -> None:
    def f(w: Any, x: Any) -> Any:
        return hg.scan(lambda c, i: (hg.cond(i % 3 == 0, lambda c: c, lambda c: _cell(w, c), c), None), x, hnp.arange(7))[0]

    w, x = _array(320, 320) / 20, _array(60, 320)
    assert _panels(f, w, x) == [(5, 320, 64)]
    same_values(f, w, x)


def test_loops_do_not_take_what_they_read_in_panels() -> None:
    w, x = hg.tensor(_array(320, 320)), _array(8, 320)
    memory = hg.jit(lambda x: hg.scan(lambda c, _: (_cell(w, c), None), x, None, length=6)[0]).lower(x).compile().memory_analysis()
    assert memory.constant_bytes == memory.held_bytes == 4 * 320 * 320


def test_convolutions_in_loops() -> None:
    w, x = hg.tensor(_array(8, 8, 3, 3) / 10), _array(1, 8, 9, 9)
    same_values(lambda x: hg.scan(lambda c, _: (hg.nn.conv2d(c, w, padding=1), None), x, None, length=5)[0], x)


def test_derivatives_of_loops_read_panels() -> None:
    def f(w: Any, x: Any) -> Any:
        return hg.scan(lambda c, _: (_cell(w, c), None), x, None, length=6)[0].sum()

    w, x = _array(320, 320) / 20, _array(8, 320)
    same_values(hg.grad(f, argnums=1), w, x)
