"""Autotuning in the graph function: a loop whose steps threads may share asks before each of them whether they shall.

The runtime answers (:mod:`hologram.backends.native.code.step_trials`). A loop asks only if something in its steps is shared, which shows while they
are written; lines are kept free for that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol

from hologram.backends.llvm.abi import TRIAL_BYTES
from hologram.backends.llvm.text import FunctionText, Reg

DECLARATIONS = """
declare void @hg_begin_trial(ptr)
declare void @hg_end_trial(ptr)
declare i64 @hg_runs_serially(ptr)
"""


def record(n: int) -> str:
    """The memory of trial ``n`` of a program."""
    return f"@trial{n} = internal global [{TRIAL_BYTES} x i8] zeroinitializer, align {TRIAL_BYTES}"


class Writer(Protocol):
    """What is asked of the writer of a graph function."""

    f: FunctionText
    trials: int
    trial: TrialWriter | None


class TrialWriter:
    """The trials of a loop that begins here, if it has any: those of loops in it are their own."""

    def __init__(self, w: Writer) -> None:
        self.w, self.f = w, w.f
        self._record: str | None = None  # where threads share something
        self._begin, self._ask = self.f.reserve(), 0
        self._answer, self._is_serial = self.f.name("trial"), self.f.name("serial")

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """What is written inside is a step of the loop."""
        before, self.w.trial = self.w.trial, self
        self._ask = self.f.reserve(2)
        try:
            yield
        finally:
            self.w.trial = before

    def grain(self, grain: Reg) -> Reg:
        """The grain of something in the step that threads share, negated where they shall not."""
        if self._record is None:
            self._record = f"@trial{self.w.trials}"
            self.w.trials += 1
            self.f.fill(self._begin, f"call void @hg_begin_trial(ptr {self._record})")
            self.f.fill(self._ask, f"{self._answer} = call i64 @hg_runs_serially(ptr {self._record})")
            self.f.fill(self._ask + 1, f"{self._is_serial} = icmp ne i64 {self._answer}, 0")
        negated = self.f.int_op("sub", Reg("0", "i64", 1), grain)
        return self.f.emit(f"select i1 {self._is_serial}, {negated.typed}, {grain.typed}", "i64", 1)

    def end(self) -> None:
        """The loop ends here."""
        if self._record is not None:
            self.f.do(f"call void @hg_end_trial(ptr {self._record})")
