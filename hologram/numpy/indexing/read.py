"""Reading parts of an array: basic indexing, gathers along constant or traced indices, and masks whose values are known."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from hologram.ir.node import Node
from hologram.ir.op import Shape
from hologram.ir.symbolic import Expr, Int, bounds, prod
from hologram.numpy.arguments import array, axis_of, permuted, reshaped, wrap
from hologram.numpy.creation import count
from hologram.numpy.indexing.views import element, viewed
from hologram.primitives.indexing import take as take_row
from hologram.primitives.movement import slice_, slice_extent
from hologram.primitives.scalar import elementwise as ew
from hologram.support.user_lines import located
from hologram.trace.checks import choice
from hologram.trace.operators import array_node, broadcast_shapes, extent_node, stretched
from hologram.trace.recorder import assume, cast_node, constant, plain, record
from hologram.trace.tensor import Tensor

__all__ = ["compress", "extract", "take", "take_along_axis"]


def sliced(node: Node, axis: int, start: Int, stop: Int, step: int = 1) -> Node:
    """``node`` with ``start:stop:step`` read along ``axis``; a stop of -1 is before the first element."""
    shape = node.shape
    return sliced_by(node, [(start, stop, step) if i == axis else (0, n, 1) for i, n in enumerate(shape)])


def sliced_by(node: Node, triples: list[tuple[Int, Int, int]]) -> Node:
    """``node`` sliced by ``(start, stop, step)`` along every axis; the node itself where that is all of it."""
    if all(s == 1 and a == 0 and b == n for (a, b, s), n in zip(triples, node.shape, strict=True)):
        return node
    for (start, stop, step), n in zip(triples, node.shape, strict=True):
        for slack in (start, stop - start, n - stop) if step > 0 else (n - 1 - start, start - stop, stop + 1):
            if isinstance(slack, Expr):
                assume(slack)
    return record(slice_, (node,), tuple(zip(*triples, strict=True)))


# --- an index --------------------------------------------------------------------------------------------------------


class Mask(NamedTuple):
    """One axis of a mask whose values are known: where it holds, and the extent it was made for."""

    indices: np.ndarray
    extent: Int


class Selection:
    """What an index chooses of an array of a given shape, by NumPy's rules.

    ``triples`` slice every axis (an integer is a slice of one); the result then has the shape ``shape``, without the integers' axes and with None's.
    ``arrays`` are index arrays by axis of that shape. Their common axes stand at ``front`` among what is left of the other axes. ``beyond`` says what
    becomes of known indices out of range: ``raise`` IndexOutOfRange, ``clip`` them, or ``drop`` what they choose, which :func:`position` does.
    """

    __slots__ = ("triples", "shape", "arrays", "front", "beyond")

    def __init__(self, of: Shape, key: Any, beyond: str = "raise") -> None:
        self.beyond = beyond
        self.triples: list[tuple[Int, Int, int]] = []
        self.shape: Shape = ()
        self.arrays: dict[int, Any] = {}
        self.front = 0
        parts = _complete(_parts(key), len(of))
        for part in parts:
            if part is not Ellipsis:
                self._add(part, of)
        if self.arrays:
            self._place(parts)

    def _add(self, part: Any, of: Shape) -> None:
        if part is None or isinstance(part, bool):
            if part is not None:  # a mask of no axes
                self.arrays[len(self.shape)] = np.zeros(int(part), np.int64)
            self.shape = (*self.shape, 1)
            return
        axis = len(self.triples)
        n = of[axis]
        if isinstance(part, slice):
            self.triples.append(_resolve(part, n))
            self.shape = (*self.shape, slice_extent(*self.triples[-1]))
        elif isinstance(part, (int, Expr)) and not self._is_dropped(part, n):
            i = _in_range(part, n, axis, self.beyond == "clip")
            self.triples.append((i, i + 1, 1))
        else:
            if isinstance(part, Mask):
                if part.extent != n and part.extent != 0:  # a mask without elements chooses nothing
                    raise located(IndexOutOfRange(f"a mask of extent {part.extent} for axis {axis} of extent {n}"))
                part = part.indices
            elif isinstance(part, int):
                part = np.asarray(min(max(part, -(2**62)), 2**62))
            self.triples.append((0, n, 1))
            self.arrays[len(self.shape)] = part
            self.shape = (*self.shape, n)

    def _is_dropped(self, i: Int, n: Int) -> bool:
        return self.beyond == "drop" and isinstance(i, int) and isinstance(n, int) and not -n <= i < n

    def _place(self, parts: list[Any]) -> None:
        """Index arrays that are neighbours, integers counting as such, stay where they are; others come first."""
        plain = [p is None or p is Ellipsis or isinstance(p, slice) for p in parts]
        first, last = plain.index(False), len(plain) - 1 - plain[::-1].index(False)
        self.front = 0 if any(plain[first:last]) else sum(p is not Ellipsis for p in parts[:first])

    def order(self) -> list[int]:
        """The axes of ``shape`` with those of the arrays brought together at ``front``."""
        others = [a for a in range(len(self.shape)) if a not in self.arrays]
        return [*others[: self.front], *self.arrays, *others[self.front :]]


def index(x: Tensor, key: Any) -> Tensor:
    """``x[key]``: integers, slices, None, Ellipsis, integer arrays, and masks whose values are known.

    Constant indices out of range raise; computed ones, those of Tensors, are clamped. Without arrays and masks it is a view, or an element.
    """
    node = array(x, "indexing")
    chosen = Selection(node.shape, key)
    found = _selected(node, chosen)
    if chosen.arrays and not all(type(part) is Tensor and not part._aval()[0] for part in chosen.arrays.values()):
        return wrap(found)
    return viewed(x, node, found) if found.shape or _has_ellipsis(key) else element(found)


def read(x: Tensor, key: Any, beyond: str = "raise") -> Tensor:
    """As :func:`index`, but no view; ``beyond`` is as for :class:`Selection`."""
    node = array(x, "indexing")
    return wrap(_selected(node, Selection(node.shape, key, beyond)))


def _selected(node: Node, chosen: Selection) -> Node:
    node = reshaped(sliced_by(node, chosen.triples), chosen.shape)
    return _gathered(node, chosen) if chosen.arrays else node


def _has_ellipsis(key: Any) -> bool:
    return key is Ellipsis or (isinstance(key, tuple) and any(part is Ellipsis for part in key))


def _parts(key: Any) -> list[Any]:
    parts: list[Any] = []
    for part in key if isinstance(key, tuple) else (key,):
        normal = _normal(part)
        if isinstance(normal, np.ndarray) and normal.dtype == np.bool_:
            parts += [bool(normal)] if normal.ndim == 0 else [Mask(i, n) for i, n in zip(np.nonzero(normal), normal.shape, strict=True)]
        else:
            parts.append(normal)
    return parts


def _normal(part: Any) -> Any:
    """One part of an index as int, symbol, slice, None, Ellipsis, a NumPy array or an integer Tensor."""
    if part is None or part is Ellipsis or isinstance(part, slice) or type(part) is int:
        return part
    if isinstance(part, (bool, np.bool_)):
        return np.asarray(part)
    if isinstance(part, Expr):
        return plain(part)
    if type(part) is Tensor:
        return _tensor_part(part)
    if isinstance(part, np.integer):
        return int(part)
    if isinstance(part, (list, np.ndarray)):
        values = np.asarray(part)
        values = values.astype(np.int64) if values.size == 0 and isinstance(part, list) else values
        if values.dtype.kind in "iu" or values.dtype == np.bool_:
            return values if values.ndim or values.dtype == np.bool_ else int(values)
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
    """``parts`` with the Ellipsis, or the end, filled up with whole slices. An Ellipsis that stands for no axis stays: it parts index arrays."""
    used = sum(p is not None and p is not Ellipsis and not isinstance(p, bool) for p in parts)
    if used > ndim:
        raise located(IndexOutOfRange(f"{used} indices for an array with {ndim} axes"))
    ellipses = [i for i, p in enumerate(parts) if p is Ellipsis]
    if len(ellipses) > 1:
        raise located(IndexOutOfRange("an index has at most one Ellipsis"))
    at = ellipses[0] if ellipses else len(parts)
    filled = [slice(None)] * (ndim - used) or parts[at : at + 1]
    return [*parts[:at], *filled, *parts[at + 1 :]]


def _in_range(i: Int, n: Int, axis: int, clip: bool) -> Int:
    if isinstance(n, Expr) or isinstance(i, Expr):
        at = _from_start(i, n)
        assume(at)
        assume(n - 1 - at)
        return at
    if not -n <= i < n:
        if clip and n:
            return 0 if i < 0 else n - 1
        raise located(IndexOutOfRange(f"index {i} is out of range for axis {axis} of extent {n}"))
    return i + n if i < 0 else i


def _from_start(i: Int, n: Int) -> Int:
    """A position on an axis, as from its start: what cannot be positive counts from the end, and is assumed to be negative."""
    _, high = bounds(i)
    from_end = high is not None and (high < 0 or (high == 0 and isinstance(i, Expr)))
    if from_end:
        assume(-i - 1)
    return n + i if from_end else i


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
    """As :func:`_resolve`. What is certain decides: bounds beyond the axis are clamped, and no elements may be left. The rest is assumed, and
    checked on every call: that the bounds lie on the axis, in order."""
    lowest, highest = (0, n) if step > 0 else (-1, n - 1)

    def end(value: Any, default: Int) -> Int:
        if value is None:
            return default
        at = _from_start(plain(value) if isinstance(value, Expr) else operator.index(value), n)
        return lowest if _is_negative(at - lowest) else highest if _is_negative(highest - at) else at

    start, stop = (end(part.start, lowest), end(part.stop, highest)) if step > 0 else (end(part.start, highest), end(part.stop, lowest))
    low, high = (start, stop) if step > 0 else (stop, start)
    if _is_negative(high - low):
        return lowest, lowest, step
    for slack in (low - lowest, high - low, highest - high):
        assume(slack)
    return start, stop, step


def _is_negative(x: Int) -> bool:
    """Whether ``x`` is negative whatever the extents."""
    high = bounds(x)[1]
    return high is not None and high < 0


# --- gathers ---------------------------------------------------------------------------------------------------------


def _gathered(node: Node, chosen: Selection) -> Node:
    """NumPy's advanced indexing: index arrays broadcast together."""
    return record(take_row, (merged(node, chosen), flat_indices(chosen)), (chosen.front,))


