"""asin, acos, atan and atan2: one polynomial each, after a reduction that costs at most a rounding error."""

from __future__ import annotations

from hologram import dtypes
from hologram.primitives.expansions.coefficients.trigonometric import ASIN, ATAN
from hologram.primitives.expansions.common import Value, flip_sign, format_of, polynomial

# pi/2 and pi as a float and what it lacks
_HALF_PI = {dtypes.float32: (1.5707963705062866, -4.371139000186241e-08), dtypes.float64: (1.5707963267948966, 6.123233995736766e-17)}
_PI = {d: (2.0 * high, 2.0 * low) for d, (high, low) in _HALF_PI.items()}


def _atan_of_quotient(numerator: Value, denominator: Value) -> Value:
    """atan(numerator / denominator) for 0 <= numerator <= denominator."""
    t = numerator / denominator
    z = t * t
    return (t * z).mad(polynomial(z, ATAN[t.dtype]), t)


def atan(x: Value) -> Value:
    """atan(a), or pi/2 - atan(1/a) for a = |x| > 1."""
    a = x.abs()
    inverse = a > 1.0
    r = _atan_of_quotient(inverse.select(x.const(1.0), a), inverse.select(a, x.const(1.0)))
    high, low = _HALF_PI[x.dtype]
    return inverse.select(high - (r - low), r).copysign(x)


def atan2(y: Value, x: Value) -> Value:
    """The angle of the point (x, y), signed zeros and infinities as in C99."""
    b, a = y.abs(), x.abs()
    steep = b > a
    numerator, denominator = steep.select(a, b), steep.select(b, a)
    # 0/0 and inf/inf: the angle is that of 0/1 and 1/1
    denominator = denominator.eq(0.0).select(x.const(1.0), denominator)
    both_infinite = numerator.eq(float("inf"))
    numerator = both_infinite.select(x.const(1.0), numerator)
    denominator = both_infinite.select(x.const(1.0), denominator)
    r = _atan_of_quotient(numerator, denominator)
    f = format_of(x)
    sign = x.bitcast(f.unsigned)
    negative = x.bitcast(f.integer) < 0
    half_high, half_low = _HALF_PI[x.dtype]
    high, low = _PI[x.dtype]
    # r, pi - r, pi/2 - r or pi/2 + r
    base_high = steep.select(x.const(half_high), negative.select(x.const(high), x.const(0.0)))
    base_low = steep.select(x.const(half_low), negative.select(x.const(low), x.const(0.0)))
    r = flip_sign(r, steep.select(~sign, sign))
    result = (base_high + (r + base_low)).copysign(y)
    return y.isnan().select(y, x.isnan().select(x, result))


def _asin_tail(t: Value, z: Value) -> Value:
    """asin(t) - t for z = t*t, |t| <= 1/2."""
    return (t * z) * polynomial(z, ASIN[t.dtype])


def _asin_parts(x: Value) -> tuple[Value, Value, Value]:
    """``large, t, tail`` for a = |x|: asin(t) = t + tail, t = a, or sqrt((1 - a)/2) where a > 1/2 is large."""
    a = x.abs()
    large = a > 0.5
    half = a.mad(-0.5, 0.5)
    z = large.select(half, a * a)
    t = large.select(half.sqrt(), a)
    return large, t, _asin_tail(t, z)


def asin(x: Value) -> Value:
    """asin(a), or pi/2 - 2*asin(sqrt((1 - a)/2)) for a = |x| > 1/2."""
    large, t, tail = _asin_parts(x)
    high, low = _HALF_PI[x.dtype]
    return large.select(high - ((t + t) + ((tail + tail) - low)), t + tail).copysign(x)


def acos(x: Value) -> Value:
    """pi/2 - asin(x) for a = |x| <= 1/2; above 2*asin(sqrt((1 - a)/2)), or pi minus that for x < 0."""
    large, t, tail = _asin_parts(x)
    negative = x < 0.0
    high, low = _HALF_PI[x.dtype]
    t, tail = large.select(t + t, t), large.select(tail + tail, tail)
    t, tail = negative.select(-t, t), negative.select(-tail, tail)
    base = large.select(negative.select(x.const(2.0 * high), x.const(0.0)), x.const(high))
    base_low = large.select(negative.select(x.const(2.0 * low), x.const(0.0)), x.const(low))
    sign = large.select(x.const(1.0), x.const(-1.0))
    return base + sign.mad(t, sign.mad(tail, base_low))
