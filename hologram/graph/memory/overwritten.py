"""Overwritten planes: what a loop's carry holds at first where the loop writes before it reads. Nobody sees these elements: they need not be filled.

A program that fills an array in a loop begins with ``zeros``, or with zeros and a first plane. Where each step writes the planes along one axis that
begin at a number that the step's own number gives, the loop is followed step by step: a plane is unread if a step writes the whole of it and no
step before has read it. Only planes of loops of known length are found, whose carries are read and written by windows and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from hologram.graph.canonical.integer_ranges import type_range
from hologram.graph.canonical.loop_ranges import counter_step
from hologram.ir.graph import Graph
from hologram.ir.node import Node, const_value
from hologram.ir.op import Shape
from hologram.ir.symbolic import Int, prod
from hologram.ir.traversal import users_of
from hologram.primitives.control import scan
from hologram.primitives.indexing import window_sizes

MAX_STEPS = 2**16  # of a loop that is followed
MAX_PLANES = 2**20  # in all of its steps
_WRITTEN_NEVER = np.iinfo(np.int64).max


class Unread(NamedTuple):
    """Elements of a value that nobody reads: the planes along ``axis`` that are marked."""

    axis: int
    planes: np.ndarray

    def holds(self, start: int, count: int, step: int) -> bool:
        """Whether all of ``count`` planes from ``start`` on, ``step`` apart, are unread."""
        return bool(self.planes[start : start + step * (count - 1) + 1 : step].all())


NOTHING_UNREAD: Mapping[Node, Unread] = {}


class _Window(NamedTuple):
    """Planes that each step reads or writes: ``extent`` from ``first`` on in the first step, ``by`` further in each step after it."""

    shape: tuple[int, int, int]  # of the array: elements before the axis, along it, and after it
    first: int
    by: int
    extent: int

    def planes(self, length: int) -> np.ndarray:
        """Those of each step, a row each."""
        starts = self.first + self.by * np.arange(length, dtype=np.int64)
        return starts[:, None] + np.arange(self.extent, dtype=np.int64)


def unread_planes(graph: Graph) -> dict[Node, Unread]:
    """The values of a graph of which some elements are overwritten by the one loop that takes them, before they are read."""
    nodes = graph.nodes()
    loops = [n for n in nodes if n.op is scan and isinstance(n.attrs[3], int) and 0 < n.attrs[3] <= MAX_STEPS]
    found: dict[Node, Unread] = {}
    if not loops:
        return found
    users = users_of(nodes)
    for loop in loops:
        _, consts, carries, *_ = loop.attrs
        for k in range(carries):
            x = loop.inputs[consts + k]
            if x.shape and users[x] == [loop] and loop.inputs.count(x) == 1 and x not in graph.outputs and (unread := _unread(loop, k)):
                found[x] = unread
    return found


def _unread(loop: Node, k: int) -> Unread | None:
    """What of carry ``k`` no step reads before it is written; None where nothing is."""
    body, consts, _, length, *_ = loop.attrs
    graph: Graph = body.graph
    counters = _Counters(loop)
    x, users = graph.inputs[consts + k], users_of(graph.nodes())
    reads = _readers(x, users, graph)
    writes = [n for n in reads or () if n.op.name == "scatter_set"]
    later = _readers(writes[0], users, graph, graph.outputs[k]) if len(writes) == 1 else None
    if reads is None or later is None:
        return None
    (write,) = writes
    windows = [_window(n, counters) for n in (write, *(r for r in reads if r is not write), *later)]
    planes = _overwritten([w for w in windows if w is not None], len(reads) - 1, length) if None not in windows else None
    axis = None if planes is None else _axis_of(windows[0], x.shape)
    return None if planes is None or axis is None or planes.all() or not planes.any() else Unread(axis, planes)


def _views(x: Node, users: Mapping[Node, list[Node]]) -> list[Node]:
    """``x``, and the arrays of other shapes that have its elements."""
    found = [x]
    for v in found:
        found += [n for n in users.get(v, []) if n.op.name == "reshape"]
    return found


def _readers(x: Node, users: Mapping[Node, list[Node]], graph: Graph, result: Node | None = None) -> list[Node] | None:
    """What reads or replaces windows of ``x``, beside the body's ``result``; None where its elements are read in any other way."""
    views = _views(x, users)
    if sum(graph.outputs.count(v) for v in views) != (result is not None) or (result is not None and result not in views):
        return None
    readers = list(dict.fromkeys(n for v in views for n in users.get(v, []) if n.op.name != "reshape"))
    return readers if all(n.inputs[0] in views and not any(i in views for i in n.inputs[1:]) for n in readers) else None


