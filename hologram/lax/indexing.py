"""Gather and scatter with dimension numbers, as XLA has them: windows of an array at computed places, read and written."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hologram import numpy as hnp
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.op import Op
from hologram.lax.shapes import in_order, integers
from hologram.numpy.arguments import array, wrap
from hologram.numpy.indexing.updates import applied, default_fill
from hologram.primitives import indexing as ops
from hologram.support.user_lines import located
from hologram.trace.recorder import cast_node, record
from hologram.trace.tensor import Tensor

__all__ = [
    "GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers", "gather", "scatter", "scatter_add", "scatter_apply", "scatter_max",
    "scatter_min", "scatter_mul", "scatter_sub",
]  # fmt: skip

Axes = tuple[int, ...]


class GatherScatterMode(enum.Enum):
    """What becomes of windows that are not within the array: moved inside, or filled (left out by scatters); or it is promised that there are none.

    >>> hg.lax.GatherScatterMode.from_any("clip")
    <GatherScatterMode.CLIP: 0>
    """

    CLIP = 0
    FILL_OR_DROP = 1
    PROMISE_IN_BOUNDS = 2
    ONE_HOT = 3

    @staticmethod
    def from_any(value: Any) -> GatherScatterMode:
        """The mode of a name, or of a mode. Raises ArgumentError for anything else."""
        names = {"clip": 0, "fill": 1, "drop": 1, "promise_in_bounds": 2}
        if isinstance(value, GatherScatterMode):
            return value
        if value not in names:
            raise located(ArgumentError(f"a mode is one of {', '.join(map(repr, names))}, not {value!r}"))
        return GatherScatterMode(names[value])


class GatherDimensionNumbers(NamedTuple):
    """Which axes a gather reads: see :func:`gather`.

    >>> hg.lax.GatherDimensionNumbers((1,), (0,), (0,)).collapsed_slice_dims
    (0,)
    """

    offset_dims: Sequence[int]
    collapsed_slice_dims: Sequence[int]
    start_index_map: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    start_indices_batching_dims: Sequence[int] = ()
    mode: Any = None


class ScatterDimensionNumbers(NamedTuple):
    """Which axes a scatter writes: see :func:`scatter`.

    >>> hg.lax.ScatterDimensionNumbers((), (0,), (0,)).inserted_window_dims
    (0,)
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()
    mode: Any = None


def _mode(given: Any, of_numbers: Any, default: GatherScatterMode) -> GatherScatterMode:
    return GatherScatterMode.from_any(next((m for m in (given, of_numbers) if m is not None), default))


def _are_axes(axes: Sequence[int], ndim: int) -> bool:
    """Whether these are axes in their order, none twice."""
    return all(0 <= a < ndim for a in axes) and all(a < b for a, b in itertools.pairwise(axes))


