"""Lowering of control nodes: a step between kernels, with the execution plans of its bodies and the memory that they need.

The workspace of a step is one intermediate of the plan around it, alive during the step alone. It holds, at offsets known ahead: for each
carry a second buffer, for each result that nobody wants a place to be written to, and the intermediates of the bodies, which themselves may be
control steps. Bodies of one step never run at one time, so their intermediates share a place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hologram.graph.fusion.groups import Call, operands
from hologram.graph.memory.arena import LINE_BYTES, ArenaAllocation
from hologram.ir.graph import Graph, bodies
from hologram.ir.node import Node, nbytes
from hologram.primitives.control import scan, switch

ENDLESS_NS = 1e9  # what a loop whose end is not known is taken to cost: such a call gives up the GIL


class ControlStep:
    """``execution_plans`` and ``allocations`` of the bodies, in order; ``operands`` what stands in memory for the node's inputs, ``bindings`` all
    nodes in memory that the step reads and writes.

    ``results[i]`` is the node of result i, None where nobody wants it; ``spare[i]`` the offset in the workspace of its further buffer.
    ``arena`` is where the bodies' intermediates start, ``nbytes`` the size of the workspace, ``cost`` rough nanoseconds.
    """

    __slots__ = ("node", "execution_plans", "allocations", "operands", "bindings", "results", "spare", "arena", "nbytes", "cost")
    in_place: tuple[tuple[int, int], ...] = ()

    def __init__(self, call: Call, plan_of: Callable[[Graph], Any]) -> None:
        node = self.node = call.node
        self.execution_plans = [plan_of(b.graph) for b in bodies(node)]
        self.allocations: list[ArenaAllocation] = [s.allocate({}) for s in self.execution_plans]
        types = self.execution_plans[-1].graph.outputs
        self.results: list[Node | None] = [None] * len(types)
        for r in call.results:
            self.results[r.attrs[0]] = r
        self.operands = operands(node)
        self.bindings = [x for x in self.operands if x.size != 0] + call.results
        self.spare: list[int] = []
        at = 0
        for x in types:
            self.spare.append(at)
            at += -(-nbytes(x) // LINE_BYTES) * LINE_BYTES * (1 if node.op is switch else 2)
        self.arena = at
        self.nbytes = at + max(p.arena_bytes for p in self.allocations)
        inside = [s.cost for s in self.execution_plans]
        self.cost = max(inside) if node.op is switch else node.attrs[3] * inside[0] if node.op is scan else ENDLESS_NS
