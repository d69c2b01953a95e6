"""Scatters, on their way to kernels.

:func:`prepare_scatter` brings one to the form that kernels take: x (batch, outer, n, inner), indices (batch, m), updates (batch, outer, m, inner);
Narrow floats are combined in float32 and rounded once; many updates of few places are cut in pieces (:func:`hologram.primitives.indexing.pieces`),
each a row of a batch.

:func:`lower_scatter` makes two kernels of it. The first writes x, as any value is written. The second reads, combines and writes again the places
that the indices name: chunks are independent parts of the result, in a chunk updates go in turn, and so the order never depends on threads.
"""

from __future__ import annotations

from typing import Any

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.fusion.groups import Group
from hologram.graph.kernel.build import summarise
from hologram.graph.kernel.ir import Kernel, Loop, Store, Value
from hologram.graph.legalize.sorted_scatters import in_runs, is_order_free, reduction_by
from hologram.graph.legalize.sorts import LongSorts
from hologram.graph.lower.code_placement import Lowered
from hologram.graph.lower.group import lower
from hologram.graph.lower.scalarize import Values
from hologram.graph.schedule.choose import COLUMNS
from hologram.ir.index_maps import linear
from hologram.ir.node import Builder, Node, const_attrs
from hologram.ir.op import TABLE, Op, Shape
from hologram.ir.symbolic import Int, counter, floordiv, mod, prod
from hologram.primitives.indexing import pieces

LONG_NS = 100_000.0  # where sizes are not known
UPDATE_NS = 1.0  # of one element read, combined and written at a computed place


# --- before fusion ---------------------------------------------------------------------------------------------------


def prepare_scatter(b: Builder, node: Node, inputs: tuple[Node, ...], long: LongSorts | None, exact: bool) -> Node:
    """``long``: how a device sorts, by which it scatters many updates (:mod:`hologram.graph.legalize.sorted_scatters`)."""
    axis, batch = node.attrs
    x, indices, updates = inputs
    if updates.size == 0:
        return x
    work = x.dtype if node.op.monoid is None else dtypes.compute_type(x.dtype)
    shared, outer, n, inner = prod(x.shape[:batch]), prod(x.shape[batch:axis]), x.shape[axis], prod(x.shape[axis + 1 :])
    m = prod(indices.shape[batch:])
    rows = _reshape(b, _cast(b, x, work), (shared, outer, n, inner))
    places = _reshape(b, indices, (shared, m))
    parts = _reshape(b, _cast(b, updates, work), (shared, outer, m, inner))
    count = pieces(n, m) if node.op.monoid is not None and x.size == n else 1
    in_order = exact and node.op.monoid is not None and not is_order_free(node.op.monoid, work)
    if count > 1 and (long is None or in_order):
        out = _in_pieces(b, node.op, rows, places, parts, count, long)
    else:
        out = _scattered(b, node.op, rows, places, parts, long, exact)
    return _cast(b, _reshape(b, out, node.shape), node.dtype)


def _scattered(b: Builder, op: Op, x: Node, indices: Node, updates: Node, long: LongSorts | None, exact: bool) -> Node:
    found = in_runs(b, op, x, indices, updates, long, exact) if long is not None else None
    return b(op, (x, indices, updates), (2, 1)) if found is None else found


def _in_pieces(b: Builder, op: Op, x: Node, indices: Node, updates: Node, count: int, long: LongSorts | None) -> Node:
    """Every piece a row of its own, from the identity; then the rows, in order, and ``x``."""
    n, m = x.shape[2], indices.shape[1]
    size = floordiv(m + (count - 1), count)
    missing = count * size - m
    if missing != 0:
        indices = _cast(b, indices, dtypes.int64)
        nowhere = b(TABLE["const"], (), const_attrs(-1, indices.dtype))
        indices = b(TABLE["pad"], (indices, nowhere), ((0, 0), (0, missing)))
        anything = b(TABLE["const"], (), const_attrs(0, updates.dtype))
        updates = b(TABLE["pad"], (updates, anything), ((0, 0, 0, 0), (0, 0, missing, 0)))
    identity = b(TABLE["const"], (), const_attrs(op.identity(x.dtype), x.dtype))
    start = b(TABLE["broadcast"], (identity,), ((count, 1, n, 1), ()))
    parts = _scattered(b, op, start, _reshape(b, indices, (count, size)), _reshape(b, updates, (count, 1, size, 1)), long, exact=True)
    total = b(reduction_by(op.monoid), (_reshape(b, parts, (count, n)),), ((0,),))
    assert op.monoid is not None
    return b(op.monoid, (x, _reshape(b, total, x.shape)))


