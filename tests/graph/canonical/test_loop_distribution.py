"""Products taken out of scans for all steps at once: before them, after them, and as sums over steps. Values, what stays, memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.canonical import loop_distribution
from hologram.graph.pipeline import canonicalise
from hologram.ir.graph import Graph, bodies
from hologram.ir.interpreter import evaluate
from hologram.ir.node import Node
from hologram.primitives.control import scan
from tests.support.comparing import same_canonically, same_values

Function = Callable[..., Any]


def _array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32)


def _canonical(f: Function, *args: Any, precision: str = "standard") -> Graph:
    return canonicalise(hg.make_graph(f)(*args), precision)


def _scans(graph: Graph) -> list[Node]:
    return [n for n in graph.nodes() if n.op is scan]


def _inside(graph: Graph) -> int:
    """Products in bodies of scans."""
    return sum(loop_distribution._is_product(n) for s in _scans(graph) for b in bodies(s) for n in b.graph.nodes())


def _bounded(x: Any) -> Any:
    return hnp.clip(x, -1, 1)


# --- before and after ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("rows", [1, 5])
def test_products_of_elements_are_made_before(rows: int, reverse: bool) -> None:
    def f(w: Any, u: Any, h: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            z = x @ w + h @ u
            h = _bounded(z[:, :16] * z[:, 16:])
            return h, h

        return hg.scan(step, h, xs, reverse=reverse)

    args = [_array(24, 32) / 6, _array(16, 32) / 6, _array(rows, 16), _array(9, rows, 24)]
    assert _inside(_canonical(f, *args)) == 1
    same_values(f, *args)


@pytest.mark.parametrize("reverse", [False, True])
def test_products_for_results_are_made_after(reverse: bool) -> None:
    def f(u: Any, v: Any, h: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            new = _bounded(h @ u + x)
            return new, (new @ v, hnp.abs(new @ v).T + (h - x) @ u)

        return hg.scan(step, h, xs, reverse=reverse)

    args = [_array(24, 24) / 6, _array(24, 24, seed=1), _array(24, 24), _array(9, 24, 24)]
    assert _inside(_canonical(f, *args)) == 1
    same_values(f, *args)


def test_a_scan_whose_steps_need_nothing_of_each_other_is_no_loop() -> None:
    def f(w: Any, xs: Any) -> Any:
        return hg.scan(lambda c, x: (c, _bounded(x @ w)), 0.0, xs)[1]

    args = [_array(24, 32), _array(9, 5, 24)]
    assert not _scans(_canonical(f, *args))
    same_values(f, *args)


def test_loops_in_loops() -> None:
    def f(w: Any, u: Any, h: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = _bounded(x @ w + h @ u)
            return h, h @ w

        return hg.scan(lambda h, x: hg.scan(step, h, x), h, xs)

    args = [_array(24, 24) / 6, _array(24, 24, seed=1) / 6, _array(5, 24), _array(4, 6, 5, 24)]
    (outer,) = _scans(_canonical(f, *args))
    (inner,) = _scans(bodies(outer)[0].graph)
    assert sum(map(loop_distribution._is_product, bodies(inner)[0].graph.nodes())) == 1
    same_values(f, *args)


# --- sums ------------------------------------------------------------------------------------------------------------


def _lstm(wx: Any, wh: Any, b: Any, state: Any, x: Any) -> Any:
    h, c = state
    i, f, g, o = hnp.split(x @ wx + h @ wh + b, 4, axis=-1)
    c = hg.nn.sigmoid(f) * c + hg.nn.sigmoid(i) * hnp.tanh(g)
    h = hg.nn.sigmoid(o) * hnp.tanh(c)
    return (h, c), h


def _gru(wx: Any, wh: Any, b: Any, state: Any, x: Any) -> Any:
    h, _ = state
    zx, zh = hnp.split(x @ wx + b, 4, axis=-1), hnp.split(h @ wh, 4, axis=-1)
    r, u = hg.nn.sigmoid(zx[0] + zh[0]), hg.nn.sigmoid(zx[1] + zh[1])
    h = u * h + (1 - u) * hnp.tanh(zx[2] + r * zh[2] + zh[3] * zx[3])
    return (h, h), h


@pytest.mark.parametrize("cell", [_lstm, _gru])
@pytest.mark.parametrize("rows", [1, 3])
def test_gradients_of_recurrent_cells(cell: Function, rows: int) -> None:
    def loss(wx: Any, wh: Any, b: Any, h: Any, c: Any, xs: Any) -> Any:
        (h, c), hs = hg.scan(lambda s, x: cell(wx, wh, b, s, x), (h, c), xs)
        return (hs * hs).sum() + c.sum()

    args = [_array(12, 64) / 4, _array(16, 64) / 4, _array(64), _array(rows, 16), _array(rows, 16, seed=1), _array(8, rows, 12)]
    f = hg.value_and_grad(loss, argnums=(0, 1, 2, 3, 4, 5))
    same_values(f, *args, exact=False)
    canonical = _canonical(f, *args)
    assert _inside(canonical) == 2  # one a step forward, one a step back
    assert all(x.shape[0] == rows for s in _scans(canonical) for x in s.inputs[s.attrs[1] : s.attrs[1] + s.attrs[2]])  # no gradient of weights
    single = float(hg.jit(loss)(*args))
    moved = [a + 1e-3 * _array(*a.shape, seed=7) for a in args]
    slope = sum((np.asarray(g) * 1e-3 * _array(*a.shape, seed=7)).sum() for g, a in zip(hg.jit(f)(*args)[1], args, strict=True))
    np.testing.assert_allclose(float(hg.jit(loss)(*moved)) - single, slope, rtol=0.1, atol=2e-2)


def _sum(xs: Any, ys: Any, start: Any) -> Any:
    """A sum of products of what the loop computes in order."""
    step = lambda s, v: ((s[0] + v[0].T @ hnp.maximum(s[1], v[1]), hnp.maximum(s[1], v[1])), None)  # noqa: E731
    return hg.scan(step, (start, ys[0]), (xs, ys))[0][0]


def test_floats_are_added_in_order_in_exact() -> None:
    args = [_array(9, 4, 24), _array(9, 4, 40), _array(24, 40)]
    assert _inside(_canonical(_sum, *args, precision="exact")) == 1
    assert _inside(_canonical(_sum, *args)) == 0
    same_values(_sum, *args)


def test_integers_are_added_in_any_order() -> None:
    rng = np.random.default_rng(3)
    args = [rng.integers(-(2**31), 2**31, shape, np.int32) for shape in ((9, 4, 24), (9, 4, 40), (24, 40))]
    graph = _canonical(_sum, *args, precision="exact")
    assert _inside(graph) == 0
    np.testing.assert_array_equal(evaluate(graph, args)[0], evaluate(hg.make_graph(_sum)(*args), args)[0])


def test_sums_of_the_same_in_each_step_stay() -> None:
    def f(w: Any, x: Any) -> Any:
        return hg.scan(lambda s, _: ((s[0] + w @ w, _bounded(s[1] @ w)), None), (w, x), None, length=5)[0]

    same_values(f, _array(16, 16) / 6, _array(3, 16))


def test_sums_that_something_reads_stay() -> None:
    def f(xs: Any, ys: Any) -> Any:
        return hg.scan(lambda s, v: (s + v[0].T @ v[1], s.max()), hnp.zeros((24, 40)), (xs, ys))

    assert _inside(_canonical(f, _array(9, 4, 24), _array(9, 4, 40))) == 1


# --- what stays ------------------------------------------------------------------------------------------------------


def test_products_of_more_rows_than_the_factor_has_stay() -> None:
    def f(w: Any, xs: Any) -> Any:
        return hg.scan(lambda h, x: (_bounded(h + x @ w), None), xs[0] @ w, xs)[0]

    assert _inside(_canonical(f, _array(24, 24), _array(9, 23, 24))) == 0
    assert _inside(_canonical(f, _array(24, 24), _array(9, 25, 24))) == 1


def test_few_steps_stay() -> None:
    def f(w: Any, xs: Any) -> Any:
        return hg.scan(lambda h, x: (_bounded(h + x @ w), None), xs[0] @ w, xs)[0]

    assert _inside(_canonical(f, _array(64, 64), _array(3, 23, 64))) == 1


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def early(w: Any, xs: Any) -> Any:
        return hg.scan(lambda h, x: (_bounded(h + x @ w), None), xs[0] @ w, xs)[0]

    def late(w: Any, xs: Any) -> Any:
        return hg.scan(lambda h, x: (_bounded(h + x), (h @ w).sum()), xs[0], xs)[1]

    for f in (early, late):
        assert _inside(_canonical(f, _array(24, 24), _array(9, 5, 24))) == 0
    wide = _array(8, 9 * 8)  # the product has nine times the bytes of the sequence
    assert _inside(_canonical(early, wide, _array(9, 5, 8))) == 1
    monkeypatch.setattr(loop_distribution, "MAX_STACKED_BYTES", 4 * 10 * 5 * 24 - 1)
    assert _inside(_canonical(early, _array(24, 24), _array(10, 5, 24))) == 1
    monkeypatch.setattr(loop_distribution, "MAX_STACKED_BYTES", 0)
    assert _inside(_canonical(late, _array(24, 24), _array(10, 5, 24))) == 1


# --- random bodies ---------------------------------------------------------------------------------------------------

OPERATIONS: list[Function] = [
    lambda a, b, w: a + b,
    lambda a, b, w: a * b,
    lambda a, b, w: hnp.maximum(a, b),
    lambda a, b, w: a.T,
    lambda a, b, w: a @ w / 16,
    lambda a, b, w: w @ a / 16,
    lambda a, b, w: hnp.roll(a, 1, axis=0),
    lambda a, b, w: a - a.max(axis=1, keepdims=True),
    lambda a, b, w: a.T @ b / 16,
]


@given(
    steps=st.lists(st.tuples(st.integers(0, len(OPERATIONS) - 1), st.integers(0, 12), st.integers(0, 12)), min_size=2, max_size=9),
    carried=st.integers(0, 12),
    stacked=st.integers(0, 12),
    added=st.integers(0, 12),
    reverse=st.booleans(),
)
def test_random_bodies(steps: list[tuple[int, int, int]], carried: int, stacked: int, added: int, reverse: bool) -> None:
    def f(w: Any, xs: Any, ys: Any) -> Any:
        def step(s: Any, v: Any) -> Any:
            c, total, previous = s
            pool = [c, *v, previous]
            for op, i, j in steps:
                pool.append(_bounded(OPERATIONS[op](pool[i % len(pool)], pool[j % len(pool)], w)))
            last = pool[::-1]
            return (last[carried % len(pool)], total + last[added % len(pool)], v[0]), last[stacked % len(pool)]

        return hg.scan(step, (xs[0], ys[1], ys[0]), (xs, ys), reverse=reverse)

    args = [_array(16, 16), _array(5, 16, 16), _array(5, 16, 16, seed=1)]
    same_canonically(f, args)