def merged(node: Node, chosen: Selection) -> Node:
    """``node``, of the selection's shape, with the axes of its arrays made one, at ``front``."""
    node = permuted(node, chosen.order())
    first, last = chosen.front, chosen.front + len(chosen.arrays)
    return reshaped(node, (*node.shape[:first], prod(node.shape[first:last]), *node.shape[last:]))


def flat_indices(chosen: Selection, drop: bool = False) -> Node:
    """Where the selection's arrays point along :func:`merged`'s axis; see :func:`position`."""
    return position([(part, chosen.shape[axis]) for axis, part in chosen.arrays.items()], drop, "indexing", chosen.beyond)


def position(parts: Sequence[tuple[Any, Int]], drop: bool, what: str, beyond: str = "raise") -> Node:
    """Indices along several axes, and their extents, as positions along these axes flattened.

    A Node is in range already. Tensors are clamped, or, to ``drop`` what is out of range, give a position that is out of range, too. NumPy arrays
    are treated as ``beyond`` says: see :class:`Selection`.
    """
    _require_broadcast([part for part, _ in parts], what)
    flat: Any = None
    valid: Any = None
    for part, n in parts:
        at: Any = part
        if isinstance(part, np.ndarray):
            at = checked(part, n, what, beyond)
            if beyond == "drop" and len(parts) > 1:
                inside = (at >= 0) & (at < n)
                valid = inside if valid is None else valid & inside
        elif isinstance(part, Node):
            at = wrap(part)
        elif not drop:
            at = wrap(clamped(array(part, what), n))
        else:
            at = wrap(wrapped(array(part, what), n))
            if len(parts) > 1:
                inside = (at >= 0) & (at < wrap(extent_node(n, dtypes.int64)))
                valid = inside if valid is None else valid & inside
        extent = wrap(extent_node(n, dtypes.int64)) if isinstance(n, Expr) else n
        flat = at if flat is None else flat * extent + at
    node = array(flat, what)
    if valid is None:
        return node
    return record(ew.select, stretched(what, [array(valid, what), node, constant(-1, dtypes.int64)]))


