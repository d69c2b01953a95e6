"""The normal distribution function and its inverse, and the scaled complementary error function."""

from __future__ import annotations

import math

from hologram import dtypes
from hologram.primitives.expansions.coefficients.error_function import ERF_NEAR, NDTRI_FAR, NDTRI_FAR_LOW, NORMAL_WITHIN
from hologram.primitives.expansions.common import Value, at_least, at_most, leading_bits, polynomial
from hologram.primitives.expansions.error_function import ERFC_STEPS, erf, erfc, erfcx_parts, erfinv_parts, times_gauss
from hologram.primitives.expansions.exponential import exp
from hologram.primitives.expansions.logarithm import log

_ROOT_HALF = 0.5**0.5
_WITHIN_END = 5.58  # from here on erf(x/sqrt(2)) is 1 in float32
_FARTHEST, _FARTHEST_CENTER = 36.0, 12.0  # where NDTRI_FAR starts, in w, and the centre of its variable, in sqrt(w)


def ndtr(x: Value) -> Value:
    """(1 + erf(x/sqrt(2)))/2 near 0, else exp(-x**2/2) * erfcx(|x|/sqrt(2))/2, or 1 minus that for x > 0. The square is kept exact. 3 ULP."""
    first, last = ERFC_STEPS[x.dtype]
    a = at_most(x.abs(), last * math.sqrt(2.0))
    g, g_low = erfcx_parts(a * _ROOT_HALF)
    high = leading_bits(a)
    far = times_gauss(g, g_low, (high * high) * 0.5, ((a - high) * (a + high)) * 0.5, -1.0)
    half = x * (_ROOT_HALF / 2)
    square = (x * x) * 0.5
    near = half.mad(polynomial(square, ERF_NEAR[x.dtype]), half) + 0.5
    return (x.abs() < first * math.sqrt(2.0)).select(near, (x < 0.0).select(far, 1.0 - far))


def normal_within(x: Value) -> Value:
    """erf(x/sqrt(2)). float32: ``1 - (1 - a*P(a))**8``, the power as three steps d -> 2*d - d**2, which keep small numbers precise; 4 ULP.

    Activations need no more of it, and it costs half of what erf does. float64 is by erf; 2 ULP.
    """
    if x.dtype is dtypes.float64:
        return erf(x * _ROOT_HALF)
    a = at_most(x.abs(), _WITHIN_END)
    d = a * polynomial(a, NORMAL_WITHIN[x.dtype])
    for _ in range(3):
        d = (-d).mad(d, d + d)
    return d.copysign(x)


def ndtri(p: Value) -> Value:
    """sqrt(2)*(2*p - 1)*P(w), w = -log(4*p*(1 - p)), so that small p keep all their digits. float32 is computed in float64; float64: 3 ULP."""
    wide = p.cast(dtypes.float64)
    x, rest = (wide - 0.5) * 2.0, 1.0 - wide
    w = -log(at_least(wide, 0.0) * rest * 4.0)
    near, tail = erfinv_parts(x, w)

    def far() -> Value:
        s = w.sqrt()
        t = (s - _FARTHEST_CENTER) / (s + _FARTHEST_CENTER)
        head, *others = NDTRI_FAR[dtypes.float64]
        result = (w > _FARTHEST).select(x * s * (t.mad(polynomial(t, others), NDTRI_FAR_LOW[dtypes.float64]) + head), tail())
        result = (wide.eq(0.0) | rest.eq(0.0)).select(x * float("inf"), result)
        return ((wide >= 0.0) & (rest >= 0.0)).select(result, float("nan"))

    ordinary = near.ordinary & (wide > 0.0) & (rest > 0.0)
    return ((~ordinary).rare(far, near.value) * math.sqrt(2.0)).cast(p.dtype)


def erfcx(x: Value) -> Value:
    """exp(x**2) * erfc(x); 4 ULP. Far out the first terms of its asymptotic series."""
    first, last = ERFC_STEPS[x.dtype]
    a = x.abs()
    inside = at_least(at_most(a, last), first)
    g, g_low = erfcx_parts(inside)
    h = 0.5 / (a * a)
    series = polynomial(h, [1.0, -1.0, 3.0, -15.0, 105.0, -945.0, 10395.0]) * (1.0 / math.sqrt(math.pi)) / a

    def below() -> Value:
        c = at_least(x, -30.0)  # where it is infinite
        high = leading_bits(c)
        return exp(high * high) * erfc(c) * polynomial((c - high) * (c + high), [1.0, 1.0, 1 / 2, 1 / 6, 1 / 24])

    return (~(x >= first)).rare(below, (a > last).select(series, g + g_low))
