"""Continuous distributions, in their standard forms. Each object has the methods of :class:`hologram.scipy.stats.family.Continuous`."""

from __future__ import annotations

import math
from typing import Any

import hologram.numpy as hnp
from hologram import random
from hologram.scipy.stats.family import INF, Continuous
from hologram.special import erfinv, expit, i0e, log_ndtr, logit, ndtr, ndtri, xlogy
from hologram.trace.tensor import Tensor

__all__ = [
    "cauchy", "expon", "gumbel_l", "gumbel_r", "halfnorm", "laplace", "logistic", "lognorm", "norm", "pareto", "rayleigh", "truncnorm", "uniform",
    "vonmises", "weibull_min", "wrapcauchy",
]  # fmt: skip

LOG_TWO_PI = math.log(2 * math.pi)
HALF_LOG_TWO_OVER_PI = 0.5 * math.log(2 / math.pi)


class _Norm(Continuous):
    """Normal distribution: ``norm.logpdf(x, loc=0, scale=1)``."""

    def _logpdf(self, z: Tensor) -> Tensor:
        return z * z * -0.5 - 0.5 * LOG_TWO_PI

    def _cdf(self, z: Tensor) -> Tensor:
        return ndtr(z)

    def _sf(self, z: Tensor) -> Tensor:
        return ndtr(-z)

    def _logcdf(self, z: Tensor) -> Tensor:
        return log_ndtr(z)

    def _logsf(self, z: Tensor) -> Tensor:
        return log_ndtr(-z)

    def _ppf(self, q: Tensor) -> Tensor:
        return ndtri(q)

    def _isf(self, q: Tensor) -> Tensor:
        return -ndtri(q)

    def _rvs(self, key: Any, shape: Any, dtype: Any) -> Tensor:
        return random.normal(key, shape, dtype)


class _HalfNorm(Continuous):
    """Half-normal distribution: the magnitude of a normal number. ``halfnorm.logpdf(x, loc=0, scale=1)``."""

    low, inside = 0.0, 1.0

    def _logpdf(self, z: Tensor) -> Tensor:
        return z * z * -0.5 + HALF_LOG_TWO_OVER_PI

    def _cdf(self, z: Tensor) -> Tensor:
        return hnp.erf(z * math.sqrt(0.5))

    def _sf(self, z: Tensor) -> Tensor:
        return ndtr(-z) * 2

    def _logsf(self, z: Tensor) -> Tensor:
        near = z < 0.5  # where the logarithm is near 0
        return hnp.where(near, hnp.log1p(-hnp.erf(hnp.where(near, z, 0.0) * math.sqrt(0.5))), log_ndtr(-z) + math.log(2))

    def _ppf(self, q: Tensor) -> Tensor:
        return erfinv(q) * math.sqrt(2)

    def _isf(self, q: Tensor) -> Tensor:
        return -ndtri(q * 0.5)

    def _rvs(self, key: Any, shape: Any, dtype: Any) -> Tensor:
        return hnp.abs(random.normal(key, shape, dtype))


class _LogNorm(Continuous):
    """Log-normal distribution: the exponential of a normal number of deviation ``s``. ``lognorm.logpdf(x, s, loc=0, scale=1)``."""

    shapes, low, inside = ("s",), 0.0, 1.0

    def _logpdf(self, z: Tensor, s: Tensor) -> Tensor:
        positive = hnp.where(z > 0, z, 1.0)
        found = -0.5 * (hnp.log(positive) / s) ** 2 - hnp.log(s * positive) - 0.5 * LOG_TWO_PI
        return hnp.where(z == 0, -INF, found)

    def _cdf(self, z: Tensor, s: Tensor) -> Tensor:
        return ndtr(hnp.log(z) / s)

    def _sf(self, z: Tensor, s: Tensor) -> Tensor:
        return ndtr(-hnp.log(z) / s)

    def _logcdf(self, z: Tensor, s: Tensor) -> Tensor:
        return log_ndtr(hnp.log(z) / s)

    def _logsf(self, z: Tensor, s: Tensor) -> Tensor:
        return log_ndtr(-hnp.log(z) / s)

    def _ppf(self, q: Tensor, s: Tensor) -> Tensor:
        return hnp.exp(ndtri(q) * s)

    def _isf(self, q: Tensor, s: Tensor) -> Tensor:
        return hnp.exp(-ndtri(q) * s)

    def _rvs(self, key: Any, shape: Any, dtype: Any, s: Tensor) -> Tensor:
        return hnp.exp(random.normal(key, shape, dtype) * s)