class _Places:
    """Where windows begin: an array of starts for each axis of the operand along which they do not hold all of it."""

    def __init__(self, what: str, shape: Any, indices: Any, index_map: Any, batch: Any, index_batch: Any, sizes: Sequence[Any]) -> None:
        starts = hnp.asarray(indices)
        if not starts._aval()[1].is_integer:
            raise located(DTypeError(f"{what}: indices are integers, not {starts.dtype}"))
        axes = integers(index_map, what, "an axis")
        if starts.ndim < 1 or starts.shape[-1] != len(axes) or len(batch) != len(index_batch):
            raise located(ShapeError(f"{what}: indices of shape {list(starts.shape)} do not end in one for each of the axes {axes}"))
        if len({*axes, *batch}) != len(axes) + len(batch) or not all(0 <= a < len(shape) for a in (*axes, *batch)):
            raise located(ShapeError(f"{what}: the axes {axes} and {list(batch)} of shape {list(shape)} are named twice, or not there"))
        self.what, self.shape, self.places = what, shape, starts.shape[:-1]
        if not _are_axes(sorted(index_batch), len(self.places)) or any(shape[a] != self.places[b] for a, b in zip(batch, index_batch, strict=True)):
            places = f"the places' axes {list(index_batch)} of shape {list(self.places)}"
            raise located(ShapeError(f"{what}: the batching axes {list(batch)} of shape {list(shape)} do not go together with {places}"))
        wide = starts.astype(np.int64)
        found = {a: wide[..., k] for k, a in enumerate(axes)}
        for a, b in zip(batch, index_batch, strict=True):
            count = hnp.arange(self.places[b]).reshape([-1 if i == b else 1 for i in range(len(self.places))])
            found[a] = hnp.broadcast_to(count, self.places)
        for a, (n, size) in enumerate(zip(shape, sizes, strict=True)):
            if size != n and a not in found:
                found[a] = hnp.zeros(self.places, dtype=np.int64)
        if not found and shape:  # all of the array at each place
            found[0] = hnp.zeros(self.places, dtype=np.int64)
        self.axes = tuple(sorted(found))
        self.sizes = tuple(sizes[a] for a in self.axes)
        self.starts = [found[a] for a in self.axes]

    def _last(self, axis: int, size: Any) -> Any:
        return self.shape[axis] - size

    def inside(self) -> Tensor:
        """Whether each window lies within the array."""
        within = hnp.ones(self.places, dtype=bool)
        for s, a, size in zip(self.starts, self.axes, self.sizes, strict=True):
            within = within & (s >= 0) & (s <= self._last(a, size))
        return within

    def clipped(self) -> list[Tensor]:
        """The starts, moved so that windows lie within the array."""
        ends = [self._last(a, size) for a, size in zip(self.axes, self.sizes, strict=True)]
        return [hnp.clip(s, 0, end) for s, end in zip(self.starts, ends, strict=True)]


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Tensor:
    """Windows of ``operand`` at computed places: XLA's gather.

    The last axis of ``start_indices`` has one index for each axis that ``start_index_map`` lists, the others are the places. A window begins there
    and has ``slice_sizes`` elements. Its axes, without the ``collapsed_slice_dims`` and the batching ones, are ``offset_dims`` of the result; the
    places' axes are the others. Batching axes of ``operand`` and of the indices go together. ``mode``, by default ``clip``: see
    :class:`GatherScatterMode`; what is filled is ``fill_value``, by default NaN, the least signed or the greatest unsigned integer. The two promises
    are taken and say nothing here.

    Raises ShapeError where the numbers do not fit, DTypeError for indices that are no integers.

    >>> numbers = hg.lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> hg.lax.gather(hnp.arange(6).reshape(3, 2), np.array([[2], [0]]), numbers, (1, 2))
    Tensor([[4, 5],
            [0, 1]], dtype=int64)
    """
    t, n = hnp.asarray(operand), dimension_numbers
    sizes = integers(slice_sizes, "gather", "a size")
    if len(sizes) != t.ndim or any(isinstance(m, int) and not 0 <= s <= m for s, m in zip(sizes, t.shape, strict=True)):
        raise located(ShapeError(f"gather: windows of {sizes} elements of shape {list(t.shape)}"))
    at = _Places("gather", t.shape, start_indices, n.start_index_map, n.operand_batching_dims, n.start_indices_batching_dims, sizes)
    gone = {*n.collapsed_slice_dims, *n.operand_batching_dims}
    kept = [a for a in range(t.ndim) if a not in gone]
    fits = len(kept) == len(n.offset_dims) and _are_axes(n.offset_dims, len(at.places) + len(kept))
    fits = fits and len(gone) == len(n.collapsed_slice_dims) + len(n.operand_batching_dims)
    if any(sizes[a] != 1 for a in gone) or not fits:
        raise located(ShapeError(f"gather: {n} for windows of {sizes} elements of shape {list(t.shape)}"))
    how = _mode(mode, n.mode, GatherScatterMode.CLIP)
    if not at.axes:
        found = hnp.broadcast_to(t, at.places)
    else:
        nodes = [array(s, "gather") for s in at.clipped()]
        found = wrap(record(ops.gather, (array(t, "gather"), *nodes), (at.axes, at.sizes, 0)))
    if how is GatherScatterMode.FILL_OR_DROP:
        there = at.inside().reshape((*at.places, *[1] * t.ndim))
        found = hnp.where(there, found, default_fill(t._aval()[1]) if fill_value is None else fill_value).astype(t.dtype)
    found = found.reshape((*at.places, *[sizes[a] for a in kept]))
    offsets, places, kept_axes = list(n.offset_dims), iter(range(len(at.places))), iter(range(len(at.places), found.ndim))
    return in_order(found, [next(kept_axes) if i in offsets else next(places) for i in range(found.ndim)])


# --- scatter ---------------------------------------------------------------------------------------------------------


