"""Derivatives of gathers, scatters and sorts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hologram import dtypes
from hologram.ir.node import Node, const_value
from hologram.ir.op import TABLE, Op
from hologram.ir.symbolic import Int, bounds, prod
from hologram.primitives.indexing import window_sizes
from hologram.trace.operators import extent_node
from hologram.trace.recorder import cast_node
from hologram.transform.nodes import add, apply, div, full, moved, mul, number, reshaped, select, spread, total, zeros_like
from hologram.transform.rules.rules import Tangents, attach, call


def _gather_jvp(tangents: Tangents, out: Node, x: Node, *rest: Any) -> Node:
    *starts, axes, sizes, batch = rest
    t = tangents[0]
    assert t is not None
    return apply(TABLE["gather"], t, *starts, attrs=(axes, sizes, batch))


def _gather_transpose(ct: Node, linear: Sequence[bool], x: Node, *rest: Any) -> tuple[Node | None, ...]:
    *starts, axes, _, batch = rest
    return apply(TABLE["scatter_add"], zeros_like(x), ct, *starts, attrs=(axes, batch)), *[None] * len(starts)


attach("gather", jvp=_gather_jvp, transpose=_gather_transpose)


# --- scatters --------------------------------------------------------------------------------------------------------


class _Windows:
    """The windows of a scatter of ``updates`` into ``x``; those that do not lie within ``x`` are dropped, and so have no derivative."""

    def __init__(self, x: Node, updates: Node, *rest: Any) -> None:
        *self.starts, self.axes, self.batch = rest
        self.shape, self.updates = x.shape, updates.shape
        self.places = self.starts[0].shape
        self.sizes = window_sizes(updates.shape, self.places, self.axes, self.batch)

    def scattered(self, op: Op, x: Node, updates: Node) -> Node:
        return apply(op, x, updates, *self.starts, attrs=(self.axes, self.batch))

    def _last(self, k: int) -> Int:
        """The last start at which a window fits."""
        return self.shape[self.axes[k]] - self.sizes[k]

    def _certainly_within(self, k: int) -> bool:
        start, last = self.starts[k], self._last(k)
        return start.op.name == "const" and isinstance(last, int) and 0 <= int(const_value(start)) <= last

    def spread(self, x: Node) -> Node:
        """Something known of every place, over its window."""
        return spread(x, self.updates, range(len(self.places)))

    def read(self, x: Node) -> Node:
        """What of ``x`` is in the windows; zero in those that are dropped."""
        if any((high := bounds(self._last(k))[1]) is not None and high < 0 for k in range(len(self.axes))):
            return full(0, x.dtype, self.updates)
        within: Node | None = None
        starts: list[Node] = []
        for k, start in enumerate(self.starts):
            if not self._certainly_within(k):
                start, here = self._moved_within(start, self._last(k))
                within = here if within is None else call("and", within, here)
            starts.append(start)
        found = apply(TABLE["gather"], x, *starts, attrs=(self.axes, self.sizes, self.batch))
        return found if within is None else select(self.spread(within), found, number(0, x))

    def _moved_within(self, start: Node, last: Int) -> tuple[Node, Node]:
        """Starts moved to where windows fit, and whether they were there."""
        wide, most = cast_node(start, dtypes.int64), extent_node(last, dtypes.int64)
        zero = number(0, wide)
        return call("min", call("max", wide, zero), most), call("and", call("ge", wide, zero), call("le", wide, most))

    def is_one(self) -> bool:
        """Whether each part of the array that shares windows has one."""
        return prod(self.places[self.batch :]) == 1

    def stay(self) -> Node | None:
        """By element of the updates, whether it is the last that is set to its place; None where all are, since there is one window."""
        if self.is_one():
            return None
        count, rank = prod(self.places[self.batch :]), len(self.places)
        turn = reshaped(apply(TABLE["iota"], attrs=((count,), 0, "int64")), self.places[self.batch :])
        turns = spread(turn, (*self.places, *self.sizes), range(self.batch, rank))
        nobody = full(-1, dtypes.int64, (*self.shape[: self.batch], *(self.shape[a] for a in self.axes)))
        alike = _Windows(nobody, turns, *self.starts, tuple(range(self.batch, len(nobody.shape))), self.batch)
        here = call("eq", alike.read(alike.scattered(TABLE["scatter_set"], nobody, turns)), turns)
        return spread(here, self.updates, (*range(rank), *(rank + a - self.batch for a in self.axes)))

    def in_windows(self, x: Node, t: Node | None) -> Node:
        """``x`` where windows are, 1 beside them: what the tangent ``t`` of the array is multiplied with or divided by. None: there is none."""
        if t is None:
            return x
        touched = self.scattered(TABLE["scatter_set"], full(False, dtypes.bool_, self.shape), full(True, dtypes.bool_, self.updates))
        return select(touched, x, number(1, x))


def _scatter_jvp(op: Op) -> Callable[..., Node]:
    """Of a scatter that is linear in the array and the updates."""

    def jvp(tangents: Tangents, out: Node, x: Node, updates: Node, *rest: Any) -> Node:
        t, u, *_ = tangents
        return _Windows(x, updates, *rest).scattered(op, zeros_like(x) if t is None else t, zeros_like(updates) if u is None else u)

    return jvp


def _scatter_add_transpose(ct: Node, linear: Sequence[bool], x: Node, updates: Node, *rest: Any) -> tuple[Node | None, ...]:
    windows = _Windows(x, updates, *rest)
    return ct if linear[0] else None, windows.read(ct) if linear[1] else None, *[None] * len(windows.starts)


def _scatter_set_transpose(ct: Node, linear: Sequence[bool], x: Node, updates: Node, *rest: Any) -> tuple[Node | None, ...]:
    """The elements that were replaced have no cotangent; of several updates of one element the last, which stayed, has it."""
    windows = _Windows(x, updates, *rest)
    old = windows.scattered(TABLE["scatter_set"], ct, zeros_like(updates)) if linear[0] else None
    new: Node | None = None
    if linear[1]:
        stay = windows.stay()
        new = windows.read(ct) if stay is None else select(stay, windows.read(ct), number(0, ct))
    return old, new, *[None] * len(windows.starts)


def _scatter_extreme_jvp(tangents: Tangents, out: Node, x: Node, updates: Node, *rest: Any) -> Node:
    """The mean tangent of the elements and updates that are the extreme of their place, zero where that is NaN. Of one window it is computed in the
    window."""
    t, u, *_ = tangents
    windows = _Windows(x, updates, *rest)

    def at_least_one(count: Node) -> Node:
        return call("max", count, number(1, count))

    if windows.is_one():
        best = windows.read(out)
        old, new = cast_node(call("eq", windows.read(x), best), x.dtype), cast_node(call("eq", updates, best), x.dtype)
        share = total([None if t is None else mul(windows.read(t), old), None if u is None else mul(u, new)])
        assert share is not None
        return windows.scattered(TABLE["scatter_set"], zeros_like(x) if t is None else t, div(share, at_least_one(add(old, new))))
    old = windows.in_windows(cast_node(call("eq", x, out), x.dtype), t)
    new = cast_node(call("eq", updates, windows.read(out)), x.dtype)

    def gather_up(a: Node | None, b: Node | None) -> Node:
        return windows.scattered(TABLE["scatter_add"], zeros_like(x) if a is None else a, zeros_like(updates) if b is None else b)

    parts = gather_up(None if t is None else mul(t, old), None if u is None else mul(u, new))
    return div(parts, at_least_one(gather_up(old, new)))


attach("scatter_add", jvp=_scatter_jvp(TABLE["scatter_add"]), transpose=_scatter_add_transpose)
attach("scatter_set", jvp=_scatter_jvp(TABLE["scatter_set"]), transpose=_scatter_set_transpose)
attach("scatter_max", jvp=_scatter_extreme_jvp)
attach("scatter_min", jvp=_scatter_extreme_jvp)


def _scatter_mul_jvp(tangents: Tangents, out: Node, x: Node, updates: Node, *rest: Any) -> Node:
    """Each factor's tangent times the other factors: of several windows, which may overlap, the product divided by it, so that a factor of zero
    gives NaN."""
    t, u, *_ = tangents
    windows = _Windows(x, updates, *rest)
    if windows.is_one():
        product = total([None if t is None else mul(windows.read(t), updates), None if u is None else mul(windows.read(x), u)])
        assert product is not None
        return windows.scattered(TABLE["scatter_set"], zeros_like(x) if t is None else t, product)
    terms = zeros_like(x) if t is None else div(t, windows.in_windows(x, t))
    parts = zeros_like(updates) if u is None else div(u, updates)
    return mul(windows.in_windows(out, t), windows.scattered(TABLE["scatter_add"], terms, parts))


attach("scatter_mul", jvp=_scatter_mul_jvp)


# --- sorts -----------------------------------------------------------------------------------------------------------


def _sort_jvp(tangents: Tangents, out: Node, x: Node, axis: int, descending: bool) -> Node:
    """Every element's tangent goes where the element goes."""
    (t,) = tangents
    assert t is not None
    last = len(x.shape) - 1
    order = moved(apply(TABLE["argsort"], x, attrs=(axis, descending)), axis, last)
    sorted_ = apply(TABLE["gather"], moved(t, axis, last), order, attrs=((last,), (1,), last))
    return moved(reshaped(sorted_, order.shape), last, axis)


attach("sort", jvp=_sort_jvp)
