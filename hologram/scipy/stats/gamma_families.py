"""Continuous distributions made of gamma and beta functions, in their standard forms: methods of :class:`hologram.scipy.stats.family.Continuous`."""

from __future__ import annotations

import math
from typing import Any

import hologram.numpy as hnp
from hologram import random
from hologram.scipy.stats.family import INF, Continuous, special_function
from hologram.special import betainccinv, betaincinv, betaln, fdtri, gammainccinv, gammaincinv, gammaln, stdtrit, xlog1py, xlogy
from hologram.special.incomplete_beta import log_betainc, log_betaincc, log_fdtr, log_fdtrc, log_stdtr
from hologram.special.incomplete_gamma import log_gammainc, log_gammaincc
from hologram.special.inverse_beta import fdtrci
from hologram.trace.tensor import Tensor

__all__ = ["beta", "chi2", "f", "gamma", "gennorm", "invgamma", "t"]


class _Gamma(Continuous):
    """Gamma distribution of shape ``a``: ``gamma.logpdf(x, a, loc=0, scale=1)``."""

    shapes, low, inside = ("a",), 0.0, 1.0

    def _logpdf(self, z: Tensor, a: Tensor) -> Tensor:
        return xlogy(a - 1, z) - z - gammaln(a)

    def _cdf(self, z: Tensor, a: Tensor) -> Tensor:
        return special_function("gammainc", "stats.gamma.cdf")(a, z)

    def _sf(self, z: Tensor, a: Tensor) -> Tensor:
        return special_function("gammaincc", "stats.gamma.sf")(a, z)

    def _logcdf(self, z: Tensor, a: Tensor) -> Tensor:
        return log_gammainc(a, z)

    def _logsf(self, z: Tensor, a: Tensor) -> Tensor:
        return log_gammaincc(a, z)

    def _ppf(self, q: Tensor, a: Tensor) -> Tensor:
        return gammaincinv(a, q)

    def _isf(self, q: Tensor, a: Tensor) -> Tensor:
        return gammainccinv(a, q)

    def _rvs(self, key: Any, shape: Any, dtype: Any, a: Tensor) -> Tensor:
        return random.gamma(key, a, shape, dtype)


class _InvGamma(Continuous):
    """Inverse gamma distribution of shape ``a``: ``invgamma.logpdf(x, a, loc=0, scale=1)``."""

    shapes, low, inside = ("a",), 0.0, 1.0

    def _logpdf(self, z: Tensor, a: Tensor) -> Tensor:
        positive = hnp.where(z > 0, z, 1.0)
        return hnp.where(z == 0, -INF, -(a + 1) * hnp.log(positive) - gammaln(a) - 1 / positive)

    def _cdf(self, z: Tensor, a: Tensor) -> Tensor:
        return special_function("gammaincc", "stats.invgamma.cdf")(a, 1 / hnp.abs(z))

    def _logcdf(self, z: Tensor, a: Tensor) -> Tensor:
        return log_gammaincc(a, 1 / hnp.abs(z))

    def _logsf(self, z: Tensor, a: Tensor) -> Tensor:
        return log_gammainc(a, 1 / hnp.abs(z))

    def _sf(self, z: Tensor, a: Tensor) -> Tensor:
        return special_function("gammainc", "stats.invgamma.sf")(a, 1 / hnp.abs(z))

    def _ppf(self, q: Tensor, a: Tensor) -> Tensor:
        return 1 / gammainccinv(a, q)

    def _isf(self, q: Tensor, a: Tensor) -> Tensor:
        return 1 / gammaincinv(a, q)

    def _rvs(self, key: Any, shape: Any, dtype: Any, a: Tensor) -> Tensor:
        return 1 / random.gamma(key, a, shape, dtype)


class _Chi2(Continuous):
    """Chi-squared distribution of ``df`` degrees of freedom: ``chi2.logpdf(x, df, loc=0, scale=1)``."""

    shapes, low, inside = ("df",), 0.0, 1.0

    def _logpdf(self, z: Tensor, df: Tensor) -> Tensor:
        return xlogy(df * 0.5 - 1, z * 0.5) - z * 0.5 - gammaln(df * 0.5) - math.log(2)

    def _cdf(self, z: Tensor, df: Tensor) -> Tensor:
        return special_function("gammainc", "stats.chi2.cdf")(df * 0.5, z * 0.5)

    def _sf(self, z: Tensor, df: Tensor) -> Tensor:
        return special_function("gammaincc", "stats.chi2.sf")(df * 0.5, z * 0.5)

    def _logcdf(self, z: Tensor, df: Tensor) -> Tensor:
        return log_gammainc(df * 0.5, z * 0.5)

    def _logsf(self, z: Tensor, df: Tensor) -> Tensor:
        return log_gammaincc(df * 0.5, z * 0.5)

    def _ppf(self, q: Tensor, df: Tensor) -> Tensor:
        return 2 * gammaincinv(df * 0.5, q)

    def _isf(self, q: Tensor, df: Tensor) -> Tensor:
        return 2 * gammainccinv(df * 0.5, q)

    def _rvs(self, key: Any, shape: Any, dtype: Any, df: Tensor) -> Tensor:
        return random.chisquare(key, df, shape, dtype)


