"""Distributions of vectors, which stand in the last axis."""

from __future__ import annotations

import math
from typing import Any

import hologram.numpy as hnp
from hologram import dtypes, random
from hologram.errors import ArgumentError, ShapeError
from hologram.linalg import decompositions, systems
from hologram.linalg.factors import alike
from hologram.numpy.arguments import shape_of, wrap
from hologram.scipy.linalg.arguments import inexact
from hologram.special import gammaln, xlogy
from hologram.support.user_lines import located
from hologram.trace.operators import promoted
from hologram.trace.tensor import Tensor

__all__ = ["dirichlet", "multinomial", "multivariate_normal"]


def _vectors(what: str, *args: Any) -> list[Tensor]:
    """Arrays of one float type, each with an axis at least."""
    nodes, _, _ = promoted(what, args, dtypes.to_inexact)
    found = [wrap(n) for n in nodes]
    return [t if t.ndim else t[None] for t in found]


def _log_densities(difference: Tensor, variances: Tensor) -> Tensor:
    """The logarithm of the density of each element by itself."""
    return -0.5 * (difference * difference / variances + hnp.log(variances) + math.log(2 * math.pi))


def _key(random_state: Any, what: str) -> Any:
    if random_state is None:
        raise located(ArgumentError(f"{what}: random_state is a key: hg.random.key(seed)"))
    return random_state


class MultivariateNormal:
    """Normal distribution of vectors (…, n) of a mean (…, n) and a covariance (…, n, n); numbers and vectors of variances stand for diagonals.

    ``multivariate_normal.logpdf(x, mean, cov)``. The covariance is positive definite; NaN where it is not. Stacks broadcast.
    Where mean and covariance are numbers, each element of ``x`` is a value; where they are of one element, each element of a vector ``x`` is.
    """

    def logpdf(self, x: Any, mean: Any = 0, cov: Any = 1, allow_singular: Any = None) -> Tensor:
        """Logarithm of the density at ``x``. Raises UnsupportedError for ``allow_singular``, ShapeError where extents do not fit."""
        what = "stats.multivariate_normal"
        if allow_singular:
            raise located(ArgumentError(f"{what}: allow_singular is not there: add a small multiple of the identity to cov"))
        (point, middle), spread = [wrap(t) for t in promoted(what, (x, mean), dtypes.to_inexact)[0]], inexact(cov, what)
        if middle.ndim == 0 and spread.ndim == 0:
            return _log_densities(point - middle, spread)
        size = middle.shape[-1] if middle.ndim else spread.shape[-1]
        if size == 1 and point.ndim == 1 and point.shape[0] != 1:
            point = point[:, None]
        difference = hnp.atleast_1d(point - middle)
        n = difference.shape[-1]
        if spread.ndim < 2:
            return self._of_variances(difference, spread)
        if spread.shape[-2:] != (n, n):
            raise located(ShapeError(f"{what}: a covariance of shape {list(spread.shape)} for vectors of {n} elements"))
        matrix, difference = alike(what, spread, difference)
        low = decompositions.cholesky(matrix)
        if low.ndim == 2:  # one matrix for all vectors
            rows = difference.reshape((-1, n))
            white = systems.triangular_solve(low, hnp.matrix_transpose(rows), lower=True)
            square = hnp.sum(white * white, axis=0).reshape(difference.shape[:-1])
        else:
            white = systems.triangular_solve(low, difference[..., None], lower=True)[..., 0]
            square = hnp.sum(white * white, axis=-1)
        half_log_det = hnp.sum(hnp.log(hnp.diagonal(low, 0, -2, -1)), axis=-1)
        return square * -0.5 - half_log_det - 0.5 * n * math.log(2 * math.pi)

    def _of_variances(self, difference: Tensor, variances: Tensor) -> Tensor:
        terms = _log_densities(difference, variances)
        return hnp.sum(hnp.broadcast_to(terms, hnp.broadcast_shapes(difference.shape, variances.shape)), axis=-1)

    def pdf(self, x: Any, mean: Any = 0, cov: Any = 1, allow_singular: Any = None) -> Tensor:
        """Density at ``x``."""
        return hnp.exp(self.logpdf(x, mean, cov, allow_singular))

    def rvs(self, mean: Any, cov: Any, size: Any = None, random_state: Any = None) -> Tensor:
        """Random vectors, of a shape ``size`` in front, drawn with the key ``random_state``."""
        what = "stats.multivariate_normal.rvs"
        return random.multivariate_normal(_key(random_state, what), mean, cov, None if size is None else shape_of(size, what))