def _scattered(what: str, op: Op, operand: Any, indices: Any, updates: Any, numbers: ScatterDimensionNumbers, mode: Any) -> Tensor:
    t = hnp.asarray(operand)
    new = wrap(cast_node(array(updates, what), t._aval()[1]))
    if op.kinds.find(t._aval()[1].kind) < 0:
        raise located(DTypeError(f"{what} does not take {t.dtype}"))
    gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    window = [a for a in range(t.ndim) if a not in gone]
    shown = list(numbers.update_window_dims)
    if len(shown) != len(window) or not _are_axes(shown, new.ndim):
        raise located(ShapeError(f"{what}: {numbers} for updates of shape {list(new.shape)} and shape {list(t.shape)}"))
    sizes: list[Any] = [1] * t.ndim
    for a, i in zip(window, shown, strict=True):
        sizes[a] = new.shape[i]
    at = _Places(
        what, t.shape, indices, numbers.scatter_dims_to_operand_dims, numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, sizes
    )
    places = [i for i in range(new.ndim) if i not in shown]
    if tuple(new.shape[i] for i in places) != at.places or any(isinstance(m, int) and s > m for s, m in zip(sizes, t.shape, strict=True)):
        raise located(ShapeError(f"{what}: updates of shape {list(new.shape)} for {list(at.places)} places and shape {list(t.shape)}"))
    how = _mode(mode, numbers.mode, GatherScatterMode.FILL_OR_DROP)
    windows = in_order(new, [*places, *shown], (*at.places, *sizes))
    if not at.axes:
        return _of_scalar(op, t, windows)
    starts = [array(s, what) for s in (at.clipped() if how is GatherScatterMode.CLIP else at.starts)]
    return wrap(record(op, (array(t, what), array(windows, what), *starts), (at.axes, 0)))


def _of_scalar(op: Op, t: Tensor, updates: Tensor) -> Tensor:
    """All updates go to the one element that there is."""
    nodes = (array(t.reshape(1), "scatter"), array(updates.reshape(-1, 1), "scatter"), array(hnp.zeros(updates.size, dtype=np.int64), "scatter"))
    return wrap(record(op, nodes, ((0,), 0))).reshape(())


def _scatter(name: str, op: Op, about: str, result: str) -> Callable[..., Tensor]:
    def function(
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
    ) -> Tensor:
        return _scattered(name, op, operand, scatter_indices, updates, dimension_numbers, mode)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{about}

The last axis of ``scatter_indices`` has one index for each axis that ``scatter_dims_to_operand_dims`` lists, the others are the places. Axes
``update_window_dims`` of ``updates`` are those of a window, without the ``inserted_window_dims``, of extent 1, and the batching ones; the others are
the places'. Updates of one element happen in the places' order. ``mode``, by default ``drop``: see :class:`GatherScatterMode`; the two promises are
taken and say nothing here. The result has the type of ``operand``.

Raises ShapeError where the numbers do not fit, DTypeError for indices that are no integers.

>>> numbers = hg.lax.ScatterDimensionNumbers(update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
>>> hg.lax.{name}(hnp.asarray([1, 1, 1]), np.array([[2], [0], [2]]), np.array([5, 6, 7]), numbers)
Tensor({result}, dtype=int64)
"""
    return function


scatter = _scatter("scatter", ops.scatter_set, "``operand`` with windows replaced: XLA's scatter.", "[6, 1, 7]")
scatter_add = _scatter("scatter_add", ops.scatter_add, "``operand`` with windows added to it.", "[ 7,  1, 13]")
scatter_mul = _scatter("scatter_mul", ops.scatter_mul, "``operand`` with elements multiplied by windows.", "[ 6,  1, 35]")
scatter_min = _scatter("scatter_min", ops.scatter_min, "``operand`` with the smaller of its elements and those of windows.", "[1, 1, 1]")
scatter_max = _scatter("scatter_max", ops.scatter_max, "``operand`` with the larger of its elements and those of windows.", "[6, 1, 7]")


def scatter_sub(
    operand: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Tensor:
    """``operand`` with windows subtracted from it: :func:`scatter_add` of their negatives.

    >>> numbers = hg.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> hg.lax.scatter_sub(hnp.asarray([1, 1, 1]), np.array([[2], [0], [2]]), np.array([5, 6, 7]), numbers)
    Tensor([ -5,   1, -11], dtype=int64)
    """
    return scatter_add(operand, scatter_indices, -hnp.asarray(updates), dimension_numbers, mode=mode)


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
) -> Tensor:
    """``operand`` with the elementwise ``func`` applied to windows, of which ``update_shape`` tells the updates' shape; as often as one is named.

    Raises as :func:`scatter` does.

    >>> numbers = hg.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> hg.lax.scatter_apply(hnp.asarray([1, 2, 3]), np.array([[2], [0], [2]]), lambda x: 10 * x, numbers, update_shape=(3,))
    Tensor([ 10,   2, 300], dtype=int64)
    """
    t = hnp.asarray(operand)
    ones = hnp.ones(tuple(update_shape), dtype=np.int64)
    counts = scatter_add(hnp.zeros(t.shape, dtype=np.int64), scatter_indices, ones, dimension_numbers, mode=mode)
    return applied(t, counts, func, unique_indices)
