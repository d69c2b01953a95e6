"""Control steps in the graph function: loops and branches around the steps of their bodies.

A loop keeps its carries in one of two ways. Where everything that a body touches is *small*, each array gets stack memory of its own, read and
written at fixed addresses by kernels that are inlined, so that LLVM keeps it in registers from step to step. Else a carry is a pointer: a step
reads the array there and writes the next one to the other of two buffers, or straight into the stacked results where the same value goes there
too, or in place where the kernel that makes it reads every element right before it writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from hologram.backends.llvm.graph.writer import Frame, GraphWriter, serial
from hologram.backends.llvm.text import LoopHead, Reg
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.lower.control_step import Carry, ControlStep
from hologram.graph.memory.arena import LINE_BYTES
from hologram.ir.node import Node, nbytes
from hologram.ir.symbolic import mod
from hologram.primitives.control import scan, switch

if TYPE_CHECKING:
    from hologram.graph.fusion.fused_graph import Output

SMALL_BYTES = 256  # an array of at most this many bytes may live in registers
SMALL_TOTAL = 8192
POLL_NS = 200_000.0  # a loop looks for signals about this often


def write_step(w: GraphWriter, step: ControlStep, frame: Frame) -> None:
    if step.node.op is switch:
        _Switch(w, step, frame).write()
    else:
        _Loop(w, step, frame).write()


class _Step:
    """What writing loops and branches shares: addresses of operands, results, and arrays inside of bodies."""

    def __init__(self, w: GraphWriter, step: ControlStep, frame: Frame) -> None:
        self.w, self.f, self.step, self.frame = w, w.f, step, frame
        self.node = step.node
        self.operands = [w.pointer(x, frame) for x in step.operands]
        self.workspace = w.pointer(step, frame) if step.nbytes else frame.arena
        self.arena = w.at(self.workspace, step.arena)

    def result(self, i: int) -> Reg:
        """Where result ``i`` goes; to spare room where nobody wants it."""
        node = self.step.results[i]
        return self.w.at(self.workspace, self.step.spare[i]) if node is None else self.w.pointer(node, self.frame)

    def is_aligned(self, i: int) -> bool:
        """Whether result ``i`` starts at a line of the cache."""
        result = self.step.results[i]
        return result is None or self.frame.execution_plan.buffer(result) not in self.frame.unaligned

    def run(self, which: int, pointers: dict[Node, Reg], aligned: Sequence[bool] = ()) -> None:
        """Writes the steps of a body whose arguments and results are at ``pointers``. ``aligned``: the results that start at lines of the cache."""
        plan = self.step.execution_plans[which]
        results = zip(plan.outputs, aligned, strict=False)
        unaligned = frozenset(plan.computed[o.index] for o, is_aligned in results if o.kind == "computed" and not is_aligned)
        self.w.run(Frame(plan, self.step.allocations[which], self.arena, pointers, unaligned=unaligned))


class _Switch(_Step):
    def write(self) -> None:
        f = self.f
        index = f.emit(f"load i64, ptr {self.operands[0].text}, align 8", "i64", 1)
        labels = [f.fresh_label("branch") for _ in self.step.execution_plans]
        done = f.fresh_label("chosen")
        cases = " ".join(f"i64 {i}, label %{label}" for i, label in enumerate(labels[:-1]))
        f.do(f"switch i64 {index.text}, label %{labels[-1]} [ {cases} ]")
        for i, label in enumerate(labels):
            f.start(label)
            self._branch(i)
            f.do(f"br label %{done}")
        f.start(done)

    def _branch(self, which: int) -> None:
        plan = self.step.execution_plans[which]
        pointers = dict(zip(plan.inputs, self.operands[1:], strict=True))
        targets = [self.result(i) for i in range(len(plan.outputs))]
        first: dict[int, Reg] = {}
        for o, place in zip(plan.outputs, targets, strict=True):
            if o.kind == "computed":
                pointers[plan.computed[o.index]] = first.setdefault(o.index, place)
        self.run(which, pointers, [self.is_aligned(i) for i in range(len(targets))])
        for o, place in zip(plan.outputs, targets, strict=True):
            self.w.arrive(place, _source(plan, o, pointers), o.node)


def _source(plan: ExecutionPlan, o: Output, pointers: dict[Node, Reg]) -> Reg:
    return pointers[plan.inputs[o.index] if o.kind == "input" else plan.computed[o.index]]


class _Loop(_Step):
    """A scan or a while loop."""

    def __init__(self, w: GraphWriter, step: ControlStep, frame: Frame) -> None:
        super().__init__(w, step, frame)
        node = self.node
        self.is_scan = node.op is scan
        self.consts: int = node.attrs[1] if self.is_scan else node.attrs[2]
        self.body = step.execution_plans[-1]
        self.carries: int = node.attrs[2] if self.is_scan else len(self.body.outputs)
        self.length: int | None = node.attrs[3] if self.is_scan else None
        self.fixed = self.operands[: self.consts]
        self.starts = self.operands[self.consts : self.consts + self.carries]
        self.xs = self.operands[self.consts + self.carries :]
        self.x_nodes = self.body.inputs[self.consts + self.carries :]
        self.carry_nodes = [o.node for o in self.body.outputs[: self.carries]]
        self.ends = [self.result(i) for i in range(self.carries)]
        self.ys = [self.result(i) for i in range(self.carries, len(self.body.outputs))]

    def write(self) -> None:
        if small(self.step):
            _InRegisters(self).write()
        else:
            _InMemory(self).write()

    # --- what both ways share ------------------------------------------------------------------------------------------

    def element(self, base: Reg, node: Node, at: Reg) -> Reg:
        """Element ``at`` of a stack of arrays like ``node``."""
        offset = self.f.emit(f"mul nsw i64 {at.text}, {nbytes(node)}", "i64", 1)
        return self.w.at(base, offset)

    def rows_are_aligned(self, i: int) -> bool:
        """Whether each step's part of the stacked result ``i`` starts at a line of the cache."""
        unwanted = self.step.results[i] is None
        return unwanted or self.is_aligned(i) and mod(nbytes(self.body.outputs[i].node), LINE_BYTES) == 0

    def stacked(self, at: Reg) -> tuple[list[Reg], list[Reg]]:
        """Pointers to this step's xs and ys; what nobody wants is written to one place."""
        outputs = self.body.outputs[self.carries :]
        xs = [self.element(x, node, at) for x, node in zip(self.xs, self.x_nodes, strict=True)]
        wanted = self.step.results[self.carries :]
        ys = [y if r is None else self.element(y, o.node, at) for y, o, r in zip(self.ys, outputs, wanted, strict=True)]
        return xs, ys

    def loop(self, carried: list[Reg], test: Callable[[list[Reg]], Reg], body: Callable[[Reg, list[Reg]], list[Reg]]) -> list[Reg]:
        """The loop itself, carrying registers: ``body(index, carried) -> next``. A scan counts, a while loop asks ``test`` before every step."""
        f, before = self.f, self.f.label
        head, inside, done = f.fresh_label("step"), f.fresh_label("body"), f.fresh_label("ended")
        f.do(f"br label %{head}")
        f.start(head)
        phis = LoopHead(f, before, Reg("0", "i64", 1), carried)
        step, names = phis.index, phis.carried
        go = test(names) if self.length is None else f.emit(f"icmp slt i64 {step.text}, {self.length}", "i1", 1)
        f.do(f"br i1 {go.text}, label %{inside}, label %{done}")
        f.start(inside)
        after = body(self._place_of(step), names)
        self._poll(step)
        following = f.emit(f"add nuw nsw i64 {step.text}, 1", "i64", 1)
        latch = f.label
        f.do(f"br label %{head}")
        phis.close(latch, following, after)
        f.start(done)
        return names

    def _place_of(self, step: Reg) -> Reg:
        """Which element of the sequences a step is about."""
        if not self.is_scan or not self.node.attrs[4]:
            return step
        assert self.length is not None
        return self.f.emit(f"sub nsw i64 {self.length - 1}, {step.text}", "i64", 1)

    def _poll(self, step: Reg) -> None:
        """Every so many steps a look at pending signals."""
        inside = sum(s.donated_cost for s in self.step.execution_plans)
        every = 1
        while every < 2**20 and every * max(inside, 1.0) < POLL_NS:
            every *= 2
        if self.length is not None and self.length <= every:
            return
        f = self.f
        low = f.emit(f"and i64 {step.text}, {every - 1}", "i64", 1)
        due = f.emit(f"icmp eq i64 {low.text}, {every - 1}", "i1", 1)
        zero = Reg("0", "i64", 1)
        self.w.return_if(f.branch_around(due, lambda: f.emit("call i64 @hg_poll(ptr %ctx)", "i64", 1), zero))

    def condition(self, fixed: list[Reg], carried: list[Reg], room: Callable[[ExecutionPlan, dict[Node, Reg]], None]) -> Reg:
        """Runs the condition of a while loop. ``room`` finds memory for what it computes on the way."""
        plan = self.step.execution_plans[0]
        pointers = dict(zip(plan.inputs, [*fixed, *carried], strict=True))
        (o,) = plan.outputs
        if o.kind == "computed":
            pointers[plan.computed[o.index]] = Reg(self.f.slot("i8", 1, 1), "ptr", 1)
        room(plan, pointers)
        self.run(0, pointers)
        byte = self.f.emit(f"load i8, ptr {_source(plan, o, pointers).text}, align 1", "i8", 1)
        return self.f.emit(f"icmp ne i8 {byte.text}, 0", "i1", 1)


