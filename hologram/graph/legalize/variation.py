"""Analysis: along which axes the elements of a value differ. A value that is broadcast along an axis is the same all along it."""

from __future__ import annotations

from hologram.graph.schedule.streamed import MIN_STREAMED_ROW_BLOCKED_BYTES, UNCACHED_BYTES, Streams, bytes_read
from hologram.graph.size_conditions import SizeConditions
from hologram.ir.graph import Graph
from hologram.ir.node import Node


class Variation:
    """The axes along which the elements of a node of ``graph`` differ; all axes for what is not known. ``by_pairs``, ``split_k``: as
    :func:`hologram.graph.legalize.legalize.legalize` has it. ``conditions``: where choices by sizes that are symbols are noted."""

    def __init__(self, by_pairs: bool = False, split_k: bool = True, conditions: SizeConditions | None = None, graph: Graph | None = None) -> None:
        self.graph, self.streams = graph, Streams.of(graph)
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

    def require_few_bytes(self, x: Node) -> None:
        """Notes for which sizes a static program takes ``x``, which is summed, and all that it reads for as small as they are taken for here."""
        self.conditions.require(x.size, most=self.streams.row_blocked // x.dtype.itemsize - 1)
        is_small = isinstance(x.size, int) and x.size * x.dtype.itemsize < MIN_STREAMED_ROW_BLOCKED_BYTES
        if self.streams.row_blocked > MIN_STREAMED_ROW_BLOCKED_BYTES and not is_small:
            self.conditions.require(0 if self.graph is None else bytes_read(self.graph), most=UNCACHED_BYTES - 1)
