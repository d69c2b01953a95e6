"""Loops whose columns are independent are shared among threads by columns, and others are not; all give what steps in turn give."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.settings import override
from tests.support.runner.interrupts import require_interruptible

pytestmark = pytest.mark.costly(2)

Function = Callable[..., Any]
ROWS, COLUMNS = 100, 4000
X = np.random.default_rng(0).uniform(-1, 1, (ROWS, COLUMNS))


def _is_shared(f: Function, *args: Any) -> bool:
    return "@loop_chunk0" in hg.jit(f).lower(*args).as_text("llvm")


def _in_turn(f: Function, *args: Any) -> Any:
    """The results of a program that is checked, in which one thread takes the steps in turn."""
    with override(checked=True):
        in_turn = hg.jit(lambda *args: f(*args))
        assert not _is_shared(in_turn, *args)
        return in_turn(*args)


def _same(got: Any, want: Any) -> None:
    for g, w in zip(*map(hg.tree.leaves, (got, want)), strict=True):
        np.testing.assert_array_equal(np.asarray(g), np.asarray(w))


def _two_rows(x: Any) -> Any:
    return hg.fori_loop(2, ROWS, lambda i, y: y.at[i].set(hnp.sin(y[i - 1] + y[i - 2])), x)


def _from_the_end(x: Any) -> Any:
    return hg.fori_loop(0, ROWS - 1, lambda i, y: y.at[ROWS - 2 - i].set(hnp.sin(y[ROWS - 2 - i] + y[ROWS - 1 - i])), x)


def _any_row(x: Any) -> Any:
    order = hnp.asarray(np.random.default_rng(1).permutation(ROWS))
    return hg.fori_loop(0, ROWS, lambda i, y: y.at[order[i]].set(hnp.sin(y[order[ROWS - 1 - i]])), x)


def _running(x: Any) -> Any:
    """A row goes from step to step, and is stacked."""
    return hg.scan(lambda v, row: ((w := hnp.sin(v * 0.5 + row)), w), hnp.zeros_like(x[0]), x)


def _reversed(x: Any) -> Any:
    return hg.scan(lambda v, row: ((w := hnp.sin(v * 0.5 + row)), w * 2), hnp.zeros_like(x[0]), x, reverse=True)


def _two_buffers(x: Any) -> Any:
    def step(s: Any, row: Any) -> Any:
        a, b = s
        return (b, hnp.sin(a + row)), None

    return hg.scan(step, (x[0], x[1]), x)[0]


def _with_counter(x: Any) -> Any:
    """Steps have a number of their own, which is a result, too."""

    def step(i: Any, s: Any) -> Any:
        at, y = s
        return (3 * at + 1) % ROWS, y.at[at].set(hnp.sin(y[(at + 1) % ROWS]) + at)

    return hg.fori_loop(0, ROWS, step, (5, x))


def _sums_of_rows(x: Any) -> Any:
    """Each column sums up rows of its own."""
    return hg.fori_loop(0, ROWS, lambda i, y: y.at[i].set(hnp.sin(y.sum(0))), x)


def _reads_elsewhere(x: Any) -> Any:
    """What steps only read may be read anywhere."""
    rows = hnp.asarray(np.random.default_rng(2).uniform(-1, 1, (ROWS, COLUMNS)))
    return hg.fori_loop(1, ROWS, lambda i, y: y.at[i].set(hnp.sin(y[i - 1] + hnp.roll(rows[i], 1))), x)


SHARED = [_two_rows, _from_the_end, _any_row, _running, _reversed, _two_buffers, _with_counter, _sums_of_rows, _reads_elsewhere]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("f", SHARED)
def test_threads_share_columns(f: Function, threads: int) -> None:
    assert _is_shared(f, X)
    with override(num_threads=threads):
        got = hg.jit(f)(X)
    _same(got, _in_turn(f, X))


def _shifted(x: Any) -> Any:
    return hg.fori_loop(1, ROWS, lambda i, y: y.at[i].set(hnp.sin(hnp.roll(y[i - 1], 1))), x)


def _next_column(x: Any) -> Any:
    return hg.fori_loop(1, ROWS, lambda i, y: y.at[i, 1:].set(hnp.sin(y[i - 1, :-1])), x)


def _total(x: Any) -> Any:
    return hg.fori_loop(1, ROWS, lambda i, y: y.at[i].set(hnp.sin(y[i - 1] + y[i - 1].sum())), x)


def _one_element(x: Any) -> Any:
    """Every column reads an element of a row that was written."""
    return hg.fori_loop(1, ROWS, lambda i, y: y.at[i].set(hnp.sin(y[i] * y[i - 1, 7])), x)


def _scanned(x: Any) -> Any:
    return hg.fori_loop(1, ROWS, lambda i, y: y.at[i].set(hnp.sin(hnp.cumsum(y[i - 1]))), x)


def _turned(x: Any) -> Any:
    return hg.fori_loop(1, ROWS, lambda i, y: y.at[i].set(hnp.sin(y[i - 1, ::-1])), x)


def _at_computed_columns(x: Any) -> Any:
    def step(i: Any, y: Any) -> Any:
        return hg.lax.dynamic_update_slice(y, hnp.sin(hg.lax.dynamic_slice(y, (i - 1, i), (1, COLUMNS - ROWS))), (i, i // 2))

    return hg.fori_loop(1, ROWS, step, x)


def _scattered(x: Any) -> Any:
    columns = hnp.asarray(np.random.default_rng(3).permutation(COLUMNS))
    return hg.fori_loop(1, ROWS, lambda i, y: y.at[i].set(hnp.sin(y[i - 1][columns])), x)


def _other_rows(x: Any) -> Any:
    """Rows of two arrays that meet in a third one, whose columns they are not."""
    return hg.scan(lambda v, row: ((hnp.sin(v[1:] + v[:-1] + row[1:]).sum() + v), None), x[0], x)[0]


@pytest.mark.parametrize("f", [_shifted, _next_column, _total, _one_element, _scanned, _turned, _at_computed_columns, _scattered, _other_rows])
def test_columns_that_meet_are_not_shared(f: Function) -> None:
    assert not _is_shared(f, X)
    _same(hg.jit(f)(X), _in_turn(f, X))


ROW_OPS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda v: v,
    "sine": hnp.sin,
    "root": lambda v: hnp.sqrt(abs(v)),
    "narrow": lambda v: v.astype("float32").astype("float64"),
    "roll": lambda v: hnp.roll(v, 1, -1),
    "flip": lambda v: hnp.flip(v, -1),
    "less mean": lambda v: v - v.mean(-1, keepdims=True),
    "first": lambda v: v[..., :1] + 0 * v,
}


@settings(max_examples=25, deadline=None)
@given(
    columns=st.integers(100, 3000),
    batch=st.sampled_from([(), (2,), (3, 2)]),
    reads=st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(sorted(ROW_OPS))), min_size=1, max_size=3),
    of_vector=st.sampled_from(sorted(ROW_OPS)),
    of_given=st.sampled_from(sorted(ROW_OPS)),
    stacks=st.booleans(),
    threads=st.integers(1, 3),
)
def test_any_body(
    columns: int, batch: tuple[int, ...], reads: list[tuple[int, str]], of_vector: str, of_given: str, stacks: bool, threads: int
) -> None:
    """Shared or not, a step that reads rows that others write, hands on a row, and reads given ones has the bits of steps in turn."""
    rng = np.random.default_rng(columns)
    rows, given = (rng.uniform(-1, 1, (30, *batch, columns)) for _ in range(2))

    def f(rows: Any, given: Any) -> Any:
        def step(s: Any, row: Any) -> Any:
            at, y, v = s
            new = sum(ROW_OPS[op](y[hnp.clip(at + k, 0, 29)]) for k, op in reads) + ROW_OPS[of_vector](v)
            return (at + 1, y.at[at].set(hnp.sin(new) + ROW_OPS[of_given](row)), new * 0.25), new if stacks else None

        return hg.scan(step, (0, rows, rows[-1]), given)

    with override(num_threads=threads):
        got = hg.jit(f)(rows, given)
    _same(got, _in_turn(f, rows, given))


ENDLESS = """
x = np.ones((10, 4000))
f = hg.jit(lambda x: hg.fori_loop(0, 10**9, lambda i, y: y.at[i % 10].set(hnp.sin(y[(i + 1) % 10])), x))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="processes cannot be sent an interrupt alone")
def test_interrupts_end_all_threads_columns() -> None:
    """The calling thread handles the signal; the others see it between their steps."""
    require_interruptible(ENDLESS)
