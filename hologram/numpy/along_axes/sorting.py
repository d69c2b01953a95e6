"""Sorting, and the order that sorting would give."""

from __future__ import annotations

from functools import partial
from typing import Any

from hologram.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from hologram.ir.op import Op
from hologram.ir.symbolic import prod
from hologram.numpy.along_axes.ordering import complex_order
from hologram.numpy.arguments import array, axis_of, reshaped, wrap
from hologram.numpy.indexing.read import take_along_axis
from hologram.primitives import sorting as rows
from hologram.support.user_lines import located
from hologram.trace.checks import has_items, integer, items
from hologram.trace.decisions import decided
from hologram.trace.recorder import record
from hologram.trace.tensor import Tensor

__all__ = ["argpartition", "argsort", "lexsort", "partition", "sort", "top_k"]


def _sorted(op: Op, x: Any, axis: int | None, descending: bool, stable: bool) -> Tensor:
    node = array(x, op.name)
    if axis is None:
        node, axis = reshaped(node, (prod(node.shape),)), 0
    axis = axis_of(axis, len(node.shape), op.name)
    if node.dtype.is_complex:
        order = complex_order(wrap(node), axis, bool(descending))
        return take_along_axis(wrap(node), order, axis) if op is rows.sort else order
    return wrap(record(op, (node,), (axis, bool(descending))))


def sort(x: Any, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """Sorts along ``axis``; ``x`` flattened for None. The result is new.

    Shape and type are those of ``x``. NaNs come last, or first if ``descending``, which NumPy does not have. Always stable. Complex numbers are
    sorted by their real parts, among equals by their imaginary parts.

    >>> hnp.sort([3, 1, 2])
    Tensor([1, 2, 3], dtype=int64)
    >>> hnp.sort([3.0, hnp.nan, 1.0], descending=True)
    Tensor([nan,  3.,  1.], dtype=float32)
    """
    return _sorted(rows.sort, x, axis, descending, stable)


def argsort(x: Any, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """Indices that sort ``x`` along ``axis``, of ``x`` flattened for None; int64. Equal elements keep their order.

    >>> hnp.argsort([30, 10, 20])
    Tensor([1, 2, 0], dtype=int64)
    """
    return _sorted(rows.argsort, x, axis, descending, stable)


def top_k(x: Any, k: int, axis: int = -1) -> tuple[Tensor, Tensor]:
    """The ``k`` largest elements along ``axis``, in descending order, and their indices; of equal elements that of the lowest index comes first.

    Both results have the shape of ``x`` with extent ``k`` along ``axis``; indices are int64. NaN counts as the largest. JAX's ``jax.lax.top_k``.
    Raises ShapeError for a scalar and for fewer than ``k`` elements, ArgumentError for a negative ``k``, DTypeError for complex numbers.

    >>> hnp.top_k([1, 5, 3, 5], 3)
    (Tensor([5, 5, 3], dtype=int64), Tensor([1, 3, 2], dtype=int64))
    """
    t = wrap(array(x, "top_k"))
    if t._aval()[1].is_complex:
        raise located(DTypeError(f"top_k: takes what has an order, not {t.dtype}"))
    a = axis_of(axis, t.ndim, "top_k")
    count = integer(k, "top_k", "k")
    if count < 0:
        raise located(ArgumentError(f"top_k: the {count} largest elements"))
    if isinstance(n := t.shape[a], int) and count > n:
        raise located(ShapeError(f"top_k: the {count} largest of {n} elements along axis {a}"))
    indices = argsort(t, a, descending=True)[(slice(None),) * a + (slice(count),)]
    return take_along_axis(t, indices, a), indices


def _checked_kth(x: Any, kth: Any, axis: int | None, what: str) -> Tensor:
    """``x`` as a Tensor, flattened for no axis, of which the places ``kth`` are known to exist."""
    node = array(x, what)
    n = prod(node.shape) if axis is None else node.shape[axis_of(axis, len(node.shape), what)]
    for k in map(partial(integer, what=what, role="kth"), items(kth, what) if has_items(kth) else [kth]):
        if not decided(n - k - 1 if k >= 0 else n + k):
            raise located(IndexOutOfRange(f"{what}: kth {k} is out of range for an axis of {n} elements"))
    return wrap(node)


def partition(x: Any, kth: Any, /, axis: int | None = -1) -> Tensor:
    """Puts the ``kth`` elements, an integer or a sequence of them, where sorting would. Sorts the whole axis, which does that too.

    Raises IndexOutOfRange for a ``kth`` that the axis has not, ArgumentError for what is no integer, TracedValueError for one that is traced.

    >>> hnp.partition([3, 1, 2], 1)
    Tensor([1, 2, 3], dtype=int64)
    """
    return sort(_checked_kth(x, kth, axis, "partition"), axis)


def argpartition(x: Any, kth: Any, /, axis: int | None = -1) -> Tensor:
    """Indices that :func:`partition` ``x`` along ``axis``: those of :func:`argsort`. Raises what :func:`partition` raises.

    >>> hnp.argpartition([30, 10, 20], 1)
    Tensor([1, 2, 0], dtype=int64)
    """
    return argsort(_checked_kth(x, kth, axis, "argpartition"), axis)


def lexsort(keys: Any, /, axis: int = -1) -> Tensor:
    """Indices that sort by several keys along ``axis``: by the last one, among equals by the one before it, and so on; of the shape of a key.

    Raises ShapeError for keys of different shapes or without axes, ArgumentError for none.

    >>> hnp.lexsort(([2, 1, 3], [1, 1, 0]))
    Tensor([2, 1, 0], dtype=int64)
    """
    values = [wrap(array(key, "lexsort")) for key in items(keys, "lexsort", "keys")]
    if not values:
        raise located(ArgumentError("lexsort takes at least one key"))
    if any(v.ndim == 0 or v.shape != values[0].shape for v in values):
        raise located(ShapeError(f"lexsort takes keys of one shape, with axes, not of shapes {[list(v.shape) for v in values]}"))
    a = axis_of(axis, values[0].ndim, "lexsort")
    order = argsort(values[0], a)
    for key in values[1:]:
        order = take_along_axis(order, argsort(take_along_axis(key, order, a), a), a)
    return order
