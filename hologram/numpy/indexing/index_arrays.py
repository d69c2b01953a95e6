"""Arrays of indices: grids, diagonals, triangles, and positions in a flattened array."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import DTypeError, IndexOutOfRange, ShapeError
from hologram.ir.symbolic import Int, prod
from hologram.numpy.arguments import array, as_tensor, wrap
from hologram.numpy.creation import ones
from hologram.support.user_lines import located
from hologram.trace.array_classes import known_array
from hologram.trace.checks import as_function, choice, computed, integer, items, require_shape, shape_of
from hologram.trace.convert import tensor
from hologram.trace.operators import extent_node
from hologram.trace.recorder import cast_node
from hologram.trace.tensor import Tensor

__all__ = [
    "diag_indices", "diag_indices_from", "fromfunction", "indices", "ix_", "mask_indices", "ravel_multi_index", "tril_indices",
    "tril_indices_from", "triu_indices", "triu_indices_from", "unravel_index",
]  # fmt: skip


def indices(dimensions: Sequence[int], dtype: Any = None) -> Tensor:
    """Indices of a grid, ``(number of axes, *dimensions)``: its index along each axis at every position; int64 unless ``dtype``.

    >>> hnp.indices((2, 2))[1]
    Tensor([[0, 1],
            [0, 1]], dtype=int64)
    """
    shape = [operator.index(n) for n in shape_of(dimensions, "indices")]
    require_shape((len(shape), *shape), dtypes.int64)
    grid = tensor(computed("indices", len(shape) * math.prod(shape), 8, lambda: np.indices(shape)))
    return grid if dtype is None else grid.astype(dtype)


def fromfunction(function: Callable[..., Any], shape: Sequence[int], *, dtype: Any = None) -> Any:
    """Calls ``function`` once, with the indices of a grid of ``shape`` along each axis, as float32 arrays unless ``dtype`` says otherwise.

    Raises ArgumentError for what is no function.

    >>> hnp.fromfunction(lambda i, j: i * 10 + j, (2, 3), dtype=hnp.int64)
    Tensor([[ 0,  1,  2],
            [10, 11, 12]], dtype=int64)
    """
    return as_function(function, "fromfunction")(*indices(shape, dtypes.default_float if dtype is None else dtype))


def ix_(*args: Any) -> tuple[Tensor, ...]:
    """Indices of an open grid: vectors shaped to broadcast with one another, one axis each. Known masks become indices.

    >>> rows, columns = hnp.ix_([0, 2], [1, 3])
    >>> rows.shape, columns.shape
    ((2, 1), (1, 2))
    """
    known = [known_array(a, "ix_") for a in args]
    parts = [np.flatnonzero(a) if a.dtype == np.bool_ and a.ndim == 1 else a for a in known]
    if any(part.ndim != 1 for part in parts):
        raise located(ShapeError(f"ix_ takes vectors, not shapes {[list(part.shape) for part in parts]}"))
    parts = [part if part.size else part.astype(np.int64) for part in parts]
    return tuple(_as(a, part, s) for a, part, s in zip(args, parts, np.ix_(*parts), strict=True))


def _as(x: Any, known: np.ndarray, shaped: np.ndarray) -> Tensor:
    """``shaped`` as a view of ``x`` where it is ``x`` itself reshaped, whose values are ``known``."""
    return x.reshape(shaped.shape) if type(x) is Tensor and known.dtype == x.dtype and known.size else tensor(shaped)


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """Indices of the main diagonal of an array with ``ndim`` axes of extent ``n``: a tuple with one int64 vector an axis.

    >>> hnp.diag_indices(3)
    (Tensor([0, 1, 2], dtype=int64), Tensor([0, 1, 2], dtype=int64))
    """
    n, ndim = integer(n, "diag_indices", "an extent"), integer(ndim, "diag_indices", "a number of axes")
    return tuple(tensor(a) for a in computed("diag_indices", n, 8, lambda: np.diag_indices(n, ndim)))


def _band(n: Any, k: Any, m: Any, what: str) -> tuple[int, int, int | None]:
    return integer(n, what, "a number of rows"), integer(k, what, "a diagonal"), None if m is None else integer(m, what, "a number of columns")


def _of_band(found: Callable[..., Any], n: int, k: int, m: int | None) -> tuple[Tensor, ...]:
    """The rows and columns that NumPy's function ``found`` gives."""
    count = max(n, 1) * max(n if m is None else m, 1)
    return tuple(tensor(a) for a in computed(found.__name__, count, 1, lambda: found(n, k, m)))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """Indices of the elements on and below the ``k``-th diagonal of a matrix (n, m), row by row: ``(rows, columns)``, int64.

    >>> hnp.tril_indices(2)
    (Tensor([0, 1, 1], dtype=int64), Tensor([0, 0, 1], dtype=int64))
    """
    return _of_band(np.tril_indices, *_band(n, k, m, "tril_indices"))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """Indices of the elements on and above the ``k``-th diagonal of a matrix (n, m), row by row: ``(rows, columns)``, int64.

    >>> hnp.triu_indices(2)
    (Tensor([0, 0, 1], dtype=int64), Tensor([0, 1, 1], dtype=int64))
    """
    return _of_band(np.triu_indices, *_band(n, k, m, "triu_indices"))