def _overwritten(windows: list[_Window], before: int, length: int) -> np.ndarray | None:
    """Which planes ``length`` steps write before they read them. ``windows``: what is written, what is read ``before`` that in a step, and behind."""
    n = windows[0].shape[1]
    if any(w.shape != windows[0].shape for w in windows) or length * sum(w.extent for w in windows) > MAX_PLANES:
        return None
    steps = [w.planes(length) for w in windows]
    if any(p.min() < 0 or p.max() >= n for p in steps):
        return None  # a window that is not inside is moved, or dropped
    first = np.full(n, _WRITTEN_NEVER)
    np.minimum.at(first, steps[0], np.arange(length)[:, None])
    planes = first != _WRITTEN_NEVER
    for i, read in enumerate(steps[1:]):
        now = np.arange(length)[:, None] + (i >= before)  # what is read behind the write of a step has that
        planes[read[first[read] >= now]] = False
    return planes


def _axis_of(window: _Window | None, shape: Shape) -> int | None:
    """The axis of an array along which a window's planes lie."""
    return next((a for a in range(len(shape)) if window is not None and _around(shape, a) == window.shape), None)


def _around(shape: Shape, axis: int) -> tuple[Int, Int, Int]:
    """Elements before an axis, along it, and after it: where they are alike, arrays have the same planes."""
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


def _window(n: Node, counters: _Counters) -> _Window | None:
    """The planes that ``n``, a gather or scatter of one window, reads or writes; None for anything else."""
    if n.op.name == "gather":
        (axes, (size, *_), batch), starts = n.attrs, n.inputs[1:]
    elif n.op.name == "scatter_set":
        (axes, batch), starts = n.attrs, n.inputs[2:]
        size, *_ = window_sizes(n.inputs[1].shape, starts[0].shape, axes, batch)
    else:
        return None
    shape = n.inputs[0].shape
    if len(axes) != 1 or any(n != 1 for n in starts[0].shape) or not all(isinstance(n, int) for n in (size, *shape)):
        return None
    start = counters.affine(starts[0])
    around: Any = _around(shape, axes[0])
    return None if start is None else _Window(around, *start, size)


class _Counters:
    """The counters of a loop of ``length`` steps: the value of each in the first step, and what each step adds to it."""

    def __init__(self, loop: Node) -> None:
        body, consts, carries, self.length, *_ = loop.attrs
        self.steps: dict[Node, tuple[int, int]] = {}
        for k in range(carries):
            start, by = loop.inputs[consts + k], counter_step(body.graph, consts, k)
            if by is not None and start.op.name == "const":
                self.steps[body.graph.inputs[consts + k]] = int(const_value(start)), by

    def affine(self, n: Node) -> tuple[int, int] | None:
        """The value of an integer in the first step, and what each step adds to it; None where that is not known, or leaves the type."""
        limits = type_range(n.dtype)
        found = None if limits is None else self._affine(n)
        if found is None or limits is None:
            return None
        ends = found[0], found[0] + found[1] * (self.length - 1)
        return found if limits[0] <= min(ends) and max(ends) <= limits[1] else None

    def _affine(self, n: Node) -> tuple[int, int] | None:
        if n in self.steps:
            return self.steps[n]
        if n.op.name == "const":
            return int(const_value(n)), 0
        if n.op.name in ("reshape", "broadcast", "cast"):
            return self.affine(n.inputs[0])
        if n.op.name not in ("add", "sub", "neg"):
            return None
        found = [self.affine(x) for x in n.inputs]
        parts = [p for p in found if p is not None]
        if len(parts) != len(found):
            return None
        (a, da), (b, db) = ((0, 0), *parts)[-2:]
        return (a + b, da + db) if n.op.name == "add" else (a - b, da - db)