class _Uniform(Continuous):
    """Uniform distribution on ``[loc, loc + scale]``: ``uniform.logpdf(x, loc=0, scale=1)``."""

    low, high, inside = 0.0, 1.0, 0.5

    def _logpdf(self, z: Tensor) -> Tensor:
        return z * 0

    def _cdf(self, z: Tensor) -> Tensor:
        return z

    def _ppf(self, q: Tensor) -> Tensor:
        return q

    def _rvs(self, key: Any, shape: Any, dtype: Any) -> Tensor:
        return random.uniform(key, shape, dtype)


class _Expon(Continuous):
    """Exponential distribution: ``expon.logpdf(x, loc=0, scale=1)``."""

    low, inside = 0.0, 1.0

    def _logpdf(self, z: Tensor) -> Tensor:
        return -z

    def _cdf(self, z: Tensor) -> Tensor:
        return -hnp.expm1(-z)

    def _logsf(self, z: Tensor) -> Tensor:
        return -z

    def _ppf(self, q: Tensor) -> Tensor:
        return -hnp.log1p(-q)

    def _isf(self, q: Tensor) -> Tensor:
        return -hnp.log(q)

    def _rvs(self, key: Any, shape: Any, dtype: Any) -> Tensor:
        return random.exponential(key, shape, dtype)


class _Laplace(Continuous):
    """Laplace distribution: ``laplace.logpdf(x, loc=0, scale=1)``."""

    def _logpdf(self, z: Tensor) -> Tensor:
        return -hnp.abs(z) - math.log(2)

    def _cdf(self, z: Tensor) -> Tensor:
        tail = hnp.exp(-hnp.abs(z)) * 0.5
        return hnp.where(z < 0, tail, 1 - tail)

    def _sf(self, z: Tensor) -> Tensor:
        return self._cdf(-z)

    def _logcdf(self, z: Tensor) -> Tensor:
        size = hnp.abs(z)
        return hnp.where(z < 0, -size - math.log(2), hnp.log1p(hnp.exp(-size) * -0.5))

    def _logsf(self, z: Tensor) -> Tensor:
        return self._logcdf(-z)

    def _ppf(self, q: Tensor) -> Tensor:
        return hnp.where(q < 0.5, hnp.log(q * 2), -hnp.log((1 - q) * 2))

    def _isf(self, q: Tensor) -> Tensor:
        return -self._ppf(q)

    def _rvs(self, key: Any, shape: Any, dtype: Any) -> Tensor:
        return random.laplace(key, shape, dtype)


class _Logistic(Continuous):
    """Logistic distribution: ``logistic.logpdf(x, loc=0, scale=1)``."""

    def _logpdf(self, z: Tensor) -> Tensor:
        size = hnp.abs(z)
        return -size - 2 * hnp.log1p(hnp.exp(-size))

    def _cdf(self, z: Tensor) -> Tensor:
        return expit(z)

    def _sf(self, z: Tensor) -> Tensor:
        return expit(-z)

    def _logcdf(self, z: Tensor) -> Tensor:
        return -hnp.logaddexp(0.0, -z)

    def _logsf(self, z: Tensor) -> Tensor:
        return -hnp.logaddexp(0.0, z)

    def _ppf(self, q: Tensor) -> Tensor:
        return logit(q)

    def _isf(self, q: Tensor) -> Tensor:
        return -logit(q)

    def _rvs(self, key: Any, shape: Any, dtype: Any) -> Tensor:
        return random.logistic(key, shape, dtype)


