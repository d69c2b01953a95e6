"""Legalization of scatters: brings each to the form that kernels take.

That form is x (shared, …) with one axis for neighbours that are not indexed, starts (shared, places) and updates (shared, places, …). Narrow floats
of several places are combined in float32 and rounded once. Many single elements that go to few are cut in pieces
(:func:`hologram.primitives.indexing.pieces`), each a row of a batch. Devices sort many updates (:mod:`hologram.graph.legalize.sorted_scatters`).
:mod:`hologram.graph.lower.scatters` lowers the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hologram import dtypes
from hologram.graph.legalize.sorted_scatters import is_sorted, scatter_by_sorting
from hologram.graph.legalize.sorts import LongSorts
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE, Op, Shape
from hologram.ir.symbolic import Int, bounds, floordiv, prod
from hologram.primitives.indexing import scatter_pieces, window_sizes
from hologram.primitives.reductions import is_order_free, reduction_by


class _Scatter(NamedTuple):
    """A scatter in the form that kernels take."""

    x: Node
    updates: Node
    starts: list[Node]
    axes: tuple[int, ...]

    def sizes(self) -> Shape:
        return tuple(self.updates.shape[a + 1] for a in self.axes)


def legalize_scatter(b: Builder, node: Node, inputs: tuple[Node, ...], long: LongSorts | None, exact: bool) -> Node:
    """``long``: how a device sorts, by which it scatters many updates; None elsewhere."""
    axes, batch = node.attrs
    x, updates, *starts = inputs
    sizes = window_sizes(updates.shape, starts[0].shape, axes, batch)
    if updates.size == 0 or any((slack := bounds(x.shape[a] - n)[1]) is not None and slack < 0 for a, n in zip(axes, sizes, strict=True)):
        return x  # nothing to write, or windows that fit nowhere
    normal = _normal(b, x, updates, starts, axes, batch)
    places = normal.updates.shape[1]
    if node.op.monoid is not None and places != 1:
        work = dtypes.compute_type(x.dtype)
        normal = normal._replace(x=b.cast(normal.x, work), updates=b.cast(normal.updates, work))
    count = scatter_pieces(x.shape, updates.shape, starts[0].shape, axes, batch) if node.op.monoid is not None else 1
    in_order = exact and node.op.monoid is not None and not is_order_free(node.op.monoid, normal.x.dtype)
    if count > 1 and (long is None or in_order):
        out = _as_points(b, normal).scattered(b, lambda x, at, new: _in_pieces(b, node.op, x, at, new, count, long))
    elif long is not None and is_sorted(places):
        out = _as_points(b, normal).scattered(b, lambda x, at, new: _scattered(b, node.op, x, at, new, long, exact))
    else:
        out = b(node.op, (normal.x, normal.updates, *normal.starts), (normal.axes, 1))
    return b.cast(b.reshape(out, node.shape), node.dtype)


def _normal(b: Builder, x: Node, updates: Node, starts: list[Node], axes: tuple[int, ...], batch: int) -> _Scatter:
    places = starts[0].shape[batch:]
    shape: list[Int] = [prod(x.shape[:batch])]
    window: list[Int] = []
    where: list[int] = []
    sizes = dict(zip(axes, window_sizes(updates.shape, starts[0].shape, axes, batch), strict=True))
    joined = False  # whether the last axis so far is one of neighbours that are not indexed
    for a in range(batch, x.ndim):
        n = x.shape[a]
        if a in sizes:
            where.append(len(shape))
            shape.append(n)
            window.append(sizes[a])
        elif joined:
            shape[-1], window[-1] = shape[-1] * n, window[-1] * n
        elif n != 1:
            shape.append(n)
            window.append(n)
        joined = a not in sizes and (joined or n != 1)
    flat = (shape[0], prod(places))
    parts = b.reshape(updates, (*flat, *window))
    return _Scatter(b.reshape(x, tuple(shape)), parts, [b.reshape(s, flat) for s in starts], tuple(where))


# --- single elements along one axis ----------------------------------------------------------------------------------


class _Points(NamedTuple):
    """A scatter of single elements along one axis: x (shared, outer, n, inner), positions (shared, m), updates (shared, outer, m, inner)."""

    x: Node
    positions: Node
    updates: Node
    moved: Shape  # of x with its axes in ``order``
    order: tuple[int, ...]

    def scattered(self, b: Builder, scatter: Callable[[Node, Node, Node], Node]) -> Node:
        """What ``scatter`` makes of it, in the shape of the array that it was made of."""
        out = scatter(self.x, self.positions, self.updates)
        return b.transpose(b.reshape(out, self.moved), tuple(self.order.index(a) for a in range(len(self.order))))


def _as_points(b: Builder, s: _Scatter) -> _Points:
    """A window becomes its elements, several axes one."""
    free = [a for a in range(1, s.x.ndim) if a not in s.axes]
    outer, inner = ([a for a in free if (a < s.axes[0]) is before] for before in (True, False))
    order = (0, *outer, *s.axes, *inner)
    moved = b.transpose(s.x, order)
    sizes, shared, m = s.sizes(), s.x.shape[0], s.updates.shape[1]
    n, points = prod(s.x.shape[a] for a in s.axes), m * prod(sizes)
    rows = (shared, prod(s.x.shape[a] for a in outer)), prod(s.x.shape[a] for a in inner)
    x = b.reshape(moved, (*rows[0], n, rows[1]))
    updates = b.transpose(s.updates, (0, *(a + 1 for a in outer), 1, *(a + 1 for a in (*s.axes, *inner))))
    return _Points(x, _positions(b, s, (shared, points)), b.reshape(updates, (*rows[0], points, rows[1])), moved.shape, order)


def _positions(b: Builder, s: _Scatter, shape: Shape) -> Node:
    """Where the elements of windows stand on the indexed axes as one; -1 for those of windows that do not lie within the array."""
    sizes = s.sizes()
    if len(sizes) == 1 and sizes[0] == 1:
        return s.starts[0]
    whole = (*s.starts[0].shape, *sizes)
    at: Node | None = None
    inside: Node | None = None
    for k, (start, a, size) in enumerate(zip(s.starts, s.axes, sizes, strict=True)):
        first = b.make("broadcast", b.cast(start, dtypes.int64), attrs=(whole, (0, 1)))
        ahead = b.make("ge", first, b.full(0, dtypes.int64, whole))
        fits = b.make("and", ahead, b.make("lt", first, _extent(b, s.x.shape[a] - size + 1, whole)))
        inside = fits if inside is None else b.make("and", inside, fits)
        here = first if size == 1 else b.make("add", first, b.make("iota", attrs=(whole, 2 + k, "int64")))
        at = here if at is None else b.make("add", b.make("mul", at, _extent(b, s.x.shape[a], whole)), here)
    assert at is not None and inside is not None
    return b.reshape(b.make("select", inside, at, b.full(-1, dtypes.int64, whole)), shape)


def _extent(b: Builder, n: Int, shape: Shape) -> Node:
    """``n`` as a value, in that shape: of a symbol the last of so many numbers, and one."""
    if isinstance(n, int):
        return b.full(n, dtypes.int64, shape)
    last = b.slice_axis(b.make("iota", attrs=((n + 1,), 0, "int64")), 0, n, n + 1)
    return b.fit(b.reshape(last, ()), shape)


def _scattered(b: Builder, op: Op, x: Node, positions: Node, updates: Node, long: LongSorts | None, exact: bool) -> Node:
    found = scatter_by_sorting(b, op, x, positions, updates, long, exact) if long is not None else None
    if found is not None:
        return found
    shared, outer, m, inner = updates.shape
    windows = b.reshape(b.transpose(updates, (0, 2, 1, 3)), (shared, m, outer, 1, inner))
    return b(op, (x, windows, positions), ((2,), 1))


def _in_pieces(b: Builder, op: Op, x: Node, positions: Node, updates: Node, count: int, long: LongSorts | None) -> Node:
    """Every piece a row of its own, from the identity; then the rows, in order, and ``x``."""
    n, m = x.shape[2], positions.shape[1]
    size = floordiv(m + (count - 1), count)
    missing = count * size - m
    if missing != 0:
        positions = b.cast(positions, dtypes.int64)
        nowhere = b.const(-1, positions.dtype)
        positions = b(TABLE["pad"], (positions, nowhere), ((0, 0), (0, missing)))
        anything = b.const(0, updates.dtype)
        updates = b(TABLE["pad"], (updates, anything), ((0, 0, 0, 0), (0, 0, missing, 0)))
    identity = b.const(op.identity(x.dtype), x.dtype)
    start = b(TABLE["broadcast"], (identity,), ((count, 1, n, 1), ()))
    parts = _scattered(b, op, start, b.reshape(positions, (count, size)), b.reshape(updates, (count, 1, size, 1)), long, exact=True)
    total = b(reduction_by(op.monoid), (b.reshape(parts, (count, n)),), ((0,),))
    assert op.monoid is not None
    return b(op.monoid, (x, b.reshape(total, x.shape)))
