"""Symbolic integers against plain ones: polynomials stay canonical, and every operation keeps the value under every substitution."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hologram.ir.symbolic import (
    Atom,
    Expr,
    Int,
    at_least,
    atoms,
    bounds,
    evaluator,
    floordiv,
    is_static,
    mod,
    prod,
    recombine,
    split_linear,
    substitute,
    var,
)

BOUNDS: dict[str, tuple[int, int | None]] = {"i": (0, 6), "j": (0, 3), "k": (2, 9), "n": (0, None), "m": (1, None)}
VARIABLES = {name: var(name, *limits) for name, limits in BOUNDS.items()}
NAMES = st.sampled_from(sorted(BOUNDS))
CONSTANTS = st.integers(-9, 9)


@st.composite
def assignments(draw: Any) -> dict[str, int]:
    """A value for each variable, within its bounds."""
    return {name: draw(st.integers(low, high if high is not None else 12)) for name, (low, high) in BOUNDS.items()}


class Tree:
    """An expression beside a Python function that computes it from the variables' values."""

    def __init__(self, value: Int, compute: Callable[[dict[str, int]], int], text: str) -> None:
        self.value, self.compute, self.text = value, compute, text

    def __repr__(self) -> str:
        return f"{self.text} = {self.value}"


def leaf(name: str) -> Tree:
    return Tree(VARIABLES[name], lambda v: v[name], name)


def constant(c: int) -> Tree:
    return Tree(c, lambda v: c, str(c))


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}


def combined(a: Tree, op: str, b: Tree) -> Tree:
    f = OPERATIONS[op]
    return Tree(f(a.value, b.value), lambda v: int(f(a.compute(v), b.compute(v))), f"({a.text}{op}{b.text})")


def divided(a: Tree, op: str, b: Tree) -> Tree:
    symbolic, plain = (floordiv, int.__floordiv__) if op == "//" else (mod, int.__mod__)
    return Tree(symbolic(a.value, b.value), lambda v: plain(a.compute(v), b.compute(v)), f"({a.text}{op}{b.text})")


polynomials = st.recursive(
    NAMES.map(leaf) | CONSTANTS.map(constant),
    lambda inner: st.builds(combined, inner, st.sampled_from("+-*"), inner),
    max_leaves=6,
)
divisors = st.integers(1, 8).map(constant) | st.sampled_from([leaf("k"), leaf("m"), combined(leaf("k"), "*", leaf("m"))])
expressions = st.recursive(
    NAMES.map(leaf) | CONSTANTS.map(constant),
    lambda inner: st.builds(combined, inner, st.sampled_from("+-*"), inner) | st.builds(divided, inner, st.sampled_from(["//", "%"]), divisors),
    max_leaves=6,
)


def plain(x: Int) -> int:
    assert is_static(x)
    return x  # type: ignore[return-value]


# --- polynomials -----------------------------------------------------------------------------------------------------


@given(expressions, assignments())
def test_value_is_kept(t: Tree, v: dict[str, int]) -> None:
    assert plain(substitute(t.value, v)) == t.compute(v)


@given(polynomials, polynomials, polynomials)
def test_equal_polynomials_are_equal_objects_and_print_alike(a: Tree, b: Tree, c: Tree) -> None:
    x, y, z = a.value, b.value, c.value
    pairs = [(x + y, y + x), (x * y, y * x), ((x + y) + z, x + (y + z)), ((x * y) * z, x * (y * z)), (x * (y + z), x * y + x * z), (x - y, -(y - x))]
    for left, right in pairs:
        assert left == right and hash(left) == hash(right) and str(left) == str(right)


@given(polynomials, polynomials)
def test_different_polynomials_differ_somewhere(a: Tree, b: Tree) -> None:
    """Of degree at most 6 in each variable, so they would agree on a grid of 7 values a variable only if they were one."""
    if a.value != b.value:
        difference = a.value - b.value
        assert difference != 0
        used = sorted({x.name for x in atoms(difference)})
        assume(len(used) <= 3)
        grid: list[dict[str, int]] = [{}]
        for name in used:
            grid = [{**g, name: value} for g in grid for value in range(7)]
        assert any(plain(substitute(difference, g)) for g in grid)


@given(expressions)
def test_plain_integers_stay_plain(t: Tree) -> None:
    assert t.value - t.value == 0 and type(t.value - t.value) is int
    assert t.value * 0 == 0 and t.value * 1 == t.value and 0 + t.value == t.value
    if isinstance(t.value, Expr):
        assert all(t.value.terms.values()) and list(t.value.terms) != [()]


