"""Reading parts of an array: basic indexing, gathers along constant or traced indices, and masks whose values are known."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from hologram.numpy.arguments import array, axis_of, extent_node, permuted, reshaped, spread, wrap
from hologram.numpy.creation import broadcast_common, count
from hologram.primitives import elementwise as ew
from hologram.primitives.indexing import take as take_row
from hologram.primitives.movement import slice_, slice_extent
from hologram.symbolic import Expr, Int, bounds, prod
from hologram.trace.apply import array_node
from hologram.trace.node import Node
from hologram.trace.recorder import assume, cast_node, constant, located, record
from hologram.trace.tensor import Tensor

__all__ = ["compress", "extract", "take", "take_along_axis"]


def sliced(node: Node, axis: int, start: Int, stop: Int, step: int = 1) -> Node:
    """``node`` with ``start:stop:step`` read along ``axis``; a stop of -1 is before the first element."""
    shape = node.shape
    return _slices(node, [(start, stop, step) if i == axis else (0, n, 1) for i, n in enumerate(shape)])


def _slices(node: Node, triples: list[tuple[Int, Int, int]]) -> Node:
    if all(s == 1 and a == 0 and b == n for (a, b, s), n in zip(triples, node.shape, strict=True)):
        return node
    return record(slice_, (node,), tuple(zip(*triples, strict=True)))


# --- basic indexing --------------------------------------------------------------------------------------------------


def index(x: Tensor, key: Any) -> Tensor:
    """``x[key]``: integers, slices, None, Ellipsis, integer arrays, and masks whose values are known."""
    node = array(x, "indexing")
    parts = list(key) if isinstance(key, tuple) else [key]
    parts = [_normal(p) for p in parts]
    if any(isinstance(p, np.ndarray) and p.dtype == np.bool_ for p in parts):
        parts = [q for p in parts for q in (np.nonzero(p) if isinstance(p, np.ndarray) and p.dtype == np.bool_ else (p,))]
    parts = _complete(parts, len(node.shape))
    triples: list[tuple[Int, Int, int]] = []
    shape: list[Int] = []  # after slicing, with None's axes; integers leave none
    arrays: dict[int, Any] = {}  # by axis of that shape
    for part in parts:
        if part is None:
            shape.append(1)
            continue
        axis = len(triples)
        n = node.shape[axis]
        if isinstance(part, slice):
            triples.append(_resolve(part, n))
            shape.append(slice_extent(*triples[-1]))
        elif isinstance(part, int):
            i = _in_range(part, n, axis)
            triples.append((i, i + 1, 1))
        else:
            triples.append((0, n, 1))
            arrays[len(shape)] = part
            shape.append(n)
    node = reshaped(_slices(node, triples), tuple(shape))
    return wrap(_gathered(node, arrays) if arrays else node)


def _normal(part: Any) -> Any:
    """One part of an index as int, slice, None, Ellipsis, a NumPy array or an integer Tensor."""
    if part is None or part is Ellipsis or isinstance(part, slice) or type(part) is int:
        return part
    if isinstance(part, (bool, np.bool_)):
        raise located(ArgumentError("indexing with a single bool is not supported: use where"))
    if type(part) is Tensor:
        return _tensor_part(part)
    if isinstance(part, np.integer):
        return int(part)
    if isinstance(part, (list, np.ndarray)):
        values = np.asarray(part)
        values = values.astype(np.int64) if values.size == 0 and isinstance(part, list) else values
        if values.dtype.kind in "iu" or values.dtype == np.bool_:
            return values
        raise located(DTypeError(f"an index array holds integers or bools, not {values.dtype}"))
    try:
        return operator.index(part)
    except TypeError:
        raise located(ArgumentError(f"an index is an integer, a slice, None, Ellipsis or an integer array, not {type(part).__name__}")) from None


def _tensor_part(part: Tensor) -> Any:
    _, dtype = part._aval()
    if dtype is dtypes.bool_:
        return part._view("indexing with a mask, whose result's size depends on its values,")
    if not dtype.is_integer:
        raise located(DTypeError(f"an index array holds integers or bools, not {dtype}"))
    return part


def _complete(parts: list[Any], ndim: int) -> list[Any]:
    """``parts`` with the Ellipsis, or the end, filled up with whole slices."""
    used = sum(p is not None and p is not Ellipsis for p in parts)
    if used > ndim:
        raise located(IndexOutOfRange(f"{used} indices for an array with {ndim} axes"))
    places = [i for i, p in enumerate(parts) if p is Ellipsis]
    if len(places) > 1:
        raise located(IndexOutOfRange("an index has at most one Ellipsis"))
    at = places[0] if places else len(parts)
    return [*parts[:at], *[slice(None)] * (ndim - used), *parts[at + 1 :]]


def _in_range(i: int, n: Int, axis: int) -> Int:
    if isinstance(n, Expr):
        assume(n - (i + 1) if i >= 0 else n + i)
        return i if i >= 0 else n + i
    if not -n <= i < n:
        raise located(IndexOutOfRange(f"index {i} is out of range for axis {axis} of extent {n}"))
    return i + n if i < 0 else i


def _resolve(part: slice, n: Int) -> tuple[Int, Int, int]:
    """``part`` on an axis of extent ``n`` as (start, stop, step) with the stop clamped so that no step leaves the axis."""
    step = 1 if part.step is None else operator.index(part.step)
    if step == 0:
        raise located(ShapeError("a slice's step cannot be 0"))
    if isinstance(n, Expr) or isinstance(part.start, Expr) or isinstance(part.stop, Expr):
        return _resolve_symbolic(part, n, step)
    start, stop, step = part.indices(n)
    return (start, max(start, stop), step) if step > 0 else (start, min(start, stop), step)


def _resolve_symbolic(part: slice, n: Int, step: int) -> tuple[Int, Int, int]:
    """As :func:`_resolve`; that the bounds lie on the axis is assumed, and checked on every call."""
    first: Int = 0 if step > 0 else n - 1
    last: Int = n if step > 0 else -1

    def end(value: Any, default: Int) -> Int:
        if value is None:
            return default
        value = value if isinstance(value, Expr) else operator.index(value)
        low, _ = bounds(value)
        return n + value if low is not None and low < 0 else value

    start, stop = end(part.start, first), end(part.stop, last)
    low, high, lowest, highest = (start, stop, 0, n) if step > 0 else (stop, start, -1, n - 1)
    for slack in (low - lowest, high - low, highest - high):
        assume(slack)
    return start, stop, step


# --- gathers ---------------------------------------------------------------------------------------------------------


def _gathered(node: Node, arrays: dict[int, Any]) -> Node:
    """NumPy's advanced indexing: index arrays broadcast together; their axes stay where they are if they are neighbours, else come first."""
    axes = list(arrays)
    first = axes[0]
    if axes != list(range(first, first + len(axes))):
        node = permuted(node, [*axes, *[a for a in range(len(node.shape)) if a not in arrays]])
        first = 0
    if len(axes) == 1:
        return take_axis(node, arrays[axes[0]], first, "indexing")
    extents = node.shape[first : first + len(axes)]
    flat: Any = 0
    for part, n in zip(arrays.values(), extents, strict=True):
        flat = flat * n + _wrapped(part, n)
    merged = reshaped(node, (*node.shape[:first], prod(extents), *node.shape[first + len(axes) :]))
    return take_axis(merged, flat, first, "indexing")