def _require_broadcast(parts: Sequence[Any], what: str) -> None:
    shapes = [part.shape for part in parts if isinstance(part, np.ndarray)]  # those of others are checked where they are added
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise located(ShapeError(f"{what}: index arrays of shapes {', '.join(str(list(s)) for s in shapes)} do not broadcast")) from None


def checked(indices: np.ndarray, n: Int, what: str, beyond: str = "raise") -> np.ndarray:
    """Known indices as int64, counted from the front. Those out of range raise IndexOutOfRange, become the nearest (``clip``), or stay (``drop``)."""
    if not isinstance(n, int):
        raise located(ShapeError(f"{what}: constant indices along an axis of symbolic extent {n}: pass the indices as an argument"))
    wide = (np.minimum(indices, np.uint64(2**62)) if indices.dtype == np.uint64 else indices).astype(np.int64)
    if beyond == "clip" and n:
        wide = np.clip(wide, -n, n - 1)
    elif beyond != "drop" and wide.size and not (-n <= wide.min() and wide.max() < n):
        worst = wide.min() if wide.min() < -n else wide.max()
        raise located(IndexOutOfRange(f"{what}: index {worst} is out of range for an axis of extent {n}"))
    return np.where(wide < 0, wide + n, wide)


def clamped(indices: Node, n: Int) -> Node:
    """Computed indices: negative ones count from the end, and what is still out of range is moved to the nearest element."""
    wide, one = wrapped(indices, n), constant(1, dtypes.int64)
    if indices.dtype.kind == "i":
        wide = record(ew.max_, (wide, constant(0, dtypes.int64)))
    return record(ew.min_, (wide, record(ew.sub, (extent_node(n, dtypes.int64), one))))


