"""Ownership: which arrays share a buffer, so that what changes an array changes it where it is. One pass over the steps, which every backend reads.

An update (a scatter, a loop's carry, a branch that passes an array on) begins with a copy of what it changes. It needs none if nobody reads the old
array afterwards. So steps that read it go before the update where the graph leaves that open, and the result and its operand become one buffer
where

- the operand is no argument, constant or result, which others hold (an argument may be donated: :meth:`Ownership.donors`);
- no later step reads the operand, but for the kernel of the update itself where it reads each element before that is changed.

A buffer is named by one of its arrays: the result of the program in it if there is one, else the first. All other copies stay, and are listed with
the reason.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hologram.errors import CompileError
from hologram.graph.lower.control_step import MIN_NAMED_BYTES
from hologram.graph.lower.lowered import Lowered
from hologram.graph.lower.steps import LoweredGraph, Step
from hologram.ir.node import Node, estimated_bytes


class Copy(NamedTuple):
    """A copy that stays: the step that makes it, of which array, and why."""

    step: int
    of: Node
    why: str


class Ownership:
    """``steps`` in an order in which the fewest arrays are copied; ``copies`` those that stay."""

    def __init__(self, lowered: LoweredGraph, share: bool = True) -> None:
        self.lowered = lowered
        fused = lowered.fused
        self.steps: list[Step] = _before_updates(lowered.steps) if share else lowered.steps
        self.copies: list[Copy] = []
        self._inputs, self._results = list(fused.graph.inputs), set(fused.computed)
        self._kept = {*fused.constants, *fused.computed, *[o.node for o in fused.outputs if o.kind == "input"]}
        self._buffers: dict[Node, Node] = {}
        self._read: dict[Node, list[int]] = {}
        self._written: dict[Node, list[int]] = {}
        for k, step in enumerate(self.steps):
            for found, nodes in ((self._read, step.reads()), (self._written, step.writes())):
                for n in nodes:
                    found.setdefault(n, []).append(k)
        if share:
            self._share()

    def buffer(self, node: Node) -> Node:
        """The array that names the buffer in which ``node`` is."""
        return self._buffers.get(node, node)

    def donors(self, result: Node) -> list[int]:
        """The arguments in whose memory the buffer of ``result`` may be, if the caller gives one up: those that its first array may take over."""
        members = [n for n in self._written if self.buffer(n) is result]
        if not members:
            return []
        first = min(members, key=lambda n: self._written[n][0])
        k = self._written[first][0]
        step = self.steps[k]
        number = {n: i for i, n in enumerate(self._inputs)}
        operands = [step.bindings[old] for out, old in step.in_place if step.bindings[out] is first]
        return [number[x] for x in dict.fromkeys(operands) if x in number and x.size == result.size and not self._why_not(k, first, x)]

    def _share(self) -> None:
        for k, step in enumerate(self.steps):
            for result, operand in step.shared():
                why = "it is an argument, which is not donated" if operand in self._inputs else self._why_not(k, result, operand)
                if why:
                    if isinstance(step, Lowered) or estimated_bytes(operand) >= MIN_NAMED_BYTES:
                        self.copies.append(Copy(k, operand, why))
                else:
                    self._unite(self.buffer(operand), result)

    def _why_not(self, step: int, result: Node, operand: Node) -> str:
        """Why ``result``, which ``step`` is the first to write, cannot be where ``operand`` is; empty where it can."""
        if operand in self._kept:
            return "it is a constant" if operand.op.name == "leaf" else "it is a result as well"
        if self._written[result][0] != step or operand.dtype.bits != result.dtype.bits or operand.size != result.size:
            return "the result is another array"
        is_copy = (result, operand) in self.steps[step].shared()
        for k in self._read.get(operand, ()):
            if k > step and not (is_copy and self._is_update(k, step, result) and self.steps[k].overwrites(result, operand)):
                return f"step {k} reads it later"
        return ""

    def _is_update(self, k: int, step: int, result: Node) -> bool:
        """Whether step ``k`` is the next to write ``result`` after ``step``, and nothing reads it in between."""
        later = [j for j in (*self._written[result], *self._read.get(result, ())) if j > step]
        return k in self._written[result] and k == min(later, default=k)

    def _unite(self, old: Node, new: Node) -> None:
        name = new if new in self._results else old
        self._buffers.update({n: name for n in [*self._buffers, old, new] if self.buffer(n) is old or n is new})


def _before_updates(steps: list[Step]) -> list[Step]:
    """The steps in an order in which those that read an array go before the copy of it that begins an update, where they do not need the update."""
    copied = [(k, operand) for k, s in enumerate(steps) for _, operand in s.shared()]
    if not copied:
        return steps
    after = _dependents(steps)
    readers: dict[Node, list[int]] = {}
    for k, s in enumerate(steps):
        for n in dict.fromkeys(s.reads()):
            readers.setdefault(n, []).append(k)
    changed = False
    for k, operand in copied:
        late = [r for r in readers[operand] if r > k]
        if late:
            needs_update = _reached(after, k)
            for r in late:
                if r not in needs_update:
                    after[r].add(k)
                    changed = True
    return [steps[k] for k in _ordered(after)] if changed else steps


def _dependents(steps: Sequence[Step]) -> list[set[int]]:
    """For each step those that must come after it: they read or change what it writes, or change what it reads."""
    after: list[set[int]] = [set() for _ in steps]
    written: dict[Node, int] = {}
    readers: dict[Node, list[int]] = {}
    for k, s in enumerate(steps):
        for n in s.reads():
            if n in written and written[n] != k:
                after[written[n]].add(k)
            readers.setdefault(n, []).append(k)
        for n in s.writes():
            for r in (*readers.get(n, ()), *([written[n]] if n in written else ())):
                if r != k:
                    after[r].add(k)
            written[n] = k
            readers[n] = []
    return after


def _reached(after: Sequence[Iterable[int]], start: int) -> set[int]:
    found, waiting = {start}, [start]
    while waiting:
        for k in after[waiting.pop()]:
            if k not in found:
                found.add(k)
                waiting.append(k)
    return found


def _ordered(after: Sequence[set[int]]) -> list[int]:
    """A topological order, as near to that of the numbers as can be."""
    waits = [0] * len(after)
    for later in after:
        for k in later:
            waits[k] += 1
    ready = [k for k, n in enumerate(waits) if n == 0]
    out = []
    while ready:
        k = heapq.heappop(ready)
        out.append(k)
        for j in after[k]:
            waits[j] -= 1
            if waits[j] == 0:
                heapq.heappush(ready, j)
    return out


def verify_ownership(owned: Ownership) -> None:
    """Raises :class:`CompileError` unless each step finds in the buffers the arrays that it reads, and the results are there in the end.

    The steps are gone through with what each buffer holds. An update finds its operand in the buffer of its result until it has written to it.
    """
    given = {*owned.lowered.fused.graph.inputs, *owned.lowered.fused.constants}
    holds: dict[Node, set[Node]] = {}

    def require(n: Node, where: str) -> None:
        if n not in given and n.size != 0 and n not in holds.get(owned.buffer(n), ()):
            raise CompileError(f"malformed plan: {where} finds another array in the buffer of {n.dtype}{list(n.shape)}")

    for k, step in enumerate(owned.steps):
        copied = {result: operand for result, operand in step.shared() if owned.buffer(result) is owned.buffer(operand)}
        for n in step.reads():
            require(n, f"step {k}")
        for n in step.writes():
            beside = {copied[n]} if n in copied and isinstance(step, Lowered) else set()
            holds[owned.buffer(n)] = {n, *beside}
    for n in owned.lowered.fused.computed:
        require(n, "a result")
