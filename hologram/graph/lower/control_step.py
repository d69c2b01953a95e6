"""Lowering of control nodes: a step between kernels, with the execution plans of its bodies and the memory that they need.

Each carry of a loop has a :class:`Carry`, which says where a step of the loop leaves it. The workspace of a control step is one intermediate of the
plan around it, alive during the step alone. It holds, at offsets known ahead: a place for each result that nobody wants, the second buffer of
each carry that has two, and the intermediates of the bodies, which themselves may be control steps. Bodies of one step never run at one time, so
their intermediates share a place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, TypeAlias

from hologram.graph.canonical.integer_ranges import Ranges
from hologram.graph.fusion.groups import Call, operands
from hologram.graph.memory.arena import LINE_BYTES, ArenaAllocation
from hologram.graph.memory.symbolic_arena import SymbolicAllocation, most
from hologram.ir.graph import Carries, Graph, bodies
from hologram.ir.node import Node, estimated_bytes, symbolic_bytes
from hologram.ir.symbolic import Int, floordiv, is_static, typical
from hologram.primitives.control import project, scan, switch

MIN_NAMED_BYTES = 512  # of an unwanted carry, from which its copy costs more than its name
ENDLESS_NS = 1e9  # what a loop whose end is not known is taken to cost: such a call gives up the GIL


class Carry(Enum):
    """Where a step of a loop leaves a carry: where it was (``IN_PLACE``), in the stacked result that holds the same values (``STACKED``), or in the
    other one of two buffers (``TWO_BUFFERS``)."""

    IN_PLACE = "in place"
    STACKED = "stacked"
    TWO_BUFFERS = "two buffers"


PlanOf: TypeAlias = "Callable[[Graph, Ranges | None, Carries], Any]"  # of a body, its inputs' ranges, and its carries
Allocation: TypeAlias = "ArenaAllocation | SymbolicAllocation"


class ControlStep:
    """``execution_plans`` and ``allocations`` of the bodies, in order; ``operands`` what stands in memory for the node's inputs, ``bindings`` all
    nodes in memory that the step reads and writes.

    ``results[i]`` is the node of result i, None where nobody wants it: then its place is at ``spare[i]`` in the workspace. ``carries[k]`` says how
    carry k of a loop is kept, ``stacked_as[k]`` which stacked result holds the same values, ``other[k]`` is the offset of its second buffer.
    ``arena`` is where the bodies' intermediates start, ``nbytes`` the size of the workspace, ``cost`` rough nanoseconds.
    """

    __slots__ = (
        "node", "execution_plans", "allocations", "operands", "bindings", "results", "carries", "stacked_as", "spare", "other", "arena", "nbytes",
        "cost", "in_place",
    )  # fmt: skip

    def __init__(self, call: Call, plan_of: PlanOf, ranges: Sequence[Ranges] | None = None) -> None:
        node = self.node = call.node
        given = ranges if ranges is not None else [None] * len(bodies(node))
        graphs = [b.graph for b in bodies(node)]
        self.execution_plans = [plan_of(g, r, self._carries_of(g) if g is graphs[-1] else ()) for g, r in zip(graphs, given, strict=True)]
        self.allocations: list[Allocation] = [s.allocate_inside() for s in self.execution_plans]
        self.results: list[Node | None] = [None] * len(self.execution_plans[-1].graph.outputs)
        for r in call.results:
            self.results[r.attrs[0]] = r
        self.operands = operands(node)
        self.carries: list[Carry] = []
        self.stacked_as: list[int | None] = []
        if node.op is not switch:
            self._keep_carries()
        unwanted = self._name_unwanted()
        self.bindings = [x for x in self.operands if x.size != 0] + call.results + unwanted
        self._lay_out()
        number = {n: i for i, n in enumerate(self.bindings)}
        self.in_place = [(number[result], number[operand]) for result, operand in self.shared()]
        inside = [s.donated_cost for s in self.execution_plans]
        self.cost = max(inside) if node.op is switch else inside[0] * typical(node.attrs[3]) if node.op is scan else ENDLESS_NS

    def _carries_of(self, body: Graph) -> Carries:
        """The carries of the body of a loop, each with what comes in its place."""
        if self.node.op is switch:
            return []
        count = self.node.attrs[2] if self.node.op is scan else len(body.outputs)
        return list(zip(body.inputs[self.consts :][:count], body.outputs[:count], strict=True))

    @property
    def consts(self) -> int:
        """How many constants a loop has."""
        count: int = self.node.attrs[1] if self.node.op is scan else self.node.attrs[2]
        return count

    def _keep_carries(self) -> None:
        """Chooses how each carry of a loop is kept."""
        plan = self.execution_plans[-1]
        count = self.node.attrs[2] if self.node.op is scan else len(plan.outputs)
        donors, stacked, first = plan.donors(), dict[int, int](), set[int]()
        for i, o in enumerate(plan.outputs[count:], count):
            if o.kind == "computed" and self.results[i] is not None:
                stacked.setdefault(o.index, i)
        for k, o in enumerate(plan.outputs[:count]):
            computed = o.kind == "computed"
            self.stacked_as.append(stacked.get(o.index) if computed else None)
            own = self.consts + k
            kept = o.index not in first and own in donors[o.index] if computed else o.kind == "input" and o.index == own
            self.carries.append(Carry.STACKED if self.stacked_as[k] is not None else Carry.IN_PLACE if kept else Carry.TWO_BUFFERS)
            first.update([o.index] if computed else [])

    def _name_unwanted(self) -> list[Node]:
        """Makes arrays of large carries that steps change in place and whose last values nobody wants: these may be where the first ones are."""
        made: list[Node] = []
        for k, carry in enumerate(self.carries):
            like = self.execution_plans[-1].graph.outputs[k]
            if carry is Carry.IN_PLACE and self.results[k] is None and estimated_bytes(like) >= MIN_NAMED_BYTES:
                made.append(Node(project, (self.node,), (k, like.shape, like.dtype.name), like.shape, like.dtype))
                self.results[k] = made[-1]
        return made

    def kept_in_place(self, body: Any) -> list[Node]:
        """The inputs of a body that a step, or a branch, changes where they are."""
        if self.node.op is switch:
            return [body.inputs[j - 1] for _, j in self._passed_on()]
        return [body.inputs[self.consts + k] for k, carry in enumerate(self.carries) if carry is Carry.IN_PLACE]

    def _lay_out(self) -> None:
        self.spare: list[Int] = []
        self.other: list[Int] = []
        at: Int = 0
        for i, x in enumerate(self.execution_plans[-1].graph.outputs):
            lines = floordiv(symbolic_bytes(x) + (LINE_BYTES - 1), LINE_BYTES) * LINE_BYTES
            self.spare.append(at)
            at += lines if self.results[i] is None else 0
            self.other.append(at)
            at += lines if i < len(self.carries) and self.carries[i] is Carry.TWO_BUFFERS else 0
        self.arena = at
        self.nbytes = at + most([p.arena_bytes for p in self.allocations])

    @property
    def is_symbolic(self) -> bool:
        """Whether sizes of it, or of what is inside, are known in a call alone."""
        inside = [s for p in self.execution_plans for s in p.steps if isinstance(s, ControlStep)]
        sizes = [self.nbytes, *[x.size for x in (*self.bindings, *[x for p in self.execution_plans for x in p.inputs])]]
        length = self.node.attrs[3] if self.node.op is scan else 0
        return not all(map(is_static, [length, *sizes])) or any(s.is_symbolic for s in inside)

    def reads(self) -> list[Node]:
        """The arrays that the step reads."""
        return self.operands

    def writes(self) -> list[Node]:
        """The arrays that the step writes."""
        return [r for r in self.results if r is not None]

    def shared(self) -> list[tuple[Node, Node]]:
        """``(result, operand)`` where sharing a buffer saves a copy: a carry that stays in place, what branches change in place or pass on."""
        pairs = self._passed_on() if self.node.op is switch else [
            (k, self.consts + k) for k, carry in enumerate(self.carries) if carry is Carry.IN_PLACE
        ]  # fmt: skip
        once = Counter(self.operands)
        found = [(self.results[i], self.operands[j]) for i, j in pairs]
        return [(r, x) for r, x in found if r is not None and once[x] == 1 and x.size != 0]

    def _passed_on(self) -> list[tuple[int, int]]:
        """``(i, j)`` where result i of a choice is operand j in all branches, as it is or changed in place."""
        taken: set[int] = set()
        pairs = []
        for i in range(len(self.results)):
            sources = [{o.index} if o.kind == "input" else set(p.donors()[o.index]) if o.kind == "computed" else set()
                       for p in self.execution_plans for o in [p.outputs[i]]]  # fmt: skip
            for j in sorted(set.intersection(*sources) - taken)[:1]:
                taken.add(j)
                pairs.append((i, j + 1))
        return pairs

    def overwrites(self, result: Node, operand: Node) -> bool:
        """Whether ``result`` may be written where ``operand`` is read."""
        return (result, operand) in self.shared()
