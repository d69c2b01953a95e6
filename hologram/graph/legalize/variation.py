"""Analysis: along which axes the elements of a value differ. A value that is broadcast along an axis is the same all along it."""

from __future__ import annotations

from hologram.graph.size_conditions import SizeConditions
from hologram.ir.node import Node


class Variation:
    """The axes along which a node's elements differ; all axes for what is not known. ``by_pairs``, ``split_k``: as
    :func:`hologram.graph.legalize.legalize.legalize` has it. ``conditions``: where choices by sizes that are symbols are noted."""

    def __init__(self, by_pairs: bool = False, split_k: bool = True, conditions: SizeConditions | None = None) -> None:
        self.by_pairs, self.split_k = by_pairs, split_k
        self.conditions = SizeConditions() if conditions is None else conditions
        self.axes: dict[Node, frozenset[int]] = {}

    def of(self, node: Node) -> frozenset[int]:
        return self.axes.get(node) or frozenset(range(node.ndim)) if node.shape else frozenset()

    def note(self, node: Node) -> None:
        if node.op.kind == "elementwise" or node.op.name == "slice":
            self.axes[node] = frozenset[int]().union(*(self.of(x) for x in node.inputs))
        elif node.op.name == "broadcast":
            (x,), (_, dims) = node.inputs, node.attrs
            inside = self.of(x)
            self.axes[node] = frozenset(d for i, d in enumerate(dims) if i in inside and x.shape[i] != 1)
