"""Arrays changed in extent or built from parts: deletion, insertion, nested blocks, diagonal matrices."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from hologram.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError, TracedValueError
from hologram.ir.symbolic import Expr, prod
from hologram.numpy.along_axes.sorting import argsort
from hologram.numpy.arguments import array, array_as, as_tensor, axis_of, wrap
from hologram.numpy.arrangement.manipulation import diagonal, tile
from hologram.numpy.arrangement.padding import pad
from hologram.numpy.creation import arange, eye, zeros
from hologram.numpy.elementwise.functions import astype, where
from hologram.numpy.indexing.read import take
from hologram.numpy.indexing.starts import clamped
from hologram.numpy.shaping.joining import concat
from hologram.numpy.shaping.shapes import expand_dims, moveaxis
from hologram.support.user_lines import located
from hologram.trace.array_classes import known_array
from hologram.trace.checks import choice, integer, shape_of
from hologram.trace.tensor import Tensor

__all__ = ["block", "delete", "diag", "diagflat", "insert", "resize", "trim_zeros"]


def _flat(x: Any, axis: int | None, what: str) -> tuple[Tensor, int]:
    t = as_tensor(x, what)
    return (t.reshape(-1), 0) if axis is None else (t, axis_of(axis, t.ndim, what))


def delete(x: Any, obj: Any, axis: int | None = None) -> Tensor:
    """``x`` without the elements along ``axis`` that ``obj`` names; of ``x`` flattened for None.

    ``obj`` is an index, several, a slice or a mask, whose values must be known. The result is new. Raises IndexOutOfRange, ShapeError for masks of
    another length, DTypeError for indices that are not integers, TracedValueError for traced ones.

    >>> hnp.delete([10, 20, 30, 40], [1, 3])
    Tensor([10, 30], dtype=int64)
    """
    t, a = _flat(x, axis, "delete")
    n = t.shape[a]
    places = _places(obj, n, n - 1, "delete")
    if isinstance(places, np.ndarray) and places.dtype.kind == "b" and places.shape != (n,):
        raise located(ShapeError(f"delete: a mask of shape {list(places.shape)} for an axis of extent {n}"))
    kept = np.delete(np.arange(n), places)
    return take(t, kept, axis=a)


def _places(obj: Any, n: Any, last: Any, what: str) -> Any:
    """Known indices from -``n`` to ``last``, a slice or a mask, for NumPy.

    Raises DTypeError for arrays of others, IndexOutOfRange, and TracedValueError while tracing.
    """
    if isinstance(obj, slice):
        return obj
    known = obj._view(f"{what}, whose result's size depends on the indices,") if type(obj) is Tensor else known_array(obj, what)
    if known.dtype.kind not in "iub" and known.size:
        raise located(DTypeError(f"{what}: indices are integers, not {known.dtype}"))
    if known.dtype.kind in "iu" and known.size and (known.min() < -n or known.max() > last):
        raise located(IndexOutOfRange(f"{what}: an index beyond an axis of extent {n}"))
    return known.astype(np.intp) if known.size == 0 else known


def insert(x: Any, obj: Any, values: Any, axis: int | None = None) -> Tensor:
    """``x`` with ``values`` inserted before the indices ``obj`` along ``axis``; of ``x`` flattened for None.

    ``obj`` is an index, several, a slice or a mask. Before one index all ``values`` are inserted, as NumPy has it: by a plain index those along
    their first axis, by a list of one those along ``axis``. The result is new, of the type of ``x``. Known indices out of range raise
    IndexOutOfRange, traced ones are clamped. Raises DTypeError for indices that are not integers, TracedValueError for a traced mask, by whose
    values the result's size would depend.

    >>> hnp.insert([10, 20, 30], 1, 99)
    Tensor([10, 99, 20, 30], dtype=int64)
    """
    t, a = _flat(x, axis, "insert")
    n = t.shape[a]
    at: Any
    try:
        at = np.arange(n)[obj] if isinstance(obj, slice) else _places(obj, n, n, "insert")
    except TracedValueError:
        if type(obj) is not Tensor or obj.ndim > 1 or obj.dtype.kind not in "iu":
            raise
        at = wrap(clamped(array(obj, "insert"), n, 0))
    if at.dtype == np.bool_:  # a mask, which may be shorter or longer: its last place may be behind the last element
        if at.ndim != 1 or at[n + 1 :].any():
            raise located(ArgumentError(f"insert: a mask of shape {list(at.shape)} for an axis of extent {n}"))
        at = np.flatnonzero(at)
    at = at.reshape(-1) if type(at) is Tensor else np.atleast_1d(at)
    new = wrap(array_as(values, t._aval()[1], "insert"))
    if at.size == 1 and new.ndim:  # as many as there are values
        new = new if axis is None else new.reshape((*[1] * (t.ndim - new.ndim), *new.shape))
        if axis is not None and np.ndim(obj) == 0 and not isinstance(obj, slice):
            new = moveaxis(new, 0, a)
        at = at.repeat(new.shape[a])
    shape = (*t.shape[:a], at.size, *t.shape[a + 1 :])
    spread = zeros(shape, dtype=t.dtype) + new
    order: Any
    if type(at) is Tensor:  # what is inserted before an element goes ahead of it, in the order of the indices
        order = argsort(concat([2 * arange(n) + 1, 2 * at]))
    else:
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
        t = as_tensor(arrays, "block")
        return t.reshape((*[1] * (widest - t.ndim), *t.shape))
    return concat([_block(a, depth - 1, widest) for a in arrays], axis=-depth)


def resize(x: Any, new_shape: Any) -> Tensor:
    """The elements of ``x`` in C order, repeated or cut off to fill ``new_shape``; zeros where ``x`` has none.

    >>> hnp.resize([1, 2, 3], (2, 2))
    Tensor([[1, 2],
            [3, 1]], dtype=int64)
    """
    t, shape = as_tensor(x, "resize").reshape(-1), shape_of(new_shape, "resize")
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
    t = x if type(x) is Tensor else as_tensor(x, "trim_zeros")
    if t.ndim != 1:
        raise located(ShapeError(f"trim_zeros takes one axis, not shape {list(t.shape)}"))
    sides = choice(trim, "trim_zeros", "trim", ("f", "b", "fb", "bf", "F", "B", "FB", "BF")).lower()
    filled = np.flatnonzero(t._view("trim_zeros, whose result's size depends on the values,"))
    if filled.size == 0:
        return t[:0]
    return t[int(filled[0]) if "f" in sides else 0 : int(filled[-1]) + 1 if "b" in sides else t.shape[0]]


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
    t = as_tensor(x, "diag")
    if t.ndim == 2:
        return diagonal(x, offset=k)
    if t.ndim != 1:
        raise located(ShapeError(f"diag takes one or two axes, not shape {list(t.shape)}"))
    k = integer(k, "diag", "a diagonal")
    n = t.shape[0] + abs(k)
    if isinstance(n, Expr):
        along_rows = pad(t, (-min(k, 0), max(k, 0)))
        return where(astype(eye(n, n, k=k), "bool"), expand_dims(along_rows, axis=-1), zeros((), dtype=t.dtype))
    rows = np.arange(t.shape[0])
    return zeros((n, n), dtype=t.dtype).at[rows - min(k, 0), rows + max(k, 0)].set(t)


def diagflat(x: Any, /, k: int = 0) -> Tensor:
    """Matrix with the elements of ``x`` flattened on its ``k``-th diagonal, zeros beside it.

    >>> hnp.diagflat([[1, 2]])
    Tensor([[1, 0],
            [0, 2]], dtype=int64)
    """
    return diag(as_tensor(x, "diagflat").reshape(-1), k)
