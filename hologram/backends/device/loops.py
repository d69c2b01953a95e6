"""Loops and branches, which the host runs.

A ``scan`` puts all its steps in the queue without waiting for any. A ``switch`` reads its index back. A ``while_loop`` reads its conditions back, a
batch of steps at one time: the steps of a batch are all begun before it is known whether the loop ends among them, each writes its carries where no
other does, and the state that counts is that of the first condition that is false. What the steps after it compute is not looked at. Batches double
in size, so no more steps are in vain than were needed, and a batch takes no more than :data:`IN_VAIN_NS`. Loops whose bodies need the host, or may
not end, are read at each step.

Batches of steps differ in places alone, so a backend may capture them as it may a block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hologram.backends.c.analysis.vectors import ACCESS_BYTES
from hologram.backends.device.driver import Place
from hologram.backends.device.memory import Memory
from hologram.backends.device.steps import Block, Call, Slots, Where, at, read
from hologram.errors import OutOfMemory
from hologram.graph.lower.control_step import Carry, ControlStep
from hologram.graph.memory.arena import LINE_BYTES
from hologram.ir.node import Node, nbytes
from hologram.ir.symbolic import Int
from hologram.primitives.control import label_of, scan, switch
from hologram.support.progress.bars import Bar, counting

MAX_STEPS_AHEAD = 16  # of a while_loop, begun before their conditions are known
MIN_WAITING_BYTES = 1 << 18  # of carries of a while_loop that are changed where they are: a copy of less is sooner done than a condition read
IN_VAIN_NS = 1e6  # what these may take, as the CPU's model of costs has it
AHEAD_BYTES = 1 << 26  # of their carries
SCANNED = 64  # steps of a long scan that are a batch; even, so that carries are afterwards in the buffers in which they were before


def carries_in_place(step: ControlStep) -> list[int]:
    """The carries that a step of a loop changes where they are. A ``while_loop`` that does so waits for each condition, so small ones are copied."""
    kept = [k for k, carry in enumerate(step.carries) if carry is Carry.IN_PLACE]
    types = step.execution_plans[-1].graph.outputs
    return kept if step.node.op is scan or sum(nbytes(types[k]) for k in kept) >= MIN_WAITING_BYTES else []


def changed_in_place(step: ControlStep, kept: Sequence[int]) -> dict[Node, Node]:
    """Results of a loop's body that are where an input is: those of the carries ``kept``."""
    plan = step.execution_plans[-1]
    outputs = [(plan.outputs[k], plan.inputs[step.consts + k]) for k in kept]
    return {plan.computed[o.index]: x for o, x in outputs if o.kind == "computed"}


def control(step: ControlStep, blocks: list[Block], kept: list[int], where: Callable[[Any], Where]) -> _Control:
    """The action of a loop or branch. The carries ``kept`` are changed where they are."""
    if step.node.op is switch:
        return _Switch(step, blocks, where)
    return (_Scan if step.node.op is scan else _While)(step, blocks, kept, where)


class _Control(ABC):
    """What loops and branches share: places of operands and results, and of the bodies' arena in the step's workspace."""

    unattended = False

    def __init__(self, step: ControlStep, blocks: list[Block], where: Callable[[Any], Where]) -> None:
        self.step, self.blocks = step, blocks
        self.workspace = max(b.workspace for b in blocks)
        self.whole = all(b.whole for b in blocks)
        self.operands = [where(x) for x in step.operands]
        self.room = where(step)
        self.types = step.execution_plans[-1].graph.outputs
        self.results = [where(r) if r is not None else self._inside(step.spare[i]) for i, r in enumerate(step.results)]

    def _inside(self, offset: Int) -> Where:
        """A place in the step's workspace, whose sizes are static on devices."""
        slot, base = self.room
        assert isinstance(offset, int)
        return slot, base + offset

    @abstractmethod
    def run(self, call: Call, slots: Slots) -> None: ...

    def run_body(self, call: Call, slots: Slots, which: int, inputs: Sequence[Place], outputs: Sequence[Place]) -> None:
        """Runs a body that takes ``inputs`` and whose results go to ``outputs``, which overlap nothing that it reads."""
        plan = self.step.execution_plans[which]
        computed: dict[int, Place] = {}
        for o, place in zip(plan.outputs, outputs, strict=True):
            if o.kind == "computed":
                computed.setdefault(o.index, place)
        arena = at(slots, self._inside(self.step.arena))
        self.blocks[which].run(call, [*inputs, *[computed[i] for i in range(len(plan.computed))], arena])
        for o, place in zip(plan.outputs, outputs, strict=True):
            source = inputs[o.index] if o.kind == "input" else computed[o.index]
            if source != place:
                call.work.queue.copy(place, source, nbytes(o.node))


