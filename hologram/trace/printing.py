"""A graph as text and as a networkx graph."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hologram.trace.node import Graph, Node


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
    from hologram.primitives.control import bodies

    return ["      " + row for b in bodies(node) for row in (text(b.graph, lines=True) if lines else b.text).split("\n")]


def _operation(node: Node, names: dict[Node, str]) -> str:
    from hologram.trace.node import const_value

    if node.op.name == "const":
        value = const_value(node)
        return f"const {value!s}" if value == value else f"const nan:{node.attrs[1].hex()}"
    hidden = ("storage", "shape", "body", "cond", "branches")
    named = zip(node.op.attrs, node.attrs, strict=True)
    shown = [(n, v) for n, v in named if n not in hidden and (n, v) != ("dtype", node.dtype.name)]  # the type of the result stands beside it
    attrs = [f"{name}={_attribute(value)}" for name, value in shown]
    if node.op.name == "cast":
        attrs = [node.attrs[0]]
    return " ".join([node.op.name, *[names[x] for x in node.inputs], *attrs])


def _attribute(value: Any) -> str:
    return "(" + ",".join(map(_attribute, value)) + ")" if isinstance(value, tuple) else str(value)


def _line(graph: Graph, node: Node) -> str:
    place = graph.lines.get(node)
    return f"# {os.path.basename(place[0])}:{place[1]}" if place else ""


def to_networkx(graph: Graph) -> Any:
    """A ``networkx.MultiDiGraph`` from inputs to users; nodes are numbered as in the text and carry ``op``, ``attrs``, ``shape`` and
    ``dtype``, edges the ``position`` of the operand."""
    import networkx as nx

    result = nx.MultiDiGraph()
    number = {node: i for i, node in enumerate(graph.nodes())}
    outputs = set(graph.outputs)
    for node, i in number.items():
        attrs = tuple(a for a in node.attrs if isinstance(a, (int, str, float, tuple, bytes, np.generic)))
        result.add_node(i, op=node.op.name, attrs=attrs, shape=node.shape, dtype=node.dtype.name, output=node in outputs)
        for position, x in enumerate(node.inputs):
            result.add_edge(number[x], i, position=position)
    return result
