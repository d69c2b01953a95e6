"""Argument normalisation: forgets which trace an argument belongs to, and removes the marks of transforms, so that equal programs become equal
graphs."""

from __future__ import annotations

from hologram.ir.graph import Graph
from hologram.ir.node import Builder, Node
from hologram.primitives.control import project
from hologram.primitives.host.collectives import enter_replicated


def normalise_arguments(graph: Graph) -> Graph:
    """``graph`` with arguments of no trace and without marks; the graph itself where it is so already."""
    if "mark" not in graph.kinds() and not any([n.op is enter_replicated for n in graph.nodes()]) and all([i.attrs[3] is None for i in graph.inputs]):
        return graph
    b = Builder()
    image: dict[Node, Node] = {}
    for node in graph.nodes():
        if node.op is enter_replicated:
            continue  # its results are its inputs
        if node.op is project and node.inputs[0].op is enter_replicated:
            image[node] = image[node.inputs[0].inputs[node.attrs[0]]]
            continue
        if node.op.kind == "mark":
            image[node] = image[node.inputs[0]]
            continue
        attrs = (*node.attrs[:3], None) if node.op.name == "input" else node.attrs
        image[node] = b(node.op, tuple([image[i] for i in node.inputs]), attrs)
    lines = {image[node]: line for node, line in graph.lines.items() if node in image and node.op.kind != "mark"}
    return Graph([image[i] for i in graph.inputs], [image[o] for o in graph.outputs], lines)