class _Switch(_Control):
    def run(self, call: Call, slots: Slots) -> None:
        index, *operands = [at(slots, w) for w in self.operands]
        which = int(read(call, index, np.empty((), np.int64), "a branch"))
        self.run_body(call, slots, which, operands, [at(slots, w) for w in self.results])


class _Loop(_Control):
    """``carries`` and ``consts``: how many there are. ``batches`` by their numbers of steps."""

    consts: int
    carries: int
    length: int | None = None  # how many steps there are, where that is known

    def __init__(self, step: ControlStep, blocks: list[Block], kept: list[int], where: Callable[[Any], Where]) -> None:
        super().__init__(step, blocks, where)
        self.kept = kept
        self.carried = self.types[: self.carries]
        self.others = [self.results[i] if i in kept else self._inside(step.other[i]) for i in range(self.carries)]
        self.batches: dict[int, _Batch] = {}

    def batch(self, count: int) -> _Batch:
        """The same one for each count."""
        found = self.batches.get(count)
        if found is None:
            found = self.batches[count] = _Batch(self, count)
        return found

    @abstractmethod
    def steps(self, call: Call, slots: Slots, count: int) -> None:
        """Runs ``count`` steps. The last of ``slots`` are places that differ from batch to batch."""

    def run(self, call: Call, slots: Slots) -> None:
        ends = [at(slots, w) for w in self.results[: self.carries]]
        first = [at(slots, w) for w in self.operands[self.consts : self.consts + self.carries]]
        for k in self.kept:
            if first[k] != ends[k]:
                call.work.queue.copy(ends[k], first[k], nbytes(self.carried[k]))
                first[k] = ends[k]
        with counting(label_of(self.step.node.attrs), self.length) as bar:
            state = self.last(first, [at(slots, w) for w in self.others], ends, call, slots, bar)
        for end, last, x in zip(ends, state, self.carried, strict=True):
            if end != last:
                call.work.queue.copy(end, last, nbytes(x))

    @abstractmethod
    def last(self, first: list[Place], others: list[Place], ends: list[Place], call: Call, slots: Slots, bar: Bar) -> list[Place]:
        """Runs all steps from the state ``first``, and counts those that it has begun. Where the carries are then; they may be written to ``others``
        and ``ends``."""


class _Batch:
    """Some steps of a loop, one after another."""

    __slots__ = ("loop", "count")

    def __init__(self, loop: _Loop, count: int) -> None:
        self.loop, self.count = loop, count

    def run(self, call: Call, slots: Slots) -> None:
        self.loop.steps(call, slots, self.count)


class _Scan(_Loop):
    """Carries go back and forth between two buffers. A batch has the places of its carries, of both buffers, and of the elements where it begins."""

    def __init__(self, step: ControlStep, blocks: list[Block], kept: list[int], where: Callable[[Any], Where]) -> None:
        self.consts, self.carries, self.length, self.reverse = step.node.attrs[1:5]
        super().__init__(step, blocks, kept, where)
        self.unattended = all(b.unattended for b in blocks)
        first = self.consts + self.carries
        wanted = [r is not None for r in step.results[self.carries :]]
        inputs, outputs = step.execution_plans[0].inputs[first:], self.types[self.carries :]
        self.stacks = [*[(x, True) for x in inputs], *zip(outputs, wanted, strict=True)]
        self.sequences = [*self.operands[first:], *self.results[self.carries :]]

    def last(self, first: list[Place], others: list[Place], ends: list[Place], call: Call, slots: Slots, bar: Bar) -> list[Place]:
        state = first
        sequences = [at(slots, w) for w in self.sequences]
        done, length = 0, self.length
        assert length is not None
        while done < length:
            count = min(SCANNED, length - done)
            pair = (ends, others) if (length - done) % 2 else (others, ends)  # the last step writes where the result goes
            element = length - done - count if self.reverse else done
            begin = [_shifted(p, element * nbytes(x) * wanted) for p, (x, wanted) in zip(sequences, self.stacks, strict=True)]
            call.enqueue(self.batch(count), call, [*slots, *state, *pair[0], *pair[1], *begin])
            state, done = pair[(count - 1) % 2], done + count
            bar.done = done
        return state

    def steps(self, call: Call, slots: Slots, count: int) -> None:
        c, n = self.carries, len(self.stacks)
        own = slots[len(slots) - 3 * c - n :]
        state, pair = own[:c], (own[c : 2 * c], own[2 * c : 3 * c])
        fixed = [at(slots, w) for w in self.operands[: self.consts]]
        stacks = [_Stack(call, place, x, wanted) for place, (x, wanted) in zip(own[3 * c :], self.stacks, strict=True)]
        taken = len(self.operands) - self.consts - c
        xs, ys = stacks[:taken], stacks[taken:]
        for k in range(count):
            i = count - 1 - k if self.reverse else k
            following = pair[k % 2]
            self.run_body(call, slots, 0, [*fixed, *state, *[x.taken(i) for x in xs]], [*following, *[y.place(i) for y in ys]])
            for y in ys:
                y.put(i)
            state = following


