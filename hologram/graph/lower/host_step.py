"""Lowering of host ops: a step between kernels that calls a routine once, on operands and results in memory.

The routine is the backend's affair: a library's, called natively, or the row's ``reference``, called through Python.
"""

from __future__ import annotations

from typing import Any

from hologram.graph.fusion.groups import Call
from hologram.ir.graph import Graph, bodies
from hologram.ir.node import Node
from hologram.ir.op import Op, Shape
from hologram.ir.symbolic import prod
from hologram.primitives.control import project

CALL_NS = 5_000.0  # of a call through Python
ELEMENT_NS = 1.0


class HostStep:
    """``results`` are nodes for all results of ``node``, wanted or not; ``bindings`` the operands and results, in order.

    ``cost`` is rough nanoseconds.
    """

    __slots__ = ("node", "results", "bindings", "cost")
    in_place: tuple[tuple[int, int], ...] = ()

    def __init__(self, call: Call) -> None:
        node = self.node = call.node
        wanted = {r.attrs[0]: r for r in call.results}
        assert node.op.results is not None
        types = node.op.results(node.inputs, node.attrs)
        self.results = [wanted[i] if i in wanted else _unwanted(node, i, t) for i, t in enumerate(types)]
        self.bindings = [x for x in (*node.inputs, *self.results) if x.size != 0]
        self.cost = CALL_NS + ELEMENT_NS * work(node)

    @property
    def op(self) -> Op:
        return self.node.op

    def reads(self) -> list[Node]:
        """The arrays that the routine reads."""
        return [x for x in self.node.inputs if x.size != 0]

    def writes(self) -> list[Node]:
        """The arrays that the routine writes."""
        return [x for x in self.results if x.size != 0]

    def shared(self) -> list[tuple[Node, Node]]:
        """``(result, operand)`` where sharing a buffer saves a copy: none."""
        return []

    def overwrites(self, result: Node, operand: Node) -> bool:
        """Whether ``result`` may be written where ``operand`` is read."""
        return False


def _unwanted(node: Node, index: int, of: tuple[Shape, Any]) -> Node:
    """A result that nobody reads: memory for the routine to write."""
    return Node(project, (node,), (index, of[0], of[1].name), *of)


def work(node: Node) -> float:
    """Rough scalar operations of a host op: of its matrices' elements each as many as the longest side. With symbols a guess."""
    largest = max((n for x in node.inputs if isinstance(n := prod(x.shape), int)), default=1)
    longest = max((n for x in node.inputs for n in x.shape[-2:] if isinstance(n, int)), default=1)
    return float(largest * longest * node.op.cost)


def host_nodes(graph: Graph) -> list[Node]:
    """The host ops of a graph and of the bodies in it."""
    out: list[Node] = []
    for n in graph.nodes():
        if n.op.kind == "host":
            out.append(n)
        elif n.op.kind == "control":
            out += [h for b in bodies(n) for h in host_nodes(b.graph)]
    return out
