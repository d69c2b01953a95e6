"""The logarithm of the gamma function and its derivatives.

float32 is computed in float64, with shorter polynomials where no terms cancel, so its errors are those of one rounding. In float64 the functions of
positive arguments are right to 3 ULP (polygamma: 8 up to order 5); below zero they come from the reflection formulas and err by up to 4 ULP of the
sum of their terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hologram import dtypes
from hologram.dtypes import DType
from hologram.primitives.expansions.coefficients.gamma import DIGAMMA, DIGAMMA_LOW, DIGAMMA_TAIL, LGAMMA, LGAMMA_LOW, STIRLING
from hologram.primitives.expansions.common import Value, polynomial, split
from hologram.primitives.expansions.logarithm import LN_2, log, log_of_normal
from hologram.primitives.expansions.power import log2_two
from hologram.primitives.expansions.trigonometric import sin, tan

_INFINITY = float("inf")
_LGAMMA_CENTER, _DIGAMMA_CENTER = 1.25, 1.75  # of the variables of LGAMMA and DIGAMMA
DIGAMMA_ZERO = (1.4616321449683623, 9.549995429965697e-17)  # as a float64 and what it lacks
_STIRLING_CONSTANT = 0.4189385332046727  # (log(2*pi) - 1) / 2
_FAR = 8.0  # from here on the asymptotic series
_WHOLE = 2.0**52  # from here on all numbers are integers
MAX_DERIVATIVES = 30  # of digamma


def _ratio(y: Value, center: float, coefficients: Sequence[float], low: float) -> Value:
    """A polynomial in ``(y - center)/(y + center)`` whose first coefficient lacks ``low``."""
    t = (y - center) / (y + center)
    first, *others = coefficients
    return t.mad(polynomial(t, others), low) + first


def _cotangent_of_turns(r: Value) -> Value:
    """cot(pi*r) for |r| <= 1/2, next to its zeros, too."""
    a = r.abs()
    low = a < 0.25
    t = tan(low.select(a, 0.5 - a) * math.pi)
    return low.select(1.0 / t, t).copysign(r)


# --- log(gamma) ------------------------------------------------------------------------------------------------------


def _log_two(u: Value) -> tuple[Value, Value]:
    """log(u) of a finite u > 0 as a number whose products with short ones are exact, and the rest."""
    tiny = u < 2.0**-1022
    high, low = log2_two(tiny.select(u * 2.0**54, u), tiny.select(u.const(-54.0), u.const(0.0)))
    c_high, c_low = split(LN_2, 2.3190468138462996e-17, dtypes.float64)
    return high * c_high, high.mad(c_low, low * LN_2)


def _product_below(b: Value) -> tuple[Value, Value]:
    """For 3 <= b < 8 ``y, (b - 1)*(b - 2)*…*y`` with 2 <= y < 3; below that ``b, 1``."""
    y, product = b, b.const(1.0)
    for _ in range(5):
        above = y >= 3.0
        y = above.select(y - 1.0, y)
        product = above.select(product * y, product)
    return y, product


def _lgamma_direct(b: Value, d: DType) -> Value:
    """For b >= -1/2: (y - 1)*(y - 2)*P next to the zeros, whence by the recurrence to 8; then Stirling's series."""
    low, far = b < 0.5, b >= _FAR
    y, product = _product_below(low.select(b + 1.0, b))
    high, rest = _log_two(low.select(b.abs(), far.select(b, product)))
    near = (y - 1.0) * (y - 2.0) * _ratio(y, _LGAMMA_CENTER, LGAMMA[d], LGAMMA_LOW[d])
    shift = high + rest
    near = low.select(near - shift, near + shift)
    inverse = 1.0 / b
    tail = inverse * polynomial(inverse * inverse, STIRLING[d]) + _STIRLING_CONSTANT
    w = b - 0.5
    result = far.select(w.mad(high - 1.0, w.mad(rest, tail)), near)
    return (b.eq(0.0) | b.eq(_INFINITY)).select(_INFINITY, result)


def lgamma(x: Value) -> Value:
    """log(|gamma(x)|); infinite at 0, -1, -2, … and at both infinities. Below -1/2: -log(b * |sin(pi*b)| / pi) - lgamma(b), b = -x."""
    wide = x.cast(dtypes.float64)
    negative = wide < -0.5
    b = negative.select(-wide, wide)
    direct = _lgamma_direct(b, x.dtype)

    def reflected() -> Value:
        sine = sin((b - b.round()) * math.pi).abs()
        whole = direct if x.dtype is dtypes.float64 else _lgamma_direct(b, dtypes.float64)
        return (b >= _WHOLE).select(_INFINITY, -log(b * sine * (1.0 / math.pi)) - whole)

    return negative.rare(reflected, direct).cast(x.dtype)


