"""What is computed of samples: modes, ranks, standard errors, and densities by kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import hologram.numpy as hnp
from hologram import dtypes, random
from hologram.errors import ArgumentError, ShapeError
from hologram.linalg import decompositions, systems
from hologram.numpy.arguments import as_tensor, axis_of, shape_of
from hologram.scipy.linalg.arguments import inexact
from hologram.special import logsumexp
from hologram.support.user_lines import located
from hologram.trace.checks import choice, integer, number
from hologram.trace.tensor import Tensor

__all__ = ["gaussian_kde", "mode", "rankdata", "sem"]


class ModeResult(NamedTuple):
    """The most frequent values ``mode``, and how often each stands there, ``count``."""

    mode: Tensor
    count: Tensor  # type: ignore[assignment]  # SciPy's name, which hides the method of tuples


def _along(x: Any, axis: Any, what: str) -> tuple[Tensor, int]:
    """The array and the axis; None flattens."""
    t = as_tensor(x, what)
    if axis is None:
        return t.reshape((-1,)), 0
    return t, axis_of(axis, t.ndim, what)


def _kept(found: Tensor, x: Any, axis: Any, at: int) -> Tensor:
    """``found`` with the axes of extent 1 that ``keepdims`` asks for."""
    return found.reshape((1,) * as_tensor(x, "stats").ndim) if axis is None else hnp.expand_dims(found, axis=at)


def mode(a: Any, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most frequent value along ``axis`` (of all for None), the least of several: a named tuple ``(mode, count)``.

    Raises ArgumentError for a ``nan_policy`` other than ``propagate``, ShapeError for an axis without elements.

    >>> hg.scipy.stats.mode(hnp.asarray([3, 1, 3, 2]))
    ModeResult(mode=Tensor(3, dtype=int64), count=Tensor(2, dtype=int64))
    """
    choice(nan_policy, "stats.mode", "nan_policy", ("propagate",))
    t, i = _along(a, axis, "stats.mode")
    if not t.shape[i]:
        raise located(ShapeError("stats.mode: no elements"))
    lines = hnp.sort(hnp.moveaxis(t, i, -1), axis=-1)
    counts = hnp.sum(lines[..., :, None] == lines[..., None, :], axis=-1)
    if lines.dtype.kind == "f":
        counts = hnp.where(hnp.isnan(lines[..., -1:]), hnp.sum(hnp.isnan(lines), axis=-1, keepdims=True), counts)
        lines = hnp.where(hnp.isnan(lines[..., -1:]), hnp.nan, lines)
    best = hnp.argmax(counts, axis=-1, keepdims=True)
    found = [hnp.take_along_axis(x, best, axis=-1)[..., 0] for x in (lines, counts)]
    return ModeResult(*[_kept(x, a, axis, i) for x in found] if keepdims else found)