class _Beta(Continuous):
    """Beta distribution: ``beta.logpdf(x, a, b, loc=0, scale=1)``."""

    shapes, low, high, inside = ("a", "b"), 0.0, 1.0, 0.5

    def _logpdf(self, z: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return xlogy(a - 1, z) + xlog1py(b - 1, -z) - betaln(a, b)

    def _cdf(self, z: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return special_function("betainc", "stats.beta.cdf")(a, b, z)

    def _sf(self, z: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return special_function("betaincc", "stats.beta.sf")(a, b, z)

    def _logcdf(self, z: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return log_betainc(a, b, z)

    def _logsf(self, z: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return log_betaincc(a, b, z)

    def _ppf(self, q: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return betaincinv(a, b, q)

    def _isf(self, q: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return betainccinv(a, b, q)

    def _rvs(self, key: Any, shape: Any, dtype: Any, a: Tensor, b: Tensor) -> Tensor:
        return random.beta(key, a, b, shape, dtype)


class _T(Continuous):
    """Student's t distribution of ``df`` degrees of freedom: ``t.logpdf(x, df, loc=0, scale=1)``."""

    shapes = ("df",)

    def _logpdf(self, z: Tensor, df: Tensor) -> Tensor:
        return -(df + 1) * 0.5 * hnp.log1p(z * z / df) - 0.5 * hnp.log(df) - betaln(0.5, df * 0.5)

    def _cdf(self, z: Tensor, df: Tensor) -> Tensor:
        return special_function("stdtr", "stats.t.cdf")(df, z)

    def _sf(self, z: Tensor, df: Tensor) -> Tensor:
        return self._cdf(-z, df)

    def _logcdf(self, z: Tensor, df: Tensor) -> Tensor:
        return log_stdtr(df, z)

    def _logsf(self, z: Tensor, df: Tensor) -> Tensor:
        return log_stdtr(df, -z)

    def _ppf(self, q: Tensor, df: Tensor) -> Tensor:
        return stdtrit(df, q)

    def _isf(self, q: Tensor, df: Tensor) -> Tensor:
        return -stdtrit(df, q)

    def _rvs(self, key: Any, shape: Any, dtype: Any, df: Tensor) -> Tensor:
        return random.t(key, df, shape, dtype)


class _F(Continuous):
    """F distribution of ``dfn`` and ``dfd`` degrees of freedom: ``f.logpdf(x, dfn, dfd, loc=0, scale=1)``."""

    shapes, low, inside = ("dfn", "dfd"), 0.0, 1.0

    def _logpdf(self, z: Tensor, dfn: Tensor, dfd: Tensor) -> Tensor:
        m, n = dfn * 0.5, dfd * 0.5
        ratio = dfn / dfd
        return xlogy(m, ratio) + xlogy(m - 1, z) - (m + n) * hnp.log1p(z * ratio) - betaln(m, n)

    def _cdf(self, z: Tensor, dfn: Tensor, dfd: Tensor) -> Tensor:
        return special_function("fdtr", "stats.f.cdf")(dfn, dfd, z)

    def _sf(self, z: Tensor, dfn: Tensor, dfd: Tensor) -> Tensor:
        return special_function("fdtrc", "stats.f.sf")(dfn, dfd, z)

    def _logcdf(self, z: Tensor, dfn: Tensor, dfd: Tensor) -> Tensor:
        return log_fdtr(dfn, dfd, z)

    def _logsf(self, z: Tensor, dfn: Tensor, dfd: Tensor) -> Tensor:
        return log_fdtrc(dfn, dfd, z)

    def _ppf(self, q: Tensor, dfn: Tensor, dfd: Tensor) -> Tensor:
        return fdtri(dfn, dfd, q)

    def _isf(self, q: Tensor, dfn: Tensor, dfd: Tensor) -> Tensor:
        return fdtrci(dfn, dfd, q)

    def _rvs(self, key: Any, shape: Any, dtype: Any, dfn: Tensor, dfd: Tensor) -> Tensor:
        first, second = random.split(key)
        return (random.chisquare(first, dfn, shape, dtype) / dfn) / (random.chisquare(second, dfd, shape, dtype) / dfd)


class _GenNorm(Continuous):
    """Generalized normal distribution of exponent ``beta``: ``gennorm.logpdf(x, beta, loc=0, scale=1)``."""

    shapes = ("beta",)

    def _logpdf(self, z: Tensor, beta: Tensor) -> Tensor:
        return hnp.log(beta * 0.5) - gammaln(1 / beta) - hnp.abs(z) ** beta

    def _cdf(self, z: Tensor, beta: Tensor) -> Tensor:
        tail = special_function("gammaincc", "stats.gennorm.cdf")(1 / beta, hnp.abs(z) ** beta) * 0.5
        return hnp.where(z < 0, tail, 1 - tail)

    def _sf(self, z: Tensor, beta: Tensor) -> Tensor:
        return self._cdf(-z, beta)

    def _logcdf(self, z: Tensor, beta: Tensor) -> Tensor:
        tail = log_gammaincc(1 / beta, hnp.abs(z) ** beta) - math.log(2)
        return hnp.where(z < 0, tail, hnp.log1p(-hnp.exp(tail)))

    def _logsf(self, z: Tensor, beta: Tensor) -> Tensor:
        return self._logcdf(-z, beta)

    def _rvs(self, key: Any, shape: Any, dtype: Any, beta: Tensor) -> Tensor:
        first, second = random.split(key)
        return random.gamma(first, 1 / beta, shape, dtype) ** (1 / beta) * random.rademacher(second, shape, dtype)


beta = _Beta("beta")
chi2 = _Chi2("chi2")
f = _F("f")
gamma = _Gamma("gamma")
gennorm = _GenNorm("gennorm")
invgamma = _InvGamma("invgamma")
t = _T("t")
