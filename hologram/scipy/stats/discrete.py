"""Discrete distributions. Each object has the methods of :class:`hologram.scipy.stats.family.Discrete`."""

from __future__ import annotations

from typing import Any

import hologram.numpy as hnp
from hologram import random
from hologram.scipy.stats.family import INF, Discrete, special_function
from hologram.special import betaln, gammaln, xlog1py, xlogy
from hologram.special.incomplete_beta import log_betainc, log_betaincc
from hologram.special.incomplete_gamma import log_gammainc, log_gammaincc
from hologram.trace.tensor import Tensor

__all__ = ["bernoulli", "betabinom", "binom", "geom", "nbinom", "poisson"]


def _is_probability(p: Tensor) -> Tensor:
    return (p >= 0) & (p <= 1)


def _log_choose(n: Tensor, k: Tensor) -> Tensor:
    """Logarithm of the binomial coefficient."""
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


class _Bernoulli(Discrete):
    """Bernoulli distribution of probability ``p``: ``bernoulli.logpmf(k, p, loc=0)``."""

    shapes, high = ("p",), 1.0

    def _valid(self, *shapes: Tensor) -> Any:
        return _is_probability(shapes[0])

    def _logpmf(self, z: Tensor, p: Tensor) -> Tensor:
        return xlogy(z, p) + xlog1py(1 - z, -p)

    def _cdf(self, z: Tensor, p: Tensor) -> Tensor:
        return hnp.where(z >= 1, 1.0, 1 - p)

    def _sf(self, z: Tensor, p: Tensor) -> Tensor:
        return hnp.where(z >= 1, 0.0, p)

    def _ppf(self, q: Tensor, p: Tensor) -> Tensor:
        return (q > 1 - p).astype(q.dtype)

    def _rvs(self, key: Any, shape: Any, dtype: Any, p: Tensor) -> Tensor:
        return random.bernoulli(key, p, shape).astype("int64")


class _Binom(Discrete):
    """Binomial distribution of ``n`` trials of probability ``p``: ``binom.logpmf(k, n, p, loc=0)``."""

    shapes = ("n", "p")

    def _valid(self, *shapes: Tensor) -> Any:
        n, p = shapes
        return (n >= 0) & (hnp.floor(n) == n) & _is_probability(p)

    def _support(self, *shapes: Tensor) -> tuple[Any, Any]:
        return 0.0, shapes[0]

    def _logpmf(self, z: Tensor, n: Tensor, p: Tensor) -> Tensor:
        return _log_choose(n, z) + xlogy(z, p) + xlog1py(n - z, -p)

    def _cdf(self, z: Tensor, n: Tensor, p: Tensor) -> Tensor:
        inner = z < n
        found = special_function("betaincc", "stats.binom.cdf")(z + 1, hnp.where(inner, n - z, 1.0), p)
        return hnp.where(inner, found, 1.0)

    def _sf(self, z: Tensor, n: Tensor, p: Tensor) -> Tensor:
        inner = z < n
        return hnp.where(inner, special_function("betainc", "stats.binom.sf")(z + 1, hnp.where(inner, n - z, 1.0), p), 0.0)

    def _logcdf(self, z: Tensor, n: Tensor, p: Tensor) -> Tensor:
        inner = z < n
        return hnp.where(inner, log_betaincc(z + 1, hnp.where(inner, n - z, 1.0), p), 0.0)

    def _logsf(self, z: Tensor, n: Tensor, p: Tensor) -> Tensor:
        inner = z < n
        return hnp.where(inner, log_betainc(z + 1, hnp.where(inner, n - z, 1.0), p), -INF)

    def _rvs(self, key: Any, shape: Any, dtype: Any, n: Tensor, p: Tensor) -> Tensor:
        return random.binomial(key, n, p, shape, "int64")


