"""pow, roots and hypot."""

from __future__ import annotations

from hologram import dtypes
from hologram.primitives.vector_math.coefficients import CBRT, EXP2M1, LOG2_TAIL
from hologram.primitives.vector_math.common import (
    Value,
    at_least,
    at_most,
    format_of,
    leading_bits,
    polynomial,
    power_of_two,
    scale_by_sum,
    split,
)
from hologram.primitives.vector_math.logarithm import exponent_and_fraction

_INFINITY = float("inf")
_NAN = float("nan")


def _sum(a: Value, b: Value) -> tuple[Value, Value]:
    """a + b and its rounding error, for |a| >= |b| or a = 0 (Dekker 1971)."""
    s = a + b
    return s, (a - s) + b


def _log2_two(x: Value, shift: float) -> tuple[Value, Value]:
    """``log2(x) + shift`` as a number with half the significant bits, and the rest; x > 0 normal.

    log2(m) = 2/ln2 * (s + s**3/3 + s**5*Q(s**2)), s = (m - 1)/(m + 1); products of leading halves are exact, so no step needs FMA.
    The shape is that of FDLIBM's e_pow.c (Sun Microsystems, 1993).
    """
    e, f = exponent_and_fraction(x)
    inverse = 1.0 / (f + 2.0)
    s = f * inverse
    s_high = leading_bits(s)
    d_high = leading_bits(f + 2.0)
    d_low = f - (d_high - 2.0)
    s_low = ((f - s_high * d_high) - s_high * d_low) * inverse
    z = s * s
    q = (z * z) * polynomial(z, LOG2_TAIL[x.dtype]) + s_low * (s_high + s)
    # 3 + z + z**2*...: times s/3 the series
    square = s_high * s_high
    t_high = leading_bits((square + 3.0) + q)
    t_low = q - ((t_high - 3.0) - square)
    u, v = s_high * t_high, s_low.mad(t_high, t_low * s)
    p_high = leading_bits(u + v)
    p_low = v - (p_high - u)
    c_high, c_low = split(2.0 / (3.0 * 0.6931471805599453), x.dtype)
    total, error = _sum(e.cast(x.dtype) + shift, p_high * c_high)
    rest = p_high.mad(c_low, p_low * (c_high + c_low)) + error
    high = leading_bits(total + rest)
    return high, (total - high) + rest


def _power(x: Value, y: Value, shift: float) -> Value:
    """``(x * 2**shift)**y`` for normal x > 0 and any y that is no NaN."""
    f = format_of(x)
    bound = 2.0 ** (f.mantissa + 12)  # beyond it every power but that of 1 is 0 or infinity
    y = at_least(at_most(y, bound), -bound)
    high, low = _log2_two(x, shift)
    y_high = leading_bits(y)
    exponent_high = y_high * high
    exponent_low = y.mad(low, (y - y_high) * high)
    limit = 2.2 * f.bias
    clamped = at_least(at_most(exponent_high, limit), -limit)
    exponent_low = clamped.eq(exponent_high).select(exponent_low, x.const(0.0))
    magic = f.magic + 2.0 * f.bias
    total = (clamped + exponent_low) + magic
    # n stays where scale_by_sum can split it
    total = at_least(at_most(total, magic + f.bias + 2.0), magic - f.bias - f.mantissa - 3.0)
    r = (clamped - (total - magic)) + exponent_low
    r = at_least(at_most(r, 1.0), -1.0)
    return scale_by_sum(r.mad(polynomial(r, EXP2M1[x.dtype]), 1.0), total)


