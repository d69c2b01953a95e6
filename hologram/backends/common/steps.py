"""The steps of a schedule as actions on a device's queue: launches, loops and branches around them, routines of the host.

A :class:`Block` is what a schedule does at given sizes. Its arrays are in *slots*, places in device memory that a call supplies: inputs, constants,
results, and last the arena. Where an array is, is a slot and an offset in it.

Loops and branches are run by the host, step by step: a ``scan`` puts all its launches in the queue without waiting for any; a ``while_loop`` and a
``switch`` read their condition back. A carry of a loop goes back and forth between two buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from hologram.backends.c.vectors import ACCESS_BYTES
from hologram.backends.common.driver import Launch, Place
from hologram.errors import UnsupportedError
from hologram.graph.control import ControlStep, nbytes
from hologram.graph.host import HostStep
from hologram.graph.lower import Lowered
from hologram.graph.plan import LINE_BYTES, Plan
from hologram.graph.schedule import Schedule, concrete_shape
from hologram.primitives.control import scan, switch
from hologram.symbolic import Int, prod, substitute
from hologram.trace.node import Node

if TYPE_CHECKING:
    from hologram.backends.c.source import Program
    from hologram.backends.common.runtime import Work

MOST_GROUPS = 1 << 16
GROUPS_A_UNIT = 4  # of kernels whose groups have a workspace each

Where = tuple[int, int]  # a slot, and bytes from its start
Slots = Sequence[Place]


class Call(NamedTuple):
    """A call under way: what it puts in its queue, and the handle of the workspace."""

    work: Work
    workspace: Any


class Action(Protocol):
    workspace: int
    whole: bool

    def run(self, call: Call, slots: Slots) -> None: ...


class Block:
    """What a schedule does: its actions in order, and the bytes of its arena and of the workspace that its launches share.

    ``whole``: nothing of other calls can come between its actions in the queue, as can while a routine of the host runs, without the device's lock.
    """

    __slots__ = ("actions", "arena", "workspace", "whole")

    def __init__(self, actions: list[Any], arena: int, workspace: int) -> None:
        self.actions, self.arena, self.workspace = actions, arena, workspace
        self.whole = all(a.whole for a in actions)

    def run(self, call: Call, slots: Slots) -> None:
        for action in self.actions:
            action.run(call, slots)


class Maker:
    """Makes blocks for a program: ``kernels`` are those that the device built, by name."""

    def __init__(self, program: Program, kernels: Mapping[str, Any], units: int) -> None:
        self.program, self.kernels, self.units = program, kernels, units

    def block(self, schedule: Schedule, values: Mapping[str, int], plan: Plan) -> Block:
        arena = len(schedule.slot_of)
        where: dict[Any, Where] = {n: (i, 0) for n, i in schedule.slot_of.items()}
        for i, (n, *_) in enumerate(schedule.temporaries):
            where[n] = arena, (plan.buffers[i].offset if i in plan.buffers else 0)
        actions: list[Action] = []
        workspace = 0
        for step in schedule.steps:
            for action in self._actions(step, values, lambda n: where.get(n, (arena, 0))):
                actions.append(action)
                workspace = max(workspace, action.workspace)
        return Block(actions, plan.arena_bytes, workspace)

    def _actions(self, step: Any, values: Mapping[str, int], where: Callable[[Any], Where]) -> list[Any]:
        if isinstance(step, ControlStep):
            bodies = [self.block(s, {}, p) for s, p in zip(step.schedules, step.plans, strict=True)]
            return [(_Switch if step.node.op is switch else _Loop)(step, bodies, where)]
        if isinstance(step, HostStep):
            return [_Routine.of_host_step(step, values, where)]
        if step.kernel.ready is not None:
            return [_Routine.of_ready_kernel(step, values, where)]
        launch = self._launch(step, values, where)
        return [launch] if launch.groups else []

    def _launch(self, step: Lowered, values: Mapping[str, int], where: Callable[[Any], Where]) -> Launch:
        k, mapping = step.kernel, self.program.mappings[step.kernel]
        chunks = _number(k.chunks, values)
        groups = min(MOST_GROUPS, mapping.groups(chunks))
        if mapping.workspace:
            groups = min(groups, GROUPS_A_UNIT * self.units)
        places = [(*where(n), n.dtype.itemsize) for n in step.bindings]
        integers = [_number(e, values) for e in k.integers()]
        return Launch(self.kernels[self.program.names[k]], groups, mapping.items, places, integers, groups * mapping.workspace)


class _Routine(NamedTuple):
    """A routine of the host: its operands are copied there, what it gives is copied back. The call waits for it."""

    reference: Callable[..., Sequence[np.ndarray]]
    operands: list[tuple[Where, tuple[int, ...], Any]]
    results: list[tuple[Where, tuple[int, ...], Any]]
    attrs: tuple[Any, ...]
    workspace: int = 0
    whole: bool = False

    @classmethod
    def of_host_step(cls, step: HostStep, values: Mapping[str, int], where: Callable[[Any], Where]) -> _Routine:
        return cls(step.op.reference, _arrays(step.node.inputs, values, where), _arrays(step.results, values, where), step.node.attrs)

    @classmethod
    def of_ready_kernel(cls, step: Lowered, values: Mapping[str, int], where: Callable[[Any], Where]) -> _Routine:
        """A kernel that other backends have ready, by its row's meaning."""
        (root,) = step.group.roots
        return cls(lambda *args: [root.op.reference(*args)], _arrays(root.inputs, values, where), _arrays([root], values, where), root.attrs)

    def run(self, call: Call, slots: Slots) -> None:
        queue, arrays = call.work.queue, []
        for place, shape, dtype in self.operands:
            array = np.empty(shape, dtype)
            queue.read(_bytes_of(array), _at(slots, place))
            array.flags.writeable = False
            arrays.append(array)
        if queue.device.has_values:
            values = queue.device.unguarded(partial(self.reference, *arrays, *self.attrs))
        else:
            values = [np.zeros(shape, dtype) for _, shape, dtype in self.results]
        for (place, shape, dtype), value in zip(self.results, values, strict=True):
            made = np.empty(shape, dtype)
            np.copyto(made, value)
            call.work.write_array(_at(slots, place), made)