def _wrapped(part: Any, n: Int) -> Any:
    """Indices of one axis, none negative; those that are known are checked."""
    if isinstance(part, np.ndarray):
        return _checked(part, n, "indexing")
    return wrap(_clamped(array(part, "indexing"), n))


def _checked(indices: np.ndarray, n: Int, what: str) -> np.ndarray:
    if not isinstance(n, int):
        raise located(ShapeError(f"{what}: constant indices along an axis of symbolic extent {n}: pass the indices as an argument"))
    wide = indices.astype(np.int64)
    if wide.size and not (-n <= wide.min() and wide.max() < n):
        worst = wide.min() if wide.min() < -n else wide.max()
        raise located(IndexOutOfRange(f"{what}: index {worst} is out of range for an axis of extent {n}"))
    return np.where(wide < 0, wide + n, wide)


def _clamped(indices: Node, n: Int) -> Node:
    """Computed indices: negative ones count from the end, and what is still out of range is moved to the nearest element."""
    wide = cast_node(indices, dtypes.int64)
    extent = extent_node(n, dtypes.int64)
    zero, one = constant(0, dtypes.int64), constant(1, dtypes.int64)
    if indices.dtype.kind == "i":
        wide = record(ew.select, (record(ew.lt, (wide, zero)), record(ew.add, (wide, extent)), wide))
        wide = record(ew.max_, (wide, zero))
    return record(ew.min_, (wide, record(ew.sub, (extent, one))))


