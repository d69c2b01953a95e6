"""The regularized incomplete gamma functions, and distributions that are one of them.

Next to a large ``x = a`` they come from Temme's uniform expansion (DLMF 8.12), else from the power series or Legendre's continued fraction.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

from hologram.dtypes import float64
from hologram.numpy.elementwise.functions import where
from hologram.special.basic import erfc, erfcx
from hologram.special.common import (
    absolute,
    continued_fraction,
    exp,
    expm1,
    floor,
    gammaln1p,
    isinf,
    isnan,
    log,
    log1p_rest,
    log_complement,
    log_ratio_less,
    maximum,
    series,
    sqrt,
    stirling_rest,
    until_small,
)
from hologram.special.elementwise import Function, in_float64
from hologram.trace.tensor import Tensor

__all__ = ["chdtr", "chdtrc", "gammainc", "gammaincc", "gdtr", "gdtrc", "pdtr", "pdtrc"]

_TEMME_FROM, _TEMME_WIDTH = 20.0, 0.3  # a, and |x - a| / a
_ORDERS, _TERMS = 13, 19  # of Temme's expansion, in 1/a and in eta
_MAX_STEPS = 1000


@cache
def _temme() -> list[list[float]]:
    """Coefficients ``c[k][n]`` of ``a**-k * eta**n``, exact until they are rounded.

    With ``mu`` = x/a - 1 as a power series in eta, where ``eta**2 / 2 = mu - log(1 + mu)``: ``c[0] = 1/mu - 1/eta`` and
    ``c[k] = c[k-1]' / eta + (-1)**k g[k] / mu``, g[k] being Stirling's coefficients of the gamma function.
    """
    terms = _TERMS + 2 * _ORDERS + 2
    alpha = [Fraction(0), Fraction(1)]  # of mu; from mu' * mu = eta * (1 + mu)
    for n in range(2, terms + 2):
        inner = sum((alpha[j] * alpha[n + 1 - j] * j for j in range(2, n)), Fraction(0))
        alpha.append((alpha[n - 1] - inner) / (n + 1))
    over: list[Fraction] = []  # eta / mu
    for n in range(terms + 1):
        over.append((Fraction(n == 0) - sum((alpha[n + 1 - j] * over[j] for j in range(n)), Fraction(0))) / alpha[1])
    stirling = _stirling_coefficients(_ORDERS)
    c = over[1:]
    out = [c]
    for k in range(1, _ORDERS):
        slope = [n * c[n] for n in range(len(c))]  # of eta * c'
        scale = (-1) ** k * stirling[k]
        c = [(slope[n + 2] if n + 2 < len(slope) else Fraction(0)) + scale * over[n + 1] for n in range(len(c) - 2)]
        out.append(c)
    return [[float(x) for x in row[:_TERMS]] for row in out]


def _stirling_coefficients(count: int) -> list[Fraction]:
    """Of ``1/a**k`` in gamma(a) over Stirling's formula: the exponential of the series with Bernoulli's numbers."""
    bernoulli = [Fraction(1)]
    for m in range(1, count + 2):
        bernoulli.append(-sum((math.comb(m + 1, j) * bernoulli[j] for j in range(m)), Fraction(0)) / (m + 1))
    log_series = [Fraction(0)] * (count + 1)
    for k in range(1, count + 1, 2):
        log_series[k] = bernoulli[k + 1] / (k * (k + 1))
    g = [Fraction(1)]
    for n in range(1, count):
        g.append(sum((j * log_series[j] * g[n - j] for j in range(1, n + 1)), Fraction(0)) / n)
    return g


def _power_over_gamma(a: Tensor, x: Tensor) -> Tensor:
    """``x**a * exp(-x) / gamma(a + 1)``, a > 0 and x > 0."""
    large = (a >= 10.0) | (x > 1e3)  # elsewhere a power keeps digits that the exponential of a large number loses
    b, c = where(large, maximum(a, 1.0), 10.0), where(large, 0.5, a)
    by_stirling = exp(b * log_ratio_less(x / b, (x - b) / b) - stirling_rest(b)) / sqrt(2 * math.pi * b)
    y = where(large, 1.0, x)
    half = exp(-0.5 * y)  # all of it underflows too early
    return where(large, where(a < 1.0, 0.0, by_stirling), y**c * half * (half * exp(-gammaln1p(c))))


def _log_power_over_gamma(a: Tensor, x: Tensor) -> Tensor:
    large = a >= 1.0
    b, c = where(large, a, 1.0), where(large, 0.5, a)
    by_stirling = b * log_ratio_less(x / b, (x - b) / b) - stirling_rest(b) - 0.5 * log(2 * math.pi * b)
    return where(large, by_stirling, c * log(x) - x - gammaln1p(c))


def _uniform(a: Tensor, x: Tensor, sign: float) -> Tensor:
    """Temme's expansion: of P for ``sign`` -1, of Q for 1."""
    eta, rest = _temme_parts(a, x)
    return 0.5 * erfc(sign * eta * sqrt(0.5 * a)) + sign * exp(-0.5 * a * eta * eta) * rest


