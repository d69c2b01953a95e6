"""Index expressions as polynomials: quotients, linear parts, multiples and values, for proofs that accesses stay inside of their buffers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from hologram.ir.symbolic import Atom, Expr, Int, Monomial


def divided(x: Int, y: Int) -> tuple[Int, Int]:
    """``(q, r)`` with ``x = q*y + r``, by the terms of ``x`` that are multiples of the first of ``y``."""
    if isinstance(y, int):
        q = Expr({m: c // y for m, c in x.terms.items() if c >= y}) if isinstance(x, Expr) else x // y
    elif isinstance(x, Expr):
        q = next(multiples(x, *next(iter(y.terms.items()))), 0)
    else:
        q = 0
    return q, x - q * y


def linear(e: Int, a: Atom) -> tuple[Int, Int] | None:
    """``(factor, rest)`` with ``e = factor*a + rest``; None where ``a`` has a power."""
    factor: Int = 0
    rest: Int = 0
    assert isinstance(e, Expr)
    for m, c in e.terms.items():
        if m.count(a) > 1:
            return None
        if a in m:
            others = list(m)
            others.remove(a)
            factor = factor + (Expr({tuple(others): c}) if others else c)
        else:
            rest = rest + (Expr({m: c}) if m else c)
    return factor, rest


def evaluated(e: Int, point: dict[str, np.ndarray]) -> np.ndarray:
    """The values of an index expression at points; quotients and remainders are of unsigned numbers."""
    total = np.zeros((), np.int64)
    for m, c in e.terms.items() if isinstance(e, Expr) else [((), e)]:
        term = np.asarray(c)
        for a in m:
            if a.args:
                x, y = (evaluated(v, point).astype(np.uint64) for v in a.args)
                term = term * (x // y if a.key[0] == "floordiv" else x % y).astype(np.int64)
            else:
                term = term * point[a.name]
        total = total + term
    return total


def multiples(index: Expr, m: Monomial, c: int) -> Iterator[Int]:
    """What times ``c*m`` is all that ``index`` has of ``m``."""
    if not m:
        return
    times: Int = 0
    for n, d in index.terms.items():
        rest = list(n)
        if d % c == 0 and all(a in rest and (rest.remove(a) or True) for a in m):  # type: ignore[func-returns-value]
            times = times + (Expr({tuple(rest): d // c}) if rest else d // c)
    if times != 0:
        yield times


class Range:
    """Where a variable runs: every one of ``lows`` is a lower bound, every one of ``highs`` an upper bound, both inclusive."""

    __slots__ = ("lows", "highs")

    def __init__(self, lows: Iterable[Int], highs: Iterable[Int]) -> None:
        self.lows, self.highs = list(lows), list(highs)
