"""Loops whose steps are independent are shared among threads, and others are not; all give what steps in turn give."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.settings import override
from tests.support.runner.interrupts import require_interruptible

pytestmark = pytest.mark.costly(2)

Function = Callable[..., Any]
N = 500
X = np.random.default_rng(0).standard_normal(N)


def _is_shared(f: Function, *args: Any) -> bool:
    return "@loop_chunk0" in hg.jit(f).lower(*args).as_text("llvm")


def _both_ways(f: Function) -> tuple[Any, Any]:
    """The results as they are, and of a program that is checked, in which one thread takes the steps in turn."""
    got = hg.jit(f)(X)
    with override(checked=True):
        in_turn = hg.jit(lambda x: f(x))
        assert not _is_shared(in_turn, X)
        return got, in_turn(X)


def _long(x: Any) -> Any:
    """A loop whose end nobody knows."""
    return hg.while_loop(lambda s: (s[0] < 50) & (s[1] < 1e3), lambda s: (s[0] + 1, s[1] * 1.25 + x), (0, x))[1]


def _points(x: Any) -> Any:
    return hg.fori_loop(0, N, lambda i, y: y.at[i].set(_long(x[i])), hnp.zeros(N))


def _backwards(x: Any) -> Any:
    return hg.fori_loop(0, N, lambda i, y: y.at[N - 1 - i].set(_long(x[i])), hnp.zeros(N))


def _by_two(x: Any) -> Any:
    return hg.fori_loop(0, N // 2, lambda i, s: (s[0] + 2, s[1].at[s[0]].add(_long(x[i]))), (1, hnp.ones(N)))


def _rows(x: Any) -> Any:
    return hg.fori_loop(0, N, lambda i, y: y.at[i].set(hnp.arange(4) * _long(x[i])), hnp.zeros((N, 4)))


def _beyond(x: Any) -> Any:
    return hg.fori_loop(0, N, lambda i, y: y.at[i + 250].set(_long(x[i]), mode="drop"), hnp.zeros(N))


def _stacked(x: Any) -> Any:
    return hg.scan(lambda i, v: (i + 3, (_long(v), i)), 5, x)


def _reversed(x: Any) -> Any:
    return hg.scan(lambda i, v: (i - 1, _long(v) + i), 7, x, reverse=True)


def _two_arrays(x: Any) -> Any:
    def step(i: Any, s: Any) -> Any:
        y, z = s
        v = _long(x[i])
        return y.at[i].set(v), z.at[3, i].set(v + 1)

    return hg.fori_loop(0, N, step, (hnp.zeros(N), hnp.zeros((5, N))))


@pytest.mark.parametrize("f", [_points, _backwards, _by_two, _rows, _beyond, _stacked, _reversed, _two_arrays])
def test_threads_share_independent_steps(f: Function) -> None:
    assert _is_shared(f, X)
    for g, w in zip(*map(hg.tree.leaves, _both_ways(f)), strict=True):
        np.testing.assert_array_equal(np.asarray(g), np.asarray(w))


def _running(x: Any) -> Any:
    return hg.fori_loop(0, N, lambda i, y: y.at[i].set(_long(x[i]) + y[hnp.maximum(i - 1, 0)]), hnp.zeros(N))


def _total(x: Any) -> Any:
    return hg.fori_loop(0, N, lambda i, s: s + _long(x[i]), 0.0)


def _overlapping(x: Any) -> Any:
    return hg.fori_loop(0, N - 1, lambda i, y: hg.lax.dynamic_update_slice(y, hnp.stack([_long(x[i]), x[i]]), (i,)), hnp.zeros(N))


def _anywhere(x: Any) -> Any:
    return hg.fori_loop(0, N, lambda i, y: y.at[i % 7].add(_long(x[i])), hnp.zeros(N))


def _wraps(x: Any) -> Any:
    start = hnp.zeros((), dtype="int8")
    return hg.fori_loop(0, N, lambda i, s: (s[0] + hnp.asarray(1, dtype="int8"), s[1].at[s[0]].set(_long(x[i]))), (start, hnp.zeros(N)))


def _both(x: Any) -> Any:
    return hg.fori_loop(0, N, lambda i, s: (s[0].at[i].set(_long(x[i])), s[0]), (hnp.zeros(N), hnp.zeros(N)))


@pytest.mark.parametrize("f", [_running, _total, _overlapping, _anywhere, _wraps, _both])
def test_steps_that_meet_run_in_turn(f: Function) -> None:
    assert not _is_shared(f, X)


@given(st.integers(1, 4), st.integers(-3, 3), st.integers(-5, 5), st.booleans(), st.sampled_from(["set", "add", "max"]))
def test_windows_of_any_step(size: int, by: int, first: int, moves_columns: bool, how: str) -> None:
    """Shared or not, windows that overlap, lie apart, or leave the array are written as by steps in turn."""
    count = 70

    def f(x: Any) -> Any:
        def step(k: Any, s: Any) -> Any:
            at, y = s
            window = y.at[(at + hnp.arange(size))[:, None], hnp.arange(3)]
            if moves_columns:
                window = y.at[hnp.arange(3)[:, None], at + hnp.arange(size)]
            new = hnp.full((size, 3), _long(x[k]))
            return at + by, getattr(window, how)(new.T if moves_columns else new, mode="drop")

        return hg.fori_loop(0, count, step, (first, hnp.zeros((3, 90) if moves_columns else (90, 3))))[1]

    got, want = _both_ways(f)
    np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


ENDLESS = """
def endless(x):
    return hg.while_loop(lambda s: s[0] < 10**15, lambda s: (s[0] + 1, s[1] * 0.5 + x), (0, x))[1]

x = np.zeros(500)
f = hg.jit(lambda x: hg.fori_loop(0, 500, lambda i, y: y.at[i].set(endless(x[i])), hnp.zeros(500)))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="processes cannot be sent an interrupt alone")
def test_interrupts_end_all_threads_steps() -> None:
    """The calling thread handles the signal; the others see it, in loops inside of their steps, too."""
    require_interruptible(ENDLESS)
