"""Control steps in the graph function: loops and branches around the steps of their bodies."""

from __future__ import annotations

from hologram.backends.llvm.graph.bodies import BodyWriter, source_of
from hologram.backends.llvm.graph.column_loops import write_by_columns
from hologram.backends.llvm.graph.loops import LoopWriter
from hologram.backends.llvm.graph.parallel_loops import write_in_parallel
from hologram.backends.llvm.graph.writer import Frame, GraphWriter
from hologram.backends.llvm.text import Reg
from hologram.graph.lower.control_step import ControlStep
from hologram.ir.node import Node
from hologram.primitives.control import switch


def write_step(w: GraphWriter, step: ControlStep, frame: Frame) -> None:
    if step.node.op is switch:
        _SwitchWriter(w, step, frame).write()
    elif not write_in_parallel(w, step, frame) and not write_by_columns(w, step, frame):
        LoopWriter(w, step, frame).write()


class _SwitchWriter(BodyWriter):
    """Writes one choice among branches."""

    def write(self) -> None:
        f = self.f
        targets = [self.result(i) for i in range(len(self.step.results))]
        index = f.emit(f"load i64, ptr {self.operands[0].text}, align 8", "i64", 1)
        labels = [f.fresh_label("branch") for _ in self.step.execution_plans]
        done = f.fresh_label("chosen")
        cases = " ".join(f"i64 {i}, label %{label}" for i, label in enumerate(labels[:-1]))
        f.do(f"switch i64 {index.text}, label %{labels[-1]} [ {cases} ]")
        for i, label in enumerate(labels):
            f.start(label)
            self._branch(i, targets)
            f.do(f"br label %{done}")
        f.start(done)

    def _branch(self, which: int, targets: list[Reg]) -> None:
        plan, results = self.step.execution_plans[which], self.step.results
        pointers = dict(zip(plan.inputs, self.operands[1:], strict=True))
        unaligned: set[Node] = set()
        for i, o in sorted(enumerate(plan.outputs), key=lambda pair: results[pair[0]] is None):
            if o.kind != "computed" or (x := plan.computed[o.index]) in pointers:
                continue
            if results[i] is not None or not self.takes_stack_slot(o.node):
                pointers[x] = targets[i]
                unaligned |= set() if self.is_aligned(i) else {x}
            else:
                pointers[x] = self.stack_slot(o.node)
        self.give_stack_slots(plan, pointers)
        self.run(which, pointers, frozenset(unaligned))
        for o, place, result in zip(plan.outputs, targets, results, strict=True):
            if result is not None:
                self.w.arrive(place, source_of(plan, o, pointers), o.node)
