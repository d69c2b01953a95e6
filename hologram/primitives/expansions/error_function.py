"""erf, erfc and the inverse of erf."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hologram import dtypes
from hologram.primitives.expansions.coefficients.error_function import (
    ERF,
    ERF_NEAR,
    ERFCX,
    ERFCX_LOW,
    ERFINV,
    ERFINV_FAR,
    ERFINV_FAR_LOW,
    ERFINV_TAIL,
    ERFINV_TAIL_LOW,
    EXP2M1_SHORT,
    LOG2_ERFC,
)
from hologram.primitives.expansions.coefficients.exponential import EXPM1
from hologram.primitives.expansions.common import Value, at_most, format_of, leading_bits, polynomial, power_of_two, scale_by_sum
from hologram.primitives.expansions.exponential import LN2, LOG2_E
from hologram.primitives.expansions.logarithm import log_of_normal

# above the first erf is 1 less a power of two, above the second it is 1
_ERF_STEPS = {dtypes.float32: (0.9, 3.92), dtypes.float64: (1.0, 5.94)}
# at the first erfc is 1/2, above the second it is 0
ERFC_STEPS = {dtypes.float32: (0.477, 10.3), dtypes.float64: (0.477, 27.36)}
# minus this is the pole of the variable of ERFCX
_ERFCX_POLE = {dtypes.float32: 1.0, dtypes.float64: 2.0}
# near the first two coefficients of ERFCX, with few bits
_ERFCX_SHORT = {dtypes.float32: (0.875, -0.25), dtypes.float64: (1.0, -0.5)}
# of ERFINV's interval the centre and the end, and the centres of ERFINV_TAIL's and ERFINV_FAR's
_ERFINV_CENTER, _ERFINV_FAR_CENTER = 0.75, 24.0
_ERFINV_END = {dtypes.float32: 5.0, dtypes.float64: 6.25}
_ERFINV_TAIL_CENTER = {dtypes.float32: 9.0, dtypes.float64: 10.0}
_ERFINV_TAIL_END = 16.0


def erf(x: Value) -> Value:
    """x + x*P(x**2), or 1 - 2**L(|x|), L a polynomial near log2(erfc)."""
    f = format_of(x)
    first, last = _ERF_STEPS[x.dtype]
    a = x.abs()
    b = at_most(a, last)
    log2_erfc = polynomial(b, LOG2_ERFC[x.dtype])
    magic = f.magic + f.bias
    total = log2_erfc + magic
    r = log2_erfc - (total - magic)
    p = r.mad(polynomial(r, EXP2M1_SHORT[x.dtype]), 1.0)
    far = 1.0 - power_of_two(total.bitcast(f.unsigned), x.dtype) * p
    return (a < first).select(a.mad(polynomial(a * a, ERF[x.dtype]), a), far).copysign(x)


def erfcx_parts(a: Value) -> tuple[Value, Value]:
    """exp(a**2) * erfc(a) and a correction, for a from 0.45 to the end of erfc: s*P(t), s = 1/(a + k), t = (a - k)/(a + k) = 1 - 2*k*s.

    s is a leading part and a rest, t likewise. Of P's first two coefficients so few bits are kept apart that they, times the leading part of t,
    are exact, and so is their product with that of s, without FMA too. What remains of P is small, and so are its rounding errors.
    """
    k = _ERFCX_POLE[a.dtype]
    few, few_slope = _ERFCX_SHORT[a.dtype]
    first, second, *others = ERFCX[a.dtype]
    d = a + k
    s = 1.0 / d
    d_high, s_high = leading_bits(d), leading_bits(s, 2)  # P's part has at most four bits more
    d_low = a - (d_high - k)
    s_low = s_high.mad(-d_low, s_high.mad(-d_high, 1.0)) * s
    t_high = s_high.mad(-2.0 * k, 1.0)
    t = s_low.mad(-2.0 * k, t_high)
    p = t_high.mad(few_slope, few)
    p_low = t.mad(polynomial(t, [second - few_slope, *others]), s_low.mad(-2.0 * k * few_slope, (first - few) + ERFCX_LOW[a.dtype]))
    return s_high * p, s.mad(p_low, s_low * p)


def times_gauss(g: Value, g_low: Value, square: Value, square_low: Value, exponent: float = 0.0) -> Value:
    """``(g + g_low) * exp(-square - square_low) * 2**exponent``, down to subnormal numbers."""
    f = format_of(g)
    magic = f.magic + 2.0 * f.bias + exponent
    total = (square + square_low).mad(-LOG2_E, magic)
    n = total - magic
    high, low = LN2[g.dtype]
    top, tail = n.mad(-high, -square), n.mad(low, square_low)
    r = top - tail
    both = g + g_low
    rest = (r * r).mad(polynomial(r, EXPM1[g.dtype]), -tail)
    return scale_by_sum(g + both.mad(top, both.mad(rest, g_low)), total)


def erfc(x: Value) -> Value:
    """1 - erf(x) for |x| < 0.477, else exp(-a**2) * erfcx(a), a = |x|, or 2 minus that for x < 0. a**2 is kept exact."""
    first, last = ERFC_STEPS[x.dtype]
    a = at_most(x.abs(), last)
    g, g_low = erfcx_parts(a)
    a_high = leading_bits(a)
    square, square_low = a_high * a_high, (a - a_high) * (a + a_high)
    far = times_gauss(g, g_low, square, square_low)
    near = 1.0 - x.mad(polynomial(x * x, ERF_NEAR[x.dtype]), x)
    return (x.abs() < first).select(near, (x < 0.0).select(2.0 - far, far))


def _times(x: Value, t: Value, coefficients: Sequence[float], low: float) -> Value:
    """x times a polynomial in t whose first coefficient lacks ``low``."""
    first, *others = coefficients
    return x.mad(first, x * t.mad(polynomial(t, others), low))


class Near(NamedTuple):
    """A value, and where it is right."""

    value: Value
    ordinary: Value


def erfinv_parts(x: Value, w: Value) -> tuple[Near, Callable[[], Value]]:
    """erfinv(x), |x| < 1, where ``w = -log(1 - x**2)`` is small, and code for it elsewhere, up to w = 36."""
    d = x.dtype

    def tail() -> Value:
        result = _times(x, w - _ERFINV_TAIL_CENTER[d], ERFINV_TAIL[d], ERFINV_TAIL_LOW[d])
        if d is dtypes.float64:
            far = _times(x, w - _ERFINV_FAR_CENTER, ERFINV_FAR[d], ERFINV_FAR_LOW[d])
            result = (w > _ERFINV_TAIL_END).select(far, result)
        return result

    return Near(x.mad(polynomial(w - _ERFINV_CENTER, ERFINV[d]), x), w < _ERFINV_END[d]), tail


def erfinv(x: Value) -> Value:
    """x*P(w), w = -log((1 - x)*(1 + x)), with other polynomials where w is large (after Giles, Approximating the erfinv function, 2010)."""
    a = x.abs()
    rest = 1.0 - a
    near, tail = erfinv_parts(x, -log_of_normal(rest.mad(a, rest)))

    def edge() -> Value:
        result = a.eq(1.0).select(x * float("inf"), tail())
        return (a > 1.0).select(float("nan"), result)

    return (~(near.ordinary & (a < 1.0))).rare(edge, near.value.copysign(x))
