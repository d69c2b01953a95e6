"""Programs inside of other functions: their ops recorded like any others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hologram import fft, linalg  # noqa: F401 - with the rules of their ops, which transforms of a program need
from hologram.errors import ArgumentError
from hologram.ir.graph import Body, Graph
from hologram.ir.node import Builder, Node
from hologram.ir.op import MULTI_RESULT
from hologram.ir.symbolic import Expr, Int, substitute
from hologram.ir.traversal import topological
from hologram.saved.specification import Specification
from hologram.support.user_lines import located
from hologram.trace.call.signature import LeafType
from hologram.trace.operators import node_as, operand
from hologram.trace.recorder import Pending, assume, record, remember_results


def recorded(specification: Specification, graph: Graph, leaves: Sequence[Any]) -> list[Node]:
    """The outputs of a program's graph, recorded here on the leaves of its arguments, with their sizes in the places of its symbols.

    Raises ArgumentError for arguments that the program was not exported for.
    """
    nodes = [_argument(specification.name, x, t) for x, t in zip(leaves, specification.types, strict=True)]
    sizes = specification.sizes([x.shape for x in nodes])
    for a in specification.assumptions:
        assume(substitute(a, sizes))
    return _replayed(graph, nodes, sizes)


def _argument(name: str, x: Any, wanted: LeafType) -> Node:
    node, dtype, weak = operand(x, name)
    if wanted.weak and weak and dtype.kind == wanted.dtype.kind:
        return node_as(node, wanted.dtype)
    if dtype is not wanted.dtype or weak != wanted.weak:
        found = LeafType(() if weak else node.shape, dtype, False)
        raise located(ArgumentError(f"{name}: an argument is a {found}{', weakly typed' * weak}, and the program was exported for {wanted}"))
    return node


def _replayed(graph: Graph, arguments: Sequence[Node], sizes: dict[str, Int]) -> list[Node]:
    """The outputs of ``graph`` recorded here on ``arguments``, ``sizes`` in the places of its symbols."""
    made = dict(zip(graph.inputs, arguments, strict=True))
    several: dict[Node, list[Node]] = {}
    for n in topological(graph.outputs, stop=made.__contains__):
        if n in made:
            continue
        new = made[n] = record(n.op, tuple([made[x] for x in n.inputs]), _at(n.attrs, sizes) if sizes else n.attrs)
        if n.op.kind == "project":
            several.setdefault(new.inputs[0], []).append(new)
    for node, results in several.items():
        if isinstance(node, Pending) and node.op.kind in MULTI_RESULT:
            remember_results(node, results)
    return [made[x] for x in graph.outputs]


def _at(x: Any, sizes: dict[str, Int]) -> Any:
    """``x`` with the values of symbols, inside of tuples and graphs too."""
    if type(x) is tuple:
        return tuple([_at(e, sizes) for e in x])
    if type(x) is Body:
        return Body(_graph_at(x.graph, sizes))
    return substitute(x, sizes) if isinstance(x, Expr) else x


def _graph_at(graph: Graph, sizes: dict[str, Int]) -> Graph:
    build = Builder()
    made: dict[Node, Node] = {}
    for n in graph.nodes():
        made[n] = build(n.op, tuple([made[x] for x in n.inputs]), _at(n.attrs, sizes))
    return graph.mapped(made)
