"""Loops whose steps a pass computes in another way."""

from __future__ import annotations

from collections.abc import Callable

from hologram.ir.graph import Body, Graph
from hologram.ir.node import Builder, Node
from hologram.primitives.control import scan, while_, with_bodies


def with_changed_steps(graph: Graph, change: Callable[[Node], Graph | None]) -> Graph:
    """``graph`` with the bodies of loops that ``change`` gives, None for one that stays; the graph itself where all do."""
    changed = {n: body for n in graph.nodes() if n.op in (scan, while_) and (body := change(n)) is not None}
    if not changed:
        return graph
    build = Builder()
    image: dict[Node, Node] = {}
    for n in graph.nodes():
        attrs = n.attrs
        if n in changed:
            attrs = with_bodies(n, [Body(changed[n])] if n.op is scan else [n.attrs[0], Body(changed[n])])
        image[n] = build(n.op, tuple([image[x] for x in n.inputs]), attrs)
    return graph.mapped(image)
