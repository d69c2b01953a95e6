"""Functions that place elements and compute nothing."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, ShapeError
from hologram.ir.node import Node
from hologram.ir.symbolic import Expr, Int, bounds, is_static, prod
from hologram.numpy.along_axes.reductions import cumsum
from hologram.numpy.along_axes.searching import searchsorted
from hologram.numpy.arguments import alike, array, axes_of, axis_of, extent, permuted, reshaped, spread, wrap
from hologram.numpy.creation import arange
from hologram.numpy.elementwise.functions import FUNCTIONS
from hologram.numpy.indexing.picked import copied, small_array
from hologram.numpy.indexing.read import take_axis
from hologram.numpy.indexing.slices import sliced
from hologram.numpy.indexing.views import viewed
from hologram.numpy.shaping.joining import concat, joined
from hologram.numpy.shaping.shapes import broadcast_to, swapaxes
from hologram.primitives.indexing import gather
from hologram.primitives.movement import pad as pad_row
from hologram.support.user_lines import located
from hologram.trace.array_classes import known_array
from hologram.trace.checks import has_items, integer, items, shape_of
from hologram.trace.decisions import decided, least
from hologram.trace.operators import extent_node
from hologram.trace.recorder import cast_node, constant, plain, record
from hologram.trace.replayed import replayed
from hologram.trace.tensor import Tensor

__all__ = ["diagonal", "diff", "flip", "fliplr", "flipud", "repeat", "roll", "rot90", "tile"]


def flip(x: Any, /, axis: Any = None) -> Tensor:
    """Reverses the order along ``axis``, an integer or a tuple; along all axes for None. A view.

    >>> hnp.flip([[1, 2], [3, 4]], axis=1)
    Tensor([[2, 1],
            [4, 3]], dtype=int64)
    """
    node = flipped = array(x, "flip")
    for a in axes_of(axis, len(node.shape), "flip", lists=True):
        flipped = sliced(flipped, a, node.shape[a] - 1, -1, -1)
    return viewed(x, node, flipped)


def flipud(x: Any, /) -> Tensor:
    """Reverses the order of the rows, the first axis. A view.

    >>> hnp.flipud([[1, 2], [3, 4]])
    Tensor([[3, 4],
            [1, 2]], dtype=int64)
    """
    return flip(x, axis=0)


def fliplr(x: Any, /) -> Tensor:
    """Reverses the order of the columns, the second axis. A view. Raises AxisOutOfRange for a vector.

    >>> hnp.fliplr([[1, 2], [3, 4]])
    Tensor([[2, 1],
            [4, 3]], dtype=int64)
    """
    return flip(x, axis=1)


def rot90(x: Any, /, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """Rotates by ``k`` quarter turns, from the first of ``axes`` towards the second. A view.

    Raises ArgumentError unless ``axes`` are two different ones.

    >>> hnp.rot90([[1, 2], [3, 4]])
    Tensor([[2, 4],
            [1, 3]], dtype=int64)
    """
    if len(pair := items(axes, "rot90", "axes")) != 2:
        raise located(ArgumentError(f"rot90 takes two axes, not {len(pair)}"))
    a, b = pair
    ndim = len(array(x, "rot90").shape)
    if axis_of(a, ndim, "rot90") == axis_of(b, ndim, "rot90"):
        raise located(ArgumentError(f"rot90 takes two different axes, not {a} and {b}"))
    k = integer(k, "rot90", "a number of turns") % 4
    if k == 2:
        return flip(flip(x, axis=a), axis=b)
    if k == 0:
        return flip(x, axis=())
    return swapaxes(flip(x, axis=b), a, b) if k == 1 else flip(swapaxes(x, a, b), axis=b)


def _rolled(node: Node, shift: Int, axis: int) -> Node:
    n = node.shape[axis]
    if n == 0:
        return node
    if isinstance(n, int) and isinstance(shift, int):
        cut: Int = -shift % n
    else:
        cut = n - shift if (bounds(shift)[0] or 0) > 0 else -shift
    if cut == 0:
        return node
    return joined([sliced(node, axis, cut, n), sliced(node, axis, 0, cut)], axis)


def _rolled_by(node: Node, shift: Tensor, axis: int) -> Node:
    """As :func:`_rolled`, for a computed shift: the window of two copies that begins at the element that comes first."""
    by = array(shift, "roll")
    if by.shape or not by.dtype.is_integer:
        raise located(ArgumentError(f"roll: a shift is an integer, not {by.dtype}{list(by.shape)}"))
    n = node.shape[axis]
    if n == 0:
        return node
    first = -wrap(cast_node(by, dtypes.int64)) % wrap(extent_node(n, dtypes.int64))
    return record(gather, (joined([node, node], axis), array(first, "roll")), ((axis,), (n,), 0))


def _rolled_along(node: Node, shift: Any, axis: int) -> Node:
    if type(shift) is Tensor:
        return _rolled_by(node, shift, axis)
    low, high = bounds(shift) if isinstance(shift, Expr) else (None, None)
    if (low is not None and low > 0) or (high is not None and high <= 0):  # a symbolic shift whose sign is known
        return _rolled(node, plain(shift), axis)
    return _rolled(node, integer(shift, "roll", "a shift"), axis)


def _rolled_array(x: np.ndarray, shift: int, axis: int | None) -> np.ndarray:
    """As :func:`roll`, in NumPy."""
    along = x.reshape(-1) if axis is None else x
    a = 0 if axis is None else axis_of(axis, x.ndim, "roll")
    cut = -shift % along.shape[a] if along.size else 0
    before = (slice(None),) * a
    parts = along[(*before, slice(cut, None))], along[(*before, slice(cut))]
    return np.concatenate(parts, a).reshape(x.shape)


def roll(x: Any, /, shift: Any, axis: Any = None) -> Tensor:
    """Shifts elements along ``axis`` by ``shift`` places; what leaves at one end comes in at the other.

    ``axis`` may be a tuple, and ``shift`` too; for None the elements are shifted as if flattened. One shift is for all axes, several shifts of one
    axis add up. A shift may be computed, a scalar Tensor. The result, of the shape of ``x``, is new. Raises ShapeError where the numbers of shifts
    and axes differ otherwise.

    >>> hnp.roll([1, 2, 3, 4], 1)
    Tensor([4, 1, 2, 3], dtype=int64)
    >>> hnp.roll([[1, 2], [3, 4]], 1, axis=1)
    Tensor([[2, 1],
            [4, 3]], dtype=int64)
    """
    known = small_array(x) if type(x) is Tensor and type(shift) is int and (axis is None or type(axis) is int) else None
    if known is not None:
        return copied(_rolled_array(known, shift, axis), x._node.dtype)
    node = array(x, "roll")
    if axis is None:
        line = reshaped(node, (prod(node.shape),))
        for s in _paired(0, shift)[1]:
            line = _rolled_along(line, s, 0)
        return wrap(reshaped(line, node.shape))
    axes, shifts = _paired(axis, shift)
    for s, a in zip(shifts, axes, strict=True):
        node = _rolled_along(node, s, axis_of(a, len(node.shape), "roll"))
    return wrap(node)


def _paired(axis: Any, shift: Any) -> tuple[list[Any], list[Any]]:
    """Axes and their shifts, of which one stands for several."""
    axes, shifts = (list(v) if has_items(v) else [v] for v in (axis, shift))
    n = len(shifts) if len(axes) == 1 else len(axes)
    if len(shifts) not in (1, n):
        raise located(ShapeError(f"roll: {len(shifts)} shifts for {len(axes)} axes"))
    return axes * n if len(axes) == 1 else axes, shifts * n if len(shifts) == 1 else shifts


@replayed(1)
def repeat(x: Any, /, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None) -> Tensor:
    """Repeats each element along ``axis``, or of ``x`` flattened for None.

    ``repeats`` is a number, or one for each element, whose values must be known: or the extent of the result must be, ``total_repeat_length``. What
    is beyond it is left out, and the last element is repeated until it is full. Raises ArgumentError for anything else.

    >>> hnp.repeat([1, 2], 2)
    Tensor([1, 1, 2, 2], dtype=int64)
    >>> hnp.repeat([1, 2], [1, 3])
    Tensor([1, 2, 2, 2], dtype=int64)
    """
    node = array(x, "repeat")
    if axis is None:
        node, axis = reshaped(node, (prod(node.shape),)), 0
    a = axis_of(axis, len(node.shape), "repeat")
    shape = node.shape
    if isinstance(repeats, (int, np.integer)) and total_repeat_length is None:
        wide = spread(node, (*shape[: a + 1], extent(repeats, "repeat"), *shape[a + 1 :]), [i for i in range(len(shape) + 1) if i != a + 1])
        return wrap(reshaped(wide, (*shape[:a], shape[a] * int(repeats), *shape[a + 1 :])))
    if total_repeat_length is not None:
        return _repeated_to(wrap(node), repeats, a, total_repeat_length)
    counts = known_array(repeats, "repeat")
    if counts.dtype.kind not in "iu" or counts.ndim > 1:
        raise located(ArgumentError("repeat: repeats are an integer, or one for each element"))
    n = operator.index(shape[a])
    if counts.shape not in ((), (1,), (n,)):
        raise located(ShapeError(f"repeat: {counts.size} repeats for an axis of {n} elements"))
    if counts.size and counts.min() < 0:
        raise located(ArgumentError(f"repeat: {counts.min()} repeats"))
    return wrap(take_axis(node, np.repeat(np.arange(n), counts), a, "repeat"))


def _repeated_to(x: Tensor, repeats: Any, axis: int, length: int) -> Tensor:
    """Repeated elements, by computed numbers, of which so many are taken: element i of the result is that in whose run i falls."""
    counts = wrap(array(repeats, "repeat"))
    n = x.shape[axis]
    if not counts._aval()[1].is_integer or counts.shape not in ((), (1,), (n,)):
        raise located(ArgumentError("repeat: repeats are an integer, or one for each element"))
    ends = cumsum(broadcast_to(counts, (n,)))
    places = searchsorted(ends, arange(extent(length, "repeat")), side="right")
    return wrap(take_axis(array(x, "repeat"), FUNCTIONS["minimum"](places, n - 1), axis, "repeat"))


@replayed(1)
def tile(x: Any, repetitions: Any, /) -> Tensor:
    """Repeats the whole array along each axis, as many times as ``repetitions`` says: a number or a sequence.

    >>> hnp.tile([1, 2], 2)
    Tensor([1, 2, 1, 2], dtype=int64)
    >>> hnp.tile([1, 2], (2, 1))
    Tensor([[1, 2],
            [1, 2]], dtype=int64)
    """
    node = array(x, "tile")
    times: list[Any] = list(shape_of(repetitions, "tile"))
    shape: list[Any] = [1] * (len(times) - len(node.shape)) + list(node.shape)
    times = [1] * (len(shape) - len(times)) + times
    wide = [n for pair in zip(times, shape, strict=True) for n in pair]
    stretched = spread(reshaped(node, tuple(shape)), tuple(wide), range(1, len(wide), 2))
    return wrap(reshaped(stretched, tuple(t * n for t, n in zip(times, shape, strict=True))))


@replayed(1)
def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Differences of neighbours along ``axis``, taken ``n`` times.

    The extent shrinks by ``n``. ``prepend`` and ``append`` are put at the ends first: numbers, or arrays. Of bool whether neighbours differ.
    Raises ArgumentError for a negative ``n``.

    >>> hnp.diff([1, 4, 9, 16])
    Tensor([3, 5, 7], dtype=int64)
    >>> hnp.diff([1, 4, 9, 16], n=2)
    Tensor([2, 2], dtype=int64)
    """
    node = array(x, "diff")
    a = axis_of(axis, len(node.shape), "diff")
    if (n := integer(n, "diff", "a number of times")) < 0:
        raise located(ArgumentError(f"diff: differences are taken at least 0 times, not {n}"))
    if n == 0 and prepend is None and append is None:
        return viewed(x, node, node)
    result = concat([_at_end(p, node, a) for p in (prepend, node, append) if p is not None], axis=a)
    for _ in range(n):
        current = array(result, "diff")
        length = current.shape[a]
        if length == 0:
            break
        after, before = wrap(sliced(current, a, 1, length)), wrap(sliced(current, a, 0, length - 1))
        result = after != before if current.dtype is dtypes.bool_ else after - before
    return result


