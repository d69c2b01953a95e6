"""pow, roots and hypot."""

from __future__ import annotations

from hologram import dtypes
from hologram.primitives.expansions.coefficients.exponential import EXP2M1
from hologram.primitives.expansions.coefficients.logarithm import CBRT, LOG2_TAIL
from hologram.primitives.expansions.common import (
    Value,
    at_least,
    at_most,
    format_of,
    leading_bits,
    polynomial,
    power_of_two,
    scale_by_sum,
    split,
    to_float,
)
from hologram.primitives.expansions.logarithm import exponent_and_fraction, normal_and_positive

_INFINITY = float("inf")
_NAN = float("nan")
_LOG2_SCALE = (0.9617966939259756, 5.0577616648125907e-17)  # 2/(3 ln2) as a float64 and what it lacks


def log2_two(x: Value, shift: Value | float) -> tuple[Value, Value]:
    """``log2(x) + shift`` as a number with half the significant bits, and the rest; x > 0 normal.

    log2(m) = 2/(3 ln2) * s*(3 + s**2 + s**4*Q(s**2)), s = f/(f + 2), f = m - 1, carried as leading halves and rests. Products of leading
    halves are exact, so no step needs FMA. The shape is that of FDLIBM's e_pow.c (Sun Microsystems, 1993).
    """
    e, f = exponent_and_fraction(x)
    inverse = 1.0 / (f + 2.0)
    s = f * inverse
    s_high, f_high = leading_bits(s), leading_bits(f)
    remainder = s_high.mad(f_high - f, (-s_high).mad(f_high, s_high.mad(-2.0, f)))  # of the division by f + 2
    s_low = remainder * inverse
    z = s * s
    q = s_low.mad(s_high + s, (z * z) * polynomial(z, LOG2_TAIL[x.dtype]))
    square = s_high * s_high
    t_high = leading_bits((square + 3.0) + q)
    t_low = q - ((t_high - 3.0) - square)
    u, v = s_high * t_high, s_low.mad(t_high, t_low * s)
    p_high = leading_bits(u + v)
    p_low = v - (p_high - u)
    c_high, c_low = split(*_LOG2_SCALE, x.dtype)
    whole = to_float(e, x.dtype) + shift
    total = p_high.mad(c_high, whole)
    rest = p_high.mad(c_low, p_low.mad(c_high + c_low, p_high.mad(c_high, whole - total)))
    high = leading_bits(total + rest)
    return high, (total - high) + rest


def _exponent(x: Value, y: Value, shift: float) -> tuple[Value, Value]:
    """``y * (log2(x) + shift)`` as a sum, the first part exact; x > 0 normal."""
    high, low = log2_two(x, shift)
    y_high = leading_bits(y)
    return y_high * high, y.mad(low, (y - y_high) * high)


def _exp2_two(high: Value, low: Value, offset: float) -> tuple[Value, Value]:
    """``total, p``: ``2**(high + low) = 2**n * p``, total holding n + offset in its low bits."""
    magic = format_of(high).magic + offset
    total = (high + low) + magic
    r = (high - (total - magic)) + low
    return total, r.mad(polynomial(r, EXP2M1[high.dtype]), 1.0)


def _power_clamped(x: Value, y: Value, shift: float) -> Value:
    """``(x * 2**shift)**y`` for normal x > 0 and any y but NaN, down to subnormal results and up to infinity."""
    f = format_of(x)
    bound = 2.0 ** (f.mantissa + 12)  # beyond it every power but that of 1 is 0 or infinity
    high, low = _exponent(x, at_least(at_most(y, bound), -bound), shift)
    high = at_least(at_most(high, f.bias + 2.0), -f.bias - f.mantissa - 3.0)
    total, p = _exp2_two(high, at_least(at_most(low, 1.0), -1.0), 2.0 * f.bias)
    return scale_by_sum(p, total)


def _power_anywhere(x: Value, y: Value) -> Value:
    """x**y with C99's special cases."""
    f = format_of(x)
    shift = float(f.mantissa + 2)
    a = x.abs()
    result = (a < f.least_normal).select(_power_clamped(a * 2.0**shift, y, -shift), _power_clamped(a, y, 0.0))
    vanishes = a.eq(0.0) ^ (y < 0.0)
    zero_or_infinite = a.eq(0.0) | a.eq(_INFINITY)
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


def pow(x: Value, y: Value) -> Value:
    """x**y = 2**(y*log2(x)). Anything but a normal x > 0 with a normal result takes the slow path, infinite and NaN y included."""
    f = format_of(x)
    high, low = _exponent(x, y, 0.0)
    total, p = _exp2_two(high, low, 0.0)
    fast = (p.bitcast(f.unsigned) + (total.bitcast(f.unsigned) << f.mantissa)).bitcast(x.dtype)
    ordinary = normal_and_positive(x) & (high.abs() < f.bias - 2.0)
    return (~ordinary).rare(lambda: _power_anywhere(x, y), fast)


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
    whole = to_float(e, x.dtype)
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