def _matrix_extents(x: Any, what: str) -> tuple[int, int]:
    shape = as_tensor(x, what).shape
    if len(shape) != 2:
        raise located(ShapeError(f"{what} takes a matrix, not shape {list(shape)}"))
    return operator.index(shape[0]), operator.index(shape[1])


def tril_indices_from(x: Any, /, k: int = 0) -> tuple[Tensor, ...]:
    """:func:`tril_indices` for the shape of the matrix ``x``. Raises ShapeError for other arrays.

    >>> hnp.tril_indices_from([[1, 2], [3, 4]])
    (Tensor([0, 1, 1], dtype=int64), Tensor([0, 0, 1], dtype=int64))
    """
    n, m = _matrix_extents(x, "tril_indices_from")
    return tril_indices(n, k, m)


def triu_indices_from(x: Any, /, k: int = 0) -> tuple[Tensor, ...]:
    """:func:`triu_indices` for the shape of the matrix ``x``. Raises ShapeError for other arrays.

    >>> hnp.triu_indices_from([[1, 2], [3, 4]])
    (Tensor([0, 0, 1], dtype=int64), Tensor([0, 1, 1], dtype=int64))
    """
    n, m = _matrix_extents(x, "triu_indices_from")
    return triu_indices(n, k, m)


def diag_indices_from(x: Any, /) -> tuple[Tensor, ...]:
    """:func:`diag_indices` for the shape of ``x``. Raises ShapeError for one axis, and for axes of different extents.

    >>> hnp.diag_indices_from([[1, 2], [3, 4]])
    (Tensor([0, 1], dtype=int64), Tensor([0, 1], dtype=int64))
    """
    shape = as_tensor(x, "diag_indices_from").shape
    if len(shape) < 2 or len(set(shape)) > 1:
        raise located(ShapeError(f"diag_indices_from takes at least two axes of one extent, not shape {list(shape)}"))
    return diag_indices(operator.index(shape[0]), len(shape))


def mask_indices(n: int, mask_func: Callable[..., Any], k: Any = 0) -> tuple[Tensor, ...]:
    """Indices at which ``mask_func(ones, k)``, such as ``triu``, of an n by n matrix is not zero: ``(rows, columns)``, int64.

    >>> hnp.mask_indices(2, hnp.triu)
    (Tensor([0, 0, 1], dtype=int64), Tensor([0, 1, 1], dtype=int64))
    """
    made = as_function(mask_func, "mask_indices")(ones((n, n)), k=k)
    return tuple(tensor(a) for a in np.nonzero(as_tensor(made, "mask_indices")._view("mask_indices, whose result's size depends on the values,")))