def pow(x: Value, y: Value) -> Value:
    """x**y with C99's special cases. Anything but a normal x > 0 and a y that is no NaN takes the slow path."""
    f = format_of(x)
    a = x.abs()
    ordinary = (x >= f.least_normal) & (x < _INFINITY) & y.eq(y)

    def slow() -> Value:
        shift = float(f.mantissa + 2)
        tiny = a < f.least_normal
        result = tiny.select(_power(a * 2.0**shift, y, -shift), _power(a, y, 0.0))
        zero_or_infinite = a.eq(0.0) | a.eq(_INFINITY)
        vanishes = a.eq(0.0) ^ (y < 0.0)
        result = zero_or_infinite.select(vanishes.select(x.const(0.0), x.const(_INFINITY)), result)
        whole = y.floor().eq(y)
        half = y * 0.5
        odd = whole & half.floor().ne(half)
        negative = x.bitcast(f.integer) < 0
        result = (negative & odd).select(-result, result)
        result = (negative & ~whole & ~zero_or_infinite).select(x.const(_NAN), result)
        result = (a.eq(1.0) & y.abs().eq(_INFINITY)).select(x.const(1.0), result)
        result = (x.isnan() | y.isnan()).select(x + y, result)
        return (y.eq(0.0) | x.eq(1.0)).select(x.const(1.0), result)

    return (~ordinary).rare(slow, _power(x, y, 0.0))


def rsqrt(x: Value) -> Value:
    """1 / sqrt(x), two correctly rounded operations."""
    return 1.0 / x.sqrt()


def cbrt(x: Value) -> Value:
    """The cube root: a polynomial on the significand, times 2**(e/3), and a Newton step of which t*t is exact (as in FDLIBM's s_cbrt.c).

    float64 has one more step before that, of Halley's kind.
    """
    f = format_of(x)
    a = x.abs()
    tiny = a < f.least_normal
    shift = 3 * ((f.mantissa + 3) // 3)
    scaled = tiny.select(a * 2.0**shift, a)
    e, fraction = exponent_and_fraction(scaled)
    m = fraction + 1.0
    # e = 3n + k, k in -1, 0, 1
    whole = e.cast(x.dtype)
    n = ((whole * (1.0 / 3.0)) + f.magic) - f.magic
    k = n.mad(-3.0, whole)
    factor = (k > 0.0).select(x.const(2.0 ** (1 / 3)), (k < 0.0).select(x.const(2.0 ** (-1 / 3)), x.const(1.0)))
    m = (k > 0.0).select(m * 2.0, (k < 0.0).select(m * 0.5, m))
    t = polynomial(fraction + 1.0, CBRT[x.dtype]) * factor
    cube = t * t * t
    t = t * (cube + (m + m)) / ((cube + cube) + m)
    if x.dtype is dtypes.float64:
        cube = t * t * t
        t = t * (cube + (m + m)) / ((cube + cube) + m)
    t = leading_bits(t)
    quotient = m / (t * t)
    t = t.mad((quotient - t) / ((t + t) + quotient), t)
    n = n - tiny.select(x.const(shift / 3.0), x.const(0.0))
    result = t * power_of_two((n + (f.magic + f.bias)).bitcast(f.unsigned), x.dtype)
    ordinary = a.ne(0.0) & (a < _INFINITY)
    return ordinary.select(result.copysign(x), x)


def hypot(x: Value, y: Value) -> Value:
    """sqrt(x**2 + y**2); where a square would leave the normal range, of both arguments times a power of two."""
    f = format_of(x)
    a, b = x.abs(), y.abs()
    plain = a.mad(a, b * b)
    safe = (plain > 2.0 ** (-0.9 * f.bias // 1)) & (plain < 2.0 ** (0.9 * f.bias // 1))

    def slow() -> Value:
        big = (a > b).select(a, b)
        large = big > 1.0
        down = 2.0 ** (-(0.55 * f.bias) // 1)
        up = 2.0 ** ((0.6 * f.bias) // 1)
        scale, back = large.select(x.const(down), x.const(up)), large.select(x.const(1.0 / down), x.const(1.0 / up))
        p, q = a * scale, b * scale
        result = p.mad(p, q * q).sqrt() * back
        return (a.eq(_INFINITY) | b.eq(_INFINITY)).select(x.const(_INFINITY), result)

    return (~safe).rare(slow, plain.sqrt())