def wrapped(indices: Node, n: Int) -> Node:
    """Computed indices as int64, negative ones counted from the end of an axis of extent ``n``."""
    wide = cast_node(indices, dtypes.int64)
    if indices.dtype.kind != "i":
        return wide
    negative = record(ew.lt, (wide, constant(0, dtypes.int64)))
    return record(ew.select, (negative, record(ew.add, (wide, extent_node(n, dtypes.int64))), wide))


def take_axis(node: Node, indices: Any, axis: int, what: str, beyond: str = "raise") -> Node:
    """``node`` at ``indices`` (a NumPy array, checked; or a Tensor, clamped) along ``axis``."""
    n = node.shape[axis]
    if isinstance(indices, np.ndarray):
        return record(take_row, (node, array_node(checked(indices, n, what, beyond))), (axis,))
    index_node = array(indices, what)
    if not index_node.dtype.is_integer:
        raise located(DTypeError(f"{what}: indices are integers, not {index_node.dtype}"))
    return record(take_row, (node, clamped(index_node, n)), (axis,))


def take(x: Any, indices: Any, /, axis: int | None = None, *, mode: str | None = None) -> Tensor:
    """Elements, or slices, of ``x`` at ``indices`` along ``axis``; of ``x`` flattened for None.

    The indices' axes take the place of ``axis``; negative ones count from the end. Known indices out of range raise IndexOutOfRange, unless
    ``mode`` is ``clip``; computed ones, those of Tensors, are clamped. Raises DTypeError for indices that are not integers.

    >>> hnp.take([10, 20, 30], [2, 0])
    Tensor([30, 10], dtype=int64)
    >>> hnp.take([[1, 2], [3, 4]], 1, axis=1)
    Tensor([2, 4], dtype=int64)
    """
    node = array(x, "take")
    if axis is None:
        node, axis = reshaped(node, (prod(node.shape),)), 0
    a = axis_of(axis, len(node.shape), "take")
    choice(mode or "raise", "take", "mode", ("clip", "raise"))
    known = indices if type(indices) is Tensor else np.asarray(indices)
    if isinstance(known, np.ndarray) and known.dtype.kind not in "iu" and known.size:
        raise located(DTypeError(f"take: indices are integers, not {known.dtype}"))
    return wrap(take_axis(node, known, a, "take", mode or "raise"))