def unravel_index(places: Any, shape: Any, order: str = "C") -> tuple[Tensor, ...]:
    """Indices along each axis, a tuple of int64 arrays, of positions in an array of ``shape`` flattened in C order, or Fortran's for ``order="F"``.

    Negative positions count from the end. Raises IndexOutOfRange for known ones out of range (computed ones are clamped), ArgumentError for another
    order.

    >>> hnp.unravel_index([3, 5], (2, 3))
    (Tensor([1, 1], dtype=int64), Tensor([0, 2], dtype=int64))
    """
    extents, out = shape_of(shape, "unravel_index"), []
    fortran = choice(order, "unravel_index", "order", ("C", "F")) == "F"
    at = _in_range(places, prod(extents), "unravel_index")
    for n in map(_counted, extents if fortran else extents[::-1]):
        out.append(at % n)
        at = at // n
    return tuple(out if fortran else out[::-1])


def _in_range(indices: Any, n: Any, what: str, signed: bool = True) -> Tensor:
    """``indices`` of ``n`` elements, clamped where they are computed; with ``signed`` negative ones count from the end. Raises IndexOutOfRange for
    known ones out of range of a known ``n``."""
    t = _integers(indices, what)
    if type(indices) is Tensor or not isinstance(n, int):
        size = _counted(n)
        return t.clip(-size, size - 1) if signed and n != 0 else t
    known = known_array(indices, what)
    if known.size and known.dtype.kind in "iu" and not -n * signed <= known.min() <= known.max() < n:
        worst = known.max() if known.max() >= n else known.min()
        raise located(IndexOutOfRange(f"{what}: index {worst} is out of range for {n} elements"))
    return t


def _integers(indices: Any, what: str) -> Tensor:
    """``indices`` as int64: the positions that are computed from narrow ones are beyond their type. Raises DTypeError for other numbers."""
    node = array(indices, what)
    if node.dtype.kind not in "biu":
        raise located(DTypeError(f"{what}: indices are integers, not {node.dtype.name}"))
    return wrap(cast_node(node, dtypes.int64))


def _counted(n: Int) -> Any:
    """An extent for arithmetic on indices: a symbolic one as a Tensor."""
    return n if isinstance(n, int) else wrap(extent_node(n, dtypes.int64), True)


def ravel_multi_index(multi_index: Sequence[Any], dims: Any, mode: str = "raise", order: str = "C") -> Tensor:
    """Positions in an array of shape ``dims`` flattened, of indices along each axis; the inverse of :func:`unravel_index`.

    Indices out of range are taken modulo the extents with ``mode="wrap"``, and are the nearest ones in range with ``"clip"``; with ``"raise"`` known
    ones are an IndexOutOfRange, and computed ones are not looked at. Raises ShapeError where their number is not that of the axes, ArgumentError for
    another mode, and for another order than ``C`` and ``F``, DTypeError for what are no integers. The result is int64.

    >>> hnp.ravel_multi_index(([1, 1], [0, 2]), (2, 3))
    Tensor([3, 5], dtype=int64)
    """
    parts, shape = items(multi_index, "ravel_multi_index", "indices"), shape_of(dims, "ravel_multi_index")
    if len(parts) != len(shape):
        raise located(ShapeError(f"ravel_multi_index: {len(parts)} indices for the shape {list(shape)}"))
    choice(mode, "ravel_multi_index", "mode", ("raise", "wrap", "clip"))
    steps = list(zip(parts, shape, strict=True))
    at: Any = 0
    for i, n in steps[::-1] if choice(order, "ravel_multi_index", "order", ("C", "F")) == "F" else steps:
        index = _in_range(i, n, "ravel_multi_index", signed=False) if mode == "raise" else _integers(i, "ravel_multi_index")
        size = _counted(n)
        at = at * size + (index % size if mode == "wrap" else index.clip(0, size - 1) if mode == "clip" else index)
    return at
