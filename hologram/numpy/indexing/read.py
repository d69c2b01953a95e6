"""Reading parts of an array: basic indexing, gathers along constant or traced indices, and masks whose values are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.node import Node
from hologram.ir.symbolic import Int, prod
from hologram.numpy.arguments import array, axis_of, permuted, reshaped, wrap
from hologram.numpy.creation import count
from hologram.numpy.elementwise.functions import where
from hologram.numpy.indexing.known_windows import read_window, readable_window, steps_to
from hologram.numpy.indexing.picked import picked
from hologram.numpy.indexing.selection import Selection
from hologram.numpy.indexing.slices import sliced_by
from hologram.numpy.indexing.starts import starts
from hologram.numpy.indexing.views import element, viewed
from hologram.numpy.indexing.windows import Windows
from hologram.primitives.indexing import gather
from hologram.primitives.scalar import elementwise as ew
from hologram.primitives.scalar.composite import rem
from hologram.support.user_lines import located
from hologram.trace.array_classes import known_array
from hologram.trace.checks import choice
from hologram.trace.operators import broadcast_node, broadcast_shapes, extent_node
from hologram.trace.recorder import cast_node, constant, record
from hologram.trace.replayed import replayed
from hologram.trace.tensor import Tensor

__all__ = ["compress", "extract", "take", "take_along_axis"]


def index(x: Tensor, key: Any) -> Tensor:
    """``x[key]``: integers, slices, None, Ellipsis, integer arrays, and masks whose values are known.

    Constant indices out of range raise; computed ones, those of Tensors, are clamped. Without arrays and masks it is a view, or an element.
    """
    if type(key) is Tensor and (of := key._aval())[0] and of[1].is_integer:
        return _at_indices(x, key)
    copied = picked(x, key)
    if copied is not None:
        return copied
    node = array(x, "indexing")
    window = readable_window(node.shape, key)
    if window is not None:
        found = read_window(node, window)
        return viewed(x, node, found, steps=steps_to(node, window)) if window.selected else element(x, node, found)
    chosen = Selection(node.shape, key)
    found = _selected(node, chosen)
    if chosen.arrays and not all(type(part) is Tensor and not part._aval()[0] for part in chosen.arrays.values()):
        return wrap(found)
    return viewed(x, node, found) if found.shape or _has_ellipsis(key) else element(x, node, found)


@replayed(2)
def _at_indices(x: Tensor, indices: Tensor) -> Tensor:
    """``x[indices]`` for an array of integers."""
    node = array(x, "indexing")
    return wrap(_selected(node, Selection(node.shape, indices)))


def read(x: Tensor, key: Any, beyond: str = "raise") -> Tensor:
    """As :func:`index`, but no view; ``beyond`` is as for :class:`Selection`."""
    node = array(x, "indexing")
    return wrap(_selected(node, Selection(node.shape, key, beyond)))


def _selected(node: Node, chosen: Selection) -> Node:
    return Windows(node, chosen).gathered() if chosen.arrays else reshaped(sliced_by(node, chosen.triples), chosen.shape)


def _has_ellipsis(key: Any) -> bool:
    return key is Ellipsis or (isinstance(key, tuple) and any(part is Ellipsis for part in key))


# --- gathers ---------------------------------------------------------------------------------------------------------


def take_axis(node: Node, indices: Any, axis: int, what: str, beyond: str = "raise") -> Node:
    """``node`` at ``indices`` (a NumPy array, checked; or a Tensor, clamped) along ``axis``."""
    if not isinstance(indices, np.ndarray) and not (found := array(indices, what)).dtype.is_integer:
        raise located(DTypeError(f"{what}: indices are integers, not {found.dtype}"))
    start = starts(indices, node.shape[axis], False, what, beyond)
    rank, ndim = len(start.shape), len(node.shape)
    windows = record(gather, (node, start), ((axis,), (1,), 0))
    taken = reshaped(windows, (*start.shape, *node.shape[:axis], *node.shape[axis + 1 :]))
    return permuted(taken, [*range(rank, rank + axis), *range(rank), *range(rank + axis, rank + ndim - 1)])


@replayed(2)
def take(x: Any, /, indices: Any, axis: int | None = None, *, mode: str | None = None, fill_value: Any = None) -> Tensor:
    """Elements, or slices, of ``x`` at ``indices`` along ``axis``; of ``x`` flattened for None.

    The indices' axes take the place of ``axis``; negative ones count from the end. Known indices out of range raise IndexOutOfRange; computed ones,
    those of Tensors, are clamped. With ``mode="wrap"`` indices count modulo the extent, with ``"clip"`` each is the nearest there is, 0 for negative
    ones; with ``"fill"``, as in JAX, the elements of indices out of range are ``fill_value``, for None NaN, and of integers the least signed or
    largest unsigned one. Raises DTypeError for indices that are not integers.

    >>> hnp.take([10, 20, 30], [2, 0])
    Tensor([30, 10], dtype=int64)
    >>> hnp.take([[1, 2], [3, 4]], 1, axis=1)
    Tensor([2, 4], dtype=int64)
    """
    node = array(x, "take")
    if axis is None:
        node, axis = reshaped(node, (prod(node.shape),)), 0
    a = axis_of(axis, len(node.shape), "take")
    choice(mode or "raise", "take", "mode", ("clip", "fill", "raise", "wrap"))
    if fill_value is not None and mode != "fill":
        raise located(ArgumentError(f"take: mode is 'fill' where fill_value is given, not {mode!r}"))
    known = indices if type(indices) is Tensor else known_array(indices, "take")
    if isinstance(known, np.ndarray) and known.dtype.kind not in "iu" and known.size:
        raise located(DTypeError(f"take: indices are integers, not {known.dtype}"))
    if mode in ("clip", "wrap") and node.shape[a] != 0:
        known = within(known, node.shape[a], mode, "take")
    if mode == "fill":
        return _filled(node, known, a, fill_value)
    return wrap(take_axis(node, known, a, "take", "clip" if mode == "clip" else "raise"))


def _filled(node: Node, indices: Any, axis: int, fill: Any) -> Tensor:
    """Elements at indices along ``axis``, and ``fill`` for those out of range."""
    n = node.shape[axis]
    at = wrap(array(indices, "take"))
    if not at._aval()[1].is_integer:
        raise located(DTypeError(f"take: indices are integers, not {at.dtype}"))
    if fill is None:
        kind = node.dtype
        fill = (
            float("nan") if kind.kind in "fc" else True if kind.kind == "b" else np.iinfo(kind.np).min if kind.kind == "i" else np.iinfo(kind.np).max
        )
    extent = wrap(extent_node(n, dtypes.int64))
    inside = (at >= -extent) & (at < extent)
    inside = wrap(reshaped(array(inside, "take"), (*at.shape, *(1,) * (len(node.shape) - axis - 1))))
    if isinstance(n, int) and n == 0:
        shape = (*node.shape[:axis], *at.shape, *node.shape[axis + 1 :])
        return wrap(broadcast_node(cast_node(array(fill, "take"), node.dtype), shape))
    return where(inside, wrap(take_axis(node, at, axis, "take")), wrap(cast_node(array(fill, "take"), node.dtype)))


def within(indices: Any, n: Int, mode: str, what: str) -> Any:
    """Integers as indices of an axis of extent ``n``: modulo that (``wrap``), or the nearest there are (``clip``), 0 for negative ones."""
    if indices.dtype.kind not in "iu":
        return indices  # which is refused
    if isinstance(indices, np.ndarray) and isinstance(n, int):
        wide = indices.astype(np.uint64 if indices.dtype.kind == "u" else np.int64)
        return wide % n if mode == "wrap" else np.clip(wide, 0, n - 1)
    at = array(indices, what)
    at = cast_node(at, dtypes.uint64 if at.dtype is dtypes.uint64 else dtypes.int64)
    extent = broadcast_node(cast_node(extent_node(n, dtypes.int64), at.dtype), at.shape)
    if mode == "wrap":
        return wrap(record(rem, (at, extent)))
    zero, one = (broadcast_node(constant(v, at.dtype), at.shape) for v in (0, 1))
    return wrap(record(ew.min_, (record(ew.max_, (at, zero)), record(ew.sub, (extent, one)))))


def take_along_axis(x: Any, indices: Any, /, axis: int | None = -1) -> Tensor:
    """Gathers along ``axis``: for each position of ``indices`` the element of ``x`` there, its index along ``axis`` replaced.

    ``indices`` has the axes of ``x``, and broadcasts with it beside ``axis``; for None ``x`` is flattened. Known indices out of range raise
    IndexOutOfRange. Raises ShapeError for other axes, DTypeError for indices that are not integers.

    >>> x = hnp.asarray([[30, 10], [20, 40]])
    >>> hnp.take_along_axis(x, hnp.argsort(x, axis=1), axis=1)
    Tensor([[10, 30],
            [20, 40]], dtype=int64)
    """
    node, a, places = along_axis(_stretched(x, indices, axis), indices, axis, False, "take_along_axis")
    windows = record(gather, (node, *places), (tuple(range(a, len(node.shape))), (1,) * len(places), a))
    return wrap(reshaped(windows, places[0].shape))


def _stretched(x: Any, indices: Any, axis: int | None) -> Any:
    """``x`` with its axes of extent 1, but for ``axis``, as long as those of ``indices``."""
    node, shape = array(x, "take_along_axis"), np.shape(indices)
    if axis is None or len(shape) != len(node.shape) or 1 not in node.shape:
        return x
    a = axis_of(axis, len(node.shape), "take_along_axis")
    wanted = tuple(m if n == 1 and i != a else n for i, (m, n) in enumerate(zip(shape, node.shape, strict=True)))
    return wrap(broadcast_node(node, wanted))


def along_axis(x: Any, indices: Any, axis: int | None, drop: bool, what: str) -> tuple[Node, int, list[Node]]:
    """``x`` (flattened for ``axis`` None), ``axis``, and for each place of ``indices`` where the element stands along that axis and those after it;
    the axes before are shared. Axes beside it broadcast; ``drop`` is as for :func:`starts`."""
    node = array(x, what)
    if axis is None:
        node, axis = reshaped(node, (prod(node.shape),)), 0
    a = axis_of(axis, len(node.shape), what)
    chosen: Any = indices if type(indices) is Tensor else known_array(indices, what)
    if chosen.ndim != len(node.shape):
        raise located(ShapeError(f"{what}: indices of shape {list(chosen.shape)} for an array of shape {list(node.shape)}"))
    if chosen.dtype.kind not in "iu":
        raise located(DTypeError(f"{what}: indices are integers, not {chosen.dtype}"))
    shape = broadcast_shapes(what, [chosen.shape, (*node.shape[:a], 1, *node.shape[a + 1 :])])
    if any(m != n and i != a for i, (m, n) in enumerate(zip(shape, node.shape, strict=True))):
        raise located(ShapeError(f"{what}: indices of shape {list(chosen.shape)} for an array of shape {list(node.shape)} along axis {a}"))
    first = broadcast_node(starts(chosen, node.shape[a], drop, what), shape)
    return node, a, [first, *(count(shape, i, dtypes.int64) for i in range(a + 1, len(shape)))]


def compress(condition: Any, x: Any, /, axis: int | None = None) -> Tensor:
    """Slices of ``x`` along ``axis`` at which ``condition``, a vector of known values, is not zero; elements for None.

    Raises TracedValueError for a traced ``condition``, ShapeError for one of other axes.

    >>> hnp.compress([True, False, True], [10, 20, 30])
    Tensor([10, 30], dtype=int64)
    """
    mask = condition._view("compress") if type(condition) is Tensor else known_array(condition, "compress")
    if mask.ndim != 1:
        raise located(ShapeError(f"compress takes a condition of one axis, not of shape {list(mask.shape)}"))
    return take(x, np.flatnonzero(mask), axis=axis)


def extract(condition: Any, x: Any, /) -> Tensor:
    """Elements of ``x`` at which ``condition``, whose values must be known, is not zero: a vector.

    Raises TracedValueError for a traced ``condition``.

    >>> hnp.extract([[True, False], [False, True]], [[1, 2], [3, 4]])
    Tensor([1, 4], dtype=int64)
    """
    return compress((condition if type(condition) is Tensor else known_array(condition, "extract")).reshape(-1), x)
