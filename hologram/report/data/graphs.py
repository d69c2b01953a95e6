"""Graphs as data: nodes by number, with type, attributes and the user's line; graphs inside of loops and branches inside of their nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hologram.graph.fusion.fused_graph import FusedGraph
from hologram.graph.fusion.groups import Call, Group
from hologram.ir.graph import Graph, attribute_texts, bodies
from hologram.ir.node import Node
from hologram.ir.traversal import topological
from hologram.report.data.references import References

DEFAULT_ULPS = 2  # see hologram.ir.op.Op


def type_of(node: Node) -> str:
    """``float32[8, 4]``."""
    return f"{node.dtype}{list(node.shape)}"


def graph_data(graph: Graph, references: References) -> dict[str, Any]:
    """``nodes``, numbered as in the graph's text, and the numbers of its ``inputs`` and ``outputs``."""
    nodes = graph.nodes()
    number = {n: i for i, n in enumerate(nodes)}
    return {
        "nodes": [_node(n, number, graph, references) for n in nodes],
        "inputs": [number[n] for n in graph.inputs],
        "outputs": [number[n] for n in graph.outputs],
    }


def _node(node: Node, number: Mapping[Node, int], graph: Graph, references: References) -> dict[str, Any]:
    references.ops[node.op.name] = node.op
    out: dict[str, Any] = {"op": node.op.name, "type": type_of(node)}
    if node.inputs:
        out["in"] = [number[x] for x in node.inputs]
    if (texts := attribute_texts(node)) and node.op.name != "input":
        out["attrs"] = " ".join(texts)
    if (place := references.place(graph.lines.get(node))) is not None:
        out["place"] = place
    if node.op.kind == "control":
        out["bodies"] = [graph_data(b.graph, references) for b in bodies(node)]
    return out


def fused_data(fused: FusedGraph, kernels: Mapping[Group | Node, list[str]], references: References) -> dict[str, Any]:
    """As :func:`graph_data`, with ``groups`` in order: the ``nodes`` that each computes, of these the materialized ``values``, and its ``kernels``.

    ``kernels``: ids by group, and by control node for those in bodies. What several groups compute for themselves is among the nodes of each.
    """
    out = graph_data(fused.graph, references)
    number = {n: i for i, n in enumerate(fused.graph.nodes())}
    materialized = {r for g in fused.groups for r in (g.results if isinstance(g, Call) else g.nodes)}
    materialized |= {g.node for g in fused.groups if isinstance(g, Call)}
    out["groups"] = [_group(g, number, materialized, kernels) for g in fused.groups]
    return out


def _group(group: Group | Call, number: Mapping[Node, int], materialized: set[Node], kernels: Mapping[Group | Node, list[str]]) -> dict[str, Any]:
    values = [group.node, *group.results] if isinstance(group, Call) else group.nodes
    inside = [n for n in _computed_inside(values, materialized) if n in number]
    out: dict[str, Any] = {"nodes": [number[n] for n in inside], "values": [number[n] for n in values if n in number]}
    if isinstance(group, Call):
        return out | {"call": group.node.op.name, "kernels": kernels.get(group.node, [])}
    space = {"shape": [str(n) for n in group.shape], "axes": list(group.axes or ())}
    return out | space | {"kernels": kernels.get(group, [])}


def _computed_inside(values: Sequence[Node], materialized: set[Node]) -> list[Node]:
    """``values``, and what is computed on the way to them from other materialized values and leaves."""
    own = set(values)

    def stops(n: Node) -> bool:
        return n not in own and (n in materialized or n.op.name in ("input", "leaf"))

    return [n for n in topological(values, stop=stops) if not stops(n)]


def ops_data(references: References) -> dict[str, Any]:
    """What there is to know of ops: their kind, and how far results may be from the exact ones: no ``ulps`` means the reference's bits."""
    found = {}
    for name, op in sorted(references.ops.items()):
        found[name] = {"kind": op.kind} | ({} if op.exact else {"ulps": op.tests.get("ulps", DEFAULT_ULPS)})
    return found
