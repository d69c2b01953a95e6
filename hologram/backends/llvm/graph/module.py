"""The LLVM module of a whole graph: kernels, loops, branches and calls of routines in one function."""

from __future__ import annotations

from typing import Any

from hologram.backends.llvm.graph.control_flow import write_step
from hologram.backends.llvm.graph.host_calls import write_host
from hologram.backends.llvm.graph.writer import Frame, GraphWriter
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.lower.control_step import ControlStep
from hologram.graph.lower.host_step import HostStep
from hologram.graph.memory.arena import ArenaAllocation


class ModuleWriter(GraphWriter):
    """Writes every kind of step."""

    def write(self, step: ControlStep | HostStep, frame: Frame) -> None:
        if isinstance(step, ControlStep):
            write_step(self, step, frame)
        else:
            write_host(self, step, frame)


def render_module(
    plan: ExecutionPlan, allocation: ArenaAllocation | None, precision: str, target: Any, checked: bool = False, profiled: bool = False
) -> str:
    """The module's text. ``plan`` places the intermediates; None where symbols will hold their offsets."""
    return ModuleWriter(precision, target, checked, profiled).render(plan, allocation).whole()
