"""Bodies of control steps in the graph function: where their arrays are, and their steps.

A small array gets a stack slot of its own. Kernels of bodies are inlined, so LLVM promotes stack slots to registers. A large array is
where the arena, an operand or a result is.
"""

from __future__ import annotations

from collections.abc import Iterator

from hologram.backends.llvm.graph.writer import Frame, GraphWriter, NotInParts
from hologram.backends.llvm.memory import STACK_SLOT_BYTES
from hologram.backends.llvm.text import Reg
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.fusion.fused_graph import Output
from hologram.graph.lower.control_step import ControlStep
from hologram.graph.memory.arena import LINE_BYTES
from hologram.ir.node import Node, estimated_bytes, nbytes

MAX_STEP_STACK_BYTES = 8192  # of all stack slots of one control step
MAX_GRAPH_STACK_BYTES = 65536  # of all stack slots of one function


class BodyWriter:
    """What writing loops and branches shares: addresses of operands and results, and the arrays inside of bodies."""

    def __init__(self, w: GraphWriter, step: ControlStep, frame: Frame) -> None:
        self.w, self.f, self.step, self.frame = w, w.f, step, frame
        self.node = step.node
        self.operands = [w.pointer(x, frame) for x in step.operands]
        self.workspace = w.pointer(step, frame) if step.nbytes != 0 else frame.arena
        self.arena = w.moved(self.workspace, step.arena)
        self.stack_left = MAX_STEP_STACK_BYTES

    # --- stack slots -----------------------------------------------------------------------------------------------------

    def takes_stack_slot(self, x: Node, count: int = 1) -> bool:
        """Whether an array is small and there is stack memory left for ``count`` of it; if so, that much is taken."""
        size = estimated_bytes(x) * count
        if estimated_bytes(x) > STACK_SLOT_BYTES or size > min(self.stack_left, MAX_GRAPH_STACK_BYTES - self.w.stack_bytes):
            return False
        self.stack_left -= size
        self.w.stack_bytes += size
        return True

    def stack_slot(self, x: Node) -> Reg:
        """The stack slot of an array that takes one."""
        place = Reg(self.f.slot(f"[{max(1, nbytes(x))} x i8]", 1, LINE_BYTES), "ptr", 1)  # one array type: LLVM takes no other apart
        self.w.stack_slots.add(place)
        self.w.poison(place, nbytes(x))
        return place

    def give_stack_slots(self, plan: ExecutionPlan, pointers: dict[Node, Reg]) -> None:
        """Rooms for the small arrays of a body that have no place yet; the others are in the arena. What no kernel writes, since it has no
        elements, needs a place to be copied from."""
        for x in map(plan.buffer, (*_arrays(plan), *plan.computed)):
            if x in pointers:
                continue
            if self.takes_stack_slot(x):
                pointers[x] = self.stack_slot(x)
            elif self.w.is_outlined and estimated_bytes(x) and not self.is_in_parts(x):
                raise NotInParts

    def is_in_parts(self, x: Node) -> bool:
        """Whether threads that share the loop each have a part of their own of an array of the body, which is in the arena."""
        return False

    # --- results and steps ---------------------------------------------------------------------------------------------

    def result(self, i: int) -> Reg:
        """Where result ``i`` goes; to spare memory where nobody wants it."""
        node = self.step.results[i]
        if node is None and self.w.is_outlined and estimated_bytes(self.step.execution_plans[-1].outputs[i].node) > STACK_SLOT_BYTES:
            raise NotInParts
        return self.w.moved(self.workspace, self.step.spare[i]) if node is None else self.w.pointer(node, self.frame)

    def is_aligned(self, i: int) -> bool:
        """Whether result ``i`` starts at a line of the cache."""
        result = self.step.results[i]
        return result is None or self.frame.execution_plan.buffer(result) not in self.frame.unaligned

    def run(self, which: int, pointers: dict[Node, Reg], unaligned: frozenset[Node] = frozenset()) -> None:
        """Writes the steps of a body whose arguments and results are at ``pointers``. ``unaligned``: results that need not start at a line of
        the cache."""
        plan = self.step.execution_plans[which]
        self.w.run(Frame(plan, self.step.allocations[which], self.arena, pointers, unaligned=unaligned))


def source_of(plan: ExecutionPlan, o: Output, pointers: dict[Node, Reg]) -> Reg:
    """Where a body leaves an output."""
    return pointers[plan.inputs[o.index] if o.kind == "input" else plan.computed[o.index]]


def _arrays(plan: ExecutionPlan) -> Iterator[Node]:
    for low in plan.steps:
        for n in low.bindings:
            if n not in plan.slot_of or n in plan.computed:
                yield n
