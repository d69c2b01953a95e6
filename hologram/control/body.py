"""A graph inside a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hologram.primitives.leaves import input_
from hologram.primitives.marks import mark
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


def close(arguments: Sequence[Node], outputs: Sequence[Node], lines: Mapping[Node, Any], same: Mapping[Node, Node] | None = None) -> Body:
    """The graph from ``arguments``, any nodes, to ``outputs``; nothing else but constants may stand below.

    ``same`` names, for some nodes, others to take in their place: arguments or constants. Marks of transforms that ended inside vanish.
    """
    build = Builder()
    made: dict[Node, Node] = {}
    where: dict[Node, Any] = {}
    instead = same or {}
    for i, x in enumerate(arguments):
        made[x] = build(input_, (), (i, x.shape, x.dtype.name, None))
    inputs = [made[x] for x in arguments]
    for x, other in instead.items():
        made[x] = made[other] if other in made else build(other.op, (), other.attrs)
    for node in topological(outputs, stop=made.__contains__):
        if node in made:
            continue
        if node.op is mark:
            made[node] = made[node.inputs[0]]
            continue
        new = made[node] = build(node.op, tuple([made[x] for x in node.inputs]), node.attrs)
        if lines.get(node) is not None:
            where.setdefault(new, lines[node])
    return Body(Graph(inputs, [made[x] for x in outputs], where))
