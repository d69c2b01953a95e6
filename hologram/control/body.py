"""A graph inside a graph."""

from __future__ import annotations

from collections.abc import Sequence

from hologram.primitives.leaves import input_
from hologram.trace.node import Builder, Graph, Node, topological


class Body:
    """A closed graph as an attribute of a control node: compared, hashed and printed by its text, so equal programs are equal bodies."""

    __slots__ = ("graph", "text", "_hash")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.text = str(graph)
        self._hash = hash(self.text)

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is Body and self._hash == other._hash and self.text == other.text)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return self.text


def close(arguments: Sequence[Node], outputs: Sequence[Node], lines: dict[Node, object]) -> Body:
    """The graph from ``arguments``, any nodes, to ``outputs``; nothing else but constants may stand below."""
    build = Builder()
    made: dict[Node, Node] = {}
    for i, x in enumerate(arguments):
        made[x] = build(input_, (), (i, x.shape, x.dtype.name, None))
    inputs = [made[x] for x in arguments]
    where = {new: lines[old] for old, new in made.items() if old in lines}
    for node in topological(outputs, stop=made.__contains__):
        if node not in made:
            new = made[node] = build(node.op, tuple([made[x] for x in node.inputs]), node.attrs)
            if node in lines:
                where.setdefault(new, lines[node])
    return Body(Graph(inputs, [made[x] for x in outputs], where))

