"""The code by which native code decides whether a program takes the numbers of an expression: see :mod:`.code.number_code`."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from hologram.backends.native.code import number_code as code
from hologram.backends.native.code.expression_records import NumberCode
from hologram.backends.native_lang.language import fields_of, size_of
from hologram.ir.symbolic import Expr, Int

MAX_CONSTANT = 1 << 62


class NumberCodeError(Exception):
    """Native code cannot decide it."""


class NumberCodeBuilder:
    """Instructions on ``n_numbers`` numbers, of which ``symbols`` has those that symbols stand for. Raises NumberCodeError for what there is no
    code for."""

    def __init__(self, n_numbers: int, symbols: Mapping[str, int]) -> None:
        self._registers: dict[Any, int] = {}
        self._symbols, self._n_numbers, self._next = symbols, n_numbers, n_numbers
        self._code: list[int] = []

    def require_equal(self, a: int, b: int) -> None:
        """Requires that two registers are equal."""
        self._code += (code.EQUAL, a, b)

    def require_at_least(self, a: int, b: int) -> None:
        """Requires that the first register is not less than the second."""
        self._code += (code.AT_LEAST, a, b)

    def register(self, value: Int) -> int:
        """The register that has a polynomial in the symbols."""
        known = self._registers.get(value)
        if known is None:
            known = self._registers[value] = self._sum(value) if isinstance(value, Expr) else self._constant(value)
        return known

    def _constant(self, value: int) -> int:
        if abs(value) >= MAX_CONSTANT:
            raise NumberCodeError(f"{value} is a large constant")
        return self._add(code.CONSTANT, value, 0)

    def _sum(self, value: Expr) -> int:
        total: int | None = None
        for monomial, coefficient in value.terms.items():
            factors = [self._atom(a) for a in monomial]
            if coefficient != 1 or not factors:
                factors.append(self.register(coefficient))
            product = factors[0]
            for f in factors[1:]:
                product = self._add(code.MULTIPLY, product, f)
            total = product if total is None else self._add(code.ADD, total, product)
        assert total is not None
        return total

    def _atom(self, a: Any) -> int:
        if a.args:
            numerator, divisor = (self.register(e) for e in a.args)
            return self._add(code.QUOTIENT if a.key[0] == "floordiv" else code.REMAINDER, numerator, divisor)
        return self.symbol(a.name)

    def symbol(self, name: str) -> int:
        """The register that has the value of a symbol."""
        if name not in self._symbols:
            raise NumberCodeError(f"{name} is none of the numbers")
        return self._symbols[name]

    def _add(self, op: int, a: int, b: int) -> int:
        if self._next == code.MAX_REGISTERS:
            raise NumberCodeError("too many instructions")
        self._code += (op, a, b)
        self._next += 1
        return self._next - 1

    def record(self, operands: Sequence[int], integers: Sequence[int]) -> Any:
        """The record :class:`NumberCode`, followed by its arrays. ``integers`` are registers."""
        arrays = {"code": self._code, "operands": operands, "integers": integers}
        head = size_of(NumberCode) // 8
        made: Any = (ctypes.c_int64 * (head + sum(map(len, arrays.values()))))()
        values = {"n_numbers": self._n_numbers, **{"n_" + name: len(words) for name, words in arrays.items()}}
        at = head
        for name, words in arrays.items():
            values[name] = ctypes.addressof(made) + 8 * at
            made[at : at + len(words)] = list(words)
            at += len(words)
        made[:head] = [values[name] for name in fields_of(NumberCode)]
        return made


__all__ = ["NumberCodeBuilder", "NumberCodeError"]
