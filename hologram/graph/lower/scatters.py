"""Lowering of scatters: two kernels, the copy of x and the updates.

The first kernel writes x, as any value is written. The second reads, combines and writes again the elements that the indices name. Parallel
iterations are independent parts of the result, and the updates of a parallel iteration run in order, so the result never depends on threads."""

from __future__ import annotations

from typing import Any

from hologram.graph.fusion.groups import Group
from hologram.graph.kernel.build import summarise
from hologram.graph.kernel.ir import Kernel, Loop, Store, Value
from hologram.graph.lower.group import lower
from hologram.graph.lower.lowered import Lowered
from hologram.graph.lower.scalarize import ScalarProgram
from hologram.graph.schedule.choose import COLUMNS
from hologram.ir.index_maps import linear
from hologram.ir.node import Node
from hologram.ir.symbolic import Int, counter, floordiv, mod

UNKNOWN_NS = 100_000.0  # where sizes are not known
UPDATE_NS = 1.0  # of one element read, combined and written at a computed index


def lower_scatter(group: Group, materialized: set[Node], precision: str) -> list[Lowered]:
    """The kernels of a group whose only value is a scatter: its start, and the updates."""
    (node,) = group.nodes
    return [*lower(group, materialized, {node}, precision), _Updates(group, materialized).lowered()]


class _Updates:
    """The kernel that runs the updates of one scatter.

    Its parallel loop goes over batch, outer and blocks of inner; a serial loop over the updates; the innermost over a block's elements, if it has
    more than one.
    """

    def __init__(self, group: Group, materialized: set[Node]) -> None:
        (self.node,) = group.nodes
        self.group, self.values = group, ScalarProgram(group, materialized)
        self.shared, self.outer, self.n, self.inner = self.node.shape
        self.m = self.node.inputs[1].shape[1]
        wide = not isinstance(self.inner, int) or self.inner > COLUMNS
        self.block: Int = COLUMNS if wide else self.inner
        self.blocks = floordiv(self.inner + (self.block - 1), self.block) if wide else 1

    def lowered(self) -> Lowered:
        kernel = Kernel()
        kernel.iterations = self.shared * self.outer * self.blocks
        p = counter("p", kernel.iterations)
        row = floordiv(p, self.blocks)
        serial = Loop("serial", "j", 0, self.m)
        serial.body = self._update(floordiv(row, self.outer), mod(row, self.outer), mod(p, self.blocks) * self.block)
        parallel = Loop("parallel", "p", 0, kernel.iterations)
        parallel.body.append(serial)
        kernel.body.append(parallel)
        self._finish(kernel)
        return Lowered(kernel, list(self.values.buffers), self.group)

    def _update(self, batch: Int, outer: Int, start: Int) -> list[Any]:
        """The body of the loop over updates: where it goes, and then the element or the elements there."""
        values, indices = self.values, self.node.inputs[1]
        j = counter("j", self.m)
        at, inside = values.checked_index(indices, (batch, j), self.n)
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
        node, values = self.node, self.values
        buffer = values.buffer(node, "inout")
        index = linear((batch, outer, at, i), node.shape)
        value = values.element(node.inputs[2], (batch, outer, j, i), ())
        if node.op.monoid is not None:
            old = values.emit("load", (inside,), (buffer, index), node.dtype)
            value = values.emit(node.op.monoid, (old, value), (), node.dtype)
        return Store(buffer, index, value, inside)

    def _finish(self, kernel: Kernel) -> None:
        kernel.params = list(self.values.buffers.values())
        summarise(kernel)
        elements = self.m * (1 if self.inner == 1 else self.block)
        kernel.cost = UPDATE_NS * elements if isinstance(elements, int) else UNKNOWN_NS
