"""Roots that are computed in one loop nest: they share their reads."""

from __future__ import annotations

from hologram.graph.bounded import Worklist
from hologram.graph.fusion.groups import KERNEL_COST, Axes, Call, Group, expanding_values, is_alone, is_last, reduction_axes, space
from hologram.graph.legalize.paged_scans import unpaged
from hologram.graph.schedule.index_split import is_assembled
from hologram.ir.index_maps import Guard, Index, requests, take_index, variables
from hologram.ir.node import Node
from hologram.ir.op import MULTIPLE
from hologram.ir.symbolic import var

MOST_ROOTS = 64  # of a group: memory is read and written in so many streams at a time, and each may take the place of what each reads
LOOK_BACK = 32  # groups tried for a root


class Reads:
    """What a root reads when it computes its element ``index``: other roots and where, and the cost on the way."""

    __slots__ = ("roots", "cost")

    def __init__(self) -> None:
        self.roots: dict[Node, set[tuple[Index, Guard]]] = {}
        self.cost = 0


class Grouping:
    """Roots in groups: ``groups`` in an order in which they can run, ``group_of`` the number of each root's."""

    def __init__(self, nodes: list[Node], roots: set[Node]) -> None:
        self.roots, self.expanding = roots, expanding_values(nodes)
        self.groups: list[Group | Call] = []
        self.group_of: dict[Node, int] = {}
        for n in nodes:
            if n.op.kind in MULTIPLE:
                self._place_control(n, [p for p in nodes if p.op.kind == "project" and p.inputs[0] is n])
            elif n in roots and n.op.kind != "project":
                self._place(n)

    def _place_control(self, node: Node, results: list[Node]) -> None:
        self.group_of.update(dict.fromkeys(results, len(self.groups)))
        self.groups.append(Call(node, results))

    def _place(self, root: Node) -> None:
        axes = reduction_axes(root)
        fresh = Group(space(root), axes)
        index = fresh.index_of(root)
        assert index is not None
        reads = self.reads(root, index, fresh)
        first = max((self.group_of[d] for d in reads.roots), default=-1)
        for k in range(max(first, len(self.groups) - LOOK_BACK, 0), len(self.groups)):
            g = self.groups[k]
            if isinstance(g, Group) and self._fits(g, root, axes, reads):
                break
        else:
            k = len(self.groups)
            self.groups.append(fresh)
            g = fresh
        g.axes = axes if g.axes is None else g.axes
        g.roots.append(root)
        g.members.add(root)
        g.cost += reads.cost
        self.group_of[root] = k

    def _is_product(self, root: Node) -> bool:
        """Whether a root sums terms much larger than what they are made of: its kernel wants all registers for itself."""
        return root.op.kind == "reduce" and root.inputs[0] in self.expanding

    def _fits(self, g: Group, root: Node, axes: Axes | None, alone: Reads) -> bool:
        if len(g.roots) >= MOST_ROOTS or g.cost + alone.cost > KERNEL_COST or is_alone(root) or is_alone(g.roots[0]):
            return False
        if self._is_product(root) and any(self._is_product(m) for m in g.roots):
            return False
        if axes is not None and any(reduction_axes(m) is not None and m.op.kind != root.op.kind for m in g.roots):
            return False  # a scan goes by groups of its own width
        if any(m.op.kind == "scan" and is_last(m) != is_last(root) for m in g.roots):
            return False  # totals of pages come first; the scan itself is run again once the carries are known, rather than stored
        if axes is not None and (g.shape != space(root) or (g.axes is not None and g.axes != axes)):
            return False
        for m in (root, *g.roots):
            if is_assembled(m) and ((axes or g.axes) is not None or (g.cost + alone.cost) * len(m.inputs) > KERNEL_COST):
                return False  # the loops of rows are not cut in boxes, and each box has all of a kernel's code
        index = g.index_of(root, axes)
        if index is None:
            return False
        if axes is not None and g.axes is None and any(g.index_of(m, axes) != g.index_of(m) for m in g.roots):
            return False
        reads = self.reads(root, index, g)
        for d, places in reads.roots.items():
            if d in g.members and {p for p, _ in places} != {g.index_of(d, axes or g.axes)}:
                return False
        return True

    def reads(self, root: Node, index: Index, g: Group) -> Reads:
        """Follows a root's inputs down to other roots and leaves."""
        out = Reads()
        stack: Worklist[tuple[Node, Index, Guard]] = Worklist("fuse")
        if reduction_axes(root) is not None:
            stack.add([(root.inputs[0], variables(g.shape), ())])
            out.cost += root.op.cost
        elif (base := unpaged(root)) is not None:
            stack.add([(base, index, ())])
        elif is_alone(root):
            stack.add((x, variables(x.shape), ()) for x in root.inputs)
            out.cost += root.op.cost
        elif root.op.kind != "leaf":
            self._descend(root, index, (), stack, out)
        for node, at, guard in stack:
            if node.op.kind == "leaf":
                continue
            if node in self.roots:
                out.roots.setdefault(node, set()).add((at, guard))
            else:
                self._descend(node, at, guard, stack, out)
        return out

    def _descend(self, node: Node, at: Index, guard: Guard, stack: Worklist[tuple[Node, Index, Guard]], out: Reads) -> None:
        out.cost += node.op.cost
        if node.op.kind == "gather":
            where, then = take_index(node, at)
            stack.add([(node.inputs[1], where, guard)])
            stack.add([(node.inputs[0], then(var(f"taken{len(stack.waiting)}")), guard)])
        else:
            stack.add(requests(node, at, guard))
