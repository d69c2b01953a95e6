"""Lowering of scatters: two kernels, the copy of x and the updates.

The first kernel writes x, as any value is written; where it only copies x it is left out if x and the result share a buffer. The second reads,
combines and writes again the elements of the windows, and touches no others. Parallel iterations are independent parts of the result, and the
updates of a parallel iteration run in order, so the result never depends on threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hologram.graph.canonical.integer_ranges import Range
from hologram.graph.fusion.groups import Group, iteration_space, reduction_axes
from hologram.graph.kernel.build import finish_kernel
from hologram.graph.kernel.ir import Kernel, Loop, Store, Value
from hologram.graph.lower.group import lower
from hologram.graph.lower.lowered import Lowered, copies_whole, window_pairs
from hologram.graph.lower.scalarize import ScalarProgram
from hologram.graph.lower.scatter_blocks import by_blocks
from hologram.graph.schedule.choose import COLUMNS
from hologram.ir.index_maps import delinear, linear
from hologram.ir.instruction import Ins
from hologram.ir.node import Node
from hologram.ir.op import TABLE
from hologram.ir.symbolic import Int, atoms, counter, floordiv, prod

UNKNOWN_NS = 100_000.0  # where sizes are not known
UPDATE_NS = 1.0  # of one element read, combined and written at a computed index


def lower_scatter(
    group: Group, materialized: set[Node], precision: str, ranges: Mapping[Node, Range | None], by_vectors: bool = False
) -> list[Lowered]:
    """The kernels of a group whose only value is a scatter: its start, and the updates. ``ranges`` says of starts where they certainly are;
    ``by_vectors``: whether a loop of lanes is faster than a serial one.

    Where the updates are a window of the array that they change, and are written to elements that others of them are made of, they are computed
    first, to memory of their own: so the array may be changed where it is.
    """
    (node,) = group.nodes
    start = lower(group, materialized, {node}, precision)
    if len(start) == 1 and copies_whole(start[0].kernel):
        start[0].is_copy = True
    updates = _Updates(group, materialized, ranges, by_vectors).lowered()
    if not start[0].is_copy or not _changes_what_it_reads(updates, start[0].bindings[0], node):
        return [*start, updates]
    first: list[Lowered] = []
    for x in node.inputs[1:]:
        if x.op.kind != "leaf" and x not in materialized:
            first += lower(_alone(x), materialized, {x}, precision)
    return [*first, *start, _Updates(group, materialized | set(node.inputs[1:]), ranges, by_vectors).lowered()]


def _changes_what_it_reads(updates: Lowered, source: Node, node: Node) -> bool:
    return source in updates.reads() and not updates.overwrites(node, source)


def _alone(node: Node) -> Group:
    group = Group(iteration_space(node), reduction_axes(node))
    group.nodes.append(node)
    group.members.add(node)
    return group


class _Updates:
    """The kernel that runs the updates of one scatter, as :mod:`hologram.graph.legalize.scatters` gives it: x (shared, …), starts (shared, places),
    updates (shared, places, …).

    What no two windows have in common is independent: the shared axis, the axes that are not indexed, and where there is one place all axes. The
    parallel loop goes over that, one serial loop over the places, one over the rest of a window. The innermost loop goes over an axis of a window as
    lanes, or a block of it, if some axis has more than one element.
    """

    def __init__(self, group: Group, materialized: set[Node], ranges: Mapping[Node, Range | None], by_vectors: bool) -> None:
        (self.node,) = group.nodes
        self.by_vectors = by_vectors
        self.group, self.values, self.ranges = group, ScalarProgram(group, materialized), ranges
        self.x, self.updates, *self.starts = self.node.inputs
        self.axes = self.node.attrs[0]
        self.window = (1, *self.updates.shape[2:])  # by axis of x; of the shared one, one at a time
        self.m = self.updates.shape[1]
        self.lane = self._lane_axis()
        size = self.window[self.lane] if self.lane else 1
        wide = not isinstance(size, int) or size > COLUMNS
        self.block: Int = COLUMNS if wide else size
        self.blocks = floordiv(size + (self.block - 1), self.block) if wide else 1
        beside = [a for a in range(1, len(self.window)) if a != self.lane and self.window[a] != 1]
        self.across = [a for a in beside if self._is_independent(a)]
        self.within = [a for a in beside if not self._is_independent(a)]

    def _is_independent(self, axis: int) -> bool:
        return self.m == 1 or axis not in self.axes

    def _lane_axis(self) -> int:
        """The axis of lanes, 0 for none. Elements that are far apart are lanes only where nothing else is done with them in turn."""
        last = max((a for a, n in enumerate(self.window) if n != 1), default=0)
        return last if self.m == 1 or last == len(self.window) - 1 else 0

    def lowered(self) -> Lowered:
        kernel = Kernel()
        in_parallel = not self.lane or self._is_independent(self.lane)
        across = (self.node.shape[0], *(self.window[a] for a in self.across), self.blocks if in_parallel else 1)
        within = (*(self.window[a] for a in self.within), 1 if in_parallel else self.blocks)
        loops = [Loop("parallel", "p", 0, prod(across)), Loop("serial", "j", 0, self.m), Loop("serial", "q", 0, prod(within))]
        p, place, q = (counter(loop.var, loop.extent) if loop.extent != 1 else 0 for loop in loops)
        shared, *outer, block = delinear(p, across)
        *inner, other_block = delinear(q, within)
        offsets = dict(zip((*self.across, *self.within), (*outer, *inner), strict=True))
        if self.lane:
            size = self.window[self.lane]
            loops.append(Loop("lanes", "i", (block + other_block) * self.block, self.block, None if self.blocks == 1 else size))
            offsets[self.lane] = counter("i", size)
        store = self._store(shared, place, offsets)
        self._fill([loop for loop in loops if loop.kind != "serial" or loop.extent != 1], store)
        if self.by_vectors and loops[1].body[-1:] == [store] and self.x not in self.values.buffers:
            self._go_by_blocks(kernel, *loops[:2])
        kernel.iterations = loops[0].extent
        kernel.body.append(loops[0])
        self._finish(kernel)
        out = Lowered(kernel, list(self.values.buffers), self.group)
        out.in_place = window_pairs(kernel)
        return out

    def _store(self, shared: Int, place: Int, offsets: dict[int, Int]) -> Store:
        """How one element of a window is written; what it is made of becomes the order of ``self.values``."""
        node, values = self.node, self.values
        window = tuple(offsets.get(a, 0) for a in range(1, len(self.window)))
        at: list[Int] = [shared, *window]
        mask: Value | None = None
        for start, a in zip(self.starts, self.axes, strict=True):
            first, inside = values.checked_start(start, (shared, place), self.x.shape[a] - self.window[a] + 1, self.ranges.get(start))
            at[a] = first + at[a]
            if inside is not None:
                mask = inside if mask is None else values.emit(TABLE["and"], (mask, inside), (), inside.dtype)
        buffer = values.buffer(node, "inout")
        index = linear(tuple(at), node.shape)
        value = values.element(self.updates, (shared, place, *window), ())
        if node.op.monoid is not None:
            old = values.emit("load", () if mask is None else (mask,), (buffer, index), node.dtype)
            value = values.computed(node.op.monoid, (old, value), (), node.dtype)
        return Store(buffer, index, value, mask)

    def _fill(self, loops: list[Loop], store: Store) -> None:
        """Nests the loops, each instruction in the outermost that it can be in; what is read of the result is read where it is written."""
        level_of: dict[Any, int] = {loop.var: k for k, loop in enumerate(loops)}
        for v in self.values.order:
            assert isinstance(v, Ins)
            names = {atom.name for e in v.attrs for atom in atoms(e)} if v.op in ("load", "index", "inside") else set()
            level = max([0, *(level_of[a] for a in v.args), *(level_of.get(n, 0) for n in names)])
            if v.op == "load" and v.attrs[0] is store.buffer:
                level = len(loops) - 1
            level_of[v] = level
            if v.name:
                level_of[v.name] = level
            loops[level].body.append(v)
        loops[-1].body.append(store)
        for loop, inner in zip(loops, loops[1:], strict=False):
            loop.body.append(inner)

    def _go_by_blocks(self, kernel: Kernel, parallel: Loop, places: Loop) -> None:
        found = by_blocks(places, self.values.fresh_name)
        if found is not None:
            parallel.body[-1], kernel.scratch = found

    def _finish(self, kernel: Kernel) -> None:
        kernel.params = list(self.values.buffers.values())
        finish_kernel(kernel)
        elements = self.m * prod(self.window[a] for a in self.within) * self.block
        kernel.cost = UPDATE_NS * elements if isinstance(elements, int) else UNKNOWN_NS