# --- digamma ---------------------------------------------------------------------------------------------------------


def _sum_below(b: Value) -> tuple[Value, Value, Value]:
    """For 3 <= b < 8 ``y``, and ``1/y + 1/(y + 1) + … + 1/(b - 1)`` as a fraction, with 2 <= y < 3; below that ``b, 0, 1``."""
    y, top, bottom = b, b.const(0.0), b.const(1.0)
    for _ in range(5):
        above = y >= 3.0
        y = above.select(y - 1.0, y)
        top = above.select(top.mad(y, bottom), top)
        bottom = above.select(bottom * y, bottom)
    return y, top, bottom


def _digamma_direct(b: Value, d: DType) -> Value:
    """For b >= 0: (y - zero)*P, whence by the recurrence to 8; then the asymptotic series."""
    low, far = b < 1.0, b >= _FAR
    y, top, bottom = _sum_below(low.select(b + 1.0, b))
    top, bottom = low.select(b.const(-1.0), top), low.select(b, bottom)
    zero, zero_low = DIGAMMA_ZERO
    near = ((y - zero) - zero_low) * _ratio(y, _DIGAMMA_CENTER, DIGAMMA[d], DIGAMMA_LOW[d]) + top / bottom
    inverse = 1.0 / b
    square = inverse * inverse
    series = log_of_normal(b) - inverse.mad(0.5, square * polynomial(square, DIGAMMA_TAIL[d]))
    return b.eq(_INFINITY).select(b, far.select(series, near))


def digamma(x: Value) -> Value:
    """The derivative of lgamma; NaN at -1, -2, …, infinite at both zeros. Below 0: digamma(1 - x) - pi/tan(pi*x)."""
    wide = x.cast(dtypes.float64)
    negative = wide < 0.0
    b = negative.select(1.0 - wide, wide)
    direct = _digamma_direct(b, x.dtype)

    def reflected() -> Value:
        r = wide - wide.round()
        whole = direct if x.dtype is dtypes.float64 else _digamma_direct(b, dtypes.float64)
        return (r.eq(0.0) | (wide <= -_WHOLE)).select(float("nan"), whole - _cotangent_of_turns(r) * math.pi)

    return negative.rare(reflected, direct).cast(x.dtype)


# --- derivatives of digamma ------------------------------------------------------------------------------------------

# B(2j) / (2j)!, j = 1, 2, …
_EULER_MACLAURIN = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000)


def _whole_power(x: Value, n: int) -> Value:
    result: Value | None = None
    while n:
        if n & 1:
            result = x if result is None else result * x
        n >>= 1
        if n:
            x = x * x
    assert result is not None
    return result


def _hurwitz(b: Value, s: int) -> Value:
    """Sum of ``(b + k)**-s`` over k >= 0, for b >= 0: terms one by one, smallest first, after the Euler-Maclaurin formula for the rest."""
    count = 10 + s
    a = b + float(count)
    inverse = 1.0 / a
    square = inverse * inverse
    rising, factors = float(s), []
    for j, c in enumerate(_EULER_MACLAURIN):
        factors.append(c * rising)
        rising *= (s + 2 * j + 1) * (s + 2 * j + 2)
    power = 1.0 / _whole_power(a, s - 1)
    total = power * (inverse * (0.5 + inverse * polynomial(square, factors)) + 1.0 / (s - 1))
    for k in reversed(range(count)):
        total = total + 1.0 / _whole_power(b + float(k), s)
    return total


def cotangent_derivative(n: int) -> list[int]:
    """Coefficients, constant term first, of the n-th derivative of the cotangent as a polynomial in the cotangent."""
    p = [0, 1]
    for _ in range(n):
        slope = [i * c for i, c in enumerate(p)][1:] or [0]
        p = [0] * (len(slope) + 2)
        for i, c in enumerate(slope):
            p[i] -= c
            p[i + 2] -= c
    return p


def polygamma(x: Value, order: int) -> Value:
    """The derivative number ``order``, from 1 up, of digamma. At 0, -1, … it is infinite where order is odd, else NaN but at 0."""
    wide = x.cast(dtypes.float64)
    negative = wide < 0.0
    b = negative.select(1.0 - wide, wide)
    odd = order % 2 == 1
    scale = float(math.factorial(order))
    direct = _hurwitz(b, order + 1) * (scale if odd else -scale)

    def reflected() -> Value:
        r = wide - wide.round()
        turned = polynomial(_cotangent_of_turns(r), [c * math.pi ** (order + 1) for c in cotangent_derivative(order)])
        pole = _INFINITY if odd else float("nan")
        return (r.eq(0.0) | (wide <= -_WHOLE)).select(pole, (-direct if odd else direct) - turned)

    return negative.rare(reflected, direct).cast(x.dtype)
