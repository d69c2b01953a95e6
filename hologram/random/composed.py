"""Distributions that are functions of others: of normal, gamma, uniform and binomial numbers. Orthogonal matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, ShapeError
from hologram.ir.op import Shape
from hologram.linalg.decompositions import qr
from hologram.numpy.along_axes.reductions import sum
from hologram.numpy.arguments import array, cast, wrap
from hologram.numpy.arrangement.manipulation import diagonal
from hologram.numpy.elementwise.functions import FUNCTIONS, where
from hologram.numpy.shaping.joining import stack
from hologram.numpy.shaping.shapes import broadcast_to, matrix_transpose
from hologram.random.continuous import as_type, float_type, result_shape, standard_normal, unit
from hologram.random.counts import binomial, rademacher
from hologram.random.gamma import WIDE, log_gamma
from hologram.random.keys import count_of, split
from hologram.support.user_lines import located
from hologram.trace.checks import shape_of
from hologram.trace.tensor import Tensor

_exp, _sqrt = FUNCTIONS["exp"], FUNCTIONS["sqrt"]


def _wide(x: Any, extents: Shape, work: dtypes.DType, what: str) -> Tensor:
    return broadcast_to(as_type(x, work, what), extents)


def _maxwell(key: Any, extents: Shape, work: dtypes.DType, what: str) -> Tensor:
    z = standard_normal(key, (*extents, 3), work, what)
    return _sqrt(sum(z * z, -1))


def maxwell(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Maxwell distribution: lengths of vectors of three standard normal numbers. Types are those of :func:`uniform`.

    >>> hg.random.maxwell(hg.random.key(0)) > 0
    Tensor(True, dtype=bool)
    """
    to = float_type(dtype, "maxwell")
    return cast(_maxwell(key, shape_of(shape, "maxwell"), dtypes.compute_type(to), "maxwell"), to)


def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Double-sided Maxwell distribution: ``loc`` plus ``scale`` times a number of :func:`maxwell` of random sign.

    ``shape`` is added in front of that to which the parameters broadcast. Types are those of :func:`uniform`.

    >>> hg.random.double_sided_maxwell(hg.random.key(0), 1.0, [2.0, 3.0], (4,)).shape
    (4, 2)
    """
    what = "double_sided_maxwell"
    to = float_type(dtype, what)
    work = dtypes.compute_type(to)
    extents = (*shape_of(shape, what), *result_shape(None, what, loc, scale))
    lengths, signs = split(key)
    signed = _maxwell(lengths, extents, work, what) * rademacher(signs, extents, work.np)
    return cast(as_type(loc, work, what) + as_type(scale, work, what) * signed, to)


def wald(key: Any, mean: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Wald (inverse Gaussian) distribution of mean ``mean`` and shape parameter 1, by a root of a squared normal number (Michael and others 1976).

    ``shape`` is by default that of ``mean``. Types are those of :func:`uniform`.

    >>> hnp.round(hg.random.wald(hg.random.key(0), 0.5, (100_000,)).mean(), 2)
    Tensor(0.5, dtype=float32)
    """
    to = float_type(dtype, "wald")
    work, extents = dtypes.compute_type(to), result_shape(shape, "wald", mean)
    m = _wide(mean, extents, work, "wald")
    squares, choices = split(key)
    y = m * standard_normal(squares, extents, work, "wald") ** 2
    least = 2 * m / (2 + y + _sqrt(y * (4 + y)))  # the smaller root, without a difference of near numbers
    return cast(where(unit(choices, extents, work, "wald") * (m + least) <= m, least, m * m / least), to)