def take_along_axis(x: Any, indices: Any, /, axis: int | None = -1) -> Tensor:
    """Gathers along ``axis``: for each position of ``indices`` the element of ``x`` there, its index along ``axis`` replaced.

    ``indices`` has the axes of ``x``, and broadcasts with it beside ``axis``; for None ``x`` is flattened. Known indices out of range raise
    IndexOutOfRange. Raises ShapeError for other axes, DTypeError for indices that are not integers.

    >>> x = hnp.asarray([[30, 10], [20, 40]])
    >>> hnp.take_along_axis(x, hnp.argsort(x, axis=1), axis=1)
    Tensor([[10, 30],
            [20, 40]], dtype=int64)
    """
    node, flat = along_axis(x, indices, axis, False, "take_along_axis")
    return wrap(record(take_row, (reshaped(node, (prod(node.shape),)), flat), (0,)))


def along_axis(x: Any, indices: Any, axis: int | None, drop: bool, what: str) -> tuple[Node, Node]:
    """``x`` (flattened for ``axis`` None), and for each place of ``indices`` the position in ``x`` flattened of that place with its index along
    ``axis`` replaced. Axes beside it broadcast; ``drop`` is as for :func:`position`."""
    node = array(x, what)
    if axis is None:
        node, axis = reshaped(node, (prod(node.shape),)), 0
    a = axis_of(axis, len(node.shape), what)
    chosen: Any = indices if type(indices) is Tensor else np.asarray(indices)
    if chosen.ndim != len(node.shape):
        raise located(ShapeError(f"{what}: indices of shape {list(chosen.shape)} for an array of shape {list(node.shape)}"))
    if chosen.dtype.kind not in "iu":
        raise located(DTypeError(f"{what}: indices are integers, not {chosen.dtype}"))
    shape = broadcast_shapes(what, [chosen.shape, (*node.shape[:a], 1, *node.shape[a + 1 :])])
    if any(m != n and i != a for i, (m, n) in enumerate(zip(shape, node.shape, strict=True))):
        raise located(ShapeError(f"{what}: indices of shape {list(chosen.shape)} for an array of shape {list(node.shape)} along axis {a}"))
    parts = [(chosen if i == a else count(shape, i, dtypes.int64), n) for i, n in enumerate(node.shape)]
    return node, position(parts, drop, what)


def compress(condition: Any, x: Any, /, axis: int | None = None) -> Tensor:
    """Slices of ``x`` along ``axis`` at which ``condition``, a vector of known values, is not zero; elements for None.

    Raises TracedValueError for a traced ``condition``.

    >>> hnp.compress([True, False, True], [10, 20, 30])
    Tensor([10, 30], dtype=int64)
    """
    mask = condition._view("compress") if type(condition) is Tensor else np.asarray(condition)
    return take(x, np.flatnonzero(mask), axis=axis)


def extract(condition: Any, x: Any, /) -> Tensor:
    """Elements of ``x`` at which ``condition``, whose values must be known, is not zero: a vector.

    Raises TracedValueError for a traced ``condition``.

    >>> hnp.extract([[True, False], [False, True]], [[1, 2], [3, 4]])
    Tensor([1, 4], dtype=int64)
    """
    return compress((condition if type(condition) is Tensor else np.asarray(condition)).reshape(-1), x)
