"""Views as movement: what ``(size, stride, offset)`` picks out of an array in C order, as reshape, slice, transpose and broadcast.

A view is one rectangle of the array under some other shape: the elements are cut into axes, outermost first, each a multiple of the next, such that
along each of them the view is one slice. A geometry that is no such rectangle (windows that overlap, say) is read and written by index.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

from hologram import numpy as hnp
from hologram.errors import ArgumentError
from hologram.trace.tensor import Tensor

Shape = tuple[int, ...]


class Cut(NamedTuple):
    """One axis of the array under the view's shape: its extent, and the slice of it that the view has."""

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


class Rectangle(NamedTuple):
    """``padded``: elements of the array after padding. ``cuts``: its axes, outermost first, one for each axis of the view that has a stride and
    then, where elements are left between neighbours, one more. ``axes``: for each cut but that last, the axis of the view."""

    padded: int
    cuts: tuple[Cut, ...]
    axes: Shape


@lru_cache(4096)
def rectangle(shape: Shape, size: Shape, stride: Shape, offset: int) -> Rectangle | None:
    """The view of an array of ``shape`` as a rectangle; None where it is none. Axes of the view that have stride 0 or extent 1 do not matter."""
    moving = sorted((i for i, n in enumerate(size) if n > 1 and stride[i]), key=lambda i: (-stride[i], i))
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    count = math.prod(shape)
    steps = [(size[i], stride[i]) for i in moving]
    for padded in dict.fromkeys([count, *[-(-count // s) * s for _, s in steps[:1]]]):
        cuts = _cuts(steps, padded, offset, strides)
        if cuts is not None:
            return Rectangle(padded, tuple(cuts), tuple(moving))
    return None


def _cuts(steps: list[tuple[int, int]], length: int, offset: int, strides: list[int]) -> list[Cut] | None:
    """``length`` elements cut for ``steps``, the extents and strides of the axes that are left; ``strides`` are those of the array, to cut along."""
    if not steps:
        return [Cut(length, offset, 1, 1)] if length > 1 else []
    (count, stride), rest = steps[0], steps[1:]
    reach = sum((n - 1) * s for n, s in rest)
    for inner in dict.fromkeys([stride, *[s for s in strides if s and stride % s == 0], 1]):
        start, left = divmod(offset, inner)
        step = stride // inner
        if length % inner or left + reach >= inner or start + (count - 1) * step >= length // inner:
            continue
        found = _cuts(rest, inner, left, strides)
        if found is not None:
            return [Cut(length // inner, start, count, step), *found]
    return None


def _indices(size: Shape, stride: Shape, offset: int) -> Tensor:
    """Where in the flat array each element of the view is."""
    at = hnp.full(size, offset)
    for i, (n, s) in enumerate(zip(size, stride, strict=True)):
        at = at + hnp.reshape(hnp.arange(n) * s, (n,) + (1,) * (len(size) - 1 - i))
    return at


def _reshaped(x: Tensor, shape: Shape) -> Tensor:
    return x if x.shape == shape else hnp.reshape(x, shape)


def _padded(x: Tensor, found: Rectangle) -> Tensor:
    """The array with the axes of ``found``."""
    missing = found.padded - x.size
    if missing:
        x = hnp.pad(hnp.reshape(x, (-1,)), (0, missing))
    return _reshaped(x, tuple(cut.extent for cut in found.cuts))


def read_view(x: Tensor, size: Shape, stride: Shape, offset: Any) -> Tensor:
    """The elements of the view of ``x``: a Tensor of shape ``size``."""
    if 0 in size:
        return hnp.zeros(size, dtype=x.dtype)
    found = rectangle(x.shape, size, stride, offset)
    if found is None:
        return hnp.take(hnp.reshape(x, (-1,)), _indices(size, stride, offset))
    part = _padded(x, found)
    if not all(cut.is_whole for cut in found.cuts):
        part = part[tuple(cut.slice for cut in found.cuts)]
    part = _reshaped(part, tuple(size[i] for i in found.axes))
    order = sorted(range(len(found.axes)), key=lambda k: found.axes[k])
    if order != list(range(len(order))):
        part = hnp.permute_dims(part, tuple(order))
    moving = set(found.axes)
    part = _reshaped(part, tuple(n if i in moving else 1 for i, n in enumerate(size)))
    return part if part.shape == size else hnp.broadcast_to(part, size)


def write_view(x: Tensor, size: Shape, stride: Shape, offset: Any, new: Tensor) -> Tensor:
    """``x`` with ``new``, of shape ``size``, for the elements of the view.

    Raises ArgumentError where one element is in several places of the view.
    """
    if 0 in size:
        return x
    if any(n > 1 and not s for n, s in zip(size, stride, strict=True)):
        raise ArgumentError("more than one element of the written tensor is one memory location: clone() it before an operation in place")
    found = rectangle(x.shape, size, stride, offset)
    if found is None:
        flat = hnp.reshape(x, (-1,))
        return hnp.reshape(flat.at[_indices(size, stride, offset)].set(new), x.shape)
    order = found.axes
    part = _reshaped(new, tuple(size[i] for i in sorted(order)))
    rank = {axis: k for k, axis in enumerate(sorted(order))}
    if list(order) != sorted(order):
        part = hnp.permute_dims(part, tuple(rank[i] for i in order))
    if all(cut.is_whole for cut in found.cuts):
        return _reshaped(part, x.shape)
    part = _reshaped(part, tuple(cut.length for cut in found.cuts))
    whole = _padded(x, found).at[tuple(cut.slice for cut in found.cuts)].set(part)
    if found.padded != x.size:
        whole = hnp.reshape(whole, (-1,))[: x.size]
    return _reshaped(whole, x.shape)
