"""A scheduled graph as one LLVM module: its kernels, each once, and the function that runs them in order.

``i64 graph(ptr bufs, ptr ctx)``: ``bufs`` holds an 8-byte slot for each input, hidden constant, output and integer symbol, in this
order; ``ctx`` is the call's context (scratch pages at offset 0, arena at 8). Returns 0, or non-zero where the call was cancelled.

A checked graph (``settings.checked``) compares every index with its buffer's size (:mod:`bounds_checks`), and fills memory with NaNs before it is
written: results and the arena when it begins, an intermediate's place before the step that writes it.

A profiled graph (``settings.profile``) counts time (:mod:`counters`).

Loops and branches of control steps stand in this function, around calls of their bodies' kernels.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from hologram.backends.llvm.abi import ARENA_AT, ARENA_BYTES_AT
from hologram.backends.llvm.bounds_checks import DECLARATIONS, symbolic_sizes
from hologram.backends.llvm.graph.counters import COUNTERS, Counters
from hologram.backends.llvm.graph.outlining import POLL_SHARED, Outlined
from hologram.backends.llvm.graph.step_trials import DECLARATIONS as TRIALS
from hologram.backends.llvm.graph.step_trials import TrialWriter, record
from hologram.backends.llvm.kernel import KernelWriter
from hologram.backends.llvm.memory import Integers
from hologram.backends.llvm.scalars import Functions
from hologram.backends.llvm.sharing import GRAIN_NS, SERIAL_NS
from hologram.backends.llvm.text import FunctionText, Reg, alignment, literal, memory_type
from hologram.errors import CompileError
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.kernel.ir import Kernel
from hologram.graph.kernel.printer import print_kernel
from hologram.graph.lower.control_step import Allocation, ControlStep
from hologram.graph.lower.host_step import HostStep
from hologram.graph.lower.independent_columns import Columns
from hologram.graph.lower.lowered import Lowered
from hologram.graph.memory.arena import ArenaAllocation
from hologram.ir.node import Node, estimated_bytes, symbolic_bytes
from hologram.ir.symbolic import Int, bounds

MIN_MODULE_CHARACTERS = 16_000  # characters of kernels from which a module of their own pays
MAX_NUMBER_BYTES = 8  # of a single element that is copied as what it is
MIN_TESTED_BYTES = 256  # of a copy: less is copied sooner than found to be there already
COPY = "hg_copy_parts"
COPIED_BYTES = 2**18  # that a thread copies at one time
MIN_SHARED_BYTES = 8 * COPIED_BYTES  # of a copy that threads share
MAX_FLAT_STATEMENTS = 60  # of the kernels of a program that become a part of its graph function: a function costs LLVM about as much as a kernel
INLINE_STATEMENTS = 400  # a kernel in a loop that is not longer becomes part of the loop

ATTRIBUTES = """
declare i64 @hg_parallel_for(ptr, ptr, ptr, i64, i64)
declare i64 @hg_poll(ptr)
declare i64 @hg_call_host(ptr, ptr)
declare ptr @hg_bar_begin(ptr, ptr, i64)
declare void @hg_bar_end(ptr, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
attributes #0 = { nounwind }
attributes #1 = { nounwind alwaysinline }
attributes #2 = { nounwind noinline cold }
!0 = !{!"branch_weights", i32 1, i32 2000}
!1 = !{}
!2 = !{i32 1}
!3 = !{!"branch_weights", i32 2000, i32 1}
!4 = distinct !{!4, !5}
!5 = !{!"llvm.loop.unroll.disable"}
"""

_KERNEL, _HELPER = re.compile(r"define void (@\w+)"), re.compile(r"@hg\.[\w.]+")


class NotInParts(Exception):
    """Threads are to share what is written, but its parts would meet in memory."""


class Frame:
    """Where the arrays of one plan are while its steps are written: pointers to some, offsets into ``arena`` for the others.

    Of the arrays that its steps write, all but those in ``unaligned`` start at multiples of :data:`LINE_BYTES`.
    """

    __slots__ = ("execution_plan", "allocation", "arena", "pointers", "inside_loop", "unaligned")

    def __init__(
        self,
        plan: ExecutionPlan,
        allocation: Allocation | None,
        arena: Reg,
        pointers: dict[Node, Reg],
        inside_loop: bool = True,
        unaligned: frozenset[Node] = frozenset(),
    ) -> None:
        self.execution_plan, self.allocation, self.arena, self.pointers = plan, allocation, arena, pointers
        self.inside_loop, self.unaligned = inside_loop, unaligned


class GraphWriter:
    """Writes the graph function, and the kernels that it comes to call."""

    def __init__(self, precision: str, target: Any, checked: bool = False, profiled: bool = False) -> None:
        self.precision, self.target, self.checked, self.profiled = precision, target, checked, profiled
        self.functions = Functions.of(target)
        self.texts: list[str] = []
        self.names: dict[Any, str] = {}
        self.declared: set[str] = set()  # kernels that are there already
        self.externals: set[str] = set()  # routines of libraries
        self.literals: dict[str, str] = {}  # names of texts
        self.is_flat = False  # whether serial kernels are a part of the graph function outside of loops, too
        self.is_outlined = False  # whether what is written is a function that threads share, without memory of its own but for the stack
        self.polls_in_threads = False
        self.trials = 0  # loops that find out how their steps run best
        self.trial: TrialWriter | None = None  # of the loop whose step is written
        self.columns: Columns | None = None  # of the loop whose steps are written for a part of the columns
        self.outlined_texts: list[str] = []
        self.stack_slots: set[Reg] = set()  # stack memory of small arrays in loops and branches
        self.stack_bytes = 0
        self.origins: dict[Reg, tuple[Reg, int]] = {}  # of addresses that are others moved on by a number of bytes
        self.f = FunctionText()
        self.integers = Integers(self.f, keeps=False)  # what is computed inside of a loop or branch is not there behind it
        self.declarations = ATTRIBUTES + TRIALS + DECLARATIONS * checked

    def render(self, plan: ExecutionPlan, allocation: ArenaAllocation | None) -> GraphWriter:
        f = self.f
        self.counters = Counters(self, plan, self.profiled)
        self.scratch = f.emit("load ptr, ptr %ctx, align 8", "ptr", 1)  # SCRATCH_AT is 0
        place = f.emit(f"getelementptr i8, ptr %ctx, i64 {ARENA_AT}")
        arena = f.emit(f"load ptr, ptr {place.text}, align 8", "ptr", 1)
        for name, index in plan.symbol_slots.items():
            self.integers.vars[name] = self._slot(index, "i64")
        size = max((len(k.kernel.params) + len(k.kernel.integers()) + self._extra(k.kernel) for k in plan.kernels), default=0)
        self.args = f.slot("i64", max(1, size), 8)
        self.is_flat = sum(1 for k in plan.kernels if serial(k.kernel) for _ in k.kernel.walk()) <= MAX_FLAT_STATEMENTS
        pointers = {n: self._slot(i, "ptr") for n, i in plan.slot_of.items()}
        if self.checked:
            self._poison_all(plan, arena, pointers)
        with self.counters.call():
            self.run(Frame(plan, allocation, arena, pointers, inside_loop=False))
        f.do("ret i64 0")
        self.graph = "\n".join([*self.outlined_texts, f.text("define i64 @graph(ptr %bufs, ptr %ctx) #0")])
        return self

    def whole(self) -> str:
        """All of it as one module."""
        return "\n".join([*self._ready(), *self.functions.text.values(), *self.texts, self.graph, self.declarations, *self._poll_shared()])

    def modules(self, processors: Callable[[], int]) -> list[str]:
        """The same as modules of about the same size, up to as many as there are ``processors``, the graph in the first. Kernels that loops call
        stay with the graph, of which they become a part."""
        own = [t for t in self.texts if not t.startswith("define void")]
        apart = [t for t in self.texts if t.startswith("define void")]
        count = sum(map(len, apart)) // MIN_MODULE_CHARACTERS + (own != [])
        if count > 1:
            count = min(count, processors())
        if count < 2:
            return [self.whole()]
        parts: list[list[str]] = [own, *([] for _ in range(count - 1))]
        lengths = [sum(map(len, [*own, self.graph])), *([0] * (count - 1))]
        for text in sorted(apart, key=len, reverse=True):
            shortest = lengths.index(min(lengths))
            parts[shortest].append(text)
            lengths[shortest] += len(text)
        elsewhere = [f"declare void {_KERNEL.findall(t)[0]}(ptr, i64, i64, ptr)" for p in parts[1:] for t in p]
        texts = [*parts[0], self.graph]
        first = [*self._ready(), *elsewhere, *self._helpers(texts), *texts, self.declarations, *self._poll_shared()]
        return ["\n".join(m) for m in [first, *([*self._helpers(p), *p, self.declarations] for p in parts[1:])]]

    def _poll_shared(self) -> list[str]:
        return [POLL_SHARED] if self.polls_in_threads else []

    @contextlib.contextmanager
    def outlined(self, columns: Columns | None = None) -> Iterator[Outlined]:
        """What is written inside becomes a function of its own, which is kept unless an exception ends it; ``columns``: of the units from %begin to
        %end."""
        before = self.f, self.integers, self.scratch, self.args, self.stack_bytes, self.trial
        function = Outlined(f"loop_chunk{len(self.outlined_texts)}", self.f)
        self.f, self.integers = function.f, Integers(function.f, keeps=False)
        self.integers.vars, self.scratch = before[1].vars, Reg("%scratch", "ptr", 1)
        self.is_outlined, self.stack_bytes, self.columns, self.trial = True, 0, columns, None
        try:
            yield function
            self.outlined_texts.append(function.close())
        finally:
            self.f, self.integers, self.scratch, self.args, self.stack_bytes, self.trial = before
            self.is_outlined, self.columns = False, None

    def _helpers(self, texts: list[str]) -> list[str]:
        """The functions that ``texts`` call, and those that these call."""
        found: dict[str, str] = {}
        waiting = list(texts)
        while waiting:
            for name in _HELPER.findall(waiting.pop()):
                if name not in found:
                    found[name] = self.functions.text[name]
                    waiting.append(found[name])
        return list(found.values())

    def _ready(self) -> list[str]:
        """What the graph names that comes from elsewhere, and its literals."""
        ready = [f"declare void @{name}(ptr, i64, i64, ptr)" for name in sorted(self.declared)]
        ready += [f"@{name} = external global i8" for name in sorted(self.externals)]
        ready += [literal(name, text) for text, name in self.literals.items()]
        ready += map(record, range(self.trials))
        return [*ready, self.counters.declarations] if self.profiled else ready

    def _slot(self, index: int, t: str) -> Reg:
        at = self.f.emit(f"getelementptr i64, ptr %bufs, i64 {index}")
        return self.f.emit(f"load {t}, ptr {at.text}, align 8", t, 1)

    def run(self, frame: Frame) -> None:
        """Writes the steps of a plan."""
        for k, step in enumerate(frame.execution_plan.steps):
            if self.checked:
                self._poison_fresh(k, frame)
            if isinstance(step, (ControlStep, HostStep)):
                with self.counters.step(step):
                    self.write(step, frame)
            else:
                self._launch(step, frame)

    def write(self, step: ControlStep | HostStep, frame: Frame) -> None:
        """Writes a loop, a branch or the call of a routine: see :class:`hologram.backends.llvm.graph.module.ModuleWriter`."""
        raise NotImplementedError

    def pointer(self, x: Node | ControlStep, frame: Frame) -> Reg:
        """Where an array, or the workspace of a step, is."""
        x = frame.execution_plan.buffer(x) if isinstance(x, Node) else x
        if isinstance(x, Node) and x in frame.pointers:
            return frame.pointers[x]
        if isinstance(x, Node) and x.size == 0:
            return frame.arena
        return self.at(frame.arena, self.integers.integer(frame.execution_plan.offset(x, frame.allocation)))

    def text(self, text: str) -> Reg:
        """The address of a text, which ends in a zero."""
        return Reg("@" + self.literals.setdefault(text, f"text{len(self.literals)}"), "ptr", 1)

    def at(self, base: Reg, offset: Reg | int) -> Reg:
        """``base`` moved on by bytes."""
        if offset == 0:
            return base
        moved = self.f.emit(f"getelementptr i8, ptr {base.text}, i64 {offset if isinstance(offset, int) else offset.text}", "ptr", 1)
        if isinstance(offset, int):
            origin, before = self.origins.get(base, (base, 0))
            self.origins[moved] = origin, before + offset
        return moved

    def moved(self, base: Reg, offset: Int) -> Reg:
        """The same for an expression."""
        return self.at(base, offset if isinstance(offset, int) else self.integers.integer(offset))

    def copy(self, to: Reg, source: Reg, node: Node) -> None:
        """Copies the bytes of an array like ``node``."""
        if to == source or not estimated_bytes(node):
            return
        f, align = self.f, alignment(node.dtype)
        if node.size == 1 and node.dtype.itemsize <= MAX_NUMBER_BYTES:  # LLVM would make an integer of what it copies
            x = f.emit(f"load {memory_type(node.dtype)}, ptr {source.text}, align {align}", memory_type(node.dtype), 1)
            f.do(f"store {x.typed}, ptr {to.text}, align {align}")
        elif estimated_bytes(node) >= MIN_SHARED_BYTES and not self.is_outlined and self.columns is None:
            self._share_copy(to, source, self.integers.integer(symbolic_bytes(node)))
        else:
            size = self.integers.integer(symbolic_bytes(node))
            f.do(f"call void @llvm.memcpy.p0.p0.i64(ptr align {align} {to.text}, ptr align {align} {source.text}, {size.typed}, i1 false)")

    def _share_copy(self, to: Reg, source: Reg, size: Reg) -> None:
        """Copies a large array by several threads: one alone gets half of what the memory gives."""
        self.declared.add(COPY)
        parts = self.f.int_op("udiv", self.f.int_op("add", size, Reg(str(COPIED_BYTES - 1), "i64", 1)), Reg(str(COPIED_BYTES), "i64", 1))
        args = self.stored([Reg("%ctx", "ptr", 1), to, source, size, Reg(str(COPIED_BYTES), "i64", 1)])
        self.share(COPY, args, parts, Reg("1", "i64", 1))

    def stored(self, values: list[Reg]) -> str:
        """The place of an array of words."""
        f = self.f
        args = f.slot("i64", len(values), 8)
        for i, v in enumerate(values):
            at = f.emit(f"getelementptr i64, ptr {args}, i64 {i}")
            f.do(f"store {v.typed}, ptr {at.text}, align 8")
        return args

    def unless_same(self, a: Reg, b: Reg, body: Callable[[], None]) -> None:
        """Runs ``body`` where two addresses differ."""
        f = self.f
        same, differ, on = f.emit(f"icmp eq ptr {a.text}, {b.text}", "i1", 1), f.fresh_label("differ"), f.fresh_label("on")
        f.do(f"br i1 {same.text}, label %{on}, label %{differ}")
        f.start(differ)
        body()
        f.do(f"br label %{on}")
        f.start(on)

    def arrive(self, to: Reg, source: Reg, node: Node) -> None:
        """Copies an array like ``node`` to where it is wanted, unless it is there."""
        if to != source and estimated_bytes(node) > MIN_TESTED_BYTES:
            self.unless_same(to, source, lambda: self.copy(to, source, node))
        else:
            self.copy(to, source, node)

    def return_if(self, status: Reg) -> None:
        """Leaves the graph function where ``status`` is not 0."""
        f = self.f
        cancelled, on, off = f.emit(f"icmp ne i64 {status.text}, 0"), f.fresh_label("on"), f.fresh_label("off")
        f.do(f"br i1 {cancelled.text}, label %{off}, label %{on}, !prof !0")
        f.start(off)
        f.do("ret void" if self.is_outlined else f"ret i64 {status.text}")
        f.start(on)

    def poll(self) -> None:
        """Looks at pending signals; leaves the function where the call is cancelled. Of several threads the calling one looks."""
        f = self.f
        status = Reg(f.name("status"), "i64", 1)
        if not self.is_outlined:
            f.do(f"{status.text} = call i64 @hg_poll(ptr %ctx)")
        else:
            f.do(f"{status.text} = call i64 @hg_poll_shared(ptr %ctx, ptr %scratch)")
            self.polls_in_threads = True
        self.return_if(status)

    # --- poison --------------------------------------------------------------------------------------------------------

    def poison(self, place: Reg, nbytes: int) -> None:
        """Fills memory with NaNs where the graph is checked."""
        if self.checked and nbytes:
            self.f.do(f"call void @hg_poison({place.typed}, i64 {nbytes})")

    def _poison_all(self, plan: ExecutionPlan, arena: Reg, pointers: dict[Node, Reg]) -> None:
        """Results, but for those in the memory of arguments, and the whole arena of the context."""
        f, given = self.f, len(plan.inputs) + len(plan.constants)
        for n in plan.computed:
            nbytes = f.int_op("mul", self.integers.integer(n.size), Reg(str(n.dtype.itemsize), "i64", 1))
            f.do(f"call void @hg_poison_result(ptr %bufs, i64 {given}, {pointers[n].typed}, {nbytes.typed})")
        place = f.emit(f"getelementptr i8, ptr %ctx, i64 {ARENA_BYTES_AT}")
        capacity = f.emit(f"load i64, ptr {place.text}, align 8", "i64", 1)
        f.do(f"call void @hg_poison({arena.typed}, {capacity.typed})")

    def _poison_fresh(self, step: int, frame: Frame) -> None:
        """The offsets of intermediates that ``step`` is the first to use, unless it may take over what another one left there."""
        if not isinstance(frame.allocation, ArenaAllocation):
            return
        buffers = frame.allocation.buffers.values()
        for p in buffers:
            others = (q for q in buffers if q is not p and q.first <= step <= q.last)
            if p.first == step and not any(q.offset < p.offset + p.nbytes and p.offset < q.offset + q.nbytes for q in others):
                self.poison(self.at(frame.arena, p.offset), p.nbytes)

    # --- kernels -------------------------------------------------------------------------------------------------------

    def _extra(self, k: Kernel) -> int:
        """How many arguments a checked kernel takes besides."""
        return 1 + len(symbolic_sizes(k)) if self.checked and k.ready is None else 0

    def _arguments(self, low: Lowered, frame: Frame) -> list[Reg]:
        k = low.kernel
        values = [self.pointer(n, frame) for n in low.bindings] + [self.integers.integer(e) for e in k.integers()]
        if self.checked and k.ready is None:
            _check_sizes(low)
            values += [Reg("%ctx", "ptr", 1), *(self.integers.integer(e) for e in symbolic_sizes(k))]
        return values

    def _launch(self, low: Lowered, frame: Frame) -> None:
        """Calls a kernel; a copy only where it is not to the same memory."""
        if not low.is_copy:
            return self._call(low, frame)
        source, result = low.bindings
        places = self.pointer(source, frame), self.pointer(result, frame)
        if places[0] == places[1]:
            return None
        if self.columns is not None and low not in self.columns.repeated:
            raise NotInParts
        if not frame.execution_plan.may_share(result, source):
            return self._call(low, frame)
        self.unless_same(places[0], places[1], lambda: self._call(low, frame))

    def _call(self, low: Lowered, frame: Frame) -> None:
        with self.counters.step(low):
            self._run_kernel(low, frame)

    def _run_kernel(self, low: Lowered, frame: Frame) -> None:
        f, k = self.f, low.kernel
        values = self._arguments(low, frame)
        if self.columns is not None and low in self.columns.kernels:
            self._run_part(low, frame, values, *self.columns.kernels[low])
            return
        if serial(k) and (frame.inside_loop or self.is_flat) and k.ready is None:
            # outside of loops an argument may be in the memory of a result that a caller gave
            aliased = self._aliased(low, values) if frame.inside_loop else frozenset(range(len(k.params)))
            name = self._name(low, frame, direct=True, aliased=aliased)
            f.do(f"call void @{name}({', '.join(v.typed for v in [*values, self.scratch])})")
            return
        for i, v in enumerate(values):
            at = f.emit(f"getelementptr i64, ptr {self.args}, i64 {i}")
            f.do(f"store {v.typed}, ptr {at.text}, align 8")
        name, chunks = self._name(low, frame, direct=False), self.integers.integer(k.iterations)
        if serial(k):
            f.do(f"call void @{name}(ptr {self.args}, i64 0, i64 {chunks.text}, ptr {self.scratch.text})")
            return
        self.share(name, self.args, chunks, self._grain(k))

    def _run_part(self, low: Lowered, frame: Frame, values: list[Reg], kernel: Kernel, chunks: int) -> None:
        """Runs the chunks of ``kernel`` that are in the units %begin … %end, so many in each."""
        f, aliased = self.f, self._aliased(low, values)
        if any(values[i] in self.stack_slots for i, b in enumerate(low.kernel.params) if b.role != "in"):
            raise NotInParts
        begin, end = (f.int_op("mul", Reg(at, "i64", 1), Reg(str(chunks), "i64", 1)) for at in ("%begin", "%end"))
        end = f.emit(f"call i64 @llvm.umin.i64({end.typed}, {self.integers.integer(kernel.iterations).typed})", "i64", 1)
        name = self._name(low, frame, direct=True, aliased=aliased, part=kernel)
        f.do(f"call void @{name}({', '.join(v.typed for v in [*values, begin, end, self.scratch])})")

    def share(self, kernel: str, args: str, chunks: Reg, grain: Reg) -> None:
        """Runs the chunks of a kernel, or of what is called as one, on several threads."""
        kernel, args = self.counters.shared(kernel, args)
        if self.trial is not None:
            grain = self.trial.grain(grain)
        self.return_if(self.f.emit(f"call i64 @hg_parallel_for(ptr %ctx, ptr @{kernel}, ptr {args}, {chunks.typed}, {grain.typed})", "i64", 1))

    def _grain(self, k: Kernel) -> Reg:
        """How many iterations a thread takes at one time."""
        if isinstance(k.work, int):
            return Reg(str(max(1, int(GRAIN_NS / max(k.cost, 1.0)))), "i64", 1)
        iterations, work = self.integers.integer(k.iterations), self.integers.integer(k.work + 1)
        many = self.f.int_op("udiv", self.f.int_op("mul", iterations, Reg(str(int(1000 * GRAIN_NS)), "i64", 1)), work)
        return self.f.emit(f"call i64 @llvm.umax.i64({many.typed}, i64 1)", "i64", 1)

    def _aliased(self, low: Lowered, values: list[Reg]) -> frozenset[int]:
        """The parameters in whose memory there is another one, where one of the two is written. Arrays overlap as a whole or not at all."""
        params = low.kernel.params
        places = [self.origins.get(v, (v, 0)) for v in values[: len(params)]]
        written = {at for b, at in zip(params, places, strict=True) if b.role != "in"}
        return frozenset(i for i, at in enumerate(places) if at in written and places.count(at) > 1)

    def _name(self, low: Lowered, frame: Frame, direct: bool, aliased: frozenset[int] = frozenset(), part: Kernel | None = None) -> str:
        """The function of a kernel, or of ``part``, which takes its chunks; alike kernels share one."""
        k = part or low.kernel
        if k.ready is not None:
            self.declared.add(f"hg_{k.ready[0]}")
            return f"hg_{k.ready[0]}"
        unaligned = tuple(i for i, n in enumerate(low.bindings) if frame.execution_plan.buffer(n) in frame.unaligned)
        key = (print_kernel(k), direct, unaligned, aliased, part is not None)
        if key not in self.names:
            name = self.names[key] = f"kernel{len(self.names)}"
            writer = KernelWriter(k, self.functions, self.precision, self.target, self.checked, unaligned)
            inline = sum(1 for _ in k.walk()) <= INLINE_STATEMENTS
            self.texts.append(writer.render_direct(name, inline, aliased, part is not None) if direct else writer.render(name))
        return self.names[key]


def _check_sizes(low: Lowered) -> None:
    """Raises CompileError where a kernel takes its memory for larger than it is."""
    for b, n in zip(low.kernel.params, low.bindings, strict=True):
        slack = n.size - b.size
        if b.dtype is not n.dtype or (bounds(slack)[1] or 0) < 0:
            raise CompileError(f"a kernel takes {b.name} for {b.size} elements of {b.dtype}, but it is {n.dtype}[{n.size}]\n{low.kernel}")


def routines_of(text: str) -> list[str]:
    """The routines of libraries that a module's text names."""
    return [name for name in re.findall(r"^@(\w+) = external global", text, re.MULTILINE) if name != COUNTERS]


def serial(k: Kernel) -> bool:
    """Whether the calling thread runs a kernel alone."""
    return isinstance(k.iterations, int) and (k.iterations == 1 or k.iterations * k.cost < SERIAL_NS)
