"""What all decompositions share: float formats, polynomials, clamps, powers of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.ir.expression_builder import Value


@dataclass(frozen=True)
class Format:
    """An IEEE binary format, with the integer types of its width."""

    real: DType
    integer: DType
    unsigned: DType
    mantissa: int  # stored bits of the significand
    bias: int

    @cached_property
    def magic(self) -> float:
        """Adding it rounds a number below ``2**(mantissa - 1)`` to an integer and leaves that in the low bits of the sum."""
        return 1.5 * 2.0**self.mantissa

    @cached_property
    def least_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @cached_property
    def exponent_bits(self) -> int:
        """Ones at sign and exponent, as an unsigned integer."""
        return (1 << self.unsigned.bits) - (1 << self.mantissa)

    @cached_property
    def sign_bit(self) -> int:
        return 1 << (self.unsigned.bits - 1)


_FORMATS = {
    dtypes.float32: Format(dtypes.float32, dtypes.int32, dtypes.uint32, 23, 127),
    dtypes.float64: Format(dtypes.float64, dtypes.int64, dtypes.uint64, 52, 1023),
}


def format_of(x: Value) -> Format:
    """The format of a float32 or float64 value."""
    return _FORMATS[x.dtype]


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """By Estrin's scheme, constant term first, at least two coefficients (Muller, Elementary Functions, 2016, section 5.6).

    Terms are joined in pairs, these in pairs by the square, and so on, so few wait for one another; the last three by Horner's rule, which takes
    no longer and saves a square.
    """
    terms: list[Value | float] = list(coefficients)
    power = x
    while len(terms) > 3:
        pairs: list[Value | float] = [_joined(low, high, power) for low, high in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[2 * len(pairs) :]
        power = power * power
    *first, last = terms
    return reduce(lambda high, low: _joined(low, high, power), reversed(first), last)  # type: ignore[return-value]  # two terms at least


def _joined(low: Value | float, high: Value | float, power: Value) -> Value:
    """``low + high * power``."""
    return high.mad(power, low) if isinstance(high, Value) else power.mad(high, low)


def at_most(x: Value, high: float) -> Value:
    """``min(x, high)``, NaN where x is NaN; one instruction, unlike ``Value.min``."""
    return (x > high).select(x.const(high), x)


def at_least(x: Value, low: float) -> Value:
    """``max(x, low)``, NaN where x is NaN."""
    return (x < low).select(x.const(low), x)


def flip_sign(x: Value, sign: Value) -> Value:
    """x with its sign flipped where the first bit of the unsigned ``sign`` is set."""
    f = format_of(x)
    return (x.bitcast(f.unsigned) ^ (sign & f.sign_bit)).bitcast(f.real)


def leading_bits(x: Value, fewer: int = 0) -> Value:
    """x without the lower half of its significand, so that a product of two such numbers is exact; without ``fewer`` bits more."""
    f = format_of(x)
    cleared = (f.mantissa + 2) // 2 + fewer
    return (x.bitcast(f.unsigned) & ((1 << f.unsigned.bits) - (1 << cleared))).bitcast(f.real)


def split(number: float, beyond: float, d: DType) -> tuple[float, float]:
    """The constant ``number + beyond``, beyond being what float64 cannot hold, as half a significand of type ``d`` and the rest."""
    f = _FORMATS[d]
    high = round(math.ldexp(number, f.mantissa // 2)) / 2.0 ** (f.mantissa // 2)
    return high, (number - high) + beyond


def to_float(e: Value, d: DType) -> Value:
    """A small signed integer value as a float: by adding the bits of a large float where wide integers do not convert in one step."""
    if d is dtypes.float32:
        return e.cast(d)
    magic = _FORMATS[d].magic
    return (e + int(np.float64(magic).view(np.int64))).bitcast(d) - magic


def power_of_two(biased_exponent: Value, d: DType) -> Value:
    """``2**(e - bias)`` from the low bits of an unsigned value, which are in the range of normal numbers."""
    return (biased_exponent << _FORMATS[d].mantissa).bitcast(d)


def scale_by_sum(p: Value, total: Value) -> Value:
    """``p * 2**n`` where ``total = n + magic + 2*bias``, rounded once, down to subnormals and up to infinity.

    ``2*bias + n`` is split into two biased exponents of nearly equal size, so that only the last of two products can round. Where the result is far
    below subnormals, its last factor is 0: many processors take a hundred times as long for a product that underflows, and masks of scores give
    nothing else.
    """
    f = format_of(p)
    both = total.bitcast(f.unsigned) << f.mantissa
    first = (both >> 1) & f.exponent_bits
    second = (both - first).bitcast(f.real)
    gone = total < f.magic + f.bias - f.mantissa - 1.0  # n is below -bias - mantissa - 1: rounded, the result is 0
    return p * first.bitcast(f.real) * gone.select(0.0, second)
