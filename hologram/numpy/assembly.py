"""NumPy's smaller names for putting arrays together, taking them apart, naming places in them, and choosing between them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from hologram.ir.symbolic import prod
from hologram.numpy.arguments import alike, array, array_as, axis_of, wrap
from hologram.numpy.complexes import conj
from hologram.numpy.creation import linspace, ones, zeros
from hologram.numpy.elementwise import FUNCTIONS, log_of_sum, round, where
from hologram.numpy.indexing.read import take
from hologram.numpy.linear import matmul
from hologram.numpy.manipulation import concat, diagonal, moveaxis, split, tile
from hologram.numpy.reductions import array_equal, sum
from hologram.support.user_lines import located
from hologram.trace.checks import as_function, choice, integer, items, shape_of
from hologram.trace.convert import tensor
from hologram.trace.operators import broadcast_shapes, promoted, with_tensors
from hologram.trace.tensor import Tensor

__all__ = [
    "around", "array_equiv", "block", "choose", "cross", "delete", "diag", "diag_indices", "diag_indices_from", "diagflat", "dsplit", "fabs", "fix",
    "float_power", "fmax", "fmin", "fromfunction", "geomspace", "hsplit", "indices", "insert", "isneginf", "isposinf", "ix_", "kron", "logaddexp2",
    "logspace", "mask_indices", "matvec", "modf", "ndim", "ravel_multi_index", "resize", "rollaxis", "select", "tril_indices", "tril_indices_from",
    "trim_zeros", "triu_indices", "triu_indices_from", "unravel_index", "vdot", "vecmat", "vsplit",
]  # fmt: skip


def _array(x: Any, what: str) -> Tensor:
    return wrap(array(x, what))


def _pair(what: str, x1: Any, x2: Any, adjust: Callable[[DType], DType] | None = None) -> tuple[Tensor, Tensor]:
    (a, b), _, weak = promoted(what, (x1, x2), adjust, keep=True)
    return wrap(a, weak), wrap(b, weak)


# --- together and apart ----------------------------------------------------------------------------------------------


def hsplit(x: Any, sections: int | Sequence[int]) -> list[Tensor]:
    """Splits along the second axis, or the first of a vector: :func:`split` there.

    >>> hnp.hsplit([1, 2, 3, 4], 2)
    [Tensor([1, 2], dtype=int64), Tensor([3, 4], dtype=int64)]
    """
    return split(x, sections, axis=1 if array(x, "hsplit").ndim > 1 else 0)


def vsplit(x: Any, sections: int | Sequence[int]) -> list[Tensor]:
    """Splits along the first axis: :func:`split` there.

    >>> hnp.vsplit([[1, 2], [3, 4]], 2)
    [Tensor([[1, 2]], dtype=int64), Tensor([[3, 4]], dtype=int64)]
    """
    return split(x, sections, axis=0)


def dsplit(x: Any, sections: int | Sequence[int]) -> list[Tensor]:
    """Splits along the third axis: :func:`split` there. Raises AxisOutOfRange for fewer axes.

    >>> [part.shape for part in hnp.dsplit(hnp.zeros((2, 2, 4)), 2)]
    [(2, 2, 2), (2, 2, 2)]
    """
    return split(x, sections, axis=2)


def _flat(x: Any, axis: int | None, what: str) -> tuple[Tensor, int]:
    t = _array(x, what)
    return (t.reshape(-1), 0) if axis is None else (t, axis_of(axis, t.ndim, what))


def delete(x: Any, obj: Any, axis: int | None = None) -> Tensor:
    """``x`` without the elements along ``axis`` that ``obj`` names; of ``x`` flattened for None.

    ``obj`` is an index, several, a slice or a mask, whose values must be known. The result is new. Raises IndexOutOfRange, DTypeError for indices
    that are not integers, TracedValueError for traced ones.

    >>> hnp.delete([10, 20, 30, 40], [1, 3])
    Tensor([10, 30], dtype=int64)
    """
    t, a = _flat(x, axis, "delete")
    n = t.shape[a]
    kept = np.delete(np.arange(n), _places(obj, n, n - 1, "delete"))
    return take(t, kept, axis=a)


def _places(obj: Any, n: Any, last: Any, what: str) -> Any:
    """Known indices from -``n`` to ``last``, a slice or a mask, for NumPy.

    Raises DTypeError for arrays of others, IndexOutOfRange, and TracedValueError while tracing.
    """
    if isinstance(obj, slice):
        return obj
    known = obj._view(f"{what}, whose result's size depends on the indices,") if type(obj) is Tensor else np.asarray(obj)
    if known.dtype.kind not in "iub" and known.size:
        raise located(DTypeError(f"{what}: indices are integers, not {known.dtype}"))
    if known.dtype.kind in "iu" and known.size and (known.min() < -n or known.max() > last):
        raise located(IndexOutOfRange(f"{what}: an index beyond an axis of extent {n}"))
    return known.astype(np.intp) if known.size == 0 else known


def insert(x: Any, obj: Any, values: Any, axis: int | None = None) -> Tensor:
    """``x`` with ``values`` inserted before the indices ``obj`` along ``axis``; of ``x`` flattened for None.

    ``obj`` is an index, several or a slice, whose values must be known. The result is new, of the type of ``x``. Raises IndexOutOfRange, DTypeError
    for indices that are not integers, TracedValueError for traced ones.

    >>> hnp.insert([10, 20, 30], 1, 99)
    Tensor([10, 99, 20, 30], dtype=int64)
    """
    t, a = _flat(x, axis, "insert")
    n = t.shape[a]
    at = np.atleast_1d(np.arange(n)[obj] if isinstance(obj, slice) else _places(obj, n, n, "insert"))
    new = wrap(array_as(values, t._aval()[1], "insert"))
    one = np.ndim(obj) == 0 and not isinstance(obj, slice)
    if one and new.ndim:  # as many as there are values
        new = new if axis is None else moveaxis(new.reshape((*[1] * (t.ndim - new.ndim), *new.shape)), 0, a)
        at = np.repeat(at, new.shape[a])
    shape = (*t.shape[:a], at.size, *t.shape[a + 1 :])
    spread = zeros(shape, dtype=t.dtype) + new
    order = np.insert(np.arange(n), at, np.arange(n, n + at.size))
    return take(concat([t, spread], axis=a), order, axis=a)


def block(arrays: Any) -> Tensor:
    """Joins nested lists of blocks: the innermost lists along the last axis, those around them along the axis before it, and so on.

    Raises ArgumentError where some lists go deeper than others, or are empty, ShapeError where blocks do not fit.

    >>> hnp.block([[hnp.eye(2), hnp.zeros((2, 1))]])
    Tensor([[1., 0., 0.],
            [0., 1., 0.]], dtype=float32)
    """
    depth = _depth(arrays)
    widest = max(depth, *(len(np.shape(b)) if not isinstance(b, Tensor) else b.ndim for b in _blocks(arrays)))
    return _block(arrays, depth, widest)


def _depth(arrays: Any) -> int:
    """How deep the lists go. Raises ArgumentError where some go deeper than others, or are empty."""
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(a) for a in arrays}
    if len(depths) != 1:
        raise located(ArgumentError("block: lists of equal depth, none of them empty, are needed"))
    return 1 + depths.pop()


def _blocks(arrays: Any) -> Iterator[Any]:
    if isinstance(arrays, list):
        for a in arrays:
            yield from _blocks(a)
    else:
        yield arrays


def _block(arrays: Any, depth: int, widest: int) -> Tensor:
    if depth == 0:
        t = _array(arrays, "block")
        return t.reshape((*[1] * (widest - t.ndim), *t.shape))
    return concat([_block(a, depth - 1, widest) for a in arrays], axis=-depth)


def resize(x: Any, new_shape: Any) -> Tensor:
    """The elements of ``x`` in C order, repeated or cut off to fill ``new_shape``; zeros where ``x`` has none.

    >>> hnp.resize([1, 2, 3], (2, 2))
    Tensor([[1, 2],
            [3, 1]], dtype=int64)
    """
    t, shape = _array(x, "resize").reshape(-1), shape_of(new_shape, "resize")
    n = operator.index(prod(shape))
    if t.shape[0] == 0:
        return zeros(shape, dtype=t.dtype)
    times = -(-n // operator.index(t.shape[0]))
    return tile(t, times)[:n].reshape(shape)


def trim_zeros(x: Any, trim: str = "fb") -> Tensor:
    """A vector without its zeros at the front (``f``), at the back (``b``) or both (``fb``). A view.

    Reads values, so it raises TracedValueError while tracing; ShapeError for other arrays than vectors.

    >>> hnp.trim_zeros([0, 0, 1, 0, 2, 0])
    Tensor([1, 0, 2], dtype=int64)
    """
    t = x if type(x) is Tensor else _array(x, "trim_zeros")
    if t.ndim != 1:
        raise located(ShapeError(f"trim_zeros takes one axis, not shape {list(t.shape)}"))
    sides = choice(trim, "trim_zeros", "trim", ("f", "b", "fb", "bf", "F", "B", "FB", "BF")).lower()
    filled = np.flatnonzero(t._view("trim_zeros, whose result's size depends on the values,"))
    if filled.size == 0:
        return t[:0]
    return t[int(filled[0]) if "f" in sides else 0 : int(filled[-1]) + 1 if "b" in sides else t.shape[0]]


def rollaxis(x: Any, axis: int, start: int = 0) -> Tensor:
    """Moves ``axis`` before the axis ``start``; the rest keep their order. A view.

    >>> hnp.rollaxis(hnp.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    t = x if type(x) is Tensor else _array(x, "rollaxis")
    a = axis_of(axis, t.ndim, "rollaxis")
    to = t.ndim if start == t.ndim else axis_of(start, t.ndim, "rollaxis")
    return moveaxis(t, a, to - 1 if to > a else to)


def diag(x: Any, /, k: int = 0) -> Tensor:
    """The ``k``-th diagonal of a matrix, a read-only view; or the matrix that has the vector ``x`` on it.

    Raises ShapeError for no axes, and for more than two.

    >>> hnp.diag([[1, 2], [3, 4]])
    Tensor([1, 4], dtype=int64)
    >>> hnp.diag([1, 2], k=1)
    Tensor([[0, 1, 0],
            [0, 0, 2],
            [0, 0, 0]], dtype=int64)
    """
    t = _array(x, "diag")
    if t.ndim == 2:
        return diagonal(x, offset=k)
    if t.ndim != 1:
        raise located(ShapeError(f"diag takes one or two axes, not shape {list(t.shape)}"))
    k = integer(k, "diag", "a diagonal")
    n = t.shape[0] + abs(k)
    rows = np.arange(t.shape[0])
    return zeros((n, n), dtype=t.dtype).at[rows - min(k, 0), rows + max(k, 0)].set(t)


def diagflat(x: Any, /, k: int = 0) -> Tensor:
    """Matrix with the elements of ``x`` flattened on its ``k``-th diagonal, zeros beside it.

    >>> hnp.diagflat([[1, 2]])
    Tensor([[1, 0],
            [0, 2]], dtype=int64)
    """
    return diag(_array(x, "diagflat").reshape(-1), k)


def kron(x1: Any, x2: Any, /) -> Tensor:
    """Kronecker product: every element of ``x1`` times all of ``x2``, in blocks.

    The shape is the product of the two, axis by axis; the array with fewer axes gets leading ones.

    >>> hnp.kron([1, 10], [1, 2])
    Tensor([ 1,  2, 10, 20], dtype=int64)
    """
    a, b = map(wrap, alike((x1, x2), "kron"))
    n = max(a.ndim, b.ndim)
    a, b = a.reshape((*[1] * (n - a.ndim), *a.shape)), b.reshape((*[1] * (n - b.ndim), *b.shape))
    apart = a.reshape([m for s in a.shape for m in (s, 1)]) * b.reshape([m for s in b.shape for m in (1, s)])
    return apart.reshape([s * t for s, t in zip(a.shape, b.shape, strict=True)])


def cross(x1: Any, x2: Any, /, axis: int = -1) -> Tensor:
    """Cross product of vectors with three components along ``axis``; the other axes broadcast.

    Raises ShapeError for vectors of other lengths, two included.

    >>> hnp.cross([1, 0, 0], [0, 1, 0])
    Tensor([0, 0, 1], dtype=int64)
    """
    a, b = (moveaxis(t, axis, -1) for t in _pair("cross", x1, x2))
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise located(ShapeError(f"cross takes vectors of three components, not shapes {list(a.shape)} and {list(b.shape)}"))
    (a0, a1, a2), (b0, b1, b2) = ([v[..., i : i + 1] for i in range(3)] for v in (a, b))
    return moveaxis(concat([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-1), -1, axis)


def vdot(x1: Any, x2: Any, /) -> Tensor:
    """Dot product of two arrays flattened, the first conjugated; a scalar in their common type.

    >>> hnp.vdot([1 + 1j, 2], [1, 3])
    Tensor(7.-1.j, dtype=complex64)
    """
    a, b = conj(_array(x1, "vdot")).reshape(-1), _array(x2, "vdot").reshape(-1)
    return sum(a * b, dtype=(a * b).dtype)


def matvec(x1: Any, x2: Any, /) -> Tensor:
    """Products of matrices ``(…, m, k)`` and vectors ``(…, k)``, whose other axes broadcast: ``(…, m)``.

    Raises ShapeError for fewer axes, or extents that do not fit.

    >>> hnp.matvec([[1, 2], [3, 4]], [1, 10])
    Tensor([21, 43], dtype=int64)
    """
    a, b = _array(x1, "matvec"), _array(x2, "matvec")
    if a.ndim < 2 or not b.ndim:
        raise located(ShapeError(f"matvec takes matrices and vectors, not shapes {list(a.shape)} and {list(b.shape)}"))
    return matmul(a, b[..., None])[..., 0]


def vecmat(x1: Any, x2: Any, /) -> Tensor:
    """Products of vectors ``(…, k)``, conjugated, and matrices ``(…, k, n)``, whose other axes broadcast: ``(…, n)``.

    Raises ShapeError for fewer axes, or extents that do not fit.

    >>> hnp.vecmat([1, 10], [[1, 2], [3, 4]])
    Tensor([31, 42], dtype=int64)
    """
    a, b = conj(_array(x1, "vecmat")), _array(x2, "vecmat")
    if not a.ndim or b.ndim < 2:
        raise located(ShapeError(f"vecmat takes vectors and matrices, not shapes {list(a.shape)} and {list(b.shape)}"))
    return matmul(a[..., None, :], b)[..., 0, :]


# --- places ----------------------------------------------------------------------------------------------------------


def indices(dimensions: Sequence[int], dtype: Any = None) -> Tensor:
    """Indices of a grid, ``(number of axes, *dimensions)``: its index along each axis at every position; int64 unless ``dtype``.

    >>> hnp.indices((2, 2))[1]
    Tensor([[0, 1],
            [0, 1]], dtype=int64)
    """
    grid = tensor(np.indices([operator.index(n) for n in shape_of(dimensions, "indices")]))
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
    parts = [np.flatnonzero(a) if np.asarray(a).dtype == np.bool_ else np.asarray(a) for a in args]
    return tuple(_as(a, part, s) for a, part, s in zip(args, parts, np.ix_(*parts), strict=True))


def _as(x: Any, known: np.ndarray, shaped: np.ndarray) -> Tensor:
    """``shaped`` as a view of ``x`` where it is ``x`` itself reshaped, whose values are ``known``."""
    return x.reshape(shaped.shape) if type(x) is Tensor and known.dtype == x.dtype and known.size else tensor(shaped)


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """Indices of the main diagonal of an array with ``ndim`` axes of extent ``n``: a tuple with one int64 vector an axis.

    >>> hnp.diag_indices(3)
    (Tensor([0, 1, 2], dtype=int64), Tensor([0, 1, 2], dtype=int64))
    """
    return tuple(tensor(a) for a in np.diag_indices(integer(n, "diag_indices", "an extent"), integer(ndim, "diag_indices", "a number of axes")))


def _band(n: Any, k: Any, m: Any, what: str) -> tuple[int, int, int | None]:
    return integer(n, what, "a number of rows"), integer(k, what, "a diagonal"), None if m is None else integer(m, what, "a number of columns")


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """Indices of the elements on and below the ``k``-th diagonal of a matrix (n, m), row by row: ``(rows, columns)``, int64.

    >>> hnp.tril_indices(2)
    (Tensor([0, 1, 1], dtype=int64), Tensor([0, 0, 1], dtype=int64))
    """
    return tuple(tensor(a) for a in np.tril_indices(*_band(n, k, m, "tril_indices")))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """Indices of the elements on and above the ``k``-th diagonal of a matrix (n, m), row by row: ``(rows, columns)``, int64.

    >>> hnp.triu_indices(2)
    (Tensor([0, 0, 1], dtype=int64), Tensor([0, 1, 1], dtype=int64))
    """
    return tuple(tensor(a) for a in np.triu_indices(*_band(n, k, m, "triu_indices")))


def _matrix_extents(x: Any, what: str) -> tuple[int, int]:
    shape = _array(x, what).shape
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
    shape = _array(x, "diag_indices_from").shape
    if len(shape) < 2 or len(set(shape)) > 1:
        raise located(ShapeError(f"diag_indices_from takes at least two axes of one extent, not shape {list(shape)}"))
    return diag_indices(operator.index(shape[0]), len(shape))


def mask_indices(n: int, mask_func: Callable[..., Any], k: Any = 0) -> tuple[Tensor, ...]:
    """Indices at which ``mask_func(ones, k)``, such as ``triu``, of an n by n matrix is not zero: ``(rows, columns)``, int64.

    >>> hnp.mask_indices(2, hnp.triu)
    (Tensor([0, 0, 1], dtype=int64), Tensor([0, 1, 1], dtype=int64))
    """
    made = as_function(mask_func, "mask_indices")(ones((n, n)), k=k)
    return tuple(tensor(a) for a in np.nonzero(_array(made, "mask_indices")._view("mask_indices, whose result's size depends on the values,")))


def unravel_index(places: Any, shape: Any) -> tuple[Tensor, ...]:
    """Indices along each axis, a tuple, of positions in an array of ``shape`` flattened.

    >>> hnp.unravel_index([3, 5], (2, 3))
    (Tensor([1, 1], dtype=int64), Tensor([0, 2], dtype=int64))
    """
    at = _array(places, "unravel_index")
    out = []
    for n in reversed(shape_of(shape, "unravel_index")):
        out.append(at % n)
        at = at // n
    return tuple(out[::-1])


def ravel_multi_index(multi_index: Sequence[Any], dims: Any) -> Tensor:
    """Positions in an array of shape ``dims`` flattened, of indices along each axis; the inverse of :func:`unravel_index`.

    Indices are not checked. Raises ShapeError where their number is not that of the axes.

    >>> hnp.ravel_multi_index(([1, 1], [0, 2]), (2, 3))
    Tensor([3, 5], dtype=int64)
    """
    parts, shape = items(multi_index, "ravel_multi_index", "indices"), shape_of(dims, "ravel_multi_index")
    if len(parts) != len(shape):
        raise located(ShapeError(f"ravel_multi_index: {len(parts)} indices for the shape {list(shape)}"))
    at: Any = 0
    for i, n in zip(parts, shape, strict=True):
        at = at * n + _array(i, "ravel_multi_index")
    return at


# --- choosing --------------------------------------------------------------------------------------------------------


def select(conditions: Sequence[Any], choices: Sequence[Any], default: Any = 0) -> Tensor:
    """Selects by element the first of ``choices`` whose condition is not zero, else ``default``.

    All broadcast; the result has the choices' common type. Raises ArgumentError for lists of different lengths, or none.

    >>> x = hnp.arange(5)
    >>> hnp.select([x < 2, x > 3], [x, 10 * x], default=-1)
    Tensor([ 0,  1, -1, -1, 40], dtype=int64)
    """
    conditions, choices = items(conditions, "select", "conditions"), items(choices, "select")
    if len(conditions) != len(choices) or not choices:
        raise located(ArgumentError(f"select: {len(conditions)} conditions for {len(choices)} choices"))
    *values, last = promoted("select", [*choices, default])[0]
    result = wrap(last)
    for condition, value in zip(reversed(conditions), reversed(values), strict=True):
        result = where(condition, wrap(value), result)
    return result


def choose(which: Any, choices: Sequence[Any], mode: str = "clip") -> Tensor:
    """Selects by element from the array of ``choices`` whose number ``which`` gives; numbers out of range mean the first or the last.

    All broadcast. Only NumPy's mode ``clip`` is there. Raises ArgumentError for another mode, or no choices.

    >>> hnp.choose([0, 1, 5], [[1, 2, 3], [10, 20, 30]])
    Tensor([ 1, 20, 30], dtype=int64)
    """
    choice(mode, "choose", "mode", ("clip",))
    if not (arrays := items(choices, "choose")):
        raise located(ArgumentError("choose: no choices"))
    number = _array(which, "choose")
    result: Any = arrays[0]
    for i, value in enumerate(arrays[1:], 1):
        result = where(number >= i, value, result)
    return result


def fmax(x1: Any, x2: Any, /) -> Tensor:
    """Larger of two elements; of a number and NaN the number.

    The operands broadcast; the result has their common type.

    >>> hnp.fmax([1.0, hnp.nan], [0.5, 2.0])
    Tensor([1., 2.], dtype=float32)
    """
    isnan = FUNCTIONS["isnan"]
    a, b = _pair("fmax", x1, x2)
    return where(isnan(a), b, where(isnan(b), a, FUNCTIONS["maximum"](a, b)))


def fmin(x1: Any, x2: Any, /) -> Tensor:
    """Smaller of two elements; of a number and NaN the number.

    The operands broadcast; the result has their common type.

    >>> hnp.fmin([1.0, hnp.nan], [0.5, 2.0])
    Tensor([0.5, 2. ], dtype=float32)
    """
    isnan = FUNCTIONS["isnan"]
    a, b = _pair("fmin", x1, x2)
    return where(isnan(a), b, where(isnan(b), a, FUNCTIONS["minimum"](a, b)))


# --- numbers ---------------------------------------------------------------------------------------------------------


around = round


def fix(x: Any, /) -> Tensor:
    """Whole part of ``x``: rounding towards zero, as :func:`trunc`.

    >>> hnp.fix([-1.5, 1.5])
    Tensor([-1.,  1.], dtype=float32)
    """
    return FUNCTIONS["trunc"](x)


def fabs(x: Any, /) -> Tensor:
    """Absolute value as a float: the type of ``x``, float32 for integers.

    >>> hnp.fabs([-1, 2])
    Tensor([1., 2.], dtype=float32)
    """
    t = _array(x, "fabs")
    return FUNCTIONS["abs"](t if t._aval()[1].is_float else t.astype(dtypes.default_float))


def modf(x: Any, /) -> tuple[Tensor, Tensor]:
    """Fraction and whole part, both with the sign of ``x``: floats, float32 for integers.

    >>> hnp.modf([1.5, -2.25])
    (Tensor([ 0.5 , -0.25], dtype=float32), Tensor([ 1., -2.], dtype=float32))
    """
    t = _array(x, "modf")
    whole = FUNCTIONS["trunc"](t if t._aval()[1].is_float else t.astype(dtypes.default_float))
    rest = where(FUNCTIONS["isinf"](whole), 0.0, t - whole)
    return FUNCTIONS["copysign"](rest, whole), whole


def float_power(x1: Any, x2: Any, /) -> Tensor:
    """Power ``x1 ** x2``, computed and given in float64; of complex numbers in complex128.

    >>> hnp.float_power([1, 2, 3], 2)
    Tensor([1., 4., 9.], dtype=float64)
    """
    nodes, _, _ = promoted("float_power", (x1, x2), lambda d: dtypes.complex128 if d.is_complex else dtypes.float64, keep=True)
    a, b = map(wrap, nodes)
    return a**b


def logaddexp2(x1: Any, x2: Any, /) -> Tensor:
    """``log2(2**x1 + 2**x2)``, without overflow.

    The operands broadcast. The result has their common float type, float32 for integers.

    >>> hnp.logaddexp2([0.0, 1000.0], [0.0, 1000.0])
    Tensor([1.000e+00, 1.001e+03], dtype=float32)
    """
    return log_of_sum(*_pair("logaddexp2", x1, x2, dtypes.to_inexact), FUNCTIONS["exp2"], math.log2(math.e))


def isposinf(x: Any, /) -> Tensor:
    """Whether an element is positive infinity; bool. Raises DTypeError for complex numbers.

    >>> hnp.isposinf([hnp.inf, -hnp.inf, 1.0])
    Tensor([ True, False, False], dtype=bool)
    """
    return FUNCTIONS["isinf"](x) & ~FUNCTIONS["signbit"](x)


def isneginf(x: Any, /) -> Tensor:
    """Whether an element is negative infinity; bool. Raises DTypeError for complex numbers.

    >>> hnp.isneginf([hnp.inf, -hnp.inf, 1.0])
    Tensor([False,  True, False], dtype=bool)
    """
    return FUNCTIONS["isinf"](x) & FUNCTIONS["signbit"](x)


def logspace(start: float, stop: float, num: int = 50, *, endpoint: bool = True, base: float = 10.0, dtype: Any = None) -> Tensor:
    """``num`` powers of ``base`` whose exponents lie at equal distances from ``start`` to ``stop``; float32 unless ``dtype``.

    The last exponent is ``stop`` if ``endpoint``. Ends may be Tensors, through which derivatives go.

    >>> hnp.logspace(0, 3, 4)
    Tensor([   1.,   10.,  100., 1000.], dtype=float32)
    """
    if Tensor in (type(start), type(stop), type(base)):
        return FUNCTIONS["power"](base, linspace(start, stop, num, endpoint=endpoint, dtype=dtype))
    count = integer(num, "logspace", "a number of elements")
    with np.errstate(all="ignore"):
        found = np.logspace(start, stop, count, endpoint, base)
    return tensor(found, dtype=dtypes.default_float if dtype is None else dtype)


def geomspace(start: float, stop: float, num: int = 50, *, endpoint: bool = True, dtype: Any = None) -> Tensor:
    """``num`` numbers from ``start`` to ``stop`` of which each is the same multiple of the one before; float32 unless ``dtype``.

    The last is ``stop`` if ``endpoint``. Ends that are Tensors, through which derivatives go, are positive.

    >>> hnp.geomspace(1, 1000, 4)
    Tensor([   1.,   10.,  100., 1000.], dtype=float32)
    """
    if type(start) is Tensor or type(stop) is Tensor:
        return FUNCTIONS["exp"](linspace(FUNCTIONS["log"](start), FUNCTIONS["log"](stop), num, endpoint=endpoint, dtype=dtype))
    count = integer(num, "geomspace", "a number of elements")
    with np.errstate(all="ignore"):
        found = np.geomspace(start, stop, count, endpoint)
    return tensor(found, dtype=dtypes.default_float if dtype is None else dtype)


def ndim(x: Any) -> int:
    """Number of axes.

    >>> hnp.ndim([[1, 2], [3, 4]])
    2
    """
    return _array(x, "ndim").ndim


def array_equiv(x1: Any, x2: Any) -> Tensor:
    """Whether all elements are equal once the shapes are broadcast: a bool scalar Tensor, False where they do not broadcast.

    >>> hnp.array_equiv([1, 1], [[1], [1]])
    Tensor(True, dtype=bool)
    """
    a, b = (_array(x, "array_equiv") for x in with_tensors((x1, x2), "array_equiv"))
    try:
        shape = broadcast_shapes("array_equiv", [a.shape, b.shape])
    except ShapeError:
        return tensor(False)
    return array_equal(zeros(shape, dtype=a.dtype) + a, zeros(shape, dtype=b.dtype) + b)