class _Cauchy(Continuous):
    """Cauchy distribution: ``cauchy.logpdf(x, loc=0, scale=1)``."""

    def _logpdf(self, z: Tensor) -> Tensor:
        size = hnp.abs(z)
        large = size > 1e10  # whose square is beyond float32 sooner than that of others
        far = hnp.log(hnp.where(large, size, 1.0)) * -2
        return hnp.where(large, far, -hnp.log1p(hnp.where(large, 1.0, size) ** 2)) - math.log(math.pi)

    def _cdf(self, z: Tensor) -> Tensor:
        """The arc tangent of the inverse keeps the digits of the tail."""
        return hnp.atan2(hnp.ones_like(z), -z) / math.pi

    def _sf(self, z: Tensor) -> Tensor:
        return self._cdf(-z)

    def _ppf(self, q: Tensor) -> Tensor:
        middle = hnp.abs(q - 0.5) < 0.25
        near = hnp.tan(hnp.where(middle, q - 0.5, 0.0) * math.pi)
        low = hnp.where(middle, 0.25, hnp.minimum(q, 1 - q))
        return hnp.where(middle, near, hnp.sign(q - 0.5) / hnp.tan(low * math.pi))

    def _isf(self, q: Tensor) -> Tensor:
        return -self._ppf(q)

    def _rvs(self, key: Any, shape: Any, dtype: Any) -> Tensor:
        return random.cauchy(key, shape, dtype)


def _log1mexp(x: Tensor) -> Tensor:
    """``log(1 - exp(-x))`` of positive numbers."""
    small = x < math.log(2)
    near = hnp.log(-hnp.expm1(-hnp.where(small, x, 0.5)))
    return hnp.where(small, near, hnp.log1p(-hnp.exp(-hnp.where(small, 1.0, x))))


def _log_of_gumbel(z: Tensor) -> Tensor:
    """``log(1 - exp(-exp(z)))``: far below, where ``exp(z)`` has no digits left, it is ``z``."""
    low = z < 0
    u = hnp.exp(hnp.where(low, z, 0.0))
    some = u > 1e-30
    ratio = hnp.where(some, -hnp.expm1(-u) / hnp.where(some, u, 1.0), 1.0)
    return hnp.where(low, z + hnp.log(ratio), _log1mexp(hnp.exp(hnp.where(low, 0.0, z))))


class _GumbelR(Continuous):
    """Right-skewed Gumbel distribution, of maxima: ``gumbel_r.logpdf(x, loc=0, scale=1)``."""

    def _logpdf(self, z: Tensor) -> Tensor:
        return -z - hnp.exp(-z)

    def _cdf(self, z: Tensor) -> Tensor:
        return hnp.exp(-hnp.exp(-z))

    def _logcdf(self, z: Tensor) -> Tensor:
        return -hnp.exp(-z)

    def _sf(self, z: Tensor) -> Tensor:
        return -hnp.expm1(-hnp.exp(-z))

    def _logsf(self, z: Tensor) -> Tensor:
        return _log_of_gumbel(-z)

    def _ppf(self, q: Tensor) -> Tensor:
        return -hnp.log(-hnp.log(q))

    def _isf(self, q: Tensor) -> Tensor:
        return -hnp.log(-hnp.log1p(-q))

    def _rvs(self, key: Any, shape: Any, dtype: Any) -> Tensor:
        return random.gumbel(key, shape, dtype)


class _GumbelL(Continuous):
    """Left-skewed Gumbel distribution, of minima: ``gumbel_l.logpdf(x, loc=0, scale=1)``."""

    def _logpdf(self, z: Tensor) -> Tensor:
        return z - hnp.exp(z)

    def _cdf(self, z: Tensor) -> Tensor:
        return -hnp.expm1(-hnp.exp(z))

    def _logcdf(self, z: Tensor) -> Tensor:
        return _log_of_gumbel(z)

    def _sf(self, z: Tensor) -> Tensor:
        return hnp.exp(-hnp.exp(z))

    def _logsf(self, z: Tensor) -> Tensor:
        return -hnp.exp(z)

    def _ppf(self, q: Tensor) -> Tensor:
        return hnp.log(-hnp.log1p(-q))

    def _isf(self, q: Tensor) -> Tensor:
        return hnp.log(-hnp.log(q))

    def _rvs(self, key: Any, shape: Any, dtype: Any) -> Tensor:
        return -random.gumbel(key, shape, dtype)


