"""Logarithms and inverse hyperbolic functions.

x = (1 + f) * 2**e with 1 + f in [sqrt(1/2), sqrt(2)), f being exact; then log1p(f) = f + t, t small: for float32 a minimax polynomial,
for float64 the series of 2*atanh(f / (2 + f)) (the form of t is that of FDLIBM's log, Sun Microsystems 1993).
"""

from __future__ import annotations

from collections.abc import Callable

from hologram import dtypes
from hologram.dtypes import DType
from hologram.primitives.expansions.coefficients.logarithm import ATANH, LOG1P
from hologram.primitives.expansions.common import Format, Value, at_most, format_of, leading_bits, polynomial, power_of_two, split, to_float
from hologram.primitives.expansions.exponential import LN2, LOG2_E

LN_2 = 0.6931471805599453
LOG10_E = (0.4342944819032518, 1.098319650216765e-17)  # as a float64 and what it lacks
# log10(2) in two parts: an exponent times the first is exact
_LOG10_2 = {dtypes.float32: (0.301025390625, 4.6050389811952114e-06), dtypes.float64: (0.3010299956640665, -8.532344317057107e-14)}
_INFINITY = float("inf")


def root_half(f: Format) -> int:
    """The bits of sqrt(1/2)."""
    return int.from_bytes(f.real.np.type(0.5**0.5).tobytes(), "little")


def exponent_and_fraction(x: Value) -> tuple[Value, Value]:
    """``e, f``: e an integer value, f a float, for normal x > 0."""
    k = format_of(x)
    bits = x.bitcast(k.integer) - root_half(k)
    m = (bits & ((1 << k.mantissa) - 1)) + root_half(k)
    return bits >> k.mantissa, m.bitcast(k.real) - 1.0


def log1p_tail(f: Value) -> Value:
    """``log1p(f) - f`` for 1 + f in [sqrt(1/2), sqrt(2)], small beside f."""
    if f.dtype is dtypes.float32:
        z = f * f
        return z.mad(-0.5, (f * z) * polynomial(f, LOG1P[f.dtype]))
    s = f / (f + 2.0)
    z = s * s
    half = (f * 0.5) * f
    return s.mad((z + z).mad(polynomial(z, ATANH[f.dtype]), half), -half)


def normal_and_positive(x: Value) -> Value:
    """Whether x is a normal number above 0: one comparison of bits."""
    k = format_of(x)
    least_normal, infinity = 1 << k.mantissa, (2 * k.bias + 1) << k.mantissa
    return (x.bitcast(k.unsigned) - least_normal) < infinity - least_normal


def _guarded(x: Value, of_normal: Callable[[Value, float], Value]) -> Value:
    """``of_normal(x, 0)`` for normal x > 0; ``of_normal(x * 2**k, -k)`` for subnormal ones; log's limits elsewhere."""

    def slow() -> Value:
        shift = format_of(x).mantissa + 2
        result = (x < _INFINITY).select(of_normal(x * 2.0**shift, -float(shift)), x)
        result = x.eq(0.0).select(-_INFINITY, result)
        return (x < 0.0).select(float("nan"), result)

    return (~normal_and_positive(x)).rare(slow, of_normal(x, 0.0))


def log_of_normal(x: Value, shift: float = 0.0) -> Value:
    """``log(x) + shift*ln2`` for normal x > 0."""
    e, f = exponent_and_fraction(x)
    n = to_float(e, x.dtype) + shift
    high, low = LN2[x.dtype]
    return n.mad(high, f + n.mad(low, log1p_tail(f)))


def log(x: Value) -> Value:
    """The natural logarithm."""
    return _guarded(x, log_of_normal)


def _other_base(x: Value, scale: tuple[float, float], per_exponent: tuple[float, float]) -> Value:
    """``log(x) * scale``, where ``per_exponent`` is ``log(2) * scale`` in two parts, the first exact times an exponent.

    The product with ``scale`` is made of halves, its sum with the exponent's share keeps the rounding error.
    """
    scale_high, scale_low = split(*scale, x.dtype)

    def of_normal(x: Value, shift: float) -> Value:
        e, f = exponent_and_fraction(x)
        n = to_float(e, x.dtype) + shift
        t = log1p_tail(f)
        high = leading_bits(f + t)
        low = (f - high) + t
        whole, part = n * per_exponent[0], high * scale_high
        total = whole + part
        error = (whole - total) + part
        low = low.mad(scale[0], high.mad(scale_low, error))
        return total + (n.mad(per_exponent[1], low) if per_exponent[1] else low)

    return _guarded(x, of_normal)


