"""Counters in the graph function of a profiled program: each step is between two calls of the runtime, which reads the clock.

Step n of the plan, in the order of :func:`all_steps`, has counter n + 1; counter 0 is that of whole calls. What threads share is called by way of
``hg_profile_chunk``, which counts for the thread that runs it. A small kernel in a loop is a part of the loop, whose steps are counted: to time it
would take as long as to run it. So are loops in loops that are as small.

Without counters the functions here write nothing. So a program that is not profiled is what it would be without them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol

from hologram.backends.llvm.text import FunctionText, Reg
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.lower.control_step import ControlStep
from hologram.graph.lower.host_step import HostStep
from hologram.graph.lower.lowered import Lowered
from hologram.graph.lower.steps import Step, all_steps
from hologram.ir.symbolic import typical
from hologram.primitives.control import scan

MIN_TIMED_NS = 1_000.0  # of a step in a loop, to be timed
MIN_LOGGED_NS = 20_000.0  # of a step in a loop, to be an event on the time line, too
CALL, SHARED, ALONE, UNLOGGED = 0, 1, 2, 3  # of what ends, as the runtime is told (:mod:`hologram.backends.native.code.counters`)
COUNTERS = "hg_profile_counters"  # the symbol of a program's counters

DECLARATIONS = f"""
@{COUNTERS} = external global i8
declare i64 @hg_profile_enter(ptr, ptr)
declare i64 @hg_profile_begin(ptr, ptr, i64)
declare void @hg_profile_end(ptr, ptr, i64, i64, i64)
declare void @hg_profile_iterations(ptr, ptr, i64, i64)
declare void @hg_profile_chunk(ptr, i64, i64, ptr)
"""


class Writer(Protocol):
    """What is asked of the writer of a graph function."""

    f: FunctionText
    is_outlined: bool


def steps_of(plan: ExecutionPlan) -> int:
    """How many counters the program of a plan has."""
    return 1 + sum(1 for _ in all_steps(plan.steps))


class Counters:
    """Writes the calls that count, for a writer whose program is profiled; for another, nothing."""

    def __init__(self, w: Writer, plan: ExecutionPlan, profiled: bool) -> None:
        self.w, self.is_on = w, profiled
        self._numbers: dict[Step, int] = {s: 1 + n for n, s in enumerate(all_steps(plan.steps))} if profiled else {}
        self._loops = 0  # that are being written
        self._current: tuple[int, Reg] | None = None  # the step that is written, if it is timed, and when it begins
        self._is_shared = False  # whether threads share it

    @property
    def declarations(self) -> str:
        """What the module of the graph function declares."""
        return DECLARATIONS * self.is_on

    # --- time ----------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """The whole graph function."""
        start = self.w.f.emit(f"call i64 @hg_profile_enter(ptr %ctx, ptr @{COUNTERS})", "i64", 1) if self.is_on else None
        yield
        if start is not None:
            self._end(0, start, CALL)

    @contextlib.contextmanager
    def step(self, step: Step) -> Iterator[None]:
        """What is written inside is a step."""
        if not self.is_on:
            yield
            return
        outer = self._current, self._is_shared, self._loops
        number = self._numbers[step] if self._is_timed(step) else None
        is_logged = not self._loops or cost_of(step) >= MIN_LOGGED_NS
        if number is not None:
            start = self.w.f.emit(f"call i64 @hg_profile_begin(ptr %ctx, ptr @{COUNTERS}, i64 {number})", "i64", 1)
            self._current = number, start
        else:
            self._current = None
        self._is_shared = False
        self._loops += _is_loop(step)
        try:
            yield
            if number is not None:
                self._end(number, start, SHARED if self._is_shared else ALONE if is_logged else UNLOGGED)
        finally:
            self._current, self._is_shared, self._loops = outer

    def _is_timed(self, step: Step) -> bool:
        return not self.w.is_outlined and (not self._loops or cost_of(step) >= MIN_TIMED_NS)

    def _end(self, number: int, start: Reg, kind: int) -> None:
        self.w.f.do(f"call void @hg_profile_end(ptr %ctx, ptr @{COUNTERS}, i64 {number}, {start.typed}, i64 {kind})")

    # --- work ----------------------------------------------------------------------------------------------------------

    def iterations(self, count: Reg) -> None:
        """The loop that is timed has run ``count`` steps."""
        if self._current is not None:
            self.w.f.do(f"call void @hg_profile_iterations(ptr %ctx, ptr @{COUNTERS}, i64 {self._current[0]}, {count.typed})")

    def shared(self, kernel: str, args: str) -> tuple[str, str]:
        """What threads are to share in place of ``kernel`` with ``args``."""
        if self._current is None:
            return kernel, args
        self._is_shared = True
        f, (number, start) = self.w.f, self._current
        launch = f.slot("i64", 6, 8)
        for i, value in enumerate((f"ptr @{kernel}", f"ptr {args}", f"ptr @{COUNTERS}", f"i64 {number}", start.typed, "ptr %ctx")):
            at = f.emit(f"getelementptr i64, ptr {launch}, i64 {i}")
            f.do(f"store {value}, ptr {at.text}, align 8")
        return "hg_profile_chunk", launch


def cost_of(step: Step) -> float:
    """Rough nanoseconds of a step in a loop; of a loop whose end is not known, those of one of its steps."""
    if isinstance(step, HostStep):
        return MIN_LOGGED_NS
    if isinstance(step, ControlStep):
        return step.cost if step.node.op is scan else max(p.donated_cost for p in step.execution_plans)
    assert isinstance(step, Lowered)
    return step.kernel.cost * typical(step.kernel.iterations)


def _is_loop(step: Step) -> bool:
    return isinstance(step, ControlStep) and step.node.op.name != "switch"
