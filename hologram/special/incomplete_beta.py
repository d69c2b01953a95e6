"""The regularized incomplete beta function, by its continued fraction, and distributions that are one of it."""

from __future__ import annotations

import functools
import math
from typing import Any

from hologram.dtypes import float64
from hologram.numpy.elementwise.functions import where
from hologram.special.basic import log_ndtr, ndtr
from hologram.special.common import (
    absolute,
    continued_fraction,
    exp,
    expm1,
    isinf,
    isnan,
    log,
    log1p,
    log_beta,
    log_complement,
    log_ratio_less,
    maximum,
    minimum,
    sqrt,
    stirling_rest,
)
from hologram.special.elementwise import Function, in_float64
from hologram.trace.tensor import Tensor

__all__ = ["betainc", "betaincc", "fdtr", "fdtrc", "stdtr"]

_MAX_STEPS = 200_000  # some sqrt(max(a, b)) are taken
_SQUARABLE = 1e150
NORMAL_FROM, _NORMAL_TO = 1e8, 30.0  # degrees of freedom of Student's t distribution, and how far out


def _power(a: Tensor, b: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """``x**a * y**b / beta(a, b)`` for y = 1 - x."""
    exponent, square = _power_parts(a, b, x, y)
    return exp(exponent) * sqrt(square)


def _log_power(a: Tensor, b: Tensor, x: Tensor, y: Tensor) -> Tensor:
    exponent, square = _power_parts(a, b, x, y)
    return exponent + 0.5 * log(square)


def _power_parts(a: Tensor, b: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """An exponent, and the square of what its exponential is multiplied by."""
    n = a + b
    t = x * b - y * a
    exponent = a * log_ratio_less(x * n / a, t / a) + b * log_ratio_less(y * n / b, -t / b)
    return exponent + stirling_rest(n) - stirling_rest(a) - stirling_rest(b), a / (2 * math.pi) * (b / n)


def _fraction(a: Tensor, b: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The continued fraction of I_x(a, b) over :func:`_power`, for x up to about a / (a + b): its even part, whose terms hardly cancel (DiDonato &
    Morris, Algorithm 708, 1992)."""
    distance = a * y - b * x

    def term(n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        odd = a + (2.0 * n - 1.0)
        share = x / odd
        factor = n * (a + (n - 1.0)) * share * ((a + b + (n - 1.0)) * share)
        denominator = n + n * (b - n) * share + (a + n) / (odd + 2.0) * (distance + (1.0 + n * (1.0 + y)))
        return factor * (b - n), factor * maximum(absolute(b - n), 0.5), denominator

    return continued_fraction(term, (a + 1.0) / (a * (distance + 1.0)), _MAX_STEPS)


def _regularized(upper: bool, logarithm: bool, a: Tensor, b: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """I_x(a, b), or if ``upper`` its complement: whichever is computed without subtraction, or 1 less the other; or its logarithm. ``y`` is 1 - x."""
    inside, swap, p, q, u, v = _domain(a, b, x, y)
    mirrored, edge = swap ^ upper, _edge(upper, a, b, x)
    if logarithm:
        found = _log_power(p, q, u, v) + log(_fraction(p, q, u, v))
        return where(inside, where(mirrored, log_complement(where(mirrored, found, -1.0)), found), log(edge))
    found = _power(p, q, u, v) * _fraction(p, q, u, v)
    return where(inside, where(mirrored, 1.0 - found, found), edge)


def lower_with_rate(a: Tensor, b: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """I_x(a, b), its logarithm, finite where it underflows, and the derivative of that by ``log(x / y)``, within the domain. ``y`` is 1 - x."""
    _, swap, p, q, u, v = _domain(a, b, x, y)
    fraction = _fraction(p, q, u, v)
    exponent, square = _power_parts(p, q, u, v)
    power = exp(exponent) * sqrt(square)
    part = power * fraction
    found = where(swap, 1.0 - part, part)
    log_found = where(swap, log1p(-where(swap, part, 0.5)), exponent + 0.5 * log(square) + log(fraction))
    return found, log_found, where(swap, power / found, 1.0 / fraction)


def density(a: Tensor, b: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The derivative of I_x(a, b) by ``x``. ``y`` is 1 - x."""
    return _slope(1.0, a, b, x, y)


def _domain(a: Tensor, b: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Where the fraction holds; whether sides are swapped; and the arguments so swapped, harmless ones elsewhere."""
    inside = (a > 0) & (b > 0) & ~isinf(a) & ~isinf(b) & (x > 0) & (y > 0)
    p, q, u, v = where(inside, a, 1.0), where(inside, b, 1.0), where(inside, x, 0.5), where(inside, y, 0.5)
    swap = u * (p + q + 2.0) > p + 1.0
    return inside, swap, where(swap, q, p), where(swap, p, q), where(swap, v, u), where(swap, u, v)


def _edge(upper: bool, a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """At 0 and 1, and where a parameter is 0 or infinite, which puts everything at one end; NaN outside of the domain."""
    wrong = isnan(a) | isnan(b) | isnan(x) | (a < 0) | (b < 0) | (x < 0) | (x > 1)
    wrong = wrong | ((a == 0) & (b == 0)) | (isinf(a) & isinf(b))
    at_0, at_1 = (a == 0) | isinf(b), (b == 0) | isinf(a)
    below = (x <= 0) | (at_1 & (x < 1) & ~at_0)
    return where(wrong, math.nan, (below if upper else ~below).astype(float64))


def _slope(sign: float, a: Tensor, b: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """By x, with which y goes: the density of the beta distribution."""
    inside = (a > 0) & (b > 0) & (x > 0) & (y > 0)
    p, q, u, v = where(inside, a, 1.0), where(inside, b, 1.0), where(inside, x, 0.5), where(inside, y, 0.5)
    end = where(x == 0, where(a < 1, math.inf, where(a == 1, b, 0.0)), where(b < 1, math.inf, where(b == 1, a, 0.0)))
    valid = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    return sign * where(inside, _power(p, q, u, v) / (u * v), where(valid, end, math.nan))


def _log_slope(upper: bool, a: Tensor, b: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """By x, of the logarithm: the density over the function itself, both of which may underflow: the fraction is what they have not in common."""
    sign = -1.0 if upper else 1.0
    inside, swap, p, q, u, v = _domain(a, b, x, y)
    found = _fraction(p, q, u, v)
    mirrored = swap ^ upper
    whole = where(mirrored, -expm1(_log_power(p, q, u, v) + log(found)), 1.0)
    ratio = where(mirrored, _power(p, q, u, v) / whole, 1.0 / found) / (u * v)
    return where(inside, sign * ratio, _slope(sign, a, b, x, y) / _regularized(upper, False, a, b, x, y))


def _one_side(upper: bool, logarithm: bool) -> Function:
    by_x = functools.partial(_log_slope, upper) if logarithm else functools.partial(_slope, -1.0 if upper else 1.0)
    return Function(functools.partial(_regularized, upper, logarithm), [None, None, by_x, lambda a, b, x, y: x * 0])


lower_beta, _upper, _log_lower, _log_upper = (_one_side(upper, logarithm) for logarithm in (False, True) for upper in (False, True))


def betainc(a: Any, b: Any, x: Any) -> Tensor:
    """Regularized incomplete beta function: the distribution function of the beta distribution of parameters ``a`` and ``b``, at ``x``.

    The arguments broadcast; all have derivatives, of every order. NaN for negative parameters and beyond 0 and 1. Raises DTypeError for complex
    numbers.

    >>> hg.special.betainc(2.0, 3.0, [0.25, 0.5])
    Tensor([0.26171875, 0.6875    ], dtype=float32)
    """
    return in_float64("betainc", lambda a, b, x: lower_beta(a, b, x, 1.0 - x), a, b, x)


def betaincc(a: Any, b: Any, x: Any) -> Tensor:
    """Complement of the regularized incomplete beta function: ``1 - betainc(a, b, x)``, accurate where that is near 1.

    >>> hg.special.betaincc(2.0, 3.0, [0.25, 0.9999])
    Tensor([7.3828125e-01, 4.0016913e-12], dtype=float32)
    """
    return in_float64("betaincc", lambda a, b, x: _upper(a, b, x, 1.0 - x), a, b, x)


def log_betainc(a: Any, b: Any, x: Any) -> Tensor:
    """Logarithm of :func:`betainc`, finite where that underflows."""
    return in_float64("log_betainc", lambda a, b, x: _log_lower(a, b, x, 1.0 - x), a, b, x)


def log_betaincc(a: Any, b: Any, x: Any) -> Tensor:
    """Logarithm of :func:`betaincc`, finite where that underflows."""
    return in_float64("log_betaincc", lambda a, b, x: _log_upper(a, b, x, 1.0 - x), a, b, x)


def fdtr(dfn: Any, dfd: Any, x: Any) -> Tensor:
    """Distribution function of the F distribution of ``dfn`` and ``dfd`` degrees of freedom, at ``x``; see :func:`betainc`.

    >>> hg.special.fdtr(2.0, 4.0, [0.0, 1.0])
    Tensor([0.       , 0.5555556], dtype=float32)
    """
    return in_float64("fdtr", lambda m, n, x: _of_ratio(lower_beta, m, n, x, 1.0), dfn, dfd, x)


def fdtrc(dfn: Any, dfd: Any, x: Any) -> Tensor:
    """``1 - fdtr(dfn, dfd, x)``, accurate for large ``x``.

    >>> hg.special.fdtrc(2.0, 4.0, [0.0, 1.0])
    Tensor([1.        , 0.44444445], dtype=float32)
    """
    return in_float64("fdtrc", lambda m, n, x: _of_ratio(_upper, m, n, x, 0.0), dfn, dfd, x)


def log_fdtr(dfn: Any, dfd: Any, x: Any) -> Tensor:
    """Logarithm of :func:`fdtr`, finite where that underflows."""
    return in_float64("log_fdtr", lambda m, n, x: _of_ratio(_log_lower, m, n, x, 0.0), dfn, dfd, x)


def log_fdtrc(dfn: Any, dfd: Any, x: Any) -> Tensor:
    """Logarithm of :func:`fdtrc`, finite where that underflows."""
    return in_float64("log_fdtrc", lambda m, n, x: _of_ratio(_log_upper, m, n, x, -math.inf), dfn, dfd, x)


def _of_ratio(side: Function, m: Tensor, n: Tensor, x: Tensor, last: float) -> Tensor:
    """At ``m x / (n + m x)``; ``last`` at infinity."""
    valid = (m > 0) & (n > 0) & ~isinf(m) & ~isinf(n) & (x >= 0)
    m, n = where(valid, m, 1.0), where(valid, n, 1.0)
    end = isinf(x)
    top = m * where(valid & ~end, x, 1.0)
    far = top > n
    share = where(far, 1.0 / (1.0 + n / where(far, top, 1.0)), top / (n + top))  # so that its derivative does not cancel
    found = side(0.5 * m, 0.5 * n, share, n / (n + top))
    return where(valid, where(end, last, found), math.nan)


def stdtr(df: Any, t: Any) -> Tensor:
    """Distribution function of Student's t distribution of ``df`` degrees of freedom, at ``t``; see :func:`betainc`.

    >>> hg.special.stdtr(3.0, [-1.0, 0.0, 2.0])
    Tensor([0.1955011, 0.5      , 0.930337 ], dtype=float32)
    """
    return in_float64("stdtr", student, df, t)


def log_stdtr(df: Any, t: Any) -> Tensor:
    """Logarithm of :func:`stdtr`, finite where that underflows."""
    return in_float64("log_stdtr", _log_student, df, t)


def student(df: Tensor, t: Tensor) -> Tensor:
    """:func:`stdtr` in float64: the tail, which is even in t, from the share of ``df`` in ``df + t**2``; the middle, which is odd and smooth in t,
    from the other share, while it leaves most of the half. Where squares overflow, the tail is a power of t."""
    valid, normal, ends = (df > 0) & ~isnan(t), df > NORMAL_FROM, isinf(t)
    n = where(valid & ~normal, df, 1.0)
    u, beyond, far, outer, above_half = _student_parts(n, t, ends)
    tail = 0.5 * _shares(lower_beta, n, outer) * beyond**-n
    found = where(far, where(u < 0, tail, 1.0 - tail), 0.5 + above_half)
    found = where(ends, (t > 0).astype(float64), where(normal, ndtr(_as_normal(df, u)), found))
    return where(valid, found, math.nan)


def student_density(df: Tensor, t: Tensor) -> Tensor:
    """The derivative of :func:`stdtr` by ``t``, in which squares may overflow."""
    ratio = t / sqrt(df)
    far = absolute(ratio) > 1e8
    power = where(far, log(absolute(where(far, ratio, 1.0))), 0.5 * log1p(where(far, 1.0, ratio * ratio)))
    return _center(df) * exp(-(df + 1.0) * power)


def _log_student(df: Tensor, t: Tensor) -> Tensor:
    """The logarithm of :func:`student`; normal only as far out as that is right."""
    valid, ends = (df > 0) & ~isnan(t), isinf(t)
    normal = (df > NORMAL_FROM) & ((absolute(t) < _NORMAL_TO) | isinf(df))
    n = where(valid & ~normal, df, 1.0)
    u, beyond, far, outer, above_half = _student_parts(n, t, ends)
    tail = _shares(_log_lower, n, outer) - n * log(beyond) - math.log(2.0)
    found = where(far, where(u < 0, tail, log1p(-exp(tail))), log1p(above_half - 0.5))
    found = where(ends, where(t > 0, 0.0, -math.inf), where(normal, log_ndtr(_as_normal(df, u)), found))
    return where(valid, found, math.nan)


def _student_parts(n: Tensor, t: Tensor, ends: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """``t`` with a finite square, how much larger it is, whether it is in the tails; for these alone ``t``, for others the value above 1/2."""
    u = where(ends, 0.0, maximum(minimum(t, _SQUARABLE), -_SQUARABLE))
    beyond = maximum(absolute(where(ends, 1.0, t)) / _SQUARABLE, 1.0)
    far = u * u > minimum(n, 1.0)
    outer, inner = where(far, u, 2.0 * sqrt(n)), where(far | (u == 0), 1e-3 * sqrt(n), u)
    middle = 0.5 * _shares(lower_beta, n, inner, inside=True)
    return u, beyond, far, outer, where(u == 0, u * _center(n), where(u < 0, -middle, middle))


def _as_normal(df: Tensor, t: Tensor) -> Tensor:
    """The argument of the normal distribution function that has this one's value, to the order of ``t**5 / df**2`` (Abramowitz & Stegun 26.7.8)."""
    inverse = 1.0 / where(df > NORMAL_FROM, df, NORMAL_FROM)
    return t * (1.0 - 0.25 * inverse) / sqrt(1.0 + 0.5 * t * t * inverse)


def _shares(side: Function, df: Tensor, t: Tensor, inside: bool = False) -> Tensor:
    """The probability outside of -t and t, or that ``inside``, by ``lower_beta`` or its logarithm."""
    ratio = t * t / df
    low, high, half = 1.0 / (1.0 + ratio), 1.0 / (1.0 + 1.0 / ratio), df * 0 + 0.5
    return side(half, 0.5 * df, high, low) if inside else side(0.5 * df, half, low, high)


def _center(df: Tensor) -> Tensor:
    """The density at 0: ``1 / (sqrt(df) beta(df/2, 1/2))``."""
    return exp(-log_beta(0.5 * df, df * 0 + 0.5)) / sqrt(df)
