"""Generated code of a device: a program's kernels as text, and what errors say of the program."""

from __future__ import annotations

from typing import NamedTuple

from hologram.backends.c.source import Program
from hologram.graph.compilation import Compilation
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.lower.lowered import Lowered
from hologram.ir.graph import Graph


class DeviceCode(NamedTuple):
    """A program's kernels as text, in the device's dialect."""

    compilation: Compilation
    program: Program


def all_kernels(plan: ExecutionPlan) -> list[Lowered]:
    """All kernels of a program, those of its initializer too."""
    return [*plan.kernels, *([] if plan.initializer is None else plan.initializer.kernels)]


def line_of(traced: Graph) -> str:
    """Where a program comes from: the user's line of the first result that has one."""
    line = next((traced.lines[n] for n in traced.outputs if traced.lines.get(n)), None)
    return f"{line[0]}:{line[1]}" if line else "an expression"