def rankdata(a: Any, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Tensor:
    """Ranks of elements along ``axis`` (of all, flattened, for None), from 1 on.

    Equal elements have the ``average``, the ``min`` or the ``max`` of their ranks, ``dense`` ones without gaps, or, ``ordinal``, different ones.
    Ranks of floats are floats, for in a line with a NaN all are NaN; those of integers are integers, but for ``average``. Raises ArgumentError for
    another method.

    >>> hg.scipy.stats.rankdata([30.0, 10.0, 30.0])
    Tensor([2.5, 1. , 2.5], dtype=float32)
    """
    kind = choice(method, "stats.rankdata", "method", ("average", "min", "max", "dense", "ordinal"))
    choice(nan_policy, "stats.rankdata", "nan_policy", ("propagate",))
    t, i = _along(a, axis, "stats.rankdata")
    lines = hnp.moveaxis(t, i, -1)
    order = hnp.argsort(lines, axis=-1, stable=True)
    place = hnp.argsort(order, axis=-1)
    ordered = hnp.take_along_axis(lines, order, axis=-1)
    n = lines.shape[-1]
    first = hnp.concat([hnp.ones_like(ordered[..., :1], dtype="bool"), ordered[..., 1:] != ordered[..., :-1]], axis=-1)
    last = hnp.concat([first[..., 1:], hnp.ones_like(first[..., :1])], axis=-1)
    positions = hnp.arange(1, n + 1)
    low = hnp.cummax(hnp.where(first, positions, 0), axis=-1)
    high = hnp.flip(hnp.cummin(hnp.flip(hnp.where(last, positions, n), axis=-1), axis=-1), axis=-1)
    dtype = lines.dtype if lines.dtype.kind == "f" else dtypes.default_float
    ranks = {
        "average": lambda: (low + high).astype(dtype) * 0.5,
        "min": lambda: low,
        "max": lambda: high,
        "dense": lambda: hnp.cumsum(first.astype("int64"), axis=-1),
        "ordinal": lambda: hnp.broadcast_to(positions, lines.shape),
    }[kind]()
    out = hnp.take_along_axis(ranks, place, axis=-1)
    if lines.dtype.kind == "f":
        out = hnp.where(hnp.any(hnp.isnan(lines), axis=-1, keepdims=True), hnp.nan, out.astype(dtype))
    return hnp.moveaxis(out, -1, i)


def sem(a: Any, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False) -> Tensor:
    """Standard error of the mean along ``axis`` (of all elements for None): the deviation, with n - ``ddof``, divided by √n.

    ``nan_policy`` is ``propagate`` or ``omit``. Raises ArgumentError for another.

    >>> hg.scipy.stats.sem([1.0, 2.0, 3.0])
    Tensor(0.57735026, dtype=float32)
    """
    policy = choice(nan_policy, "stats.sem", "nan_policy", ("propagate", "omit"))
    t, i = _along(inexact(a, "stats.sem"), axis, "stats.sem")
    less = integer(ddof, "stats.sem", "ddof")
    if policy == "omit":
        n = hnp.sum(~hnp.isnan(t), axis=i)
        found = hnp.nanstd(t, axis=i, ddof=less) / hnp.sqrt(n.astype(t.dtype))
    else:
        found = hnp.std(t, axis=i, correction=less) / math.sqrt(t.shape[i])
    return _kept(found, a, axis, i) if keepdims else found


class gaussian_kde:  # noqa: N801 - SciPy's name
    """Density of a sample, estimated by normal kernels: ``gaussian_kde(dataset)(points)``.

    ``dataset`` (n,) or (d, n) holds n points of d dimensions. ``bw_method`` is ``scott`` (the default), ``silverman``, a number that scales the
    sample's deviation, or a function of the estimate that gives one. ``weights`` (n,) weigh the points. Raises ShapeError where the shapes do not
    fit.

    >>> hg.scipy.stats.gaussian_kde([-1.0, 0.0, 1.0])(0.0)
    Tensor([0.31815618], dtype=float32)
    """

    def __init__(self, dataset: Any, bw_method: str | float | Callable[[Any], Any] | None = None, weights: Any = None) -> None:
        self.dataset = hnp.atleast_2d(inexact(dataset, "stats.gaussian_kde"))
        if self.dataset.ndim != 2 or self.dataset.shape[1] < 2:
            raise located(ShapeError(f"stats.gaussian_kde: a sample of shape {list(self.dataset.shape)}: it is (d, n), of two points at least"))
        self.d, self.n = self.dataset.shape
        given = hnp.ones(self.n, dtype=self.dataset.dtype) if weights is None else as_tensor(weights, "stats.gaussian_kde")
        if given.shape != (self.n,):
            raise located(ShapeError(f"stats.gaussian_kde: weights of shape {list(given.shape)} for {self.n} points"))
        self.weights = given.astype(self.dataset.dtype) / hnp.sum(given)
        self.neff = 1 / hnp.sum(self.weights * self.weights)
        self.factor = self._factor(bw_method)
        centre = hnp.sum(self.dataset * self.weights, axis=1, keepdims=True)
        away = self.dataset - centre
        share = 1 - hnp.sum(self.weights * self.weights)
        self.covariance = hnp.matmul(away * self.weights, away.T) / share * self.factor**2
        self._low = decompositions.cholesky(self.covariance)

    def _factor(self, method: Any) -> Any:
        if callable(method):
            return method(self)
        if method is None or method == "scott":
            return self.scotts_factor()
        if method == "silverman":
            return self.silverman_factor()
        if isinstance(method, str):
            raise located(ArgumentError(f"stats.gaussian_kde: bw_method is 'scott', 'silverman', a number or a function, not {method!r}"))
        return method if isinstance(method, Tensor) else number(method, "stats.gaussian_kde", "bw_method")

    def scotts_factor(self) -> Tensor:
        """Scott's factor: the effective number of points to the power -1 / (d + 4)."""
        return self.neff ** (-1.0 / (self.d + 4))

    def silverman_factor(self) -> Tensor:
        """Silverman's factor: that of Scott for (d + 2) / 4 times as many points."""
        return (self.neff * ((self.d + 2) / 4.0)) ** (-1.0 / (self.d + 4))

    def _points(self, points: Any) -> Tensor:
        t = hnp.atleast_2d(inexact(points, "stats.gaussian_kde"))
        if t.shape[0] != self.d and t.shape == (1, self.d):
            t = t.T
        if t.ndim != 2 or t.shape[0] != self.d:
            raise located(ShapeError(f"stats.gaussian_kde: points of shape {list(t.shape)} for a sample of {self.d} dimensions"))
        return t

    def logpdf(self, x: Any) -> Tensor:
        """Logarithm of the density (m,) at points (d, m)."""
        points = systems.triangular_solve(self._low, self._points(x), lower=True)
        sample = systems.triangular_solve(self._low, self.dataset, lower=True)
        distance = hnp.sum((points[:, :, None] - sample[:, None, :]) ** 2, axis=0)
        scale = hnp.sum(hnp.log(hnp.diagonal(self._low))) + 0.5 * self.d * math.log(2 * math.pi)
        return logsumexp(distance * -0.5 + hnp.log(self.weights), axis=1) - scale

    def pdf(self, x: Any) -> Tensor:
        """Density (m,) at points (d, m)."""
        return hnp.exp(self.logpdf(x))

    evaluate = __call__ = pdf

    def resample(self, key: Any, shape: Any = ()) -> Tensor:
        """Random points (d, …) of the density, of ``shape``, drawn with ``key``."""
        first, second = random.split(key)
        extents = tuple(shape_of(shape, "stats.gaussian_kde.resample"))
        chosen = random.choice(first, self.n, extents, p=self.weights)
        noise = random.normal(second, (self.d, *extents), self.dataset.dtype)
        return self.dataset[:, chosen] + hnp.tensordot(self._low, noise, axes=1)
