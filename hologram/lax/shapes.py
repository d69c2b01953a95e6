"""Shapes under the names and arguments of ``jax.lax``: extents and axes are known integers, and nothing broadcasts by itself."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

from hologram import numpy as hnp
from hologram.errors import ArgumentError, AxisOutOfRange, ShapeError
from hologram.ir.symbolic import Int
from hologram.numpy.arguments import array, axes_of, axis_of, element_type, permuted, reshaped, spread, wrap
from hologram.support.user_lines import located
from hologram.trace.checks import integer, items, shape_of
from hologram.trace.recorder import cast_node
from hologram.trace.tensor import Tensor
from hologram.transform.nodes import apart, padded, sliced

__all__ = [
    "broadcast", "broadcast_in_dim", "broadcast_like", "broadcast_to_rank", "broadcasted_iota", "collapse", "concatenate", "expand_dims", "full",
    "full_like", "index_in_dim", "index_take", "iota", "pad", "reshape", "rev",
    "shape_as_value", "slice", "slice_in_dim", "split", "squeeze", "tile", "transpose",
]  # fmt: skip


def integers(values: Any, what: str, role: str) -> list[int]:
    """A sequence of known integers. Raises ArgumentError for others."""
    return [integer(n, what, role) for n in items(values, what, "integers")]


# --- broadcasting ----------------------------------------------------------------------------------------------------


def broadcast(operand: Any, sizes: Sequence[int]) -> Tensor:
    """``operand`` repeated along new leading axes of the extents ``sizes``.

    >>> hg.lax.broadcast([1, 2], (2,))
    Tensor([[1, 2],
            [1, 2]], dtype=int64)
    """
    t = hnp.asarray(operand)
    return hnp.broadcast_to(t, (*shape_of(sizes, "broadcast"), *t.shape))


def broadcast_in_dim(operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Tensor:
    """``operand`` with its axes at ``broadcast_dimensions`` of ``shape``, stretched along the others and where its extent is 1.

    Raises ShapeError where the axes do not ascend or an extent does not fit.

    >>> hg.lax.broadcast_in_dim([1, 2], (2, 3), (0,))
    Tensor([[1, 1, 1],
            [2, 2, 2]], dtype=int64)
    """
    node, extents = array(operand, "broadcast_in_dim"), shape_of(shape, "broadcast_in_dim")
    places = integers(broadcast_dimensions, "broadcast_in_dim", "an axis")
    ascending = all(a < b for a, b in zip((-1, *places), (*places, len(extents)), strict=True))
    if len(places) != len(node.shape) or not ascending or any(n not in (1, extents[d]) for n, d in zip(node.shape, places, strict=True)):
        raise located(ShapeError(f"broadcast_in_dim: the axes of shape {list(node.shape)} do not lie at {places} of shape {list(extents)}"))
    return wrap(spread(node, extents, places))


def broadcast_like(x: Any, y: Any) -> Tensor:
    """``x`` broadcast to the shape of ``y``. Raises ShapeError where it does not stretch to it.

    >>> hg.lax.broadcast_like(1.5, hnp.zeros(2))
    Tensor([1.5, 1.5], dtype=float32)
    """
    return hnp.broadcast_to(x, hnp.shape(y))


def broadcast_to_rank(x: Any, rank: int) -> Tensor:
    """``x`` with leading axes of extent 1, so that it has ``rank`` axes. Raises ShapeError where it has more.

    >>> hg.lax.broadcast_to_rank([1, 2], 3).shape
    (1, 1, 2)
    """
    t = hnp.asarray(x)
    if t.ndim > rank:
        raise located(ShapeError(f"broadcast_to_rank: shape {list(t.shape)} has more than {rank} axes"))
    return t.reshape((*[1] * (rank - t.ndim), *t.shape))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """An array of ``shape`` filled with one value; as ``hologram.numpy.full``.

    >>> hg.lax.full((2,), 7.0)
    Tensor([7., 7.], dtype=float32)
    """
    return hnp.full(shape, fill_value, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """An array of the shape and type of ``x``, or those given, filled with one value.

    >>> hg.lax.full_like(np.int8([1, 2]), 7)
    Tensor([7, 7], dtype=int8)
    """
    return hnp.full_like(x, fill_value, dtype, shape=shape)


def iota(dtype: Any, size: int) -> Tensor:
    """The integers from 0 up: a vector of ``size`` elements of ``dtype``.

    >>> hg.lax.iota(np.int32, 3)
    Tensor([0, 1, 2], dtype=int32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> Tensor:
    """The integers from 0 up along the axis ``dimension`` of an array of ``shape``.

    >>> hg.lax.broadcasted_iota(np.int32, (2, 3), 1)
    Tensor([[0, 1, 2],
            [0, 1, 2]], dtype=int32)
    """
    extents = shape_of(shape, "broadcasted_iota")
    axis = axis_of(dimension, len(extents), "broadcasted_iota")
    count = hnp.arange(extents[axis], dtype="int64").astype(element_type(dtype).np)
    return wrap(spread(array(count, "iota"), extents, [axis]))


# --- axes ------------------------------------------------------------------------------------------------------------


def reshape(operand: Any, new_sizes: Any, dimensions: Sequence[int] | None = None) -> Tensor:
    """The elements, in C order of the axes ``dimensions``, in an array of another shape. Raises ShapeError for another number of elements.

    >>> hg.lax.reshape([[1, 2], [3, 4]], (4,), dimensions=(1, 0))
    Tensor([1, 3, 2, 4], dtype=int64)
    """
    t = operand if dimensions is None else transpose(operand, dimensions)
    return hnp.reshape(t, shape_of(new_sizes, "reshape"))


def transpose(operand: Any, permutation: Sequence[int]) -> Tensor:
    """The axes in another order: axis i of the result is axis ``permutation[i]``. Raises ShapeError where that does not name each axis once.

    >>> hg.lax.transpose(hnp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return hnp.permute_dims(operand, items(permutation, "transpose", "axes"))


def squeeze(array: Any, dimensions: Sequence[int]) -> Tensor:
    """Without the axes ``dimensions``, whose extents are 1. Raises ShapeError where one is not.

    >>> hg.lax.squeeze(hnp.zeros((1, 3, 1)), (0,)).shape
    (3, 1)
    """
    return hnp.squeeze(array, tuple(integers(dimensions, "squeeze", "an axis")))


def expand_dims(array: Any, dimensions: Sequence[int]) -> Tensor:
    """With new axes of extent 1 at ``dimensions`` of the result.

    >>> hg.lax.expand_dims(hnp.zeros((2, 3)), (0, 2)).shape
    (1, 2, 1, 3)
    """
    return hnp.expand_dims(array, tuple(integers(dimensions, "expand_dims", "an axis")))


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Tensor:
    """The axes from ``start_dimension`` up to ``stop_dimension``, or to the last, as one. Raises AxisOutOfRange for axes that are not there.

    >>> hg.lax.collapse(hnp.zeros((2, 3, 4, 5)), 1, 3).shape
    (2, 12, 5)
    """
    t = hnp.asarray(operand)
    low, high, _ = builtins.slice(start_dimension, stop_dimension).indices(t.ndim)
    if low > high or (stop_dimension or 0) > t.ndim:
        raise located(AxisOutOfRange(f"collapse: axes {start_dimension} to {stop_dimension} of an array with {t.ndim} axes"))
    return t.reshape((*t.shape[:low], math.prod(t.shape[low:high]), *t.shape[high:]))


def rev(operand: Any, dimensions: Sequence[int]) -> Tensor:
    """The elements in reverse order along the axes ``dimensions``.

    >>> hg.lax.rev([[1, 2], [3, 4]], (1,))
    Tensor([[2, 1],
            [4, 3]], dtype=int64)
    """
    axes = tuple(integers(dimensions, "rev", "an axis"))
    return hnp.flip(operand, axis=axes) if axes else hnp.asarray(operand)


def concatenate(operands: Sequence[Any], dimension: int) -> Tensor:
    """Arrays one after the other along the axis ``dimension``.

    >>> hg.lax.concatenate([hnp.zeros((2, 1)), hnp.zeros((2, 3))], 1).shape
    (2, 4)
    """
    return hnp.concat(list(operands), axis=dimension)


def tile(operand: Any, reps: Sequence[int]) -> Tensor:
    """The whole array repeated along each axis. Raises ShapeError for other than one number an axis.

    >>> hg.lax.tile([1, 2], (2,))
    Tensor([1, 2, 1, 2], dtype=int64)
    """
    if len(reps) != hnp.ndim(operand):
        raise located(ShapeError(f"tile: {len(reps)} repetitions for {hnp.ndim(operand)} axes"))
    return hnp.tile(operand, tuple(reps))


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Tensor]:
    """Parts of the extents ``sizes`` along an axis. Raises ShapeError where these do not add up to it.

    >>> hg.lax.split(hnp.arange(5), (2, 3))
    [Tensor([0, 1], dtype=int64), Tensor([2, 3, 4], dtype=int64)]
    """
    t = hnp.asarray(operand)
    a, extents = axis_of(axis, t.ndim, "split"), integers(sizes, "split", "a size")
    if any(n < 0 for n in extents) or sum(extents) != t.shape[a]:
        raise located(ShapeError(f"split: sizes {extents} of an axis of extent {t.shape[a]}"))
    ends = [sum(extents[: i + 1]) for i in range(len(extents))]
    return [slice_in_dim(t, end - n, end, axis=a) for n, end in zip(extents, ends, strict=True)]


# --- parts -----------------------------------------------------------------------------------------------------------


def slice(operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None) -> Tensor:
    """The elements from ``start_indices`` up to ``limit_indices``, without these, every ``strides``-th along each axis.

    Raises ShapeError for other than one number an axis, for bounds out of range, and for strides below 1.

    >>> hg.lax.slice(hnp.arange(10), (1,), (8,), (3,))
    Tensor([1, 4, 7], dtype=int64)
    """
    node = array(operand, "slice")
    start, stop = list(start_indices), list(limit_indices)
    step = [1] * len(node.shape) if strides is None else integers(strides, "slice", "a stride")
    fits = len(start) == len(stop) == len(step) == len(node.shape)
    known: Any = [t for t in zip(start, stop, node.shape, strict=False) if all(isinstance(n, int) for n in t)]
    if not fits or any(not 0 <= a <= b <= n for a, b, n in known) or any(s < 1 for s in step):
        raise located(ShapeError(f"slice: from {start} to {stop} in steps of {step} of shape {list(node.shape)}"))
    return wrap(sliced(node, start, stop, step))


def slice_in_dim(operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0) -> Tensor:
    """:func:`slice` along one axis; None stands for its ends, and negative bounds count from the end.

    >>> hg.lax.slice_in_dim(hnp.arange(5), 1, -1)
    Tensor([1, 2, 3], dtype=int64)
    """
    t = hnp.asarray(operand)
    a = axis_of(axis, t.ndim, "slice_in_dim")
    n = t.shape[a]
    low, high = (end if v is None else v + n if v < 0 else v for v, end in ((start_index, 0), (limit_index, n)))
    bounds: list[list[Int]] = [[0] * t.ndim, list(t.shape), [1] * t.ndim]
    for values, v in zip(bounds, (low, high, stride), strict=True):
        values[a] = v
    return slice(t, *bounds)  # type: ignore[arg-type]


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Tensor:
    """The elements at one index of an axis, which stays with extent 1 if ``keepdims``. Raises ShapeError for an index out of range.

    >>> hg.lax.index_in_dim([[1, 2], [3, 4]], -1)
    Tensor([[3, 4]], dtype=int64)
    """
    t = hnp.asarray(operand)
    a = axis_of(axis, t.ndim, "index_in_dim")
    i, n = integer(index, "index_in_dim", "an index"), t.shape[a]
    if not -n <= i < n:
        raise located(ShapeError(f"index_in_dim: index {i} of an axis of extent {n}"))
    found = slice_in_dim(t, i % n, i % n + 1, axis=a)
    return found if keepdims else hnp.squeeze(found, a)


def index_take(src: Any, idxs: Any, axes: Sequence[int]) -> Tensor:
    """The elements at ``idxs``, one array of indices for each of ``axes``: the indices' axes come first, the other axes after them.

    >>> hg.lax.index_take([[1, 2], [3, 4]], (np.array([0, 1, 1]),), (1,))
    Tensor([[1, 3],
            [2, 4],
            [2, 4]], dtype=int64)
    """
    t = hnp.asarray(src)
    chosen = axes_of(tuple(axes), t.ndim, "index_take")
    moved = hnp.moveaxis(t, tuple(axes), tuple(range(len(chosen))))
    return moved[tuple(hnp.asarray(i) for i in idxs)]


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Tensor:
    """Elements put amid ``padding_value``: for each axis how many before, behind, and between two elements; negative numbers cut off.

    Raises ShapeError for other than one triple an axis, ArgumentError for a value that is no scalar and for numbers below 0 in between.

    >>> hg.lax.pad([1, 2], 0, [(1, 0, 1)])
    Tensor([0, 1, 0, 2], dtype=int64)
    """
    node = array(operand, "pad")
    config = [integers(t, "pad", "a width") for t in items(padding_config, "pad", "triples")]
    if len(config) != len(node.shape) or any(len(t) != 3 for t in config):
        raise located(ShapeError(f"pad: {list(padding_config)} is not one triple for each axis of shape {list(node.shape)}"))
    value = cast_node(array(padding_value, "pad"), node.dtype)
    if value.shape or any(inner < 0 for _, _, inner in config):
        raise located(ArgumentError("pad takes a scalar, and widths from 0 up between elements"))
    for axis, (_, _, inner) in enumerate(config):
        node = apart(node, axis, inner + 1, value)
    return wrap(cut_or_padded(node, [t[0] for t in config], [t[1] for t in config], value))


def cut_or_padded(node: Any, low: Sequence[Int], high: Sequence[Int], value: Any = None) -> Any:
    """``node`` with so many more elements before and behind each axis, of zeros or of ``value``; where a width is negative, with so many less."""
    wide = padded(node, [_more(n) for n in low], [_more(n) for n in high], value)
    start = [-n if isinstance(n, int) and n < 0 else 0 for n in low]
    stop = [m + n if isinstance(n, int) and n < 0 else m for m, n in zip(wide.shape, high, strict=True)]
    if any(isinstance(a, int) and isinstance(b, int) and b < a for a, b in zip(start, stop, strict=True)):
        raise located(ShapeError(f"padding {list(zip(low, high, strict=True))} cuts off more than there is of shape {list(node.shape)}"))
    return sliced(wide, start, stop)


def _more(n: Int) -> Int:
    return max(n, 0) if isinstance(n, int) else n


def in_order(t: Tensor, order: Sequence[int], shape: Any = None) -> Tensor:
    """The axes in another order, and then another shape."""
    node = permuted(array(t, "transpose"), order)
    return wrap(node if shape is None else reshaped(node, tuple(shape)))


def shape_as_value(shape: Sequence[Any]) -> Tensor:
    """The extents of a shape as a vector of integers.

    >>> hg.lax.shape_as_value((2, 3))
    Tensor([2, 3], dtype=int64)
    """
    return hnp.stack([hnp.asarray(n) for n in shape]) if len(shape) else hnp.zeros(0, dtype="int64")
