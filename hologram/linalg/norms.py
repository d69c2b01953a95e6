"""Norms of vectors and matrices."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import hologram.numpy as hnp
from hologram import dtypes
from hologram.errors import ArgumentError, ShapeError
from hologram.linalg.decompositions import svdvals
from hologram.linalg.factors import is_complex, matrices
from hologram.numpy.arguments import array, axes_of
from hologram.support.user_lines import located
from hologram.trace.operators import wrap
from hologram.trace.recorder import cast_node
from hologram.trace.replayed import replayed
from hologram.trace.tensor import Tensor
from hologram.transform.api import stop_gradient
from hologram.transform.custom import custom_jvp

__all__ = ["matrix_norm", "norm", "vector_norm"]


def _numbers(x: Any, what: str) -> Tensor:
    node = array(x, what)
    return wrap(cast_node(node, dtypes.to_inexact(node.dtype)))


def _squares(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    return hnp.sum(x * x, axis=axes, keepdims=True)


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def _length(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The root of the sum of squares over ``axes``, which stay as axes of one element, wherever it is in the range of the type itself.

    Three sums in one pass over the memory, of the elements as they are, scaled down and scaled up (J. Blue, *A portable Fortran program to find the
    Euclidean norm of a vector*, 1978, without his branches): a sum that is neither too large nor too small is right, and tells which else is.
    Elements that are small beside what overflows are left out of the sum that is scaled down: processors take a hundred times as long for subnormals.
    """
    limits = np.finfo(x.dtype)
    bits = int(limits.maxexp)
    down, up = 2.0 ** -(bits // 2), 2.0 ** (3 * bits // 4)
    plain, small = _squares(x, axes), _squares(x * up, axes)
    large = _squares(hnp.where(hnp.abs(x) > 2.0 ** (bits // 4), x * down, 0.0), axes)
    overflows, underflows = plain > float(limits.max) / 2, plain < 2.0 ** (limits.minexp + 2 * limits.nmant)
    root = hnp.sqrt(hnp.where(overflows, large, hnp.where(underflows, small, plain)))
    return hnp.where(overflows, root * (1 / down), hnp.where(underflows, root * (1 / up), root))


@_length.defjvp
def _length_jvp(axes: tuple[int, ...], primals: tuple[Tensor], tangents: tuple[Tensor]) -> tuple[Tensor, Tensor]:
    (x,), (dx,) = primals, tangents
    length = _length(x, axes)
    return length, hnp.sum(dx * (x / length), axis=axes, keepdims=True)


def _euclidean(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The length over ``axes``, which stay as axes of one element; squares of narrow floats are float32, whose range those of float16 never leave."""
    dtype = x._aval()[1]
    wide = dtypes.compute_type(dtype)
    if dtype is not dtypes.float16:
        return hnp.astype(_length(hnp.astype(x, wide), axes), dtype)
    values = hnp.astype(x, wide)
    return hnp.astype(hnp.sqrt(hnp.sum(values * values, axis=axes, keepdims=True)), dtype)


def _power_mean(size: Tensor, axes: tuple[int, ...], order: float) -> Tensor:
    """``(Σ size**order)**(1/order)`` of elements over their largest one (their smallest one for negative orders), whose powers do not overflow."""
    dtype = size._aval()[1]
    wide = hnp.astype(size, dtypes.compute_type(dtype))
    extreme = hnp.max(wide, axis=axes, keepdims=True) if order > 0 else hnp.min(wide, axis=axes, keepdims=True)
    unit = stop_gradient(hnp.where((extreme > 0) & hnp.isfinite(extreme), extreme, 1.0))
    return hnp.astype(unit * hnp.sum((wide / unit) ** order, axis=axes, keepdims=True) ** (1.0 / order), dtype)


def _largest(size: Tensor, axis: Any, keepdims: bool = False) -> Tensor:
    """The largest of magnitudes over ``axis``, 0 of none."""
    return hnp.max(size, axis=axis, keepdims=keepdims, initial=0 if 0 in size.shape else None)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:  # noqa: A002 - the standard's name
    """Norms of vectors along ``axis``, by default of all elements: ``(Σ |x|**ord)**(1/ord)``.

    The largest magnitude for inf, which is 0 of no elements, the smallest for -inf, how many elements are not 0 for 0. Floats keep their type,
    integers give float32.

    >>> hg.linalg.vector_norm([3.0, 4.0])
    Tensor(5., dtype=float32)
    >>> hg.linalg.vector_norm([[3.0, -4.0], [1.0, 0.0]], axis=1, ord=1)
    Tensor([7., 1.], dtype=float32)
    """
    a = _numbers(x, "vector_norm")
    axes = axes_of(axis, a.ndim, "vector_norm")
    size = hnp.abs(a)
    if ord == np.inf:
        return _largest(size, axes, keepdims)
    if ord == -np.inf:
        return hnp.min(size, axis=axes, keepdims=keepdims)
    if ord == 0:
        return hnp.sum(hnp.astype(size != 0, size.dtype), axis=axes, keepdims=keepdims)
    if ord == 1:
        return hnp.sum(size, axis=axes, keepdims=keepdims)
    if ord != 2 and not isinstance(ord, int | float):
        raise located(ArgumentError(f"vector_norm: the order is a number, not {ord!r}"))
    if 0 in size.shape:  # no elements have the length 0, of which negative orders make infinity
        total = hnp.sum(size, axis=axes, keepdims=keepdims)
        return total if ord > 0 else hnp.astype(total ** (1.0 / ord), size.dtype)
    found = _euclidean(size if is_complex(a) else a, axes) if ord == 2 else _power_mean(size, axes, ord)
    return found if keepdims else hnp.squeeze(found, axis=axes)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:  # noqa: A002 - the standard's name
    """Norms (…) of matrices (…, m, n), in the type of their parts.

    ``ord``: ``fro``, ``nuc`` (the sum of singular values), 1 and -1 (largest and smallest sum of absolute values in a column), inf and -inf (in a
    row), 2 and -2 (largest and smallest singular value). Raises ArgumentError for another order, ShapeError for fewer than two axes.

    >>> hg.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]])
    Tensor(5., dtype=float32)
    >>> hg.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]], ord=2)
    Tensor(4., dtype=float32)
    """
    a = matrices(x, "matrix_norm")
    if ord == "fro":
        return vector_norm(a, axis=(-2, -1), keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        s = svdvals(a)
        out = hnp.sum(s, axis=-1) if ord == "nuc" else _largest(s, -1) if ord == 2 else hnp.min(s, axis=-1)
    elif ord in (1, -1, np.inf, -np.inf):
        sums = hnp.sum(hnp.abs(a), axis=-2 if abs(ord) == 1 else -1)
        out = _largest(sums, -1) if ord > 0 else hnp.min(sums, axis=-1)
    else:
        raise located(ArgumentError(f"matrix_norm: no order {ord!r}; there are 'fro', 'nuc', 1, -1, 2, -2, inf and -inf"))
    return hnp.expand_dims(hnp.expand_dims(out, axis=-1), axis=-1) if keepdims else out


@replayed(1)
def norm(x: Any, /, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:  # noqa: A002 - NumPy's name
    """Norm, as NumPy's: of the vectors along one axis, of the matrices along two, of all elements (or of a vector or matrix) for None.

    ``ord`` is that of :func:`vector_norm` or :func:`matrix_norm`. Raises ArgumentError for another order, ShapeError for more than two axes.

    >>> hg.linalg.norm([3.0, 4.0])
    Tensor(5., dtype=float32)
    >>> hg.linalg.norm([[3.0, 4.0], [6.0, 8.0]], axis=1)
    Tensor([ 5., 10.], dtype=float32)
    """
    a = _numbers(x, "norm")
    if axis is None and ord is None:
        return vector_norm(a, keepdims=keepdims)
    axes = tuple(range(a.ndim)) if axis is None else tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    if len(axes) == 1:
        return vector_norm(a, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise located(ShapeError(f"norm: {len(axes)} axes are neither a vector's nor a matrix's"))
    axes_of(axes, a.ndim, "norm", lists=True)
    out = matrix_norm(hnp.moveaxis(a, axes, (-2, -1)), ord="fro" if ord is None else ord)
    return hnp.expand_dims(out, axis=tuple(sorted(i % a.ndim for i in axes))) if keepdims else out
