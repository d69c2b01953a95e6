"""Loops whose columns are independent, shared among threads by columns: each thread runs all steps on its own ones.

The loop becomes a function of its own, ``(args, begin, end, scratch)`` like a kernel's, which :func:`hg_parallel_for` calls for units of columns
(:mod:`hologram.graph.lower.independent_columns`). Outside of it carries come to where the first step reads them, and go from where the last step has
left them. Inside are the steps, and a thread's own copies of small arrays; the one that has the first unit leaves these for what comes after. A body
that needs other memory, or copies whole arrays, is left to the writer of loops in turn.
"""

from __future__ import annotations

from hologram.backends.llvm.graph.bodies import source_of
from hologram.backends.llvm.graph.loops import LoopWriter
from hologram.backends.llvm.graph.progress import label_at
from hologram.backends.llvm.graph.writer import Frame, GraphWriter, NotInParts, serial
from hologram.backends.llvm.memory import STACK_SLOT_BYTES
from hologram.backends.llvm.text import Reg
from hologram.graph.fusion.fused_graph import Output
from hologram.graph.lower.control_step import ControlStep
from hologram.graph.lower.independent_columns import Columns, independent_columns
from hologram.graph.memory.arena import ArenaAllocation
from hologram.ir.node import Node, estimated_bytes
from hologram.ir.symbolic import typical

MIN_LOOP_NS = 60_000.0  # of a loop that threads share, as costs are estimated: windows that are copied take less
MAX_REPEATED = 1 / 16  # of the work: what each thread computes anew
PIECES = 8  # of the columns, at most: rows of pieces are read in long stretches


def write_by_columns(w: GraphWriter, step: ControlStep, frame: Frame) -> bool:
    """Writes a loop for several threads, each with columns of its own; False, and nothing written, where its steps do not allow it or one
    thread is as fast."""
    if w.checked or w.is_outlined or label_at(w, step.node) is not None:
        return False
    columns = independent_columns(step, STACK_SLOT_BYTES)
    if columns is None or not _pays(step, columns):
        return False
    mark, stack_bytes = w.f.mark(), w.stack_bytes
    try:
        around = _Around(w, step, frame)
        with w.outlined(columns) as function:
            _Part(w, step, frame, around).write_part()
    except NotInParts:
        w.f.back_to(mark)
        w.stack_bytes = stack_bytes
        return False
    w.share(function.name, function.arguments().text, Reg(str(columns.units), "i64", 1), Reg(str(-(-columns.units // PIECES)), "i64", 1))
    around.finish()
    return True


def _pays(step: ControlStep, columns: Columns) -> bool:
    own = columns.cost * columns.units
    if not all(serial(low.kernel) for low in columns.repeated):
        return False
    repeated = sum(low.kernel.cost * typical(low.kernel.iterations) for low in columns.repeated)
    return bool(step.node.attrs[3] * own >= MIN_LOOP_NS and repeated <= own * MAX_REPEATED)


class _Around(LoopWriter):
    """What is before and after the steps. Small carries have places here for their last values."""

    def __init__(self, w: GraphWriter, step: ControlStep, frame: Frame) -> None:
        super().__init__(w, step, frame)
        self.moving = self._moving()
        self.last = [Reg(self.f.slot("ptr", 1, 8), "ptr", 1) for _ in self.moving]

    def _constant(self, p: Reg, x: Node) -> Reg:
        return p

    def _place(self, k: int, x: Node) -> Reg | None:
        return self.stack_slot(x) if self.on_stack[k] else super()._place(k, x)

    def finish(self) -> None:
        if self.w.profiled:
            assert self.length is not None
            self.w.counters.iterations(self.w.integers.integer(self.length))
        self._arrive([self.f.emit(f"load ptr, ptr {slot.text}, align 8", "ptr", 1) for slot in self.last])


class _Part(LoopWriter):
    """All steps for the units from ``begin`` to ``end``, in a function of its own."""

    def __init__(self, w: GraphWriter, step: ControlStep, frame: Frame, around: _Around) -> None:
        self.around, self.bar = around, None
        super().__init__(w, step, frame)

    def _check_memory(self) -> None:
        if self.on_stack != self.around.on_stack:
            raise NotInParts

    def _place(self, k: int, x: Node) -> Reg | None:
        return super()._place(k, x) if self.on_stack[k] else self.around.places[k]

    def is_in_parts(self, x: Node) -> bool:
        """Intermediates are by columns, too. Threads are in different steps, so the memory of one holds no other at any time, unless the columns of
        both are in the same places."""
        allocation = self.step.allocations[-1]
        if not isinstance(allocation, ArenaAllocation) or estimated_bytes(x) <= STACK_SLOT_BYTES:
            return False
        places = {n: allocation.buffers[i] for i, (n, *_) in enumerate(self.body.temporaries) if isinstance(n, Node)}
        if x not in places:
            return False
        own = places[x]
        large = {n: p for n, p in places.items() if estimated_bytes(n) > STACK_SLOT_BYTES}
        others = {n: p for n, p in large.items() if p.offset < own.offset + own.nbytes and own.offset < p.offset + p.nbytes}
        return all(p.offset == own.offset and (n.shape, n.dtype) == (x.shape, x.dtype) for n, p in others.items())

    def result(self, i: int) -> Reg:
        """Where result ``i`` goes; where nobody wants it, threads write their columns of it to one place."""
        node = self.step.results[i]
        return self.w.moved(self.workspace, self.step.spare[i]) if node is None else self.w.pointer(node, self.frame)

    def _stack(self, pointers: dict[Node, Reg], ys: list[Reg], is_argument: bool) -> None:
        outputs = self.body.outputs[self.carries :]
        self._check_copies(ys, [source_of(self.body, o, pointers) for o in outputs], outputs)
        super()._stack(pointers, ys, is_argument)

    def _hand_over(self, state: list[Reg], following: list[Reg], sources: list[Reg]) -> None:
        self._check_copies(following, sources, self.body.outputs[: self.carries])
        super()._hand_over(state, following, sources)

    def _check_copies(self, places: list[Reg], sources: list[Reg], outputs: list[Output]) -> None:
        """No step copies all columns of a large array."""
        for to, source, o in zip(places, sources, outputs, strict=True):
            if to != source and estimated_bytes(o.node) > STACK_SLOT_BYTES:
                raise NotInParts

    def write_part(self) -> None:
        last = self._scan(self.around.moving)
        first = self.f.emit("icmp eq i64 %begin, 0", "i1", 1)
        self.f.only_if(first, lambda: self._leave(last))

    def _leave(self, last: list[Reg]) -> None:
        """Small carries and pointers, for what comes after the loop."""
        for k, x in enumerate(self.carry_nodes):
            place, own = self.around.places[k], self.places[k]
            if self.on_stack[k] and place is not None and own is not None:
                self.w.copy(place, own, x)
        for slot, p in zip(self.around.last, last, strict=True):
            self.f.do(f"store ptr {p.text}, ptr {slot.text}, align 8")