class _Pareto(Continuous):
    """Pareto distribution of index ``b``: ``pareto.logpdf(x, b, loc=0, scale=1)``."""

    shapes, low, inside = ("b",), 1.0, 2.0

    def _logpdf(self, z: Tensor, b: Tensor) -> Tensor:
        return hnp.log(b) - xlogy(b + 1, z)

    def _cdf(self, z: Tensor, b: Tensor) -> Tensor:
        return -hnp.expm1(-b * hnp.log(z))

    def _logsf(self, z: Tensor, b: Tensor) -> Tensor:
        return -b * hnp.log(z)

    def _ppf(self, q: Tensor, b: Tensor) -> Tensor:
        return hnp.exp(-hnp.log1p(-q) / b)

    def _isf(self, q: Tensor, b: Tensor) -> Tensor:
        return hnp.exp(-hnp.log(q) / b)

    def _rvs(self, key: Any, shape: Any, dtype: Any, b: Tensor) -> Tensor:
        return random.pareto(key, b, shape, dtype)


class _WeibullMin(Continuous):
    """Weibull distribution of exponent ``c``: ``weibull_min.logpdf(x, c, loc=0, scale=1)``."""

    shapes, low, inside = ("c",), 0.0, 1.0

    def _logpdf(self, z: Tensor, c: Tensor) -> Tensor:
        return hnp.log(c) + xlogy(c - 1, z) - z**c

    def _cdf(self, z: Tensor, c: Tensor) -> Tensor:
        return -hnp.expm1(-(z**c))

    def _logsf(self, z: Tensor, c: Tensor) -> Tensor:
        return -(z**c)

    def _ppf(self, q: Tensor, c: Tensor) -> Tensor:
        return (-hnp.log1p(-q)) ** (1 / c)

    def _isf(self, q: Tensor, c: Tensor) -> Tensor:
        return (-hnp.log(q)) ** (1 / c)

    def _rvs(self, key: Any, shape: Any, dtype: Any, c: Tensor) -> Tensor:
        return random.weibull_min(key, 1.0, c, shape, dtype)


class _Rayleigh(Continuous):
    """Rayleigh distribution: ``rayleigh.logpdf(x, loc=0, scale=1)``."""

    low, inside = 0.0, 1.0

    def _logpdf(self, z: Tensor) -> Tensor:
        finite = z < INF
        return hnp.where(finite, hnp.log(hnp.where(finite, z, 1.0)), 0.0) - z * z * 0.5

    def _cdf(self, z: Tensor) -> Tensor:
        return -hnp.expm1(z * z * -0.5)

    def _logsf(self, z: Tensor) -> Tensor:
        return z * z * -0.5

    def _ppf(self, q: Tensor) -> Tensor:
        return hnp.sqrt(-2 * hnp.log1p(-q))

    def _isf(self, q: Tensor) -> Tensor:
        return hnp.sqrt(-2 * hnp.log(q))

    def _rvs(self, key: Any, shape: Any, dtype: Any) -> Tensor:
        return random.rayleigh(key, 1.0, shape, dtype)