def _at_end(part: Any, node: Node, axis: int) -> Tensor:
    """What goes before or after ``node`` along ``axis``; a number stands for one element everywhere."""
    if part is node:
        return wrap(node)
    t = wrap(alike((part, wrap(node)), "diff")[0])
    return t if t.ndim else broadcast_to(t, (*node.shape[:axis], 1, *node.shape[axis + 1 :]))


def diagonal(x: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The diagonals of matrices, as the last axis: a read-only view.

    The matrices' rows lie along ``axis1``, their columns along ``axis2``; a positive ``offset`` is above the main diagonal. Raises ShapeError for
    fewer than two axes, ArgumentError for one axis named twice.

    >>> hnp.diagonal([[1, 2, 3], [4, 5, 6]])
    Tensor([1, 5], dtype=int64)
    >>> hnp.diagonal([[1, 2, 3], [4, 5, 6]], offset=1)
    Tensor([2, 6], dtype=int64)
    """
    node, last, offset = _matrices(x, offset, axis1, axis2)
    found = _diagonal_of(last, offset) if all(map(is_static, last.shape[-2:])) else _symbolic_diagonal_of(last, offset)
    return viewed(x, node, found, why="diagonal gives a read-only view, as NumPy's: assign by indices, x[i, i] = v, or copy it first")


def diagonal_values(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """As :func:`diagonal`, to compute with: no view, and one program for all sizes, where the step from one element to the next is no number."""
    _, last, offset = _matrices(x, offset, axis1, axis2)
    rows, columns = last.shape[-2:]
    is_empty = isinstance(rows, int) and isinstance(columns, int) and not -rows < offset < columns
    return wrap(_diagonal_of(last, offset) if is_empty else _symbolic_diagonal_of(last, offset))


def _matrices(x: Any, offset: int, axis1: int, axis2: int) -> tuple[Node, Node, int]:
    """``x`` as a node, the same with the axes of its matrices last, and the offset of the diagonal."""
    node = array(x, "diagonal")
    ndim = len(node.shape)
    if ndim < 2:
        raise located(ShapeError(f"diagonal takes at least two axes, not shape {list(node.shape)}"))
    down, across = axis_of(axis1, ndim, "diagonal"), axis_of(axis2, ndim, "diagonal")
    if down == across:
        raise located(ArgumentError(f"diagonal takes two axes, not {down} twice"))
    last = permuted(node, [*(i for i in range(ndim) if i not in (down, across)), down, across])
    return node, last, integer(offset, "diagonal", "an offset")


def _diagonal_of(matrices: Node, offset: int) -> Node:
    rows, columns = (operator.index(n) for n in matrices.shape[-2:])
    first = offset if offset >= 0 else -offset * columns
    length = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    flat = reshaped(matrices, (*matrices.shape[:-2], rows * columns))
    axis = len(flat.shape) - 1
    end = first + (length - 1) * (columns + 1) + 1
    return sliced(flat, axis, first, end, columns + 1) if length else sliced(flat, axis, 0, 0)


def _symbolic_diagonal_of(matrices: Node, offset: int) -> Node:
    """The first column of rows that are longer by one than the matrices': the step of a slice is a number."""
    *stack, rows, columns = matrices.shape
    axis = len(stack)
    first = offset if offset >= 0 else -offset * columns
    length = least(rows, columns - offset) if offset >= 0 else least(rows + offset, columns)
    if not decided(length - 1):
        return reshaped(sliced(sliced(matrices, axis, 0, 0), axis + 1, 0, 1), (*stack, 0))
    flat = reshaped(matrices, (*stack, rows * columns))
    filled = record(pad_row, (flat, constant(0, flat.dtype)), ((0,) * (axis + 1), (*(0,) * axis, columns)))
    longer = reshaped(sliced(filled, axis, first, first + length * (columns + 1)), (*stack, length, columns + 1))
    return reshaped(sliced(longer, axis + 1, 0, 1), (*stack, length))
