"""Symbolic extents as a traced function sees them: they count, but what depends on their value cannot be answered.

Hologram's own code reads the plain polynomials of nodes, and brings back to them what a user hands over (:func:`hologram.trace.recorder.plain`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from hologram.errors import TracedValueError
from hologram.ir.symbolic import Expr, Int, bounds, floordiv, mod
from hologram.support.user_lines import located
from hologram.trace import hooks
from hologram.trace.recorder import assume, outermost, outermost_token

_NUMBERS = (int, float, np.integer, np.floating)


class Extent(Expr):
    """An extent of a Tensor traced with ``dynamic``. Integer arithmetic gives Extents, any other Tensors.

    Sizes that are equal in a call share a symbol, so two different symbols are never equal. A comparison that does not follow from this and
    from bounds raises TracedValueError; so does whatever else needs the value: hashing, as dicts, sets and memos do, ``int()``, ``range()``,
    ``len()``, an index of a list.
    """

    __slots__ = ("token",)

    def __init__(self, of: Expr, token: int | None) -> None:
        super().__init__(of.terms)
        self.token = token  # of the outermost trace that it belongs to

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Expr, *_NUMBERS)):
            return NotImplemented
        found = _equal(self, other)
        return _refuse(f"{self} == {other}") if found is None else found

    def __hash__(self) -> int:
        _refuse(f"hash({self}), by which dicts, sets and caches look up,")

    def __lt__(self, other: Any) -> bool:
        return _ordered(self, "<", other)

    def __le__(self, other: Any) -> bool:
        return _ordered(self, "<=", other)

    def __gt__(self, other: Any) -> bool:
        return _ordered(self, ">", other)

    def __ge__(self, other: Any) -> bool:
        return _ordered(self, ">=", other)

    def __bool__(self) -> bool:
        found = _equal(self, 0)
        return _refuse(f"bool({self})") if found is None else not found

    def __index__(self) -> int:
        _refuse(f"the value of {self} as a Python integer, which range(), len(), an index of a list and NumPy need,")

    __int__ = __index__

    def __float__(self) -> float:
        _refuse(f"float({self})")

    def __neg__(self) -> Any:
        return _like(-_plain(self), self)

    def __pos__(self) -> Extent:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __pow__(self, power: Any) -> Any:
        if type(power) is not int or power < 0:
            return (1.0 * self) ** power  # type: ignore[operator]
        out: Int = 1
        for _ in range(power):
            out = out * _plain(self)
        return _like(out, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other


def extent(n: Int) -> Int:
    """``n``, as an Extent of this thread's trace where it is symbolic."""
    return Extent(n, outermost_token()) if isinstance(n, Expr) else n


def _like(n: Int, of: Extent) -> Int:
    """``n`` as an Extent of the same trace."""
    return Extent(n, of.token) if isinstance(n, Expr) else n


def _plain(n: Any) -> Any:
    return Expr(n.terms) if type(n) is Extent else n


def _divided(a: Int, b: Int) -> tuple[Int, Int]:
    """``a // b`` and ``a % b``. Programs divide what is not negative by what is positive; calls where that fails get a program of their own."""
    _, highest = bounds(b)
    if highest is not None and highest <= 0:
        _refuse(f"{a} // {b}, a division by what is not positive,")
    assume(b - 1)
    _, high = bounds(a)
    if high is not None and high <= 0:
        quotient = -floordiv(b - 1 - a, b)
        return quotient, a - b * quotient
    assume(a)
    return floordiv(a, b), mod(a, b)


_DIVISIONS = ("floordiv", "mod")


def _operator(name: str, of_integers: bool = True, swapped: bool = False) -> Callable[[Any, Any], Any]:
    """The method for an infix operator: on integers, symbols included, a polynomial; on anything else, and by ``/``, what it gives on a Tensor."""
    function = getattr(operator, name)

    def method(self: Extent, other: Any) -> Any:
        a: Any
        b: Any
        if isinstance(other, np.integer):
            other = int(other)
        if not isinstance(other, (Expr, int, float, complex, np.generic)):
            return NotImplemented
        whole = of_integers and isinstance(other, (Expr, int))
        a, b = (
            (_plain(self), _plain(other))
            if whole
            else (hooks.tensor_of_extent(self), hooks.tensor_of_extent(other) if isinstance(other, Extent) else other)
        )
        if swapped:
            a, b = b, a
        if whole and name in _DIVISIONS:
            return _like(_divided(a, b)[_DIVISIONS.index(name)], self)
        return _like(function(a, b), self) if whole else function(a, b)

    return method


for _name in ("add", "sub", "mul", "floordiv", "mod", "truediv"):
    setattr(Extent, f"__{_name}__", _operator(_name, _name != "truediv"))
    setattr(Extent, f"__r{_name}__", _operator(_name, _name != "truediv", swapped=True))


# --- comparisons -----------------------------------------------------------------------------------------------------


def _equal(n: Extent, other: Any) -> bool | None:
    """Whether the two are equal; None where that depends on sizes."""
    if not isinstance(other, Expr):
        low, high = bounds(n)
        possible = other == other // 1 and (low is None or low <= other) and (high is None or other <= high)
        return None if possible else False
    difference = _plain(n) - _plain(other)
    if not isinstance(difference, Expr):
        return difference == 0
    low, high = bounds(difference)
    return False if (low or 0) > 0 or (high or 0) < 0 or _of_two_symbols(difference) else None


def _of_two_symbols(n: Expr) -> bool:
    """Whether ``n`` is a multiple of ``a - b`` for two symbols, whose values differ."""
    if len(n.terms) != 2 or sum(n.terms.values()) != 0:
        return False
    return all(len(monomial) == 1 and not monomial[0].args for monomial in n.terms)


def _ordered(n: Extent, sign: str, other: Any) -> Any:
    """The comparison where bounds decide it."""
    if not isinstance(other, (Expr, *_NUMBERS)):
        return NotImplemented
    compare = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[sign]
    of, limit = (_plain(n) - _plain(other), 0) if isinstance(other, Expr) else (_plain(n), other)
    low, high = bounds(of)
    answers = {bool(compare(end, limit)) for end in (-np.inf if low is None else low, np.inf if high is None else high)}
    if len(answers) != 1:
        _refuse(f"{n} {sign} {other}")
    return answers.pop()


def _refuse(what: str) -> NoReturn:
    advice = "its extents are symbolic, and one program serves all their sizes; leave an axis out of dynamic to depend on its size"
    error = located(TracedValueError(f"{what} is not known while tracing: {advice}"))
    if (trace := outermost()) is not None:
        trace.refused = str(error)
    raise error