def _log_uniform(a: Tensor, x: Tensor, sign: float) -> Tensor:
    """The logarithm of :func:`_uniform`, by what its exponential multiplies where that is on the small side."""
    tail, s, scaled = _scaled_uniform(a, x, sign)
    return where(tail, log(where(tail, scaled, 1.0)) - s * s, log(where(tail, 1.0, _uniform(a, x, sign))))


def _scaled_uniform(a: Tensor, x: Tensor, sign: float) -> tuple[Tensor, Tensor, Tensor]:
    """Whether the function is on its small side, ``s``, and there the function times ``exp(s**2)``."""
    eta, rest = _temme_parts(a, x)
    s = sign * eta * sqrt(0.5 * a)
    tail = s > 0.0
    return tail, s, 0.5 * erfcx(where(tail, s, 0.0)) + sign * rest


def _temme_parts(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Temme's eta, and what the exponential is multiplied by."""
    t = (x - a) / a
    eta = t * sqrt(2.0 * log1p_rest(t))
    return eta, series(1.0 / a, [series(eta, row) for row in _temme()]) / sqrt(2 * math.pi * a)


def _power_series(a: Tensor, x: Tensor) -> Tensor:
    """P over :func:`_power_over_gamma`, for x up to about a."""

    def step(n: Tensor, state: Any) -> Any:
        total, term = state
        term = term * x / (a + n)
        return (total + term, term), term / total

    return until_small(step, (a * 0 + 1.0, a * 0 + 1.0), _MAX_STEPS)


def _small_complement(a: Tensor, x: Tensor) -> Tensor:
    """Q for small a and x up to about 1: ``1 - x**a / gamma(1 + a)`` less the rest of the power series."""

    def step(n: Tensor, state: Any) -> Any:
        total, term = state
        term = -term * x / n
        new = term / (a + n)
        return (total + new, term), absolute(new)

    total = until_small(step, (a * 0, a * 0 + 1.0), _MAX_STEPS)
    exponent = a * log(x) - gammaln1p(a)
    return -expm1(exponent) - a * exp(exponent) * total


def _fraction(a: Tensor, x: Tensor) -> Tensor:
    """Q over :func:`_power_over_gamma`, for x beyond about a: Legendre's continued fraction."""

    def term(n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return n * (a - n), n * maximum(absolute(a - n), 0.5), x + 1.0 - a + 2.0 * n

    return a * continued_fraction(term, 1.0 / (x + 1.0 - a), _MAX_STEPS)


def _regularized(upper: bool, logarithm: bool, a: Tensor, x: Tensor) -> Tensor:
    """Q if ``upper``, else P, or its logarithm: each element by one of four methods, the others on arguments that cost no steps."""
    inside = (a > 0) & (x > 0) & ~isinf(a) & ~isinf(x)
    a_, x_ = where(inside, a, 1.0), where(inside, x, 1.0)
    temme, *_ = _methods(a_, x_)
    by_temme = (_log_uniform if logarithm else _uniform)(where(temme, a_, 30.0), where(temme, x_, 30.0), 1.0 if upper else -1.0)
    edge = _edge(upper, a, x)
    return where(inside, where(temme, by_temme, _by_sums(logarithm, a_, x_)[upper]), log(edge) if logarithm else edge)


def _by_sums(logarithm: bool, a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """P and Q, or their logarithms, but where Temme's expansion is taken: the one that a sum gives, and what it is short of 1."""
    _, tiny, fraction, power = _methods(a, x)
    rest = log_complement if logarithm else lambda v: 1.0 - v
    p = _times_power(logarithm, _power_series, where(power, a, 1e10), where(power, x, 1e-10))
    q = _small_complement(where(tiny, a, 1.0), where(tiny, x, 1e-20))
    q = where(fraction, _times_power(logarithm, _fraction, where(fraction, a, 1.0), where(fraction, x, 50.0)), log(q) if logarithm else q)
    return where(power, p, rest(where(power, -1.0, q))), where(power, rest(where(power, p, -1.0)), q)


def both(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """P and Q of float64 Tensors, by one run of the loops."""
    inside = (a > 0) & (x > 0) & ~isinf(a) & ~isinf(x)
    a_, x_ = where(inside, a, 1.0), where(inside, x, 1.0)
    temme, *_ = _methods(a_, x_)
    by_temme = [_uniform(where(temme, a_, 30.0), where(temme, x_, 30.0), sign) for sign in (-1.0, 1.0)]
    p, q = (where(temme, *found) for found in zip(by_temme, _by_sums(False, a_, x_), strict=True))
    return where(inside, p, _edge(False, a, x)), where(inside, q, _edge(True, a, x))


def _methods(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Where Temme's expansion is taken, where Q for small arguments, where the fraction for Q, where the power series for P."""
    temme = (a >= _TEMME_FROM) & (absolute(x - a) < _TEMME_WIDTH * a)
    tiny = (x <= 1.1) & (a < where(x < 0.5, -0.4 / log(minimum_below_one(x)), 0.75 * x))
    fraction = (x > a) & (x > 1.1) & ~temme & ~tiny
    return temme, tiny, fraction, ~(temme | tiny | fraction)


def _times_power(logarithm: bool, factor: Any, a: Tensor, x: Tensor) -> Tensor:
    return log(factor(a, x)) + _log_power_over_gamma(a, x) if logarithm else factor(a, x) * _power_over_gamma(a, x)


def minimum_below_one(x: Tensor) -> Tensor:
    """``x`` below 1/2, else 1/2: what a logarithm that is not 0 takes."""
    return where(x < 0.5, x, 0.5)


def _edge(upper: bool, a: Tensor, x: Tensor) -> Tensor:
    """Where an argument is 0 or infinite; NaN outside of the domain."""
    wrong = isnan(a) | isnan(x) | (a < 0) | (x < 0) | ((a == 0) & (x == 0)) | (isinf(a) & isinf(x))
    below = (x == 0) | isinf(a)
    return where(wrong, math.nan, (below if upper else ~below).astype(float64))


def _log_slope(upper: bool, a: Tensor, x: Tensor) -> Tensor:
    """By x, of the logarithm: the density over the function itself, both of which may underflow: by what both have in common if possible."""
    inside, sign = (a > 0) & (x > 0) & ~isinf(x) & ~isinf(a), -1.0 if upper else 1.0
    b, y = where(inside, a, 1.0), where(inside, x, 1.0)
    temme, _, fraction, power = _methods(b, y)
    ratio = exp(_log_power_over_gamma(b, y) - (_log_upper if upper else _log_lower)(b, y))
    by_factor = 1.0 / _fraction(where(fraction, b, 1.0), where(fraction, y, 50.0)) if upper else 1.0 / _power_series(b, where(power, y, 1e-10))
    _, s, scaled = _scaled_uniform(where(temme, b, 30.0), where(temme, y, 30.0), -sign)
    by_temme = exp(-stirling_rest(b)) / (sqrt(2 * math.pi * b) * scaled)
    ratio = where(temme & (s > 0.0), by_temme, where(fraction if upper else power, by_factor, ratio)) * (b / y)
    return where(inside, ratio, density(a, x) / _regularized(upper, False, a, x)) * sign


def density(a: Tensor, x: Tensor) -> Tensor:
    """Derivative of P by x: ``x**(a - 1) * exp(-x) / gamma(a)``."""
    inside = (a > 0) & (x > 0) & ~isinf(x)
    b, y = where(inside, a, 1.0), where(inside, x, 1.0)
    at_0 = where(a < 1, math.inf, where(a == 1, 1.0, 0.0))
    return where(inside, _power_over_gamma(b, y) * (b / y), where((x == 0) & (a > 0), at_0, where((a >= 0) & (x >= 0), 0.0, math.nan)))


lower_gamma = Function(lambda a, x: _regularized(False, False, a, x), [None, density])
upper_gamma = Function(lambda a, x: _regularized(True, False, a, x), [None, lambda a, x: -density(a, x)])
_log_lower = Function(lambda a, x: _regularized(False, True, a, x), [None, lambda a, x: _log_slope(False, a, x)])
_log_upper = Function(lambda a, x: _regularized(True, True, a, x), [None, lambda a, x: _log_slope(True, a, x)])


def gammainc(a: Any, x: Any) -> Tensor:
    """Regularized lower incomplete gamma function: the distribution function of the gamma distribution of shape ``a``, at ``x``.

    The arguments broadcast; both have derivatives, of every order. NaN for negative arguments. Raises DTypeError for complex numbers.

    >>> hg.special.gammainc([0.5, 2.0], 1.0)
    Tensor([0.8427008 , 0.26424113], dtype=float32)
    """
    return in_float64("gammainc", lower_gamma, a, x)


def gammaincc(a: Any, x: Any) -> Tensor:
    """Regularized upper incomplete gamma function: ``1 - gammainc(a, x)``, accurate where that is near 1; see :func:`gammainc`.

    >>> hg.special.gammaincc([0.5, 2.0], 40.0)
    Tensor([3.7440973e-19, 1.7418252e-16], dtype=float32)
    """
    return in_float64("gammaincc", upper_gamma, a, x)


def log_gammainc(a: Any, x: Any) -> Tensor:
    """Logarithm of :func:`gammainc`, finite where that underflows."""
    return in_float64("log_gammainc", _log_lower, a, x)


def log_gammaincc(a: Any, x: Any) -> Tensor:
    """Logarithm of :func:`gammaincc`, finite where that underflows."""
    return in_float64("log_gammaincc", _log_upper, a, x)


def chdtr(v: Any, x: Any) -> Tensor:
    """Distribution function of the chi-squared distribution of ``v`` degrees of freedom, at ``x``; see :func:`gammainc`.

    >>> hg.special.chdtr(2.0, [1.0, 3.0])
    Tensor([0.39346933, 0.77686983], dtype=float32)
    """
    return in_float64("chdtr", lambda v, x: lower_gamma(0.5 * v, 0.5 * x), v, x)


def chdtrc(v: Any, x: Any) -> Tensor:
    """``1 - chdtr(v, x)``, accurate for large ``x``.

    >>> hg.special.chdtrc(2.0, [1.0, 100.0])
    Tensor([6.0653067e-01, 1.9287499e-22], dtype=float32)
    """
    return in_float64("chdtrc", lambda v, x: upper_gamma(0.5 * v, 0.5 * x), v, x)


def gdtr(a: Any, b: Any, x: Any) -> Tensor:
    """Distribution function of the gamma distribution of rate ``a`` and shape ``b``, at ``x``; see :func:`gammainc`.

    >>> hg.special.gdtr(2.0, 1.0, 0.5)
    Tensor(0.63212055, dtype=float32)
    """
    return in_float64("gdtr", lambda a, b, x: lower_gamma(b, _scaled(a, x)), a, b, x)


def gdtrc(a: Any, b: Any, x: Any) -> Tensor:
    """``1 - gdtr(a, b, x)``, accurate for large ``x``.

    >>> hg.special.gdtrc(2.0, 1.0, 0.5)
    Tensor(0.36787945, dtype=float32)
    """
    return in_float64("gdtrc", lambda a, b, x: upper_gamma(b, _scaled(a, x)), a, b, x)


def _scaled(a: Tensor, x: Tensor) -> Tensor:
    return where((a < 0) | (x < 0), math.nan, a * x)


def pdtr(k: Any, m: Any) -> Tensor:
    """Distribution function of the Poisson distribution of mean ``m``: the probability of at most ``k`` events; see :func:`gammainc`.

    >>> hg.special.pdtr([0.0, 2.0], 1.0)
    Tensor([0.36787945, 0.9196986 ], dtype=float32)
    """
    return in_float64("pdtr", lambda k, m: upper_gamma(_whole(k) + 1.0, m), k, m)


def pdtrc(k: Any, m: Any) -> Tensor:
    """``1 - pdtr(k, m)``: the probability of more than ``k`` events.

    >>> hg.special.pdtrc([0.0, 2.0], 1.0)
    Tensor([0.63212055, 0.0803014 ], dtype=float32)
    """
    return in_float64("pdtrc", lambda k, m: lower_gamma(_whole(k) + 1.0, m), k, m)


def _whole(k: Tensor) -> Tensor:
    """Counts: numbers rounded down; NaN below 0."""
    return where(k < 0, math.nan, floor(k))