class _TruncNorm(Continuous):
    """Normal distribution cut at ``a`` and ``b``, which count in scales from ``loc``: ``truncnorm.logpdf(x, a, b, loc=0, scale=1)``."""

    shapes = ("a", "b")

    def _valid(self, *shapes: Tensor) -> Any:
        return shapes[0] < shapes[1]

    def _support(self, *shapes: Tensor) -> tuple[Any, Any]:
        return shapes[0], shapes[1]

    def _middle(self, *shapes: Tensor) -> Any:
        return hnp.clip(hnp.zeros_like(shapes[0]), shapes[0], shapes[1])

    @staticmethod
    def _log_mass(a: Tensor, b: Tensor) -> Tensor:
        """Logarithm of the normal probability between ``a`` and ``b``, taken in the left half where both are in the right one."""
        flipped = a > 0
        low, high = hnp.where(flipped, -b, a), hnp.where(flipped, -a, b)
        first, last = log_ndtr(low), log_ndtr(high)
        gap = hnp.where(last > first, last - first, 0.0)
        tails = hnp.where(gap > 0, last + _log1mexp(hnp.where(gap > 0, gap, 1.0)), -INF)
        around = (a <= 0) & (b > 0)
        middle = hnp.log1p(-ndtr(hnp.where(around, a, -1.0)) - ndtr(-hnp.where(around, b, 1.0)))
        return hnp.where(around, middle, tails)

    def _logpdf(self, z: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return z * z * -0.5 - 0.5 * LOG_TWO_PI - self._log_mass(a, b)

    def _logcdf(self, z: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return hnp.where(z <= a, -INF, self._log_mass(a, hnp.where(z <= a, b, z)) - self._log_mass(a, b))

    def _logsf(self, z: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return hnp.where(z >= b, -INF, self._log_mass(hnp.where(z >= b, a, z), b) - self._log_mass(a, b))

    def _ppf(self, q: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return self._quantile_of_shares(1 - q, q, a, b)

    def _isf(self, q: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return self._quantile_of_shares(q, 1 - q, a, b)

    @staticmethod
    def _quantile_of_shares(above: Tensor, below: Tensor, a: Tensor, b: Tensor) -> Tensor:
        """From the probability on the side of 0 where the quantile lies: it has the digits."""
        left, right = ndtr(a) * above + ndtr(b) * below, ndtr(-a) * above + ndtr(-b) * below
        positive = left > right
        found = ndtri(hnp.where(positive, right, left))
        return hnp.clip(hnp.where(positive, -found, found), a, b)

    def _rvs(self, key: Any, shape: Any, dtype: Any, a: Tensor, b: Tensor) -> Tensor:
        return random.truncated_normal(key, a, b, shape, dtype)


class _VonMises(Continuous):
    """Von Mises distribution of concentration ``kappa``, of angles: ``vonmises.logpdf(x, kappa, loc=0, scale=1)``. The density has the period 2π."""

    shapes = ("kappa",)

    def _valid(self, *shapes: Tensor) -> Any:
        return shapes[0] >= 0

    def _logpdf(self, z: Tensor, kappa: Tensor) -> Tensor:
        return kappa * (hnp.cos(z) - 1) - LOG_TWO_PI - hnp.log(i0e(kappa))


class _WrapCauchy(Continuous):
    """Wrapped Cauchy distribution of angles from 0 to 2π: ``wrapcauchy.logpdf(x, c, loc=0, scale=1)``, for ``c`` between 0 and 1."""

    shapes, low, high, inside = ("c",), 0.0, 2 * math.pi, 1.0

    def _valid(self, *shapes: Tensor) -> Any:
        return (shapes[0] > 0) & (shapes[0] < 1)

    def _logpdf(self, z: Tensor, c: Tensor) -> Tensor:
        return hnp.log1p(-c * c) - LOG_TWO_PI - hnp.log1p(c * c - 2 * c * hnp.cos(z))

    def _cdf(self, z: Tensor, c: Tensor) -> Tensor:
        return hnp.atan2((1 + c) / (1 - c) * hnp.sin(z * 0.5), hnp.cos(z * 0.5)) / math.pi

    def _ppf(self, q: Tensor, c: Tensor) -> Tensor:
        return hnp.atan2((1 - c) / (1 + c) * hnp.sin(q * math.pi), hnp.cos(q * math.pi)) * 2


cauchy = _Cauchy("cauchy")
expon = _Expon("expon")
gumbel_l = _GumbelL("gumbel_l")
gumbel_r = _GumbelR("gumbel_r")
halfnorm = _HalfNorm("halfnorm")
laplace = _Laplace("laplace")
logistic = _Logistic("logistic")
lognorm = _LogNorm("lognorm")
norm = _Norm("norm")
pareto = _Pareto("pareto")
rayleigh = _Rayleigh("rayleigh")
truncnorm = _TruncNorm("truncnorm")
uniform = _Uniform("uniform")
vonmises = _VonMises("vonmises")
weibull_min = _WeibullMin("weibull_min")
wrapcauchy = _WrapCauchy("wrapcauchy")
