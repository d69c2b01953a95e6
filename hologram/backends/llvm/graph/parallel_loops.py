"""Loops whose steps are independent, shared among threads.

The steps become a function of their own, ``(args, begin, end, scratch)`` like a kernel's, which :func:`hg_parallel_for` calls for chunks of the
loop. It is written as any loop is, into a text of its own; the registers of the graph function that it names are handed over in ``args``. A thread
has its counters and all else that a step computes on its stack. A loop whose steps need memory beside that is left to one thread.
"""

from __future__ import annotations

import re

from hologram.backends.llvm.graph.bodies import BodyWriter
from hologram.backends.llvm.graph.loops import LoopWriter
from hologram.backends.llvm.graph.outlining import Outlined
from hologram.backends.llvm.graph.progress import LoopBar, add_chunk, label_at
from hologram.backends.llvm.graph.writer import Frame, GraphWriter, NotInParts, serial
from hologram.backends.llvm.sharing import GRAIN_NS, SERIAL_NS
from hologram.backends.llvm.text import Reg
from hologram.graph.lower.control_step import ENDLESS_NS, ControlStep
from hologram.graph.lower.independent_steps import independent_steps
from hologram.graph.lower.lowered import Lowered
from hologram.ir.node import Node
from hologram.ir.symbolic import Int
from hologram.primitives.control import scan

MIN_ENDLESS_STEPS = 64  # of loops around loops whose end is not known, for threads to share them
PIECES = 256  # of a loop, at least, from which threads take
_NAME = re.compile(r"%[A-Za-z_]\w*")


def write_in_parallel(w: GraphWriter, step: ControlStep, frame: Frame) -> bool:
    """Writes a loop for several threads; False, and nothing written, where its steps do not allow it or one thread is as fast."""
    if w.checked or w.is_outlined or frame.inside_loop or not _is_long(step) or not _is_self_contained(step):
        return False
    counters = independent_steps(step)
    if counters is None:
        return False
    slot = None if label_at(w, step.node) is None else w.f.name("bar")
    if slot is not None:
        w.f.types[slot] = "ptr"
    try:
        with w.outlined() as function:
            loop = _ChunkWriter(w, step, frame, counters)
            loop.write_chunk()
            if slot is not None:
                add_chunk(w, slot)
    except NotInParts:
        return False
    _call(w, step, frame, counters, function, slot)
    return True


def _is_long(step: ControlStep) -> bool:
    length: Int = step.node.attrs[3] if step.node.op is scan else 0
    if not isinstance(length, int):
        return False
    inside = sum(p.donated_cost for p in step.execution_plans)
    return length >= MIN_ENDLESS_STEPS if inside >= ENDLESS_NS else length * inside >= 2 * SERIAL_NS


def _is_self_contained(step: ControlStep) -> bool:
    """Whether a thread can run the steps of all bodies alone: no kernels for threads, and no routines of the host."""
    for plan in step.execution_plans:
        for s in plan.steps:
            if isinstance(s, Lowered):
                if s.kernel.ready is not None or not serial(s.kernel):
                    return False
            elif not isinstance(s, ControlStep) or not _is_self_contained(s):
                return False
    return True


class _ChunkWriter(LoopWriter):
    """The loop from step ``begin`` to ``end``, in a function of its own."""

    def __init__(self, w: GraphWriter, step: ControlStep, frame: Frame, counters: dict[int, int]) -> None:
        self.counters = counters
        super().__init__(w, step, frame)

    def _place(self, k: int, x: Node) -> Reg | None:
        if k not in self.counters:
            if self.on_stack[k]:
                raise NotInParts  # an array that threads write parts of is no thread's own
            return self.ends[k]
        if not self.on_stack[k]:
            raise NotInParts
        f, place, t = self.f, self.stack_slot(x), f"i{x.dtype.bits}"
        start = f.emit(f"load {t}, ptr {self.starts[k].text}, align {x.dtype.itemsize}", t, 1)
        begin = Reg("%begin", "i64", 1) if x.dtype.bits == 64 else f.emit(f"trunc i64 %begin to {t}", t, 1)
        at = f.int_op("add", start, f.int_op("mul", begin, Reg(str(self.counters[k]), t, 1)))
        f.do(f"store {at.typed}, ptr {place.text}, align {x.dtype.itemsize}")
        return place

    def _check_memory(self) -> None:
        pass  # :meth:`_place` does

    def write_chunk(self) -> None:
        self.bar = None
        self.f.counted(Reg("%begin", "i64", 1), Reg("%end", "i64", 1), 1, [], lambda i, carried: self._step(self._number(i), carried))


def _call(w: GraphWriter, step: ControlStep, frame: Frame, counters: dict[int, int], function: Outlined, slot: str | None) -> None:
    """Runs the chunks. Arrays that steps write parts of are where the results go before; counters are known when all is done, not sooner: where
    they start may be where they end."""
    f, loop, graph = w.f, BodyWriter(w, step, frame), step.execution_plans[0].graph
    length, consts = step.node.attrs[3], step.consts
    for k in range(len(step.carries)):
        if k not in counters:
            w.arrive(loop.result(k), loop.operands[consts + k], graph.inputs[consts + k])
    inside = sum(p.donated_cost for p in step.execution_plans)
    label = label_at(w, step.node)
    bar = None if label is None else LoopBar(w, label, w.integers.integer(length), inside, slot)
    steps = length if inside >= ENDLESS_NS else int(GRAIN_NS / max(1.0, inside))
    args, grain = function.arguments(), max(1, min(length // PIECES, steps))
    w.share(function.name, args.text, Reg(str(length), "i64", 1), Reg(str(grain), "i64", 1))
    if bar is not None:
        bar.end()
    for k, by in counters.items():
        if step.results[k] is not None:
            d = graph.inputs[consts + k].dtype
            first = f.emit(f"load i{d.bits}, ptr {loop.operands[consts + k].text}, align {d.itemsize}", f"i{d.bits}", 1)
            last = f.int_op("add", first, Reg(str(by * length), f"i{d.bits}", 1))
            f.do(f"store {last.typed}, ptr {loop.result(k).text}, align {d.itemsize}")
