"""exp, exp2, expm1 and hyperbolic functions.

All reduce x = n*ln2 + r, |r| <= ln2/2, with ln2 in two parts of which the first times n is exact (Cody & Waite, Software Manual for
the Elementary Functions, 1980). n is rounded by adding a large constant, whose low bits then hold it (Muller, Elementary Functions,
2016, section 11.1). What remains is a minimax polynomial in r, and for the hyperbolic functions an addition theorem with 2**n.
"""

from __future__ import annotations

from hologram import dtypes
from hologram.primitives.expansions.coefficients.exponential import COSH, EXP2M1, EXPM1, SINH, TANH
from hologram.primitives.expansions.common import Value, at_least, at_most, format_of, polynomial, power_of_two, scale_by_sum

LOG2_E = 1.4426950408889634
# ln2 in two parts: n times the first is exact for every exponent n
LN2 = {dtypes.float32: (0.693145751953125, 1.4286068203094172e-06), dtypes.float64: (0.6931471803691238, 1.9082149292705877e-10)}
# below the first exp is 0, and known to be by the exponent, above the second it is infinite
_EXP_RANGE = {dtypes.float32: (-106.0, 89.0), dtypes.float64: (-748.0, 710.0)}
_EXP2_RANGE = {dtypes.float32: (-153.0, 129.0), dtypes.float64: (-1078.0, 1025.0)}
# below these expm1 is -1
_EXPM1_LOW = {dtypes.float32: -20.0, dtypes.float64: -40.0}
# above these expm1(x)/2 and sinh are infinite
_SINH_HIGH = {dtypes.float32: 89.6, dtypes.float64: 710.6}
# below the first sigmoid is 0, above the second it is 1
_SIGMOID_RANGE = {dtypes.float32: (-104.0, 20.0), dtypes.float64: (-746.0, 40.0)}
# beyond these tanh is 1
_TANH_ONE = {dtypes.float32: 9.1, dtypes.float64: 19.1}


def _clamp(x: Value, bounds: tuple[float, float]) -> Value:
    return at_least(at_most(x, bounds[1]), bounds[0])


def _reduce(x: Value, offset: float) -> tuple[Value, Value, Value]:
    """``total, r, tail``: total holds ``n + offset`` in its low bits, ``x = n*ln2 + (r - tail)``, r exact."""
    high, low = LN2[x.dtype]
    magic = format_of(x).magic + offset
    total = x.mad(LOG2_E, magic)
    n = total - magic
    return total, n.mad(-high, x), n * low


def exp(x: Value) -> Value:
    """e**x = 2**n * (1 + expm1(r))."""
    x = _clamp(x, _EXP_RANGE[x.dtype])
    total, r, tail = _reduce(x, 2.0 * format_of(x).bias)
    r = r - tail
    return scale_by_sum((r * r).mad(polynomial(r, EXPM1[x.dtype]), r) + 1.0, total)


def exp2(x: Value) -> Value:
    """2**x: the reduction is exact."""
    x = _clamp(x, _EXP2_RANGE[x.dtype])
    f = format_of(x)
    magic = f.magic + 2.0 * f.bias
    total = x + magic
    r = x - (total - magic)
    return scale_by_sum(r.mad(polynomial(r, EXP2M1[x.dtype]), 1.0), total)


def _expm1_half(x: Value) -> Value:
    """``expm1(x) / 2`` for x not above :data:`_SINH_HIGH` and not far below 0.

    With s = 2**(n-1): ``(s - 1/2) + s*r + s*w``, each term exact or much smaller than the sum before it.
    """
    f = format_of(x)
    total, r, tail = _reduce(x, f.bias - 1.0)
    s = power_of_two(total.bitcast(f.unsigned), x.dtype)
    z = r - tail
    w = (z * z).mad(polynomial(z, EXPM1[x.dtype]), -tail)
    return s.mad(w, s.mad(r, s - 0.5))


def expm1(x: Value) -> Value:
    """e**x - 1."""
    tiny = x.abs() < 2.0 ** -(format_of(x).mantissa + 2)
    y = _clamp(x, (_EXPM1_LOW[x.dtype], _EXP_RANGE[x.dtype][1]))
    return tiny.select(x, _expm1_half(y) * 2.0)


