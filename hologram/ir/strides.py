"""Strided views: which elements of an array in C order a shape, strides and an offset pick out, and the movement that shows them.

All numbers count elements, and strides are 0 or more. Extents and strides may be symbolic where that is said; a symbolic extent is at least 2.
Most views are movement of the array: reshape, slice, transpose and broadcast, which cost nothing in a kernel. They are those where the array has a
shape such that along each of its axes the view is one slice. Others, such as windows that overlap, have to be read by index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from hologram.ir.symbolic import Expr, atoms, bounds, floordiv, mod, substitute

Shape = tuple[int, ...]


def contiguous_strides(shape: Sequence[Any]) -> Shape:
    """The strides of C order. Extents of 0 count as 1, as in NumPy and PyTorch. Symbolic extents give symbolic strides."""
    strides: list[Any] = []
    step: Any = 1
    for n in reversed(shape):
        strides.append(step)
        step *= n if isinstance(n, Expr) else max(n, 1)
    return tuple(reversed(strides))


class Strided(NamedTuple):
    """A view of an array in C order: element ``i`` of the view is element ``offset + sum(i * strides)`` of the array."""

    shape: Shape
    strides: Shape
    offset: int = 0

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def last(self) -> int:
        """The largest index that the view reads, of a view that has elements."""
        return self.offset + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements follow each other in C order. Strides of axes of one element do not matter."""
        expected = contiguous_strides(self.shape)
        return self.size == 0 or all(n == 1 or s == e for n, s, e in zip(self.shape, self.strides, expected, strict=True))

    @property
    def repeats(self) -> bool:
        """Whether an axis of several elements has the stride 0, so that these are one element."""
        return any(n > 1 and not s for n, s in zip(self.shape, self.strides, strict=True))

    def permuted(self, order: Sequence[int]) -> Strided:
        """The view whose axis ``i`` is axis ``order[i]`` of this one."""
        return Strided(tuple(self.shape[i] for i in order), tuple(self.strides[i] for i in order), self.offset)

    def selected(self, axis: int, index: int) -> Strided:
        """The elements at ``index`` of an axis, which vanishes."""
        others = [i for i in range(len(self.shape)) if i != axis]
        return self.permuted(others)._replace(offset=self.offset + index * self.strides[axis])

    def sliced(self, axis: int, start: int, stop: int, step: int) -> Strided:
        """The elements ``start, start + step, …`` of an axis before ``stop``."""
        shape, strides = list(self.shape), list(self.strides)
        shape[axis], strides[axis] = -(-(stop - start) // step), strides[axis] * step
        return Strided(tuple(shape), tuple(strides), self.offset + start * self.strides[axis])


class AxisSlice(NamedTuple):
    """One axis of an array: its extent, and the slice of it that a view has."""

    extent: int
    start: int
    length: int
    step: int

    @property
    def slice(self) -> slice:
        return slice(self.start, self.start + (self.length - 1) * self.step + 1, self.step)

    @property
    def is_whole(self) -> bool:
        return self.length == self.extent


class Movement(NamedTuple):
    """A view of ``shape`` as movement of an array.

    ``padded``: how many elements the array has, after padding. ``slices``: the axes that it is reshaped to, outermost first, one for each axis of
    the view that moves in memory and then, where elements are left between neighbours, one more. ``axes``: for each of them but that last, the axis
    of the view. The other axes of the view have one element, or repeat one element.
    """

    shape: Shape
    padded: int
    slices: tuple[AxisSlice, ...]
    axes: Shape

    @property
    def base(self) -> Shape:
        """The shape of the array that is sliced."""
        return tuple(s.extent for s in self.slices)

    @property
    def is_dense(self) -> bool:
        """Whether the view has every element of the array."""
        return all(s.is_whole for s in self.slices)


@lru_cache(4096)
def movement(view: Strided, base: Shape) -> Movement | None:
    """The view, which has elements, of an array of shape ``base`` as movement; None where it is none."""
    moving = _moving_axes(view.shape, view.strides)
    count, steps = math.prod(base), [(view.shape[i], view.strides[i]) for i in moving]
    for padded in dict.fromkeys([count, *[-(-count // s) * s for _, s in steps[:1]]]):
        slices = _slices(steps, padded, view.offset, contiguous_strides(base))
        if slices is not None:
            return Movement(view.shape, padded, tuple(slices), moving)
    return None


def _moving_axes(shape: Shape, strides: Shape) -> Shape:
    """The axes along which a view moves in memory, the largest stride first."""
    return tuple(sorted((i for i, n in enumerate(shape) if n > 1 and strides[i]), key=lambda i: (-strides[i], i)))


def _slices(steps: list[tuple[int, int]], length: int, offset: int, strides: Shape) -> list[AxisSlice] | None:
    """``length`` elements as axes for ``steps``, the extents and strides of the axes that are left. ``strides`` are those of the array, at which it
    may be divided."""
    if not steps:
        return [AxisSlice(length, offset, 1, 1)] if length > 1 else []
    (count, stride), rest = steps[0], steps[1:]
    reach = sum((n - 1) * s for n, s in rest)
    for inner in dict.fromkeys([stride, *[s for s in strides if s and stride % s == 0], 1]):
        start, left = divmod(offset, inner)
        step = stride // inner
        if length % inner or left + reach >= inner or start + (count - 1) * step >= length // inner:
            continue
        found = _slices(rest, inner, left, strides)
        if found is not None:
            return [AxisSlice(length // inner, start, count, step), *found]
    return None


@lru_cache(4096)
def own_movement(shape: Shape, strides: Shape) -> Movement | None:
    """A view from the start of memory as movement of the smallest array that has it as the first elements of each axis.

    None where there is no such array, since elements next to each other in the view are none in memory (``x[:, ::2]``), or windows overlap. Extents
    and strides may be symbolic: None, too, where it depends on sizes.
    """
    if 0 in shape:
        return Movement(shape, 0, tuple(AxisSlice(n, 0, n, 1) for n in shape), tuple(range(len(shape))))
    if any(isinstance(n, Expr) for n in (*shape, *strides)):
        return _symbolic_own_movement(shape, strides)
    axes = _moving_axes(shape, strides)
    if axes and strides[axes[-1]] != 1:
        return None
    base = [shape[a] for a in axes]
    for i in range(1, len(axes)):
        outer, inner = strides[axes[i - 1]], strides[axes[i]]
        if outer % inner != 0 or outer // inner < base[i]:
            return None
        base[i] = outer // inner
    slices = tuple(AxisSlice(extent, 0, shape[a], 1) for extent, a in zip(base, axes, strict=True))
    return Movement(shape, math.prod(base), slices, axes)


def _dense_order(moving: Sequence[int], shape: tuple[Any, ...], strides: tuple[Any, ...]) -> Shape | None:
    """The axes of a view without gaps, the outermost first: each one's stride is the product of the extents inside of it, whatever the sizes."""
    left, inside, step = list(moving), list[int](), 1
    while left:
        found = next((i for i in left if strides[i] == step), None)
        if found is None:
            return None
        left.remove(found)
        inside.append(found)
        step = step * shape[found]
    return tuple(reversed(inside))


def _symbolic_own_movement(shape: tuple[Any, ...], strides: tuple[Any, ...]) -> Movement | None:
    """:func:`own_movement` for symbolic sizes. Where there are gaps the order of the axes is that of one set of sizes, and then proved for all."""
    moving = [i for i, n in enumerate(shape) if (isinstance(n, Expr) or n > 1) and strides[i] != 0]
    axes = _dense_order(moving, shape, strides)
    if axes is None:
        sample = {a.name: 64 + 7 * i for i, a in enumerate(dict.fromkeys(a for n in (*shape, *strides) for a in atoms(n)))}
        axes = tuple(sorted(moving, key=lambda i: (-substitute(strides[i], sample), i)))
    if axes and strides[axes[-1]] != 1:
        return None
    base: list[Any] = [shape[a] for a in axes]
    for i in range(1, len(axes)):
        outer, inner = strides[axes[i - 1]], strides[axes[i]]
        if outer == inner * base[i]:
            continue
        extent = floordiv(outer, inner)
        room, _ = bounds(extent - base[i])
        if mod(outer, inner) != 0 or room is None or room < 0:
            return None
        base[i] = extent
    slices = tuple(AxisSlice(extent, 0, shape[a], 1) for extent, a in zip(base, axes, strict=True))
    return Movement(shape, math.prod(base), slices, axes)