class _BetaBinom(Discrete):
    """Beta-binomial distribution: ``betabinom.logpmf(k, n, a, b, loc=0)``."""

    shapes = ("n", "a", "b")

    def _valid(self, *shapes: Tensor) -> Any:
        n, a, b = shapes
        return (n >= 0) & (hnp.floor(n) == n) & (a > 0) & (b > 0)

    def _support(self, *shapes: Tensor) -> tuple[Any, Any]:
        return 0.0, shapes[0]

    def _logpmf(self, z: Tensor, n: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return _log_choose(n, z) + betaln(z + a, n - z + b) - betaln(a, b)

    def _rvs(self, key: Any, shape: Any, dtype: Any, n: Tensor, a: Tensor, b: Tensor) -> Tensor:
        first, second = random.split(key)
        return random.binomial(second, n, random.beta(first, a, b, shape, dtype), shape, "int64")


class _Geom(Discrete):
    """Geometric distribution: the trials up to the first success, of probability ``p``. ``geom.logpmf(k, p, loc=0)``."""

    shapes, low, inside = ("p",), 1.0, 1.0

    def _valid(self, *shapes: Tensor) -> Any:
        return (shapes[0] > 0) & (shapes[0] <= 1)

    def _logpmf(self, z: Tensor, p: Tensor) -> Tensor:
        return xlog1py(z - 1, -p) + hnp.log(p)

    def _cdf(self, z: Tensor, p: Tensor) -> Tensor:
        return -hnp.expm1(xlog1py(z, -p))

    def _logsf(self, z: Tensor, p: Tensor) -> Tensor:
        return xlog1py(z, -p)

    def _ppf(self, q: Tensor, p: Tensor) -> Tensor:
        """Rounding may lead one too far: the number below is asked, too."""
        found = hnp.ceil(hnp.log1p(-q) / hnp.log1p(-p))
        found = hnp.maximum(found, 1.0)
        return hnp.where((found > 1) & (self._cdf(found - 1, p) >= q), found - 1, found)

    def _rvs(self, key: Any, shape: Any, dtype: Any, p: Tensor) -> Tensor:
        return random.geometric(key, p, shape, "int64")


class _NBinom(Discrete):
    """Negative binomial distribution: the failures before ``n`` successes, of probability ``p``. ``nbinom.logpmf(k, n, p, loc=0)``."""

    shapes = ("n", "p")

    def _valid(self, *shapes: Tensor) -> Any:
        return (shapes[0] > 0) & (shapes[1] > 0) & (shapes[1] <= 1)

    def _logpmf(self, z: Tensor, n: Tensor, p: Tensor) -> Tensor:
        return gammaln(z + n) - gammaln(z + 1) - gammaln(n) + n * hnp.log(p) + xlog1py(z, -p)

    def _cdf(self, z: Tensor, n: Tensor, p: Tensor) -> Tensor:
        return special_function("betainc", "stats.nbinom.cdf")(n, z + 1, p)

    def _sf(self, z: Tensor, n: Tensor, p: Tensor) -> Tensor:
        return special_function("betaincc", "stats.nbinom.sf")(n, z + 1, p)

    def _logcdf(self, z: Tensor, n: Tensor, p: Tensor) -> Tensor:
        return log_betainc(n, z + 1, p)

    def _logsf(self, z: Tensor, n: Tensor, p: Tensor) -> Tensor:
        return log_betaincc(n, z + 1, p)

    def _rvs(self, key: Any, shape: Any, dtype: Any, n: Tensor, p: Tensor) -> Tensor:
        first, second = random.split(key)
        return random.poisson(second, random.gamma(first, n, shape, dtype) * ((1 - p) / p), shape, "int64")


class _Poisson(Discrete):
    """Poisson distribution of mean ``mu``: ``poisson.logpmf(k, mu, loc=0)``."""

    shapes, high = ("mu",), INF

    def _valid(self, *shapes: Tensor) -> Any:
        return shapes[0] >= 0

    def _logpmf(self, z: Tensor, mu: Tensor) -> Tensor:
        return xlogy(z, mu) - gammaln(z + 1) - mu

    def _cdf(self, z: Tensor, mu: Tensor) -> Tensor:
        return special_function("gammaincc", "stats.poisson.cdf")(z + 1, mu)

    def _sf(self, z: Tensor, mu: Tensor) -> Tensor:
        return special_function("gammainc", "stats.poisson.sf")(z + 1, mu)

    def _logcdf(self, z: Tensor, mu: Tensor) -> Tensor:
        return log_gammaincc(z + 1, mu)

    def _logsf(self, z: Tensor, mu: Tensor) -> Tensor:
        return log_gammainc(z + 1, mu)

    def _rvs(self, key: Any, shape: Any, dtype: Any, mu: Tensor) -> Tensor:
        return random.poisson(key, mu, shape, "int64")


bernoulli = _Bernoulli("bernoulli")
betabinom = _BetaBinom("betabinom")
binom = _Binom("binom")
geom = _Geom("geom")
nbinom = _NBinom("nbinom")
poisson = _Poisson("poisson")
