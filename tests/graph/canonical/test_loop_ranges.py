"""Ranges of loop counters: what they decide is gone, what they do not decide stays, and values are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.pipeline import canonicalise
from hologram.ir.graph import Graph, bodies
from hologram.ir.node import Node
from hologram.settings import override

CLAMPS = {"lt", "select", "max", "min"}
A = np.random.default_rng(0).standard_normal((8, 8))


def _nodes(graph: Graph) -> Iterator[Node]:
    for n in graph.nodes():
        yield n
        for b in bodies(n):
            yield from _nodes(b.graph)


def _ops(f: Callable[..., Any], *args: Any) -> set[str]:
    return {n.op.name for n in _nodes(canonicalise(hg.make_graph(f)(*args), "standard"))}


def _sum(a: Any) -> Any:
    return hg.fori_loop(0, 8, lambda i, s: s + a[i, 3], 0.0)


def _backwards(a: Any) -> Any:
    return hg.fori_loop(0, 7, lambda i, s: s * 0.5 + a[7 - i, 2] - a[6 - i, 0], 0.0)


def _nested(a: Any) -> Any:
    return hg.fori_loop(0, 8, lambda i, s: hg.fori_loop(0, 8, lambda j, t: t * 0.9 + a[i, j] * a[j, i], s), 0.0)


def _narrow(a: Any) -> Any:
    one = hnp.ones((), dtype="int32")
    return hg.scan(lambda s, _: ((s[0] + one, s[1] + a[s[0] - one, s[0] + one]), None), (one, 0.0), None, length=6)[0][1]


def _sequence(a: Any) -> Any:
    return hg.scan(lambda c, i: (c * 0.5 + a[i, 7 - i], None), 0.0, hnp.arange(8))[0]


def _steps_down(a: Any) -> Any:
    return hg.scan(lambda s, _: ((s[0] - 2, s[1] * 0.5 + a[s[0], 1]), None), (7, 0.0), None, length=4)[0][1]


@pytest.mark.parametrize("f", [_sum, _backwards, _nested, _narrow, _sequence, _steps_down])
def test_indices_from_counters_need_no_clamps(f: Callable[..., Any]) -> None:
    assert not _ops(f, A) & CLAMPS
    with override(disabled_passes=("loop_ranges",)):
        assert _ops(f, A) & CLAMPS
        want = hg.jit(f, precision="exact")(A).numpy()  # elsewhere it depends on the code which products are rounded
    np.testing.assert_array_equal(hg.jit(f, precision="exact")(A).numpy(), want)
    with hg.disable_jit():
        np.testing.assert_allclose(np.asarray(f(hg.tensor(A))), want, rtol=1e-12)


def _until(a: Any) -> Any:
    return hg.while_loop(lambda s: (s[0] < 8) & (s[1] < 1e3), lambda s: (s[0] + 1, s[1] + a[s[0], 0] ** 2), (0, 0.0))


def _down_to(a: Any) -> Any:
    return hg.while_loop(lambda s: s[0] >= 0, lambda s: (s[0] - 1, s[1] + a[s[0], 0]), (7, 0.0))


def _triangle(a: Any) -> Any:
    def row(i: Any, s: Any) -> Any:
        return hg.while_loop(lambda t: t[0] <= i, lambda t: (t[0] + 1, t[1] + a[i, t[0]]), (0, s))[1]

    return hg.fori_loop(0, 8, row, 0.0)


@pytest.mark.parametrize("f", [_until, _down_to, _triangle])
def test_conditions_bound_counters(f: Callable[..., Any]) -> None:
    assert not _ops(f, A) & {"select", "max", "min"}
    with override(disabled_passes=("loop_ranges",)):
        want = hg.tree.leaves(hg.jit(f)(A))
    for x, y in zip(hg.tree.leaves(hg.jit(f)(A)), want, strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_counters_of_64_bits_do_not_wrap() -> None:
    def f(a: Any, start: Any) -> Any:
        return hg.while_loop(lambda i: a[i, 0] < 9.0, lambda i: i + 1, start)

    assert "select" not in _ops(lambda a: f(a, 0), A) and "min" in _ops(lambda a: f(a, 0), A)
    assert "select" in _ops(lambda a: f(a, hnp.zeros((), dtype="int32")), A)
    assert "select" in _ops(lambda a: f(a, 2**63 - 9), A)


def test_branches_know_the_counter() -> None:
    def f(a: Any) -> Any:
        return hg.fori_loop(0, 8, lambda i, s: hg.cond(s < 0, lambda i, s: s + a[i, 0], lambda i, s: s - a[i, 1], i, s), 0.0)

    assert not _ops(f, A) & {"max", "min"}
    with hg.disable_jit():
        want = np.asarray(f(hg.tensor(A)))
    np.testing.assert_allclose(hg.jit(f)(A).numpy(), want, rtol=1e-12)


def _beyond(a: Any) -> Any:
    return hg.fori_loop(0, 9, lambda i, s: s + a[i, 3], 0.0)


def _before(a: Any) -> Any:
    return hg.fori_loop(-3, 5, lambda i, s: s + a[i, 3], 0.0)


def _wraps(a: Any) -> Any:
    zero = hnp.zeros((), dtype="int8")
    return hg.scan(lambda s, _: ((s[0] + 100, s[1] + a[s[0], 3]), None), (zero, 0.0), None, length=4)[0][1]


def _unbounded(a: Any) -> Any:
    return hg.while_loop(lambda s: s[1] < 3, lambda s: (s[0] + 1, s[1] + 1, s[2] + a[s[0], 3]), (6, 0, 0.0))[2]


@pytest.mark.parametrize("f", [_beyond, _before, _wraps, _unbounded])
def test_indices_that_may_leave_the_array_are_clamped(f: Callable[..., Any]) -> None:
    assert _ops(f, A) & {"max", "min", "select"}
    with override(disabled_passes=("loop_ranges",)):
        want = hg.jit(f)(A).numpy()
    np.testing.assert_array_equal(hg.jit(f)(A).numpy(), want)


def test_a_loop_that_makes_no_step_keeps_its_start() -> None:
    def f(n: Any) -> Any:
        last = hg.while_loop(lambda i: i < 3, lambda i: i + 1, hnp.where(n > 0, 9, 1))
        return hnp.minimum(last, 5), hg.scan(lambda i, _: (i + 1, i), 7, None, length=0)[0] < 7

    assert [int(x) for x in hg.jit(f)(1)] == [5, 0]
    assert [int(x) for x in hg.jit(f)(0)] == [3, 0]


@pytest.mark.parametrize("size", [8, 9, 16])
def test_remainders_of_what_is_below_the_divisor(size: int) -> None:
    """Those of powers of two are low bits."""

    def f(a: Any) -> Any:
        return hg.fori_loop(0, 8, lambda i, s: s + a[i % size % 8, i % 4], 0.0)

    ops = [n.op.name for n in _nodes(canonicalise(hg.make_graph(f)(A), "standard"))]
    assert ops.count("rem") + ops.count("and") == 1
    np.testing.assert_allclose(float(hg.jit(f)(A)), sum(A[i, i % 4] for i in range(8)), rtol=1e-6)
