"""Graphs: nodes from inputs to outputs, their text, and graphs as attributes of control nodes (:class:`Body`)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from hologram.ir.leaves import input_
from hologram.ir.node import Builder, Node, const_value
from hologram.ir.symbolic import Atom, variables_of
from hologram.ir.traversal import topological
from hologram.support.html import html_method

Carries: TypeAlias = Sequence[tuple[Node, Node]]  # inputs of the body of a loop, each with what comes in its place


class Graph:
    """``inputs`` (``input`` nodes, in order) to ``outputs``, which stay as they are. ``lines`` maps nodes to the user's ``(file, line)``; ``name`` is
    what was traced."""

    def __init__(
        self,
        inputs: Sequence[Node],
        outputs: Sequence[Node],
        lines: dict[Node, Any] | None = None,
        name: str = "",
        order: list[Node] | None = None,  # what :meth:`nodes` would find, where that is known
    ) -> None:
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.lines = lines if lines is not None else {}
        self.name = name
        self._nodes = order
        self._kinds: frozenset[str] | None = None
        self._names: frozenset[str] | None = None

    def nodes(self) -> list[Node]:
        """Inputs first (used or not), then everything the outputs need, in topological order."""
        return list(self._order())

    def kinds(self) -> frozenset[str]:
        """The kinds of the nodes' ops."""
        if self._kinds is None:
            self._kinds = frozenset([n.op.kind for n in self._order()])
        return self._kinds

    def op_names(self) -> frozenset[str]:
        """The names of the nodes' ops."""
        if self._names is None:
            self._names = frozenset([n.op.name for n in self._order()])
        return self._names

    def _order(self) -> list[Node]:
        if self._nodes is None:
            self._nodes = topological((*self.inputs, *self.outputs))
        return self._nodes

    def mapped(self, image: Mapping[Node, Node], inputs: Sequence[Node] | None = None) -> Graph:
        """The graph of the images of its inputs (or of other ``inputs``) and outputs. Users' lines go along, the first where nodes share an image."""
        lines: dict[Node, Any] = {}
        for n, line in self.lines.items():
            if n in image:
                lines.setdefault(image[n], line)
        return Graph([image[x] for x in self.inputs] if inputs is None else inputs, [image[x] for x in self.outputs], lines)

    def symbols(self) -> list[str]:
        """The names of the symbols that shapes and attributes depend on, in order. Shapes of inputs bind some; a call gives the others."""
        return sorted({a.name for a in self.variables()})

    def variables(self) -> set[Atom]:
        """The symbols themselves, with their bounds, of which :func:`text` says nothing."""
        return set().union(*[variables_of(n.shape) | variables_of(n.attrs) for n in self.nodes()])

    def __str__(self) -> str:
        return text(self)

    _repr_html_ = html_method("notebook.programs:graph_html")

    def to_networkx(self) -> Any:
        """A ``networkx.MultiDiGraph`` from inputs to users; nodes are numbered as in the text and carry ``op``, ``attrs``, ``shape`` and
        ``dtype``, edges the ``position`` of the operand."""
        import networkx as nx

        result = nx.MultiDiGraph()
        number = {node: i for i, node in enumerate(self.nodes())}
        outputs = set(self.outputs)
        for node, i in number.items():
            attrs = tuple(a for a in node.attrs if isinstance(a, (int, str, float, tuple, bytes, np.generic)))
            result.add_node(i, op=node.op.name, attrs=attrs, shape=node.shape, dtype=node.dtype.name, output=node in outputs)
            for position, x in enumerate(node.inputs):
                result.add_edge(number[x], i, position=position)
        return result


def inlined(build: Builder, graph: Graph, arguments: Sequence[Node], values: Sequence[Node]) -> list[Node]:
    """``values`` of ``graph``, made with ``build``, for the first of its inputs being ``arguments``; they need no others."""
    made = dict(zip(graph.inputs, arguments, strict=False))
    for n in topological(values, stop=made.__contains__):
        if n not in made:
            made[n] = build(n.op, tuple([made[x] for x in n.inputs]), n.attrs)
    return [made[x] for x in values]


def placeholder(like: Node, index: int = 0) -> Node:
    """An argument of the shape and type of ``like`` that nothing reads."""
    return Node(input_, (), (index, like.shape, like.dtype.name, None), like.shape, like.dtype)


# --- graphs inside of nodes ------------------------------------------------------------------------------------------


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


def bodies(node: Node) -> list[Body]:
    """The graphs that a control node holds, in order."""
    return [b for a in node.attrs for b in (a if isinstance(a, tuple) else (a,)) if isinstance(b, Body)]


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
        if node.op.name == "mark":
            made[node] = made[node.inputs[0]]
            continue
        new = made[node] = build(node.op, tuple([made[x] for x in node.inputs]), node.attrs)
        if lines.get(node) is not None:
            where.setdefault(new, lines[node])
    return Body(Graph(inputs, [made[x] for x in outputs], where))


# --- text ------------------------------------------------------------------------------------------------------------


def text(graph: Graph, lines: bool = False) -> str:
    """One line a node: ``%2 = add %0 %1   float32[8]``, and with ``lines`` ``# file.py:12``.

    Without them the text says everything about the graph and nothing else, so that equal texts are equal programs. The graphs that a control
    node holds follow it, indented.
    """
    nodes = graph.nodes()
    names = {node: f"%{i}" for i, node in enumerate(nodes)}
    arguments = ", ".join(f"{names[x]}: {x.dtype}{list(x.shape)}" for x in graph.inputs)
    inputs = set(graph.inputs)
    shown = [x for x in nodes if x not in inputs]
    rows = [(f"  {names[x]} = {_operation(x, names)}", f"{x.dtype}{list(x.shape)}", _line(graph, x) if lines else "") for x in shown]
    widths = [max((len(r[i]) for r in rows), default=0) for i in range(2)]
    body = []
    for x, (left, middle, right) in zip(shown, rows, strict=True):
        body.append(f"{left:{widths[0]}}  {middle:{widths[1]}}  {right}".rstrip())
        body += _bodies(x, lines)
    return "\n".join([f"graph({arguments})", *body, f"  return {', '.join(names[x] for x in graph.outputs)}"])


def _bodies(node: Node, lines: bool) -> list[str]:
    """The graphs inside a control node, each line indented."""
    if node.op.kind != "control":
        return []
    return ["      " + row for b in bodies(node) for row in (text(b.graph, lines=True) if lines else b.text).split("\n")]


def _operation(node: Node, names: dict[Node, str]) -> str:
    return " ".join([node.op.name, *[names[x] for x in node.inputs], *attribute_texts(node)])


def attribute_texts(node: Node) -> list[str]:
    """A node's static attributes, as its line of the text has them."""
    if node.op.name == "const":
        value = const_value(node)
        return [str(value) if value == value else f"nan:{node.attrs[1].hex()}"]
    if node.op.name == "cast":
        return [node.attrs[0]]
    hidden = ("storage", "shape", "body", "cond", "branches")
    named = node.op.named(node.attrs)
    shown = [(n, v) for n, v in named if n not in hidden and (n, v) != ("dtype", node.dtype.name)]  # the type of the result stands beside it
    return [f"{name}={_attribute(value)}" for name, value in shown]


def _attribute(value: Any) -> str:
    return "(" + ",".join(map(_attribute, value)) + ")" if isinstance(value, tuple) else str(value)


def _line(graph: Graph, node: Node) -> str:
    place = graph.lines.get(node)
    return f"# {os.path.basename(place[0])}:{place[1]}" if place else ""
