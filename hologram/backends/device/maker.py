"""From the steps of a plan to actions: launches, loops and branches around them, routines of the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from hologram.backends.device.driver import Launch
from hologram.backends.device.loops import carries_in_place, changed_in_place, control
from hologram.backends.device.steps import Action, Block, Call, Slots, Where, at, bytes_of
from hologram.graph.execution_plan import ExecutionPlan, concrete_shape
from hologram.graph.lower.control_step import ControlStep
from hologram.graph.lower.host_step import HostStep
from hologram.graph.lower.lowered import Lowered
from hologram.graph.memory.arena import ArenaAllocation
from hologram.ir.node import Node
from hologram.ir.symbolic import Int, prod, substitute
from hologram.primitives.host.effects import effect

if TYPE_CHECKING:
    from hologram.backends.c.source import Program

MAX_GROUPS = 1 << 16
GROUPS_A_UNIT = 4  # of kernels whose groups have a workspace each


class Maker:
    """Makes blocks for a program: ``kernels`` are those that the device built, by name. ``compilation`` is the program's."""

    def __init__(self, program: Program, kernels: Mapping[str, Any], units: int, compilation: Any = None) -> None:
        self.program, self.kernels, self.units, self.compilation = program, kernels, units, compilation

    def block(
        self, plan: ExecutionPlan, values: Mapping[str, int], allocation: ArenaAllocation, in_place: Mapping[Node, Node] | None = None
    ) -> Block:
        """The actions of a plan at given sizes. ``in_place``: results that are where an input is."""
        arena = len(plan.slot_of)
        where: dict[Any, Where] = {n: (plan.slot_of[(in_place or {}).get(n, n)], 0) for n in plan.slot_of}
        for i, (n, *_) in enumerate(plan.temporaries):
            where[n] = arena, (allocation.buffers[i].offset if i in allocation.buffers else 0)
        actions: list[Action] = []
        workspace = 0
        for step in plan.steps:
            for action in self._actions(step, values, lambda n: where.get(plan.buffer(n), (arena, 0))):
                actions.append(action)
                workspace = max(workspace, action.workspace)
        return Block(actions, allocation.arena_bytes, workspace)

    def _actions(self, step: Any, values: Mapping[str, int], where: Callable[[Any], Where]) -> list[Any]:
        if isinstance(step, ControlStep):
            kept = carries_in_place(step)
            plans = zip(step.execution_plans, cast("list[ArenaAllocation]", step.allocations), strict=True)  # static, as on devices all are
            bodies = [self.block(s, {}, p, changed_in_place(step, kept) if s is step.execution_plans[-1] else None) for s, p in plans]
            return [control(step, bodies, kept, where)]
        if isinstance(step, HostStep):
            return [Routine.of_host_step(step, values, where)]
        if step.is_copy and where(step.bindings[0]) == where(step.bindings[1]):
            return []
        launch = self._launch(step, values, where)
        return [launch] if launch.groups else []

    def _launch(self, step: Lowered, values: Mapping[str, int], where: Callable[[Any], Where]) -> Launch:
        k, mapping = step.kernel, self.program.mappings[step.kernel]
        chunks = _number(k.iterations, values)
        groups = min(MAX_GROUPS, mapping.groups(chunks))
        if mapping.workspace:
            groups = min(groups, GROUPS_A_UNIT * self.units)
        operands = [(*where(n), n.dtype.itemsize) for n in step.bindings]
        integers = [_number(e, values) for e in k.integers()]
        made = Launch(self.kernels[self.program.names[k]], groups, mapping.items, operands, integers, groups * mapping.workspace)
        made.source = self.compilation, step
        return made


class Routine(NamedTuple):
    """A routine of the host: its operands are copied there, what it gives is copied back. The call waits for it."""

    reference: Callable[..., Sequence[np.ndarray]]
    operands: list[tuple[Where, tuple[int, ...], Any]]
    results: list[tuple[Where, tuple[int, ...], Any]]
    attrs: tuple[Any, ...]
    switch: int | None = None  # the operand that says whether the routine is called at all
    workspace: int = 0
    whole: bool = False
    unattended: bool = False

    @classmethod
    def of_host_step(cls, step: HostStep, values: Mapping[str, int], where: Callable[[Any], Where]) -> Routine:
        operands, results = _arrays(step.node.inputs, values, where), _arrays(step.results, values, where)
        return cls(step.op.reference, operands, results, step.node.attrs, 1 if step.op is effect else None)

    def run(self, call: Call, slots: Slots) -> None:
        queue, arrays = call.work.queue, []
        if self.switch is not None:
            enabled = np.empty((), np.bool_)
            queue.read(bytes_of(enabled), at(slots, self.operands[self.switch][0]))
            if queue.device.has_values and not enabled:  # the results of an effect that is not wanted
                return self._write(call, slots, [np.zeros(shape, dtype) for _, shape, dtype in self.results])
        for place, shape, dtype in self.operands:
            array = np.empty(shape, dtype)
            queue.read(bytes_of(array), at(slots, place))
            array.flags.writeable = False
            arrays.append(array)
        if queue.device.has_values:
            values = queue.device.unguarded(partial(self.reference, *arrays, *self.attrs))
        else:
            values = [np.zeros(shape, dtype) for _, shape, dtype in self.results]
        return self._write(call, slots, values)

    def _write(self, call: Call, slots: Slots, values: Sequence[np.ndarray]) -> None:
        for (place, shape, dtype), value in zip(self.results, values, strict=True):
            made = np.empty(shape, dtype)
            np.copyto(made, value)
            call.work.write_array(at(slots, place), made)


def _arrays(nodes: Sequence[Node], values: Mapping[str, int], where: Callable[[Any], Where]) -> list[tuple[Where, tuple[int, ...], Any]]:
    out = []
    for n in nodes:
        shape = concrete_shape(n.shape, values)
        out.append((where(n) if prod(shape) else (0, 0), shape, n.dtype.np))
    return out


def _number(e: Int, values: Mapping[str, int]) -> int:
    out = substitute(e, values)
    assert isinstance(out, int)
    return out
