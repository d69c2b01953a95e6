"""Greedy fusion: materialized values that are computed in one loop nest, where they share their reads."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hologram.graph.bounded import Worklist
from hologram.graph.fusion.groups import (
    KERNEL_COST,
    Axes,
    Call,
    Group,
    expanding_values,
    is_scan_total,
    is_unfusible,
    iteration_space,
    reduction_axes,
)
from hologram.graph.fusion.library_products import LibraryProduct
from hologram.graph.fusion.update_windows import UpdateOrder
from hologram.graph.legalize.paged_scans import unpaged
from hologram.graph.schedule.index_split import is_large_concatenate
from hologram.ir.graph import Carries
from hologram.ir.index_maps import Guard, Index, propagate_index, propagate_through_gather, variables
from hologram.ir.node import Node
from hologram.ir.op import MULTI_RESULT
from hologram.ir.symbolic import var

MAX_GROUP_VALUES = 64  # of a group: memory is read and written in so many streams at a time, and each may take the place of what each reads
LOOK_BACK = 32  # groups tried for a value
MIN_STREAM_BYTES = 2**18  # arrays from this size on are streams of memory
MAX_STREAMS = 12  # of a kernel that values join for what they share: a core fetches ahead in so many


class Reads:
    """What a value reads when it computes its element ``index``: other materialized values and where, leaves, and the cost on the way."""

    __slots__ = ("values", "leaves", "cost")

    def __init__(self) -> None:
        self.values: dict[Node, set[tuple[Index, Guard]]] = {}
        self.leaves: set[Node] = set()
        self.cost = 0


class Grouping:
    """Materialized values in groups: ``groups`` in an order in which they can run, ``group_of`` the number of each value's."""

    def __init__(
        self,
        nodes: list[Node],
        materialized: set[Node],
        streams: bool = False,
        products: Mapping[Node, LibraryProduct] = MappingProxyType({}),
        carries: Carries = (),
    ) -> None:
        self.products = products
        self.materialized, self.expanding, self.streams = materialized, expanding_values(nodes), streams
        self.update_order = UpdateOrder(nodes, materialized, carries)
        self.groups: list[Group | Call] = []
        self.group_of: dict[Node, int] = {}
        for n in nodes:
            if n.op.kind in MULTI_RESULT:
                self._add_call(n, [p for p in nodes if p.op.kind == "project" and p.inputs[0] is n])
            elif n in materialized and n.op.kind != "project":
                self._add_to_group(n)

    def _add_call(self, node: Node, results: list[Node]) -> None:
        self.group_of.update(dict.fromkeys(results, len(self.groups)))
        self.groups.append(Call(node, results))

    def _add_to_group(self, value: Node) -> None:
        axes = reduction_axes(value)
        fresh = Group(iteration_space(value), axes)
        index = fresh.index_of(value)
        assert index is not None
        reads = self.reads(value, index, fresh)
        first = max((self.group_of[d] for d in reads.values), default=-1)
        for k in range(max(first, len(self.groups) - LOOK_BACK, 0), len(self.groups)):
            g = self.groups[k]
            if isinstance(g, Group) and self._fits(g, value, axes, reads):
                break
        else:
            k = len(self.groups)
            self.groups.append(fresh)
            g = fresh
        g.axes = axes if g.axes is None else g.axes
        g.nodes.append(value)
        g.members.add(value)
        g.streams |= _streams(value, reads)
        g.cost += reads.cost
        self.group_of[value] = k

    def _is_product(self, value: Node) -> bool:
        """Whether a value sums terms much larger than what they are made of: its kernel wants all registers for itself."""
        return value.op.kind == "reduce" and value.inputs[0] in self.expanding

    def _is_apart(self, g: Group, value: Node) -> bool:
        """Whether a library computes one of them: that takes nothing beside the product but its rounding."""
        first = self.products.get(g.nodes[0])
        return value in self.products or (first is not None and not (len(g.nodes) == 1 and value is first.rounded))

    def _fits(self, g: Group, value: Node, axes: Axes | None, alone: Reads) -> bool:
        if len(g.nodes) >= MAX_GROUP_VALUES or g.cost + alone.cost > KERNEL_COST or is_unfusible(value) or is_unfusible(g.nodes[0]):
            return False
        if any(self.update_order.clash(value, m) for m in g.nodes) or (self.streams and _crowds(g, value, alone)):
            return False
        if self._is_apart(g, value):
            return False
        if self._is_product(value) and any(self._is_product(m) for m in g.nodes):
            return False
        if axes is not None and any(reduction_axes(m) is not None and m.op.kind != value.op.kind for m in g.nodes):
            return False  # a scan goes by groups of its own width
        if any(m.op.kind == "scan" and is_scan_total(m) != is_scan_total(value) for m in g.nodes):
            return False  # totals of pages come first; the scan itself is run again once the carries are known, rather than stored
        if axes is not None and (g.shape != iteration_space(value) or (g.axes is not None and g.axes != axes)):
            return False
        for m in (value, *g.nodes):
            if is_large_concatenate(m) and ((axes or g.axes) is not None or (g.cost + alone.cost) * len(m.inputs) > KERNEL_COST):
                return False  # the loops of rows are not cut in boxes, and each box has all of a kernel's code
        index = g.index_of(value, axes)
        if index is None:
            return False
        if axes is not None and g.axes is None and any(g.index_of(m, axes) != g.index_of(m) for m in g.nodes):
            return False
        reads = self.reads(value, index, g)
        for d, indices in reads.values.items():
            if d in g.members and {p for p, _ in indices} != {g.index_of(d, axes or g.axes)}:
                return False
        return True

    def reads(self, value: Node, index: Index, g: Group) -> Reads:
        """Follows a value's inputs down to other materialized values and leaves."""
        out = Reads()
        stack: Worklist[tuple[Node, Index, Guard]] = Worklist("fuse")
        if reduction_axes(value) is not None:
            stack.add([(value.inputs[0], variables(g.shape), ())])
            out.cost += value.op.cost
        elif (base := unpaged(value)) is not None:
            stack.add([(base, index, ())])
        elif is_unfusible(value):
            stack.add((x, variables(x.shape), ()) for x in value.inputs)
            out.cost += value.op.cost
        elif value.op.kind != "leaf":
            self._descend(value, index, (), stack, out)
        for node, at, guard in stack:
            if node.op.kind == "leaf":
                out.leaves.add(node)
            elif node in self.materialized:
                out.values.setdefault(node, set()).add((at, guard))
            else:
                self._descend(node, at, guard, stack, out)
        return out

    def _descend(self, node: Node, at: Index, guard: Guard, stack: Worklist[tuple[Node, Index, Guard]], out: Reads) -> None:
        out.cost += node.op.cost
        if node.op.kind == "gather":
            where, then = propagate_through_gather(node, at)
            x, *starts = node.inputs
            stack.add((s, where, guard) for s in starts)
            stack.add([(x, then(tuple(var(f"start{len(stack.seen)}_{k}") for k in range(len(starts)))), guard)])
        else:
            stack.add(propagate_index(node, at, guard))


def _streams(value: Node, reads: Reads) -> set[Node]:
    """The large arrays that are read and written for a value."""
    return {n for n in (value, *reads.values, *reads.leaves) if isinstance(n.size, int) and n.size * n.dtype.itemsize >= MIN_STREAM_BYTES}


def _crowds(g: Group, value: Node, reads: Reads) -> bool:
    """Whether a value that shares nothing with the group, or too little, reads memory in streams of its own: each would be slower than alone."""
    own = _streams(value, reads)
    new = own - g.streams
    if not own or not g.streams or new <= {value} or not g.members.isdisjoint(reads.values):
        return False
    return own.isdisjoint(g.streams) or len(g.streams) + len(new) > MAX_STREAMS