def take_axis(node: Node, indices: Any, axis: int, what: str) -> Node:
    """``node`` at ``indices`` (a NumPy array, checked; or a Tensor, clamped) along ``axis``."""
    n = node.shape[axis]
    if isinstance(indices, np.ndarray):
        return record(take_row, (node, array_node(_checked(indices, n, what))), (axis,))
    index_node = array(indices, what)
    if not index_node.dtype.is_integer:
        raise located(DTypeError(f"{what}: indices are integers, not {index_node.dtype}"))
    return record(take_row, (node, _clamped(index_node, n)), (axis,))


def take(x: Any, indices: Any, /, *, axis: int | None = None, mode: str = "clip") -> Tensor:
    """``x`` at ``indices`` along ``axis`` (of ``x`` flattened for None). Constant indices out of range raise; computed ones are clamped."""
    node = array(x, "take")
    if axis is None:
        node, axis = reshaped(node, (prod(node.shape),)), 0
    a = axis_of(axis, len(node.shape), "take")
    if mode not in ("clip", "raise"):
        raise located(ArgumentError(f"take: mode is 'clip', not {mode!r}"))
    known = indices if type(indices) is Tensor else np.asarray(indices)
    if isinstance(known, np.ndarray) and known.dtype.kind not in "iu" and known.size:
        raise located(DTypeError(f"take: indices are integers, not {known.dtype}"))
    return wrap(take_axis(node, known, a, "take"))


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Tensor:
    """For each place of ``indices``, the element of ``x`` there with the index along ``axis`` replaced."""
    node, index_node = array(x, "take_along_axis"), array(indices, "take_along_axis")
    a = axis_of(axis, len(node.shape), "take_along_axis")
    if len(index_node.shape) != len(node.shape):
        raise located(ShapeError(f"take_along_axis: indices of shape {list(index_node.shape)} for an array of shape {list(node.shape)}"))
    beside = (*node.shape[:a], 1, *node.shape[a + 1 :])
    chosen, _ = broadcast_common([index_node, reshaped_like(beside)], "take_along_axis")
    flat: Any = 0
    for i, n in enumerate(node.shape):
        flat = flat * n + (wrap(_clamped(chosen, n)) if i == a else wrap(count(chosen.shape, i, dtypes.int64)))
    return wrap(take_axis(reshaped(node, (prod(node.shape),)), flat, 0, "take_along_axis"))


def reshaped_like(shape: tuple[Int, ...]) -> Node:
    """An array of that shape, for broadcasting only."""
    return spread(constant(0, dtypes.int64), shape, ())


def compress(condition: Any, x: Any, /, *, axis: int | None = None) -> Tensor:
    """The slices of ``x`` along ``axis`` where ``condition``, whose values must be known, holds."""
    mask = condition._view("compress") if type(condition) is Tensor else np.asarray(condition)
    return take(x, np.flatnonzero(mask), axis=axis)


def extract(condition: Any, x: Any, /) -> Tensor:
    """The elements of ``x`` where ``condition``, whose values must be known, holds."""
    return compress(condition.reshape(-1), x)
