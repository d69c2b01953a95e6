"""Distributions of vectors, which are the last axis of the results."""

from __future__ import annotations

from typing import Any

from hologram import dtypes
from hologram.errors import ArgumentError, ShapeError
from hologram.linalg.decompositions import cholesky
from hologram.numpy.along_axes.reductions import logsumexp
from hologram.numpy.arguments import array, wrap
from hologram.numpy.elementwise.functions import FUNCTIONS, where
from hologram.numpy.shaping.joining import concat
from hologram.random.continuous import as_type, float_type, open_unit, standard_normal
from hologram.random.discrete import bernoulli
from hologram.random.gamma import WIDE, log_gamma
from hologram.random.keys import count_of, split
from hologram.support.user_lines import located
from hologram.trace.checks import shape_of
from hologram.trace.operators import broadcast_shapes
from hologram.trace.tensor import Tensor


def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Dirichlet distribution: vectors whose elements are positive and sum to 1.

    ``shape`` is without their axis, by default that of ``alpha`` without its last. Types and errors are those of :func:`uniform`.

    >>> hg.random.dirichlet(hg.random.key(0), [1.0, 2.0, 3.0])
    Tensor([0.12975377, 0.604627  , 0.26561922], dtype=float32)
    """
    to = float_type(dtype, "dirichlet")
    a = wrap(array(alpha, "dirichlet"))
    if a.ndim < 1:
        raise located(ShapeError("dirichlet: alpha has at least one axis"))
    extents = a.shape[:-1] if shape is None else shape_of(shape, "dirichlet")
    logs = log_gamma(key, a, (*extents, a.shape[-1]), "dirichlet")
    return FUNCTIONS["exp"](logs - logsumexp(logs, -1, keepdims=True)).astype(to)


def multivariate_normal(key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Normal distribution of vectors of mean ``mean`` (…, n) and covariance ``cov`` (…, n, n), through its Cholesky factor.

    ``shape`` is without the vectors' axis, by default what ``mean`` and ``cov`` broadcast to. NaN where ``cov`` is not positive definite. Types are
    those of :func:`uniform`. Raises ShapeError where the shapes do not fit.

    >>> hg.random.multivariate_normal(hg.random.key(0), [0.0, 5.0], [[1.0, 0.5], [0.5, 1.0]])
    Tensor([1.622642, 7.565252], dtype=float32)
    """
    to = float_type(dtype, "multivariate_normal")
    work = dtypes.compute_type(to)
    m, c = as_type(mean, work, "multivariate_normal"), as_type(cov, work, "multivariate_normal")
    if m.ndim < 1 or c.ndim < 2 or c.shape[-2:] != (m.shape[-1], m.shape[-1]):
        raise located(ShapeError(f"multivariate_normal: a mean of shape {list(m.shape)} and a covariance of shape {list(c.shape)}"))
    common = broadcast_shapes("multivariate_normal", [m.shape[:-1], c.shape[:-2]])
    extents = common if shape is None else shape_of(shape, "multivariate_normal")
    if broadcast_shapes("multivariate_normal", [common, extents]) != extents:
        raise located(ShapeError(f"multivariate_normal: parameters of shape {list(common)} do not broadcast to shape {list(extents)}"))
    z = standard_normal(key, (*extents, m.shape[-1]), work, "multivariate_normal")
    return (m + (cholesky(c) @ z[..., None])[..., 0]).astype(to)


def ball(key: Any, d: int, p: float = 2, shape: Any = (), dtype: Any = None) -> Tensor:
    """Uniform distribution in the unit ball of the ``p``-norm in ``d`` dimensions: vectors ``(*shape, d)``.

    The method is that of Barthe and others, A probabilistic approach to the geometry of the l_p^n-ball, 2005. ``p`` is a known number from 1 up;
    ``shape`` is without the vectors' axis. Types are those of :func:`uniform`. Raises ArgumentError for another ``p`` or ``d``.

    >>> hg.random.ball(hg.random.key(0), 2)
    Tensor([0.51301646, 0.81499517], dtype=float32)
    """
    to, extents, n = float_type(dtype, "ball"), shape_of(shape, "ball"), count_of(d, "ball")
    if type(p) not in (int, float) or not p >= 1:
        raise located(ArgumentError(f"ball takes a norm from 1 up, not {p!r}"))
    lengths, signs, rest = split(key, 3)
    powers = log_gamma(lengths, 1 / p, (*extents, n), "ball")  # logarithms, as the numbers may be less than all floats
    surplus = FUNCTIONS["log"](-FUNCTIONS["log"](open_unit(rest, (*extents, 1), WIDE, "ball")))
    total = logsumexp(concat([powers, surplus], axis=-1), -1, keepdims=True)
    sign = where(bernoulli(signs, 0.5, (*extents, n)), 1.0, -1.0).astype(WIDE)
    return (sign * FUNCTIONS["exp"]((powers - total) / p)).astype(to)