# --- small bodies ----------------------------------------------------------------------------------------------------


def small(step: ControlStep) -> bool:
    """Whether all that the bodies of a loop touch is small, kernels and loops inside of them included."""
    arrays = [x for s in step.execution_plans for x in _arrays(s)]
    return (
        all(nbytes(x) <= SMALL_BYTES for x in arrays)
        and sum(map(nbytes, arrays)) <= SMALL_TOTAL
        and all(serial(k.kernel) and not k.kernel.scratch for s in step.execution_plans for k in s.kernels)
    )


def _arrays(plan: ExecutionPlan) -> Iterator[Node]:
    yield from plan.inputs
    for low in plan.steps:
        for n in low.bindings:
            if n not in plan.inputs:
                yield n


class _InRegisters:
    """Every array of the loop in stack memory of its own: what LLVM can take apart into registers."""

    def __init__(self, loop: _Loop) -> None:
        self.loop, self.w = loop, loop.w

    def write(self) -> None:
        loop = self.loop
        fixed = [self.kept(p, x) for p, x in zip(loop.fixed, loop.body.inputs, strict=False)]
        state = [self.kept(p, x) for p, x in zip(loop.starts, loop.carry_nodes, strict=True)]
        loop.loop([], lambda _: loop.condition(fixed, state, self.rooms), lambda at, _: self.step(fixed, state, at))
        for end, p, x in zip(loop.ends, state, loop.carry_nodes, strict=True):
            self.w.copy(end, p, x)

    def step(self, fixed: list[Reg], state: list[Reg], at: Reg) -> list[Reg]:
        loop, body = self.loop, self.loop.body
        xs, ys = loop.stacked(at)
        pointers = dict(zip(body.inputs, [*fixed, *state, *xs], strict=True))
        self.rooms(body, pointers)
        loop.run(len(loop.step.execution_plans) - 1, pointers)
        sources = [_source(body, o, pointers) for o in body.outputs]
        for y, source, o in zip(ys, sources[loop.carries :], body.outputs[loop.carries :], strict=True):
            self.w.copy(y, source, o.node)
        following = [self.room(x) for x in loop.carry_nodes]
        for to, source, x in zip(following, sources, loop.carry_nodes, strict=False):
            self.w.copy(to, source, x)
        for to, source, x in zip(state, following, loop.carry_nodes, strict=True):
            self.w.copy(to, source, x)
        return []

    def rooms(self, plan: ExecutionPlan, pointers: dict[Node, Reg]) -> None:
        """Places for whatever has none yet. What no kernel writes, since it has no elements, needs one to be copied from."""
        for x in map(plan.buffer, (*_arrays(plan), *plan.computed)):
            if x not in pointers:
                pointers[x] = self.room(x)

    def room(self, x: Node) -> Reg:
        place = Reg(self.loop.f.slot(f"[{max(1, nbytes(x))} x i8]", 1, LINE_BYTES), "ptr", 1)  # one array type: LLVM takes no other apart
        self.w.poison(place, nbytes(x))
        return place

    def kept(self, p: Reg, x: Node) -> Reg:
        """A copy of an operand."""
        room = self.room(x)
        self.w.copy(room, p, x)
        return room