def _cast(b: Builder, x: Node, d: DType) -> Node:
    return x if x.dtype is d else b(TABLE["cast"], (x,), (d.name,))


def _reshape(b: Builder, x: Node, shape: Shape) -> Node:
    return x if x.shape == shape else b(TABLE["reshape"], (x,), (shape,))


# --- after fusion ----------------------------------------------------------------------------------------------------


def lower_scatter(group: Group, roots: set[Node], precision: str) -> list[Lowered]:
    """The kernels of a group whose only root is a scatter: its start, and the updates."""
    (root,) = group.roots
    return [*lower(group, roots, {root}, precision), _Updates(group, roots).lowered()]


class _Updates:
    """The kernel that runs the updates of one scatter.

    Its parallel loop goes over batch, outer and blocks of inner; a serial loop over the updates; the innermost over a block's elements, if it has
    more than one.
    """

    def __init__(self, group: Group, roots: set[Node]) -> None:
        (self.root,) = group.roots
        self.group, self.values = group, Values(group, roots)
        self.shared, self.outer, self.n, self.inner = self.root.shape
        self.m = self.root.inputs[1].shape[1]
        wide = not isinstance(self.inner, int) or self.inner > COLUMNS
        self.block: Int = COLUMNS if wide else self.inner
        self.blocks = floordiv(self.inner + (self.block - 1), self.block) if wide else 1

    def lowered(self) -> Lowered:
        kernel = Kernel()
        kernel.chunks = self.shared * self.outer * self.blocks
        p = counter("p", kernel.chunks)
        row = floordiv(p, self.blocks)
        serial = Loop("serial", "j", 0, self.m)
        serial.body = self._update(floordiv(row, self.outer), mod(row, self.outer), mod(p, self.blocks) * self.block)
        parallel = Loop("parallel", "p", 0, kernel.chunks)
        parallel.body.append(serial)
        kernel.body.append(parallel)
        self._finish(kernel)
        return Lowered(kernel, list(self.values.buffers), self.group)

    def _update(self, batch: Int, outer: Int, start: Int) -> list[Any]:
        """The body of the loop over updates: where it goes, and then the element or the elements there."""
        values, indices = self.values, self.root.inputs[1]
        j = counter("j", self.m)
        at, inside = values.place(indices, (batch, j), self.n)
        order: list[Any] = values.order
        before = len(order)
        if self.inner == 1:
            store = self._combined(batch, outer, j, at, inside, 0)
            return [*order, store]
        stop = None if self.blocks == 1 else self.inner
        lanes = Loop("lanes", "i", start, self.block, stop)
        store = self._combined(batch, outer, j, at, inside, counter("i", self.inner))
        lanes.body += [*order[before:], store]
        return [*order[:before], lanes]

    def _combined(self, batch: Int, outer: Int, j: Int, at: Int, inside: Value, i: Int) -> Store:
        root, values = self.root, self.values
        buffer = values.buffer(root, "inout")
        index = linear((batch, outer, at, i), root.shape)
        value = values.element(root.inputs[2], (batch, outer, j, i), ())
        if root.op.monoid is not None:
            old = values.emit("load", (inside,), (buffer, index), root.dtype)
            value = values.emit(root.op.monoid, (old, value), (), root.dtype)
        return Store(buffer, index, value, inside)

    def _finish(self, kernel: Kernel) -> None:
        kernel.params = list(self.values.buffers.values())
        summarise(kernel)
        elements = self.m * (1 if self.inner == 1 else self.block)
        kernel.cost = UPDATE_NS * elements if isinstance(elements, int) else LONG_NS
