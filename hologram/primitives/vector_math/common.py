"""What all decompositions share: float formats, polynomials, clamps, exact splitting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hologram import dtypes
from hologram.dtypes import DType

Value = Any  # hologram.graph.builder.Value; any object with its interface will do


@dataclass(frozen=True)
class Format:
    """An IEEE binary format, with the integer types of its width."""

    float: DType
    integer: DType
    unsigned: DType
    mantissa: int  # stored bits of the significand
    bias: int

    @property
    def magic(self) -> float:
        """Adding it rounds a number below ``2**(mantissa - 1)`` to an integer and leaves that in the low bits of the sum."""
        return 1.5 * 2.0**self.mantissa

    @property
    def least_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def exponent_mask(self) -> int:
        """The bits of sign and exponent, as a negative integer."""
        return -(1 << self.mantissa)


_FORMATS = {
    dtypes.float32: Format(dtypes.float32, dtypes.int32, dtypes.uint32, 23, 127),
    dtypes.float64: Format(dtypes.float64, dtypes.int64, dtypes.uint64, 52, 1023),
}


def format_of(x: Value) -> Format:
    """The format of a float32 or float64 value."""
    return _FORMATS[x.dtype]


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """Horner's rule, constant term first, at least two coefficients."""
    *rest, second, last = coefficients
    p = x.mad(last, second)
    for c in reversed(rest):
        p = p.mad(x, c)
    return p


def at_most(x: Value, high: float) -> Value:
    """``min(x, high)``, NaN where x is NaN; one instruction, unlike ``Value.min``."""
    return (x > high).select(x.const(high), x)


def at_least(x: Value, low: float) -> Value:
    """``max(x, low)``, NaN where x is NaN."""
    return (x < low).select(x.const(low), x)


def negate_if(condition_bits: Value, x: Value) -> Value:
    """Flips the sign of x where the lowest bit of the unsigned ``condition_bits`` is set."""
    f = format_of(x)
    return (x.bitcast(f.unsigned) ^ (condition_bits << (f.unsigned.bits - 1))).bitcast(f.float)