class _Control:
    """What loops and branches share: places of operands and results, and of the bodies' arena in the step's workspace."""

    def __init__(self, step: ControlStep, blocks: list[Block], where: Callable[[Any], Where]) -> None:
        self.step, self.blocks = step, blocks
        self.workspace = max(b.workspace for b in blocks)
        self.whole = all(b.whole for b in blocks)
        self.operands = [where(x) for x in step.node.inputs]
        self.room = where(step)
        self.types = step.schedules[-1].graph.outputs
        self.results = [where(r) if r is not None else self._inside(step.spare[i]) for i, r in enumerate(step.results)]

    def _inside(self, offset: int) -> Where:
        """A place in the step's workspace."""
        slot, base = self.room
        return slot, base + offset

    def run_body(self, call: Call, slots: Slots, which: int, inputs: Sequence[Place], outputs: Sequence[Place]) -> None:
        """Runs a body that takes ``inputs`` and whose results go to ``outputs``, which overlap nothing that it reads."""
        schedule = self.step.schedules[which]
        computed: dict[int, Place] = {}
        for o, place in zip(schedule.outputs, outputs, strict=True):
            if o.kind == "computed":
                computed.setdefault(o.index, place)
        arena = _at(slots, self._inside(self.step.arena))
        self.blocks[which].run(call, [*inputs, *[computed[i] for i in range(len(schedule.computed))], arena])
        for o, place in zip(schedule.outputs, outputs, strict=True):
            source = inputs[o.index] if o.kind == "input" else computed[o.index]
            if source != place:
                call.work.queue.copy(place, source, nbytes(o.node))


class _Switch(_Control):
    def run(self, call: Call, slots: Slots) -> None:
        index, *operands = [_at(slots, w) for w in self.operands]
        which = int(_read(call, index, np.int64, "a branch"))
        self.run_body(call, slots, which, operands, [_at(slots, w) for w in self.results])