class Dirichlet:
    """Dirichlet distribution of concentrations ``alpha`` (n,): ``dirichlet.logpdf(x, alpha)``.

    ``x`` (n, …) has the parts in its first axis, as SciPy's; it may leave out the last one, which is what is missing to 1.
    """

    def logpdf(self, x: Any, alpha: Any) -> Tensor:
        """Logarithm of the density; ``-inf`` where the parts are negative or do not sum to 1. Raises ShapeError where extents do not fit."""
        parts, a = _vectors("stats.dirichlet", x, alpha)
        if a.ndim != 1 or parts.shape[0] not in (a.shape[0], a.shape[0] - 1):
            raise located(ShapeError(f"stats.dirichlet: parts of shape {list(parts.shape)} for concentrations of shape {list(a.shape)}"))
        if parts.shape[0] != a.shape[0]:
            parts = hnp.concat([parts, 1 - hnp.sum(parts, axis=0, keepdims=True)], axis=0)
        column = a.reshape((-1, *[1] * (parts.ndim - 1)))
        inside = hnp.all(parts >= 0, axis=0) & (hnp.abs(hnp.sum(parts, axis=0) - 1) < 10 * hnp.finfo(parts.dtype).eps * parts.shape[0])
        safe = hnp.where(inside, parts, 0.5)
        normalizer = hnp.sum(gammaln(a)) - gammaln(hnp.sum(a))
        return hnp.where(inside, hnp.sum(xlogy(column - 1, safe), axis=0) - normalizer, -hnp.inf)

    def pdf(self, x: Any, alpha: Any) -> Tensor:
        """Density at ``x``."""
        return hnp.exp(self.logpdf(x, alpha))

    def rvs(self, alpha: Any, size: Any = None, random_state: Any = None) -> Tensor:
        """Random vectors, of a shape ``size`` in front, drawn with the key ``random_state``."""
        what = "stats.dirichlet.rvs"
        return random.dirichlet(_key(random_state, what), alpha, None if size is None else shape_of(size, what))


class Multinomial:
    """Multinomial distribution: the counts (…, k) of ``n`` trials whose outcomes have the probabilities ``p`` (…, k)."""

    def logpmf(self, x: Any, n: Any, p: Any) -> Tensor:
        """Logarithm of the probability of the counts ``x``; ``-inf`` where they are negative, fractions, or do not sum to ``n``."""
        counts, shares = _vectors("stats.multinomial", x, p)
        if counts.shape[-1] != shares.shape[-1]:
            raise located(ShapeError(f"stats.multinomial: counts of {counts.shape[-1]} outcomes for {shares.shape[-1]} probabilities"))
        trials = hnp.asarray(n).astype(counts.dtype)
        fits = hnp.all((counts >= 0) & (hnp.floor(counts) == counts), axis=-1) & (hnp.sum(counts, axis=-1) == trials)
        safe = hnp.where(fits[..., None], counts, 0.0)
        found = gammaln(trials + 1) + hnp.sum(xlogy(safe, shares) - gammaln(safe + 1), axis=-1)
        return hnp.where(fits, found, -hnp.inf)

    def pmf(self, x: Any, n: Any, p: Any) -> Tensor:
        """Probability of the counts ``x``."""
        return hnp.exp(self.logpmf(x, n, p))


multivariate_normal = MultivariateNormal()
dirichlet = Dirichlet()
multinomial = Multinomial()
