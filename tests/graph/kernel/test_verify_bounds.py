"""Proofs of bounds: what is proved holds at every point, and what kernels are made of is proved."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.kernel.parser import parse_integer
from hologram.graph.kernel.verify_bounds import Ranges
from hologram.ir.symbolic import Int, counter, floordiv, mod, substitute, var
from tests.fuzz.thresholds import overridden
from tests.support.limits import within


def scope(*loops: tuple[str, Any, Any, Any]) -> Ranges:
    out = Ranges()
    for loop in loops:
        out.loop(*loop)
    return out


def number(e: Int, point: dict[str, int]) -> int:
    out = substitute(e, point)
    assert isinstance(out, int)
    return out


@st.composite
def indices(draw: Any) -> tuple[Int, Int]:
    """An index of loop variables p (0 to 5) and i (3 * p to 3 * p + 3, below 17), and a guarded expression."""
    p, i = counter("p", 6), var("i", 0, 16)

    def term() -> Int:
        x = draw(st.sampled_from([p, i, i + p, 3 * p + 2, i + 4]))
        kind = draw(st.sampled_from(["", "", "floordiv", "mod"]))
        n = draw(st.integers(2, 7))
        return draw(st.integers(-4, 6)) * (x if not kind else floordiv(x, n) if kind == "floordiv" else mod(x, n))

    return sum((term() for _ in range(draw(st.integers(1, 3)))), draw(st.integers(-9, 20))), term() + draw(st.integers(-3, 3))


@pytest.mark.parametrize("n", [6143, 2**24 - 1, var("n0", 1)], ids=str)
def test_quotients_beside_what_they_divide(n: Int) -> None:
    """Half of an index read backward, in spaces too large to be tried; and one element less is too few."""
    ranges = scope(("t", 0, n, None))
    t = var("t", 0, None)
    back = floordiv(n + 1, 2) - 1
    for index in (floordiv(t + 1, 2) - t + back, floordiv(n - 1 - t, 2)):
        size = floordiv(n + 1, 2)
        assert ranges.is_inside(index, size) and not ranges.is_inside(index - 1, size)


@given(indices(), st.integers(1, 60), st.integers(1, 20))
def test_what_is_proved_holds_everywhere(found: tuple[Int, Int], size: int, guarded: int) -> None:
    """And, the space being small, what holds everywhere is proved."""
    index, guard = found
    points = [{"p": p, "i": i} for p in range(6) for i in range(3 * p, min(3 * p + 3, 17))]
    ranges = scope(("p", 0, 6, None), ("i", 3 * counter("p", 6), 3, 17))
    for guards in ([], [(guard, guarded)]):
        live = [at for at in points if all(0 <= number(e, at) < n for e, n in guards)]
        holds = all(0 <= number(index, at) < size for at in live)
        proved = ranges.is_inside(index, size, guards)
        assert holds or not proved
        assert not (ranges.is_outside(index, size) and any(0 <= number(index, at) < size for at in points))


N = var("n")

# loops, index, size, guards
PROVED: list[tuple[list[Any], str, str, list[tuple[str, str]]]] = [
    ([("p", "0", "4", None), ("i", "128*p", "128", "500")], "i", "500", []),
    ([("p", "0", "4*n", None), ("i", "0", "7", None)], "i+7*p", "28*n", []),
    ([("p", "0", "(n+3071)//3072", None), ("i", "3072*p", "3072", "n")], "n-1-i", "n", []),
    ([("p", "0", "6*n", None)], "n*(p%6)+p//6", "6*n", []),  # a transposed one
    ([("p", "0", "30", None), ("i", "0", "20", None)], "20*p+i-21", "500", [("p-1", "25"), ("i-1", "19")]),
    ([("p", "0", "63", None)], "p-28", "28", [("p//7-4", "4")]),
    ([("i", "0", "(n+4)//8", None)], "8*i", "n-3", []),  # x[:-3:8]
    ([("p", "0", "((n+4)//8)*m", None), ("i", "0", "m", None)], "8*m*(p//m)+i", "m*n-3*m", []),
    ([("p", "0", "21", None), ("j", "0", "8-p%8", None)], "p+j", "24", []),
    ([("p", "0", "4096", None), ("q", "0", "3072", None)], "1026*p+18*(q//4%4)+342*(q//4//4)+q%4", "4202212", [("q", "48")]),  # a padded sum
]


@pytest.mark.parametrize(("loops", "index", "size", "guards"), PROVED)
def test_what_kernels_are_made_of_is_proved(loops: list[Any], index: str, size: str, guards: list[tuple[str, str]]) -> None:
    known: dict[str, Int] = {"n": N, "m": var("m")}
    ranges = Ranges()
    for name, *rest in loops:
        start, extent, limit = (None if e is None else parse_integer(e, known) for e in rest)
        assert start is not None and extent is not None
        ranges.loop(name, start, extent, limit)
        known[name] = var(name, 0, None)
    at, n = parse_integer(index, known), parse_integer(size, known)
    tests = [(parse_integer(e, known), parse_integer(m, known)) for e, m in guards]
    assert ranges.is_inside(at, n, tests)
    for wrong in itertools.chain([at + n, at - n], [at + 1] if not guards else []):
        assert not ranges.is_inside(wrong, n, tests)


def test_bounds_that_a_variable_claims_are_those_of_its_loop() -> None:
    ranges = scope(("i", 0, 10, None), ("j", counter("i", 10), 4, 12))
    for name, high, holds in (("i", 9, True), ("i", 8, False), ("j", 11, True), ("j", 10, False)):
        (atom,) = next(iter(var(name, 0, high).terms))
        assert ranges.holds(atom) is holds


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int64])
def test_clamped_indices_of_every_type_are_proved(dtype: Any) -> None:
    """Where only one of two clamps is left, since the type knows the other."""
    x, row = np.arange(24, dtype=np.float32).reshape(4, 6), np.ones(6, np.float32)
    got = hg.jit(lambda x, row, i: hnp.dynamic_update_index_in_dim(x, row, i, 0))(x, row, np.array(2, dtype))
    x[2] = row
    np.testing.assert_array_equal(got, x)


def test_an_index_that_is_clamped_and_checked_is_proved() -> None:
    x, rows, i, u = np.ones((2, 1), np.float32), np.array([1, 0, 0]), np.array(1, np.int16), np.ones(1, np.float32)

    def f(i: Any, x: Any, rows: Any, u: Any) -> Any:
        out, back = hg.vjp(lambda x, u: x[rows].at[i, ::3].min(u), x, u)
        return back(hnp.cos(out))

    for got, want in zip(hg.jit(f, dynamic=True, precision="exact")(i, x, rows, u), hg.jit(f)(i, x, rows, u), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: hnp.tile(hnp.diff(x, axis=1), (2,)),
        lambda x: hnp.roll(hnp.repeat(x, 3, 0), 2, 1)[::-1, 1:],
        lambda x: hnp.pad(x, 2).reshape(-1)[::-1],
    ],
    ids=["tile", "roll", "pad"],
)
def test_divisions_inside_of_divisions_are_proved_or_given_up_in_time(f: Any) -> None:
    x = np.arange(90.0).reshape(3, 6, 5)
    with within(60):
        np.testing.assert_array_equal(hg.jit(f, dynamic=True)(x), hg.jit(f)(x))


def test_guards_of_loads_are_never_read_back_from_scratch() -> None:
    """What the rows of a padded product share goes through scratch, but not where its terms are."""
    x, y = np.random.default_rng(0).random((2, 6))
    with overridden({"hologram.graph.legalize.reductions.MAX_KERNEL_TERMS": 1}):
        got = hg.jit(lambda x, y: hnp.polyfit(x, y, 2))(x, y)
    np.testing.assert_allclose(got, np.polyfit(x, y, 2), rtol=1e-9)


def test_a_search_that_fails_takes_up_each_expression_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remainders are replaced in several ways, in any order, that lead to the same expressions."""
    n, p, i, j = var("n", 2), counter("p", None), counter("i", None), counter("j", None)
    r = scope(("p", 0, n * var("m", 2), None), ("i", 4 * mod(p, n), 4, var("m", 2)), ("j", i, 8, var("m", 2)))
    taken: list[Int] = []
    innermost = Ranges._innermost

    def noted(self: Ranges, e: Int) -> Any:
        taken.append(e)
        return innermost(self, e)

    monkeypatch.setattr(Ranges, "_innermost", noted)
    assert not r.is_at_least(mod(p, n) + mod(i, n) + mod(j, n) + mod(p, var("m", 2)), 10**9)
    assert taken and len(taken) - len(set(taken)) < 50