class _Loop(_Control):
    """A scan or a while loop."""

    def __init__(self, step: ControlStep, blocks: list[Block], where: Callable[[Any], Where]) -> None:
        super().__init__(step, blocks, where)
        node = step.node
        self.is_scan = node.op is scan
        self.consts: int = node.attrs[1] if self.is_scan else node.attrs[2]
        self.carries: int = node.attrs[2] if self.is_scan else len(self.types)
        self.others = [self._inside(step.spare[i] + _lines(x)) for i, x in enumerate(self.types[: self.carries])]

    def run(self, call: Call, slots: Slots) -> None:
        operands = [_at(slots, w) for w in self.operands]
        ends = [_at(slots, w) for w in self.results[: self.carries]]
        pair = [_at(slots, w) for w in self.others], ends
        fixed, state = operands[: self.consts], operands[self.consts : self.consts + self.carries]
        state = self._scan(call, slots, fixed, state, pair, operands) if self.is_scan else self._while(call, slots, fixed, state, pair)
        for end, last, x in zip(ends, state, self.types, strict=False):
            if end != last:
                call.work.queue.copy(end, last, nbytes(x))

    def _scan(self, call: Call, slots: Slots, fixed: list[Place], state: list[Place], pair: Any, operands: list[Place]) -> list[Place]:
        length, reverse = self.step.node.attrs[3:]
        first = self.consts + self.carries
        xs = [_Stack(call, at, x) for at, x in zip(operands[first:], self.step.schedules[0].inputs[first:], strict=True)]
        kept = zip(self.results[self.carries :], self.step.results[self.carries :], self.types[self.carries :], strict=True)
        ys = [_Stack(call, _at(slots, w), x, wanted=r is not None) for w, r, x in kept]
        for k in range(length):
            i = length - 1 - k if reverse else k
            following = pair[(length - k) % 2]  # the last step writes where the result goes
            self.run_body(call, slots, 0, [*fixed, *state, *[x.taken(i) for x in xs]], [*following, *[y.place(i) for y in ys]])
            for y in ys:
                y.put(i)
            state = following
        return state

    def _while(self, call: Call, slots: Slots, fixed: list[Place], state: list[Place], pair: Any) -> list[Place]:
        flag = call.work.memory(LINE_BYTES, lambda: "the condition of a while_loop")
        there = flag.handle, 0
        k = 0
        while True:
            self.run_body(call, slots, 0, [*fixed, *state], [there])
            if not _read(call, there, np.bool_, "the end of a while_loop"):
                return state
            following = pair[k % 2]
            self.run_body(call, slots, 1, [*fixed, *state], following)
            state, k = following, k + 1


class _Stack:
    """Arrays side by side at ``at``, of which a step of a loop takes or gives one. Kernels may access 16 bytes at once, so where elements do not
    begin at multiples of that, a step works on a copy. What is not ``wanted`` is written to one place."""

    def __init__(self, call: Call, at: Place, element: Node, wanted: bool = True) -> None:
        self.queue, self.at, self.nbytes, self.wanted = call.work.queue, at, nbytes(element), wanted
        apart = wanted and self.nbytes % ACCESS_BYTES != 0
        self.room = call.work.memory(self.nbytes, lambda: "an element of a scan's sequence") if apart else None

    def _there(self, i: int) -> Place:
        return self.at[0], self.at[1] + (i * self.nbytes if self.wanted else 0)

    def place(self, i: int) -> Place:
        """Where kernels find element ``i``."""
        return self._there(i) if self.room is None else (self.room.handle, 0)

    def taken(self, i: int) -> Place:
        """As :meth:`place`, with the element there."""
        if self.room is not None:
            self.queue.copy(self.place(i), self._there(i), self.nbytes)
        return self.place(i)

    def put(self, i: int) -> None:
        """Brings what a step has written to :meth:`place` to the others."""
        if self.room is not None:
            self.queue.copy(self._there(i), self.place(i), self.nbytes)


def _lines(x: Node) -> int:
    return -(-nbytes(x) // LINE_BYTES) * LINE_BYTES


def _at(slots: Slots, where: Where) -> Place:
    handle, base = slots[where[0]]
    return handle, base + where[1]


def _read(call: Call, place: Place, dtype: Any, what: str) -> Any:
    """A scalar, for which the call waits."""
    device = call.work.queue.device
    if not device.has_values:
        raise UnsupportedError(f"{device.name} computes no values, and {what} depends on one")
    out = np.empty((), dtype)
    call.work.queue.read(_bytes_of(out), place)
    return out[()]


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


def _bytes_of(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)