class _While(_Loop):
    """A batch has the places of a state more than it has steps, and of its conditions."""

    def __init__(self, step: ControlStep, blocks: list[Block], kept: list[int], where: Callable[[Any], Where]) -> None:
        self.consts, self.carries = step.node.attrs[2], len(step.execution_plans[-1].graph.outputs)
        super().__init__(step, blocks, kept, where)
        self.most = self._most_steps()
        # the workspace has no second place for a carry that may stay where it is, which not all do here
        self.lacks_room = any(carry is Carry.IN_PLACE and k not in kept for k, carry in enumerate(step.carries))

    def _most_steps(self) -> int:
        """How many steps may be begun before it is known whether they are wanted."""
        if self.kept or not all(b.unattended for b in self.blocks):
            return 1
        cost = sum(s.cost for s in self.step.execution_plans)
        room = sum(_lines(x) for x in self.carried)
        return max(1, min(MAX_STEPS_AHEAD, int(IN_VAIN_NS / max(1.0, cost)), AHEAD_BYTES // max(1, room)))

    def last(self, first: list[Place], others: list[Place], ends: list[Place], call: Call, slots: Slots, bar: Bar) -> list[Place]:
        memories = [call.work.memory(self.most * LINE_BYTES, lambda: "the conditions of a while_loop")]
        flags = memories[0].handle, 0
        if self.lacks_room:
            memories.append(call.work.memory(sum(_lines(x) for x in self.carried), lambda: "carries of a while_loop"))
            others = self._laid_out((memories[1].handle, 0))
        rooms = [others, ends]  # of states; more are taken as batches grow
        self.run_body(call, slots, 0, [*self._fixed(slots), *first], [flags])
        if not self._conditions(call, flags, 1)[0]:
            return first
        count, most = 1, self.most
        while True:
            while len(rooms) <= count:
                room = self._room(call)
                if room is None:
                    count = most = len(rooms) - 1
                    break
                memories.append(room)
                rooms.append(self._laid_out((room.handle, 0)))
            free = [r for r in rooms if r is not first][:count]
            states = [first, *free]
            call.enqueue(self.batch(count), call, [*slots, *[place for s in states for place in s], flags])
            holds = self._conditions(call, flags, count)
            bar.done += count if holds.all() else 1 + int(np.argmin(holds))
            if not holds.all():
                return states[1 + int(np.argmin(holds))]
            first, count = states[count], min(2 * count, most)

    def _room(self, call: Call) -> Memory | None:
        """Memory for one more state; None where the device is full: the loop goes on with the states that it has."""
        try:
            return call.work.memory(sum(_lines(x) for x in self.carried), lambda: "carries of a while_loop")
        except OutOfMemory:
            return None

    def _fixed(self, slots: Slots) -> list[Place]:
        return [at(slots, w) for w in self.operands[: self.consts]]

    def _conditions(self, call: Call, flags: Place, count: int) -> np.ndarray:
        """Those of a batch, for which the call waits."""
        return read(call, flags, np.empty(((count - 1) * LINE_BYTES + 1,), np.uint8), "the end of a while_loop")[::LINE_BYTES] != 0

    def _laid_out(self, start: Place) -> list[Place]:
        """Places of all carries, one after another."""
        out: list[Place] = []
        for x in self.carried:
            out.append(start)
            start = _shifted(start, _lines(x))
        return out

    def steps(self, call: Call, slots: Slots, count: int) -> None:
        c = self.carries
        own = slots[len(slots) - (count + 1) * c - 1 :]
        fixed = self._fixed(slots)
        for j in range(count):
            following = own[(j + 1) * c : (j + 2) * c]
            self.run_body(call, slots, 1, [*fixed, *own[j * c : (j + 1) * c]], following)
            self.run_body(call, slots, 0, [*fixed, *following], [_shifted(own[-1], j * LINE_BYTES)])


class _Stack:
    """Stacked arrays at ``at``, of which a step of a loop takes or gives one. Kernels may access 16 bytes at once, so where elements do not
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


def _shifted(place: Place, nbytes: int) -> Place:
    return place[0], place[1] + nbytes


def _lines(x: Node) -> int:
    return -(-nbytes(x) // LINE_BYTES) * LINE_BYTES