def log2(x: Value) -> Value:
    """The logarithm to base 2; exact for powers of two."""
    return _other_base(x, (LOG2_E, 2.0355273740931033e-17), (1.0, 0.0))


def log10(x: Value) -> Value:
    """The logarithm to base 10."""
    return _other_base(x, LOG10_E, _LOG10_2[x.dtype])


def _log1p_sum(x: Value, low: Value | None = None) -> Value:
    """``log(1 + x + low)`` for -1 < x < 2**60, low being at most a rounding error of x.

    1 + x serves only to find the exponent: ``f = x*2**-e + (2**-e - 1)`` is exact or nearly so.
    """
    k = format_of(x)
    bits = (x + 1.0).bitcast(k.integer) - root_half(k)
    e = bits >> k.mantissa
    scale = power_of_two((e.const(k.bias) - e).bitcast(k.unsigned), x.dtype)
    f = x.mad(scale, scale - 1.0)
    n = to_float(e, x.dtype)
    high, tail_unit = LN2[x.dtype]
    tail = n.mad(tail_unit, log1p_tail(f))
    if low is not None:
        shift = low * scale
        tail = tail + f.mad(-shift, shift)
    return n.mad(high, f + tail)


def log1p(x: Value) -> Value:
    """log(1 + x)."""
    ordinary = (x > -1.0) & (x < 2.0**60)

    def slow() -> Value:
        result = (x < _INFINITY).select(log(x), x)
        result = x.eq(-1.0).select(-_INFINITY, result)
        return (x < -1.0).select(float("nan"), result)

    return x.eq(0.0).select(x, (~ordinary).rare(slow, _log1p_sum(x)))


def _square_limit(d: DType) -> float:
    """Above this, x**2 + 1 is x**2."""
    return 2.0**30 if d is dtypes.float64 else 2.0**14


def asinh(x: Value) -> Value:
    """log1p(a + a**2 / (1 + sqrt(1 + a**2))), a = |x|; log(a) + ln2 where a is large."""
    a = x.abs()
    small = at_most(a, _square_limit(x.dtype))
    square = small * small
    part = square / ((square + 1.0).sqrt() + 1.0)
    y = small + part
    big = (a >= _square_limit(x.dtype)).rare(lambda: log(a) + LN_2, _log1p_sum(y, (small - y) + part))
    return big.copysign(x)


def acosh(x: Value) -> Value:
    """log1p(t + sqrt(t*t + 2*t)), t = x - 1; log(x) + ln2 where x is large, NaN for x < 1."""
    t = at_most(x, _square_limit(x.dtype)) - 1.0
    root = t.mad(t, t + t).sqrt()
    y = t + root
    big = (x >= _square_limit(x.dtype)).rare(lambda: log(x) + LN_2, _log1p_sum(y, (root - y) + t))
    return (x >= 1.0).select(big, x.eq(x).select(float("nan"), x))


def atanh(x: Value) -> Value:
    """e*ln2/2 + atanh(s): s = ((1+a) - (1-a)*2**e) / ((1+a) + (1-a)*2**e), 2**e near (1+a)/(1-a), a = |x|; s = a if e = 0."""
    k = format_of(x)
    a = x.abs()
    more, less = a + 1.0, 1.0 - a
    # the bits of a float are nearly its logarithm; e = 1 only from a = 1/4 on keeps e*ln2/2 + atanh(s) clear of cancellation
    e = (more.bitcast(k.integer) - less.bitcast(k.integer) + round(0.25 * 2**k.mantissa)) >> k.mantissa
    e = e.min(k.mantissa + 1)  # up to there 1 - 2**e is exact; the last float below 1 alone would have one more
    scale = power_of_two((e + k.bias).bitcast(k.unsigned), x.dtype)
    s = (a.mad(scale, 1.0 - scale) + a) / less.mad(scale, more)  # the inner sum is exact
    z = s * s
    n = to_float(e, x.dtype) * 0.5
    high, low = LN2[x.dtype]
    result = n.mad(high, s + n.mad(low, (s * z) * polynomial(z, ATANH[x.dtype])))
    result = (a < 1.0).select(result, a.eq(1.0).select(_INFINITY, a.eq(a).select(float("nan"), a)))
    return result.copysign(x)
