"""Indices of Python integers and slices of step 1 that choose a window of an array: found in one look, for updates and reads in a loop of Python."""

from __future__ import annotations

from typing import Any, NamedTuple

from hologram.ir.node import Node
from hologram.ir.op import Op, Shape
from hologram.ir.symbolic import Int
from hologram.primitives.indexing import gather
from hologram.primitives.movement import reshape
from hologram.trace.recorder import current, index_operand, levels_under_way, record

_BOUNDS = (int, type(None))


class KnownWindow(NamedTuple):
    """``axes`` along which the window is not all of the array, where it ``starts`` along these, its ``extents``, and the shape of what is
    ``selected``: the extents without integers' axes."""

    axes: tuple[int, ...]
    starts: list[int]
    extents: Shape
    selected: Shape


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
        if type(part) is int:
            start, size = part + n if part < 0 else part, 1
            if not 0 <= start < n:
                return None
        elif type(part) is slice and type(part.start) in _BOUNDS and type(part.stop) in _BOUNDS and part.step in (None, 1):
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


def element_at(node: Node, key: Any) -> Node | None:
    """The element that integers pick, read at operands, so that programs for other indices are the same. None for other keys, in traces, and under
    transforms, where a slice has the cheaper derivative."""
    if current() is not None or levels_under_way():
        return None
    window = known_window(node.shape, key)
    if window is None or window.selected:
        return None
    found = record(gather, (node, *[index_operand(i) for i in window.starts]), (window.axes, (1,) * len(window.axes), 0))
    return record(reshape, (found,), ((),))