def _tanh_parts(a: Value, offset: float) -> tuple[Value, Value]:
    """``total, t``: ``a = n*ln2/2 + atanh(t)``, n + offset in total's low bits, t in -0.07..0.28.

    n = 1 is put off until cancellation is slight, and reaches beyond atanh(1/2). n is below 30, where float32's nearest number to ln2/2, off by
    1e-9 only, does in one part.
    """
    high, low = LN2[a.dtype]
    magic = format_of(a).magic + offset
    total = a.mad(2.0 * LOG2_E, -0.3) + magic
    n = total - magic
    if a.dtype is dtypes.float32:
        r = n.mad(-(high + low) / 2.0, a)
    else:
        r = n.mad(-low / 2.0, n.mad(-high / 2.0, a))
    z = r * r
    return total, (r * z).mad(polynomial(z, TANH[a.dtype]), r)


def tanh(x: Value) -> Value:
    """By the addition theorem: with s = 2**n, t = tanh(r), d = (s + 1) + (s - 1)*t, it is ``((s - 1) + (s + 1)*t) / d``, t itself if n = 0.

    Where that is above 1/2, ``1 - 2*(1 - t) / d`` errs less.
    """
    f = format_of(x)
    a = at_most(x.abs(), _TANH_ONE[x.dtype])
    total, t = _tanh_parts(a, float(f.bias))
    s = power_of_two(total.bitcast(f.unsigned), x.dtype)
    less, more = s - 1.0, s + 1.0
    large = a > 0.62
    quotient = t.mad(large.select(2.0, more), large.select(-2.0, less)) / less.mad(t, more)
    return large.select(quotient + 1.0, quotient).copysign(x)


def sigmoid(x: Value) -> Value:
    """1 / (1 + e**-x): with x = n*ln2 + r, q = 2**n, it is ``q / ((expm1(-r) + q) + 1)``: one of the two sums rounds by hardly anything.

    The quotient is made from ``2**k * q``, where k is such that no factor or quotient is subnormal, and 0 is one where the result is.
    """
    f = format_of(x)
    low, high = _SIGMOID_RANGE[x.dtype]
    k = -round(low * LOG2_E) - f.bias
    total, r, tail = _reduce(_clamp(x, (low, high)), float(f.bias + k))
    z = tail - r
    scaled = power_of_two(total.bitcast(f.unsigned), x.dtype)
    q = at_least(scaled, 2.0 ** (k - 64)) * 2.0**-k  # less than this changes no sum
    return scaled / (z.mad(z.mad(polynomial(z, EXPM1[x.dtype]), 1.0), q) + 1.0) * 2.0**-k


def _hyperbolic_parts(x: Value) -> tuple[Value, Value, Value, Value, Value]:
    """``up, down, r, sh, ch`` for a = |x| = n*ln2 + ...: 2**(n-2), 2**-(n+2), an exact r, ``sinh - r`` and ``cosh - 1`` of the rest."""
    f = format_of(x)
    a = at_most(x.abs(), _SINH_HIGH[x.dtype])
    total, r, tail = _reduce(a, f.bias - 2.0)
    rest = r - tail
    z = rest * rest
    n = total.bitcast(f.unsigned)
    up = power_of_two(n, x.dtype)
    down = (a > 40.0).select(x.const(0.0), power_of_two(n.const(2 * f.bias - 4) - n, x.dtype))
    return up, down, r, (rest * z).mad(polynomial(z, SINH[x.dtype]), -tail), z * polynomial(z, COSH[x.dtype])


def sinh(x: Value) -> Value:
    """sinh(n*ln2)*cosh(r) + cosh(n*ln2)*sinh(r), halved until the last step so that nothing overflows before the result."""
    up, down, r, sh, ch = _hyperbolic_parts(x)
    c, s = up + down, up - down
    return ((c.mad(r, s) + s.mad(ch, c * sh)) * 2.0).copysign(x)


def cosh(x: Value) -> Value:
    """cosh(n*ln2)*cosh(r) + sinh(n*ln2)*sinh(r), halved as in :func:`sinh`; what rounding takes from the first sum is kept."""
    up, down, r, sh, ch = _hyperbolic_parts(x)
    c, s = up + down, up - down
    lost = (up - c) + down
    return (c + s.mad(r, c.mad(ch, s.mad(sh, lost)))) * 2.0
