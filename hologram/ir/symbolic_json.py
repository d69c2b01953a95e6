"""Symbolic integers as values of JSON, in which files keep them.

A number is itself. A polynomial is a list of terms, ``[coefficient, atom, atom, ...]``; an atom is the name of a variable, or ``["//", a, b]`` or
``["%", a, b]``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from hologram.ir.symbolic import Expr, Int, floordiv, mod

MAX_INTEGER = 2**63 - 1
_MAX_DEPTH = 32  # of divisions in one another
_MAX_TERMS = 1024
_SIGNS = {"floordiv": "//", "mod": "%"}
DIVISIONS: dict[str, Callable[[Int, Int], Int]] = {"//": floordiv, "%": mod}


def encode(value: Int) -> Any:
    """A symbolic integer as JSON has it."""
    if not isinstance(value, Expr):
        return operator.index(value)
    return [[c, *[[_SIGNS[a.key[0]], *map(encode, a.args)] if a.args else a.name for a in monomial]] for monomial, c in value.terms.items()]


def decode(data: Any, variable: Callable[[str], Int], check_divisor: Callable[[Int], None]) -> Int:
    """The integer that :func:`encode` made ``data`` of. ``variable`` gives those of a name, ``check_divisor`` raises for what is not to be divided
    by. Raises Malformed for other data, with the part that is wrong."""
    return _Decoder(variable, check_divisor).integer(data, 0)


class Malformed(ValueError):
    """``data`` is not ``what``."""

    def __init__(self, what: str, data: Any) -> None:
        super().__init__(what)
        self.what, self.data = what, data


class _Decoder:
    def __init__(self, variable: Callable[[str], Int], check_divisor: Callable[[Int], None]) -> None:
        self.variable, self.check_divisor = variable, check_divisor

    def integer(self, data: Any, depth: int) -> Int:
        if type(data) is int and -MAX_INTEGER <= data <= MAX_INTEGER:
            return data
        if type(data) is not list or not 0 < len(data) <= _MAX_TERMS or depth > _MAX_DEPTH:
            raise Malformed("an integer or a polynomial of symbols", data)
        total: Int = 0
        for term in data:
            if type(term) is not list or not 0 < len(term) <= 16 or type(term[0]) is not int or abs(term[0]) > MAX_INTEGER:
                raise Malformed("an integer or a polynomial of symbols", data)
            product: Int = term[0]
            for atom in term[1:]:
                product = product * self._atom(atom, depth)
                if isinstance(product, Expr) and len(product.terms) > _MAX_TERMS:
                    raise Malformed("an integer or a polynomial of symbols", data)
            total = total + product
        return total

    def _atom(self, data: Any, depth: int) -> Int:
        if type(data) is str:
            return self.variable(data)
        if type(data) is not list or len(data) != 3 or type(data[0]) is not str or data[0] not in DIVISIONS:
            raise Malformed("a symbol or a division", data)
        a, b = (self.integer(x, depth + 1) for x in data[1:])
        self.check_divisor(b)
        return DIVISIONS[data[0]](a, b)
