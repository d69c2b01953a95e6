"""Loops in the graph function: a scan or a while loop around the steps of its body.

How a loop keeps an array is decided for each by itself. A small one has a stack slot (:mod:`bodies`), which LLVM promotes to registers that go from
step to step: carries, constants, conditions, and what a step computes on the way. Of a large carry there is a pointer: a step reads the array there
and writes the next one where the plan says (:class:`~hologram.graph.lower.control_step.Carry`), or, if carries change places, :mod:`rotation`. Large
constants and sequences stay where they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from hologram.backends.llvm.graph.bodies import BodyWriter, source_of
from hologram.backends.llvm.graph.progress import LoopBar, label_at, trips
from hologram.backends.llvm.graph.rotation import find_rotation
from hologram.backends.llvm.graph.step_trials import TrialWriter
from hologram.backends.llvm.graph.writer import Frame, GraphWriter, NotInParts
from hologram.backends.llvm.text import LoopHead, Reg
from hologram.graph.lower.control_step import ENDLESS_NS, Carry, ControlStep
from hologram.graph.memory.arena import LINE_BYTES
from hologram.ir.node import Node, symbolic_bytes
from hologram.ir.symbolic import Int, mod
from hologram.primitives.control import scan

POLL_NS = 200_000.0  # a loop looks for signals about this often
MAX_TRIED_PARTS = 64  # numbers of equal parts of a loop that are tried
ENDLESS_POLLED_STEPS = 16  # of a loop around loops whose end is not known, which look for signals themselves where they are long

ZERO = Reg("0", "i64", 1)


class LoopWriter(BodyWriter):
    """Writes one loop. ``places[k]`` is where all steps have carry ``k``; None where a pointer goes from step to step."""

    def __init__(self, w: GraphWriter, step: ControlStep, frame: Frame) -> None:
        super().__init__(w, step, frame)
        node = self.node
        self.is_scan = node.op is scan
        consts: int = node.attrs[1] if self.is_scan else node.attrs[2]
        self.body = step.execution_plans[-1]
        self.carries: int = node.attrs[2] if self.is_scan else len(self.body.outputs)
        self.length: Int | None = node.attrs[3] if self.is_scan else None
        self.starts = self.operands[consts : consts + self.carries]
        self.xs = self.operands[consts + self.carries :]
        self.x_nodes = self.body.inputs[consts + self.carries :]
        self.carry_nodes = [o.node for o in self.body.outputs[: self.carries]]
        self.wanted = [r is not None for r in step.results]
        self.ends = [self.result(i) for i in range(self.carries)]
        self.ys = [self.result(i) for i in range(self.carries, len(self.body.outputs))]
        self.on_stack = [self.takes_stack_slot(x, 2) for x in self.carry_nodes]
        self._check_memory()
        self.fixed = [self._constant(p, x) for p, x in zip(self.operands[:consts], self.body.inputs, strict=False)]
        self.places = [self._place(k, x) for k, x in enumerate(self.carry_nodes)]
        self.rotation = find_rotation(step, self.on_stack)
        self.rotating = [] if self.rotation is None else self.rotation.members
        self.pairs = self._pairs()
        self.trial: TrialWriter | None = None

    def _check_memory(self) -> None:
        """Inside of what threads share, carries are on their stacks."""
        if self.w.is_outlined and not all(self.on_stack):
            raise NotInParts

    def write(self) -> None:
        moving = self._moving()
        self.bar = self._begin_bar()
        self.trial = trial = TrialWriter(self.w)
        last = self._scan(moving) if self.is_scan else self._while(moving)
        trial.end()
        if self.length is not None and self.w.profiled:
            self.w.counters.iterations(self.w.integers.integer(self.length))
        self._arrive(last)

    def _arrive(self, moving: list[Reg]) -> None:
        """Copies carries to where they are wanted, given the pointers that went from step to step."""
        for k, (end, p, x) in enumerate(zip(self.ends, self._state(moving), self.carry_nodes, strict=True)):
            if self.wanted[k] and self.places[k] is not None:
                self.w.copy(end, p, x)
            elif self.wanted[k] and k not in self.rotating:
                self.w.arrive(end, p, x)

    def _begin_bar(self) -> LoopBar | None:
        """The loop's bar, if it has one."""
        label = label_at(self.w, self.node)
        if label is None:
            return None
        if self.length is None:
            cond, places = self.step.execution_plans[0].graph, [*self.fixed, *self.starts]
            total = trips(self.w, cond, self.body.graph, self.step.consts, places)
        else:
            total = self.w.integers.integer(self.length)
        return LoopBar(self.w, label, total, self._step_ns())

    # --- where arrays are ----------------------------------------------------------------------------------------------

    def _constant(self, p: Reg, x: Node) -> Reg:
        """Where steps read a constant: a small one that is in memory is copied once."""
        if p in self.w.stack_slots or not self.takes_stack_slot(x):
            return p
        slot = self.stack_slot(x)
        self.w.copy(slot, p, x)
        return slot

    def _place(self, k: int, x: Node) -> Reg | None:
        if self.on_stack[k]:
            place = self.stack_slot(x)
        elif self.step.carries[k] is Carry.IN_PLACE:
            place = self.ends[k]
        else:
            return None
        self.w.arrive(place, self.starts[k], x)
        return place

    def _pairs(self) -> list[tuple[Reg, Reg]]:
        """For each carry of alternating buffers the two of them, the one that the first step writes in front."""
        pairs = []
        for k in range(self.carries):
            end = other = self.ends[k]
            if self.places[k] is None and self.step.carries[k] is Carry.TWO_BUFFERS:
                other = self.w.moved(self.workspace, self.step.other[k])
            # the last of the steps is to write where the result goes
            pairs.append((other, end) if isinstance(self.length, int) and self.length % 2 == 0 else (end, other))
        return pairs

    def _moving(self) -> list[Reg]:
        """The pointers that go from step to step, as they are at first: those of carries, then those of buffers that are free."""
        starts, free = list(self.starts), list[Reg]()
        if self.rotation is not None:
            assert isinstance(self.length, int)
            others = [self.w.moved(self.workspace, self.step.other[k]) for k in self.rotating[: self.rotation.free]]
            buffers = self.rotation.starts(self.length, [*(self.ends[k] for k in self.rotating), *others])
            for k, buffer in zip(self.rotating, buffers, strict=False):
                self.w.arrive(buffer, starts[k], self.carry_nodes[k])
                starts[k] = buffer
            free = buffers[len(self.rotating) :]
        return [*(start for start, place in zip(starts, self.places, strict=True) if place is None), *free]

    def _state(self, moving: list[Reg]) -> list[Reg]:
        """Where the carries are, given the pointers that go from step to step."""
        pointers = iter(moving)
        return [next(pointers) if place is None else place for place in self.places]

    def _element(self, base: Reg, node: Node, at: Reg) -> Reg:
        """Element ``at`` of a stack of arrays like ``node``."""
        return self.w.at(base, self.f.int_op("mul", at, self.w.integers.integer(symbolic_bytes(node))))

    def _elements(self, at: Reg) -> tuple[list[Reg], list[Reg]]:
        """Pointers to this step's xs and ys; what nobody wants is written to one place."""
        outputs, wanted = self.body.outputs[self.carries :], self.wanted[self.carries :]
        xs = [self._element(x, node, at) for x, node in zip(self.xs, self.x_nodes, strict=True)]
        ys = [self._element(y, o.node, at) if is_wanted else y for y, o, is_wanted in zip(self.ys, outputs, wanted, strict=True)]
        return xs, ys

    def _buffers_are_aligned(self, k: int) -> bool:
        """Whether each buffer in which carry ``k`` may be starts at a line of the cache."""
        return all(map(self.is_aligned, self.rotating if k in self.rotating else [k]))

    def _rows_are_aligned(self, i: int) -> bool:
        """Whether each step's part of the stacked result ``i`` starts at a line of the cache."""
        return not self.wanted[i] or self.is_aligned(i) and mod(symbolic_bytes(self.body.outputs[i].node), LINE_BYTES) == 0

    # --- steps ---------------------------------------------------------------------------------------------------------

    def _step(self, at: Reg, moving: list[Reg]) -> list[Reg]:
        """One step, number ``at`` of the sequences; gives the pointers of the next one."""
        body, state = self.body, self._state(moving)
        xs, ys = self._elements(at)
        following = [self._following(k, p, ys) for k, p in enumerate(state)]
        free = self._rotate(state, following, moving[self.places.count(None) :])
        pointers = dict(zip(body.inputs, [*self.fixed, *state, *xs], strict=True))
        unaligned = self._place_results(pointers, following, ys)
        self.give_stack_slots(body, pointers)
        self._stack(pointers, ys, is_argument=True)  # before the next carries are there: no register holds both
        with self.trial.step() if self.trial is not None else contextlib.nullcontext():
            self.run(len(self.step.execution_plans) - 1, pointers, unaligned)
        self._stack(pointers, ys, is_argument=False)
        self._hand_over(state, following, [source_of(body, o, pointers) for o in body.outputs[: self.carries]])
        return [*(p for p, place in zip(following, self.places, strict=True) if place is None), *free]

    def _rotate(self, state: list[Reg], following: list[Reg], free: list[Reg]) -> list[Reg]:
        """Sets in ``following`` where carries that change places will be; gives the buffers that are free then."""
        if self.rotation is None:
            return []
        buffers = self.rotation.step([*(state[k] for k in self.rotating), *free])
        for k, buffer in zip(self.rotating, buffers, strict=False):
            following[k] = buffer
        return buffers[len(self.rotating) :]

    def _following(self, k: int, p: Reg, ys: list[Reg]) -> Reg:
        """Where the next carry ``k`` will be, when the present one is at ``p``."""
        if self.places[k] is not None:
            return p
        stack = self.step.stacked_as[k]
        if stack is not None:
            return ys[stack - self.carries]
        if k in self.rotating:
            return p
        a, b = self.pairs[k]
        is_a = self.f.emit(f"icmp eq ptr {p.text}, {a.text}", "i1", 1)
        return self.f.emit(f"select i1 {is_a.text}, ptr {b.text}, ptr {a.text}", "ptr", 1)

    def _place_results(self, pointers: dict[Node, Reg], following: list[Reg], ys: list[Reg]) -> frozenset[Node]:
        """Adds to ``pointers`` where a step writes its results; gives those that need not start at a line of the cache.

        Carries with one buffer choose first. The next carry of a stack slot that is read on is made in another. So is a single element of a stacked
        result, which a step may read on, too.
        """
        body, carries = self.body, self.carries
        found: dict[Node, tuple[Reg, bool]] = {}
        for i in sorted(range(len(body.outputs)), key=lambda i: i >= carries or self.step.carries[i] is Carry.TWO_BUFFERS):
            o = body.outputs[i]
            if o.kind != "computed" or body.computed[o.index] in found:
                continue
            if i < carries and self.on_stack[i]:
                found[body.computed[o.index]] = following[i] if self.step.carries[i] is Carry.IN_PLACE else self.stack_slot(o.node), True
            elif i < carries:
                stack = self.step.stacked_as[i]
                found[body.computed[o.index]] = following[i], self._buffers_are_aligned(i) if stack is None else self._rows_are_aligned(stack)
            elif (self.wanted[i] and o.node.size != 1) or not self.takes_stack_slot(o.node):
                found[body.computed[o.index]] = ys[i - carries], self._rows_are_aligned(i)
            else:
                found[body.computed[o.index]] = self.stack_slot(o.node), True
        pointers.update({x: p for x, (p, _) in found.items()})
        return frozenset(x for x, (_, is_aligned) in found.items() if not is_aligned)

    def _stack(self, pointers: dict[Node, Reg], ys: list[Reg], is_argument: bool) -> None:
        """Copies elements of stacked results to their places: those that are arguments of the step, or those that it has computed."""
        for y, o, wanted in zip(ys, self.body.outputs[self.carries :], self.wanted[self.carries :], strict=True):
            if wanted and (o.kind == "input") is is_argument:
                self.w.copy(y, source_of(self.body, o, pointers), o.node)

    def _hand_over(self, state: list[Reg], following: list[Reg], sources: list[Reg]) -> None:
        """Copies next carries to where they belong. Of those that change places all are read before one is written."""
        read = list(sources)
        for k, x in enumerate(self.carry_nodes):
            if self.on_stack[k] and read[k] != state[k] and read[k] in state:
                read[k] = self.stack_slot(x)
                self.w.copy(read[k], sources[k], x)
        for to, source, x in zip(following, read, self.carry_nodes, strict=True):
            self.w.copy(to, source, x)

    # --- the loop itself -----------------------------------------------------------------------------------------------

    def _scan(self, moving: list[Reg]) -> list[Reg]:
        """Counts steps. Where there are many, a loop of stretches with a look at signals after each is around the loop of steps."""
        assert self.length is not None
        f, every, length = self.f, self._polled_steps(), self.w.integers.integer(self.length)

        def step(i: Reg, carried: list[Reg]) -> list[Reg]:
            following = self._step(self._number(i), carried)
            if self.bar is not None and self.bar.each_step:
                self.bar.store(f.emit(f"add nuw nsw i64 {i.text}, 1", "i64", 1))
            return following

        known = self.length if isinstance(self.length, int) else None
        if known is not None and known <= every:
            after = f.counted(ZERO, length, 1, moving, step, at_least_once=known > 0)
        else:
            after = self._stretches(length, known, every, moving, step)
        if self.bar is not None:
            self.bar.end(length)
        return after

    def _stretches(self, length: Reg, known: int | None, every: int, moving: list[Reg], step: Callable[[Reg, list[Reg]], list[Reg]]) -> list[Reg]:
        """Steps in stretches of ``every``, with a look at signals after each."""
        f = self.f
        every = every if known is None else _equal_part(known, every)
        are_equal = known is not None and known % every == 0

        def stretch(i: Reg, carried: list[Reg]) -> list[Reg]:
            end = f.emit(f"add nuw nsw i64 {i.text}, {every}", "i64", 1)
            stop = end if are_equal else f.emit(f"call i64 @llvm.umin.i64({end.typed}, {length.typed})", "i64", 1)
            after = f.counted(i, stop, 1, carried, step, at_least_once=True)
            if self.bar is not None and not self.bar.each_step:
                self.bar.store(stop)
            self.w.poll()
            return after

        return f.counted(ZERO, length, every, moving, stretch, at_least_once=known is not None)

    def _number(self, i: Reg) -> Reg:
        """Which element of the sequences the step ``i`` of a scan is about."""
        assert self.length is not None
        return self.f.int_op("sub", self.w.integers.integer(self.length - 1), i) if self.node.attrs[4] else i

    def _while(self, moving: list[Reg]) -> list[Reg]:
        """Asks the condition before every step."""
        f, before = self.f, self.f.label
        head, inside, done = f.fresh_label("step"), f.fresh_label("body"), f.fresh_label("ended")
        f.do(f"br label %{head}")
        f.start(head)
        phis = LoopHead(f, before, ZERO, moving)
        go = self._condition(self._state(phis.carried))
        f.do(f"br i1 {go.text}, label %{inside}, label %{done}")
        f.start(inside)
        after = self._step(phis.index, phis.carried)
        following = f.emit(f"add nuw nsw i64 {phis.index.text}, 1", "i64", 1)
        if self.bar is not None and self.bar.each_step:
            self.bar.store(following)
        self._poll_at(phis.index, following)
        latch = f.label
        f.do(f"br label %{head}")
        phis.close(latch, following, after)
        f.start(done)
        if self.bar is not None:
            self.bar.end(phis.index)
        self.w.counters.iterations(phis.index)
        return phis.carried

    def _condition(self, state: list[Reg]) -> Reg:
        """Runs the condition of a while loop."""
        plan = self.step.execution_plans[0]
        pointers = dict(zip(plan.inputs, [*self.fixed, *state], strict=True))
        (o,) = plan.outputs
        if o.kind == "computed":
            pointers[plan.computed[o.index]] = self.stack_slot(o.node)
        self.give_stack_slots(plan, pointers)
        self.run(0, pointers)
        byte = self.f.emit(f"load i8, ptr {source_of(plan, o, pointers).text}, align 1", "i8", 1)
        return self.f.emit(f"icmp ne i8 {byte.text}, 0", "i1", 1)

    def _step_ns(self) -> float:
        """About how long a step takes."""
        return sum(s.donated_cost for s in self.step.execution_plans)

    def _polled_steps(self) -> int:
        """After how many steps, a power of two, the loop looks at pending signals."""
        inside = self._step_ns()
        if inside >= ENDLESS_NS:
            inside = POLL_NS / ENDLESS_POLLED_STEPS
        every = 1
        while every < 2**20 and every * max(inside, 1.0) < POLL_NS:
            every *= 2
        return every

    def _poll_at(self, step: Reg, done: Reg) -> None:
        """A look at pending signals after every so many steps, of which so many are ``done``."""
        f, every = self.f, self._polled_steps()
        low = f.emit(f"and i64 {step.text}, {every - 1}", "i64", 1)
        due = f.emit(f"icmp eq i64 {low.text}, {every - 1}", "i1", 1)
        poll, on = f.fresh_label("poll"), f.fresh_label("polled")
        f.do(f"br i1 {due.text}, label %{poll}, label %{on}, !prof !0")
        f.start(poll)
        if self.bar is not None and not self.bar.each_step:
            self.bar.store(done)
        self.w.poll()
        f.do(f"br label %{on}")
        f.start(on)


def _equal_part(length: int, most: int) -> int:
    """A number of steps, ``most`` or less, that goes into ``length``: LLVM unrolls loops whose number of steps it knows. ``most`` where there is none
    that is about as large."""
    fewest = -(-length // most)
    return next((length // n for n in range(fewest, min(2 * fewest, fewest + MAX_TRIED_PARTS) + 1) if length % n == 0), most)
