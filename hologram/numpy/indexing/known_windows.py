"""Indices of integers and slices of step 1 that choose a window of an array: found in one look, for updates and reads in a loop of Python."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hologram.ir.node import Node
from hologram.ir.op import Op, Shape
from hologram.ir.symbolic import Int
from hologram.numpy.indexing.views import Step, Steps
from hologram.primitives.indexing import gather
from hologram.primitives.movement import reshape, slice_
from hologram.trace.recorder import current, index_operand, levels_under_way, record

_BOUNDS = (int, type(None))


class KnownWindow(NamedTuple):
    """``axes`` along which the window is not all of the array, where it ``starts`` along these, its ``extents``, and the shape of what is
    ``selected``: the extents without integers' axes."""

    axes: tuple[int, ...]
    starts: list[int]
    extents: tuple[Any, ...]
    selected: tuple[Any, ...]


def _is_contiguous(part: slice) -> bool:
    step = part.step
    return (step is None or (type(step) is int and step == 1)) and type(part.start) in _BOUNDS and type(part.stop) in _BOUNDS


def known_window(shape: Shape, key: Any) -> KnownWindow | None:
    """The window of an array of ``shape`` that ``key`` chooses. None for what is no such window, is all of the array, is empty or out of range."""
    parts = key if type(key) is tuple else (key,)
    axes: tuple[int, ...] = ()
    starts: list[int] = []
    extents: list[Int] = []
    selected: list[Int] = []
    axis = 0
    if len(parts) > len(shape):
        return None
    for part in parts:
        n = shape[axis]
        if type(n) is not int:
            return None
        if type(part) is int or isinstance(part, np.integer):
            start, size = int(part), 1
            if start < 0:
                start += n
            if not 0 <= start < n:
                return None
        elif type(part) is slice and _is_contiguous(part):
            start, stop, _ = part.indices(n)
            size = stop - start
            if size <= 0:
                return None
            selected.append(size)
        else:
            return None
        extents.append(size)
        if size != n:
            axes = (*axes, axis)
            starts.append(start)
        axis += 1
    rest = shape[axis:]
    return KnownWindow(axes, starts, (*extents, *rest), (*selected, *rest)) if axes and 0 not in rest else None


def updated_window(node: Node, window: KnownWindow, values: Node, op: Op) -> Node:
    """``node`` after ``values``, of the window's extents, went there by ``op``."""
    return record(op, (node, values, *[index_operand(i) for i in window.starts]), (window.axes, 0))


def readable_window(shape: Any, key: Any) -> KnownWindow | None:
    """The window that is read at operands, so that programs for other indices are the same: an element, a row, a part of a vector. None for other
    keys, for most of an array, which is as likely to be read at one place only, in traces, and under transforms, where slices have the cheaper
    derivatives."""
    if current() is not None or levels_under_way():
        return None
    window = known_window(shape, key)
    if window is None or not window.selected:
        return window
    return window if len(window.selected) == 1 and 2 * window.selected[0] <= math.prod(shape) else None


def read_window(node: Node, window: KnownWindow) -> Node:
    """What ``window`` selects of ``node``."""
    sizes = tuple(window.extents[a] for a in window.axes)
    found = record(gather, (node, *[index_operand(i) for i in window.starts]), (window.axes, sizes, 0))
    return found if window.selected == window.extents else record(reshape, (found,), (window.selected,))


def steps_to(node: Node, window: KnownWindow) -> Steps:
    """How a view of the window comes of ``node``: by a slice, as one that is read in a trace."""
    first = [0] * len(window.extents)
    for axis, start in zip(window.axes, window.starts, strict=True):
        first[axis] = start
    stops = tuple(start + n for start, n in zip(first, window.extents, strict=True))
    cut: Step = (slice_, (tuple(first), stops, (1,) * len(first)), node.shape, node.dtype, ())
    flat: Step = (reshape, (window.selected,), window.extents, node.dtype, ())
    return (cut,) if window.selected == window.extents else (cut, flat)