def test_symbol_has_no_truth_value_and_no_int() -> None:
    n = VARIABLES["n"]
    for misuse in (bool, int, range):
        with pytest.raises(TypeError, match="symbolic"):
            misuse(n)


def test_variables_are_told_apart_by_name_and_bounds() -> None:
    assert var("i", 0, 6) == VARIABLES["i"] and var("i", 0, 7) != VARIABLES["i"]
    assert Atom.variable("i", 0, 6) is Atom.variable("i", 0, 6)


def test_printing() -> None:
    n, i = VARIABLES["n"], VARIABLES["i"]
    assert str(3 * n * i - i + 2) == "3*i*n-i+2"
    assert str(floordiv(n, 4)) == "(n//4)" and str(mod(n + 1, 4)) == "((n+1)%4)" and str(floordiv(i, n * n)) == "(i//(n*n))"


# --- division --------------------------------------------------------------------------------------------------------


@given(expressions, divisors, assignments())
def test_quotient_and_remainder_belong_together(a: Tree, b: Tree, v: dict[str, int]) -> None:
    q, r = plain(substitute(floordiv(a.value, b.value), v)), plain(substitute(mod(a.value, b.value), v))
    divisor = plain(substitute(b.value, v))
    assert q * divisor + r == a.compute(v) and 0 <= r < divisor


@given(expressions, divisors, polynomials, polynomials, assignments())
def test_recombining_undoes_division(a: Tree, b: Tree, more: Tree, rest: Tree, v: dict[str, int]) -> None:
    q, r = floordiv(a.value, b.value) + more.value, mod(a.value, b.value) + rest.value
    whole = recombine(q, b.value, r)
    assert plain(substitute(whole, v)) == a.compute(v) + more.compute(v) * plain(substitute(b.value, v)) + rest.compute(v)


def test_recombining_leaves_no_division() -> None:
    i, j, n = var("i"), var("j"), VARIABLES["n"]
    for size in (7, n):
        q, r = floordiv(i, size), mod(i, size)
        assert recombine(q, size, r) == i
        assert recombine(q - 1, size, r + 2) == i - size + 2
        assert recombine(3 * q + floordiv(j, size), size, mod(j, size) + 3 * r - 1) == 3 * i + j - 1


def test_other_divisions_are_not_recombined() -> None:
    i, n = var("i"), VARIABLES["n"]
    for q, r in ((2 * floordiv(i, n), mod(i, n)), (floordiv(i, 7), mod(i, n)), (floordiv(i, n), mod(i + 1, n))):
        assert recombine(q, n, r) == q * n + r


def test_divisions_that_bounds_decide() -> None:
    i, j, n = VARIABLES["i"], VARIABLES["j"], VARIABLES["n"]
    assert floordiv(7 * j + i, 7) == j and mod(7 * j + i, 7) == i
    assert floordiv(i, 7) == 0 and mod(i, 7) == i and floordiv(i + 14, 7) == 2 and mod(i + 14, 7) == i
    assert floordiv(n * j, n) == j and mod(n * j, n) == 0
    assert floordiv(i, 1) == i and mod(i, 1) == 0


@st.composite
def positions(draw: Any) -> tuple[Int, dict[str, int]]:
    """A position in an array as index arithmetic writes it, perhaps counted from the end, and values of its variables."""
    at: Int = 0
    total: Int = 1
    values = {"n": draw(st.integers(1, 9)), "m": draw(st.integers(1, 9))}
    for name in draw(st.sampled_from(["a", "ab", "abc"])):
        size: Int = draw(st.sampled_from([1, 2, 5, VARIABLES["n"], VARIABLES["m"]]))
        extent = plain(substitute(size, values))
        values[name] = draw(st.integers(0, extent - 1))
        at, total = at * size + var(name, 0, size - 1 if isinstance(size, int) else None), total * size
    return (total - 1 - at if draw(st.booleans()) else at), values


@given(positions(), st.sampled_from([1, 2, 3, 10, VARIABLES["n"], VARIABLES["m"], VARIABLES["n"] * VARIABLES["m"], 2 * VARIABLES["n"]]))
def test_numerators_of_index_arithmetic_are_never_negative(position: tuple[Int, dict[str, int]], by: Int) -> None:
    """Kernels divide unsigned numbers."""
    at, values = position
    for e in (floordiv(at, by), mod(at, by)):
        for numerator in numerators(e):
            assert plain(substitute(numerator, values)) >= 0
    divisor = plain(substitute(by, values))
    assert plain(substitute(floordiv(at, by), values)) == plain(substitute(at, values)) // divisor