# --- others ----------------------------------------------------------------------------------------------------------


def _arena(plan: ExecutionPlan, pointers: dict[Node, Reg]) -> None:
    """Places for a condition's intermediates: those of its plan."""


class _InMemory:
    """Carries as pointers. ``in_place`` tells which are updated where they are, ``through`` which are read where the ys keep them."""

    def __init__(self, loop: _Loop) -> None:
        self.loop, self.w = loop, loop.w
        self.in_place = [c is Carry.IN_PLACE for c in loop.step.carries]
        self.through = [None if i is None else i - loop.carries for i in loop.step.stacked_as]

    def write(self) -> None:
        loop, w = self.loop, self.w
        others = [w.at(loop.workspace, s) for s in loop.step.other[: loop.carries]]
        starts = []
        for k, x in enumerate(loop.carry_nodes):
            if self.in_place[k]:
                w.arrive(loop.ends[k], loop.starts[k], x)
                starts.append(loop.ends[k])
            else:
                starts.append(loop.starts[k])
        if loop.length is not None and loop.length % 2 == 0:  # the last of the steps is to write where the result goes
            pairs = [(other, end) for other, end in zip(others, loop.ends, strict=True)]
        else:
            pairs = list(zip(loop.ends, others, strict=True))
        last = loop.loop(starts, lambda state: loop.condition(loop.fixed, state, _arena), lambda at, state: self.step(state, pairs, at))
        for k, x in enumerate(loop.carry_nodes):
            if not self.in_place[k]:
                w.arrive(loop.ends[k], last[k], x)

    def is_aligned(self, i: int) -> bool:
        """Whether what a step writes for output ``i`` of the body starts at a line of the cache."""
        loop = self.loop
        if i >= loop.carries:
            return loop.rows_are_aligned(i)
        through = self.through[i]
        return loop.is_aligned(i) if through is None else loop.rows_are_aligned(loop.carries + through)

    def step(self, state: list[Reg], pairs: list[tuple[Reg, Reg]], at: Reg) -> list[Reg]:
        loop, body, f = self.loop, self.loop.body, self.loop.f
        xs, ys = loop.stacked(at)
        following: list[Reg] = []
        for k, (a, b) in enumerate(pairs):
            through = self.through[k]
            if self.in_place[k]:
                following.append(state[k])
            elif through is not None:
                following.append(ys[through])
            else:
                is_a = f.emit(f"icmp eq ptr {state[k].text}, {a.text}", "i1", 1)
                following.append(f.emit(f"select i1 {is_a.text}, ptr {b.text}, ptr {a.text}", "ptr", 1))
        targets = [*following, *ys]
        pointers = dict(zip(body.inputs, [*loop.fixed, *state, *xs], strict=True))
        order = sorted(range(len(targets)), key=lambda i: not (i < loop.carries and (self.in_place[i] or self.through[i] is not None)))
        for i in order:
            o = body.outputs[i]
            if o.kind == "computed":
                pointers.setdefault(body.computed[o.index], targets[i])
        loop.run(len(loop.step.execution_plans) - 1, pointers, [self.is_aligned(i) for i in range(len(targets))])
        for o, place in zip(body.outputs, targets, strict=True):
            self.w.copy(place, _source(body, o, pointers), o.node)
        return following
