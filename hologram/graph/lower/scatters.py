"""Lowering of scatters: two kernels, the copy of x and the updates.

The first kernel writes x, as any value is written; where it only copies x it is left out if x and the result share a buffer. The second reads,
combines and writes again the elements that the indices name. Parallel iterations are independent parts of the result, and the updates of a
parallel iteration run in order, so the result never depends on threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hologram.graph.fusion.groups import Group, iteration_space, reduction_axes
from hologram.graph.kernel.build import finish_kernel
from hologram.graph.kernel.ir import Kernel, Loop, Store, Value
from hologram.graph.lower.group import lower
from hologram.graph.lower.lowered import Lowered, copies_whole, window_pairs
from hologram.graph.lower.scalarize import ScalarProgram
from hologram.graph.schedule.choose import COLUMNS
from hologram.ir.index_maps import linear
from hologram.ir.instruction import Ins
from hologram.ir.node import Node
from hologram.ir.symbolic import Expr, Int, atoms, counter, floordiv, mod

UNKNOWN_NS = 100_000.0  # where sizes are not known
UPDATE_NS = 1.0  # of one element read, combined and written at a computed index


def lower_scatter(group: Group, materialized: set[Node], precision: str) -> list[Lowered]:
    """The kernels of a group whose only value is a scatter: its start, and the updates.

    Where the updates are a window of the array that they change, and are written to elements that others of them are made of, they are computed
    first, to memory of their own: so the array may be changed where it is.
    """
    (node,) = group.nodes
    start = lower(group, materialized, {node}, precision)
    if len(start) == 1 and copies_whole(start[0].kernel):
        start[0].is_copy = True
    updates = _Updates(group, materialized).lowered()
    if not start[0].is_copy or not _changes_what_it_reads(updates, start[0].bindings[0], node):
        return [*start, updates]
    first: list[Lowered] = []
    for x in node.inputs[1:]:
        if x.op.kind != "leaf" and x not in materialized:
            first += lower(_alone(x), materialized, {x}, precision)
    return [*first, *start, _Updates(group, materialized | set(node.inputs[1:])).lowered()]


def _changes_what_it_reads(updates: Lowered, source: Node, node: Node) -> bool:
    return source in updates.reads() and not updates.overwrites(node, source)


def _by_variable(order: Sequence[Value], variable: str) -> tuple[list[Ins], list[Ins]]:
    """Instructions that are the same for all values of a variable, and those that are not."""
    names, varying = {variable}, dict[Ins, None]()
    for v in order:
        assert isinstance(v, Ins)
        read = {a.name for e in v.attrs if isinstance(e, Expr) for a in atoms(e)}
        if names & read or any(a in varying for a in v.args):
            varying[v] = None
            names.update([v.name] if v.name else [])
    return [v for v in order if isinstance(v, Ins) and v not in varying], list(varying)


def _alone(node: Node) -> Group:
    group = Group(iteration_space(node), reduction_axes(node))
    group.nodes.append(node)
    group.members.add(node)
    return group


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
        out = Lowered(kernel, list(self.values.buffers), self.group)
        out.in_place = window_pairs(kernel)
        return out

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
        fixed, varying = _by_variable(order[before:], "i")
        lanes.body += varying
        lanes.body.append(store)
        return [*order[:before], *fixed, lanes]

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
        finish_kernel(kernel)
        elements = self.m * (1 if self.inner == 1 else self.block)
        kernel.cost = UPDATE_NS * elements if isinstance(elements, int) else UNKNOWN_NS