def numerators(e: Int) -> list[Int]:
    return [a.args[0] for m in e.terms for a in m if a.args] if isinstance(e, Expr) else []


# --- bounds, substitution, linearity ---------------------------------------------------------------------------------


@given(expressions, assignments())
def test_bounds_hold(t: Tree, v: dict[str, int]) -> None:
    low, high = bounds(t.value)
    value = t.compute(v)
    assert (low is None or low <= value) and (high is None or value <= high)


def test_bounds_are_tight_where_terms_are_apart() -> None:
    i, j = VARIABLES["i"], VARIABLES["j"]
    assert bounds(3 * i - 2 * j + 1) == (-5, 19)
    assert bounds(i * j) == (0, 18) and bounds(VARIABLES["n"] + 1) == (1, None)
    assert bounds(mod(VARIABLES["n"], 5)) == (0, 4) and bounds(floordiv(3 * i, 4)) == (0, 4)


@given(expressions, expressions, assignments())
def test_substituting_an_expression_is_substituting_its_value(t: Tree, by: Tree, v: dict[str, int]) -> None:
    assume(by.compute(v) >= 0)
    once = substitute(substitute(t.value, {"n": by.value}), v)
    assert once == t.compute({**v, "n": by.compute(v)})


def test_substitution_is_simultaneous() -> None:
    i, j = VARIABLES["i"], VARIABLES["j"]
    assert substitute(i + 2 * j, {"i": j, "j": i}) == j + 2 * i


@given(expressions, NAMES, assignments())
def test_linear_parts_add_up(t: Tree, name: str, v: dict[str, int]) -> None:
    parts = split_linear(t.value, name)
    if parts is None:
        return
    coefficient, rest = parts
    assert name not in {a.name for part in parts for a in atoms(part)}
    assert plain(substitute(coefficient, v)) * v[name] + plain(substitute(rest, v)) == t.compute(v)


def test_what_is_not_linear_is_told() -> None:
    i, n = VARIABLES["i"], VARIABLES["n"]
    assert split_linear(i * i, "i") is None and split_linear(floordiv(n, 3) + n, "n") is None
    assert split_linear(n * i + 3, "i") == (n, 3) and split_linear(5, "i") == (0, 5)


@given(st.lists(polynomials, max_size=4), assignments())
def test_products(trees: list[Tree], v: dict[str, int]) -> None:
    expected = 1
    for t in trees:
        expected *= t.compute(v)
    assert plain(substitute(prod(t.value for t in trees), v)) == expected


def test_shared_quotients_are_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of ``depth`` sums holds the one before twice: as many paths lead inside as there are sums of them."""
    depth, n = 10, var("n", 0)
    x: Int = n
    for k in range(depth):
        x = floordiv(x, 3 + k % 2) + 7 * mod(x + 1, 5 + k % 3)
    asked = itertools.count(1)

    def counted(a: Int, b: Int) -> Int:
        assert next(asked) <= depth
        return floordiv(a, b)

    monkeypatch.setattr("hologram.ir.symbolic.floordiv", counted)
    assert [a.name for a in set(atoms(x))] == ["n"] and substitute(x, {"m": 1}) == x
    want = 1000
    for k in range(depth):
        want = want // (3 + k % 2) + 7 * ((want + 1) % (5 + k % 3))
    assert substitute(x, {"n": 1000}) == want


@given(st.integers(0, 50), st.integers(1, 50))
def test_an_evaluator_gives_what_substitution_gives(a: int, b: int) -> None:
    x, y = var("a"), var("b", 1)
    values = (x * y - 3, (floordiv(x * x + 7, y), mod(x, y + 1), 5), -x)
    known = {"a": a, "b": b}
    expected = (substitute(values[0], known), tuple(substitute(e, known) for e in values[1]), substitute(values[2], known))  # type: ignore[union-attr, arg-type]
    assert evaluator(values, ["a", "b"])(a, b) == expected


@given(st.integers(0, 50), st.integers(1, 50), st.integers(0, 10**9))
def test_whether_an_extent_is_large_enough(low: int, limit: int, more: int) -> None:
    n = var("n", low)
    found = at_least(n, limit)
    assert substitute(found, {"n": low + more}) == (low + more >= limit) and substitute(found, {"n": low}) == (low >= limit)
