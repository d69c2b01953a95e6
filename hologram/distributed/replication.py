"""Replication: along which axes of a mesh the values of a graph may differ from rank to rank."""

from __future__ import annotations

from collections.abc import Sequence

import hologram.primitives.host.collectives as collectives
from hologram.ir.graph import Graph
from hologram.ir.node import Node
from hologram.ir.op import MULTI_RESULT
from hologram.ir.traversal import topological
from hologram.primitives import control
from hologram.primitives.markers import custom

Axes = frozenset[str]
NONE: Axes = frozenset()
_EQUAL_AFTER = (collectives.psum, collectives.pmax, collectives.pmin, collectives.all_gather, collectives.pbroadcast)


def varying(graph: Graph, inputs: Sequence[Axes]) -> list[Axes]:
    """The axes along which each output of ``graph`` may differ, from those of its inputs."""
    found: dict[Node, Axes] = dict(zip(graph.inputs, inputs, strict=True))
    several: dict[Node, list[Axes]] = {}
    for n in topological(graph.outputs):
        if n in found:
            continue
        read = n.inputs[:1] if n.op is custom else n.inputs  # of a custom node its value
        given = [found.get(x, NONE) for x in read]
        if n.op is control.project:
            found[n] = several[n.inputs[0]][n.attrs[0]]
        elif n.op.kind in MULTI_RESULT:
            several[n] = _results(n, given)
        else:
            found[n] = _union(given)
    return [found.get(x, NONE) for x in graph.outputs]


def _union(sets: Sequence[Axes]) -> Axes:
    return NONE.union(*sets)


def _results(node: Node, given: list[Axes]) -> list[Axes]:
    """The axes of each result of a node that has several."""
    if node.op in collectives.COLLECTIVES and node.attrs[-2]:
        axes = frozenset(node.attrs[-4])
        if node.op in _EQUAL_AFTER:
            return [x - axes for x in given]
        return [_union(given) | axes]
    if node.op is control.scan:
        return _scan(node, given)
    if node.op is control.while_:
        return _while(node, given)
    if node.op is control.switch:
        branches = [varying(b.graph, given[1:]) for b in node.attrs[0]]
        return [_union([given[0], *of]) for of in zip(*branches, strict=True)]
    return [_union(given)] * len(control.result_types(node))


def _scan(node: Node, given: list[Axes]) -> list[Axes]:
    """Without steps, what is carried is what it was before."""
    body, consts, carries, length, *_ = node.attrs
    before = given[consts : consts + carries]
    while True:
        out = varying(body.graph, given)
        grown = [a | b for a, b in zip(given[consts : consts + carries], out, strict=False)]
        if grown == given[consts : consts + carries]:
            has_steps = isinstance(length, int) and length > 0
            return out if has_steps else [*[a | b for a, b in zip(before, out, strict=False)], *out[carries:]]
        given = [*given[:consts], *grown, *given[consts + carries :]]


def _while(node: Node, given: list[Axes]) -> list[Axes]:
    """Where ranks take different numbers of steps, all that is carried may differ."""
    cond, body, consts, *_ = node.attrs
    while True:
        (stops,) = varying(cond.graph, given)
        out = varying(body.graph, given)
        grown = [a | b | stops for a, b in zip(given[consts:], out, strict=True)]
        if grown == given[consts:]:
            return grown
        given = [*given[:consts], *grown]