def triangular(key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Triangular distribution from ``left`` to ``right`` with its peak at ``mode``.

    ``shape`` is by default that to which the parameters broadcast. Types are those of :func:`uniform`.

    >>> hnp.round(hg.random.triangular(hg.random.key(0), 0.0, 0.0, 3.0, (100_000,)).mean(), 1)
    Tensor(1., dtype=float32)
    """
    what = "triangular"
    to = float_type(dtype, what)
    work, extents = dtypes.compute_type(to), result_shape(shape, what, left, mode, right)
    low, peak, high = (_wide(v, extents, work, what) for v in (left, mode, right))
    u = unit(key, extents, work, what)
    rises = u * (high - low) < peak - low
    up = _sqrt(where(rises, u * (high - low) * (peak - low), 0.0))
    down = _sqrt(where(rises, 0.0, (1 - u) * (high - low) * (high - peak)))
    return cast(where(rises, low + up, high - down), to)


def f(key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """F distribution of ``dfnum`` and ``dfden`` degrees of freedom: a ratio of :func:`chisquare` numbers over these.

    ``shape`` is by default that to which the parameters broadcast. Types are those of :func:`uniform`.

    >>> hnp.round(hg.random.f(hg.random.key(0), 4.0, 10.0, (100_000,)).mean(), 1)
    Tensor(1.3, dtype=float32)
    """
    to = float_type(dtype, "f")
    work, extents = dtypes.compute_type(to), result_shape(shape, "f", dfnum, dfden)
    m, n = _wide(dfnum, extents, work, "f"), _wide(dfden, extents, work, "f")
    above, below = split(key)
    logs = log_gamma(above, m / 2, extents, "f") - log_gamma(below, n / 2, extents, "f")  # either number may be less than all floats
    return cast(_exp(logs) * (n / m), to)


def generalized_normal(key: Any, p: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Generalized normal distribution: its density goes with ``exp(-|x|**p)``. Types are those of :func:`uniform`.

    >>> hnp.round(hnp.abs(hg.random.generalized_normal(hg.random.key(0), 1.0, (100_000,))).mean(), 1)
    Tensor(1., dtype=float32)
    """
    what = "generalized_normal"
    to, extents = float_type(dtype, what), shape_of(shape, what)
    lengths, signs = split(key)
    inverse = 1 / as_type(p, WIDE, what)
    return cast(_exp(log_gamma(lengths, inverse, extents, what) * inverse) * rademacher(signs, extents, WIDE.np), to)


def multinomial(key: Any, n: Any, p: Any, *, shape: Any = None, dtype: Any = None) -> Tensor:
    """Multinomial distribution: how often ``n`` trials end in each of the classes along the last axis of ``p``, which has their probabilities.

    ``shape`` is that of the result, by default what ``n``, with an axis behind it, and ``p`` broadcast to; float32 unless ``dtype`` says otherwise,
    as in JAX. Raises ShapeError where ``p`` has no axis.

    >>> hg.random.multinomial(hg.random.key(0), 10, [0.2, 0.3, 0.5]).sum()
    Tensor(10., dtype=float32)
    """
    chances, trials = wrap(array(p, "multinomial")), wrap(array(n, "multinomial"))
    if chances.ndim < 1:
        raise located(ShapeError("multinomial: p has at least one axis, of classes"))
    classes = count_of(chances.shape[-1], "multinomial")
    extents = result_shape(shape, "multinomial", trials[..., None], chances)
    left = broadcast_to(trials[..., None], (*extents[:-1], 1))[..., 0].astype(np.int64)
    rest = broadcast_to(sum(chances, -1), extents[:-1])
    counts = []
    for i, each in enumerate(split(key, classes) if classes else ()):
        chance = broadcast_to(chances[..., i], extents[:-1])
        share = FUNCTIONS["minimum"](where(rest > 0, chance / where(rest > 0, rest, 1.0), 1.0), 1.0)
        drawn = left if i == classes - 1 else binomial(each, left, share)
        left, rest = left - drawn, rest - chance
        counts.append(drawn)
    return stack(counts, axis=-1).astype(dtypes.default_float.np if dtype is None else dtype)


def orthogonal(key: Any, n: int, shape: Any = (), dtype: Any = None, m: int | None = None) -> Tensor:
    """Uniformly distributed orthogonal matrices ``(*shape, n, m)``, with ``m`` = ``n`` by default; else rows or columns, the fewer, are orthonormal.

    From the QR decomposition of normal numbers, with the signs of R's diagonal (Stewart 1980). Types are those of :func:`uniform`. Raises
    ArgumentError for negative extents.

    >>> q = hg.random.orthogonal(hg.random.key(0), 3)
    >>> hnp.allclose(q @ q.T, hnp.eye(3), atol=1e-5)
    Tensor(True, dtype=bool)
    """
    to, extents = float_type(dtype, "orthogonal"), shape_of(shape, "orthogonal")
    rows, columns = count_of(n, "orthogonal"), count_of(n if m is None else m, "orthogonal")
    tall = (max(rows, columns), min(rows, columns))
    if not tall[1]:
        raise located(ArgumentError(f"orthogonal: a matrix of {rows} rows and {columns} columns"))
    q, r = qr(standard_normal(key, (*extents, *tall), dtypes.compute_type(to), "orthogonal"))
    signs = diagonal(r, 0, -2, -1)[..., None, :]
    whole = where(signs < 0, -q, q)
    return cast(matrix_transpose(whole) if rows < columns else whole, to)
