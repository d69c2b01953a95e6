"""Carries of a scan that change places: steps hand pointers on, not arrays.

A step that gives one carry back as another (``x, y = f(x, y), x``), or that changes it where it is and gives it back as another (``x, y = y,
x.at[i].set(v)``), leaves it in its buffer. So after a step each carry is in the buffer where some carry was, or in one that was free. The buffers
that no carry took are free for the next step. That is the same permutation in each step. Which buffer each carry starts in is chosen so that all of
them end where results go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from hologram.graph.lower.control_step import Carry, ControlStep
from hologram.ir.node import nbytes
from hologram.primitives.control import scan

B = TypeVar("B")


class Rotation(NamedTuple):
    """``members``, the carries that change places; ``sources[i]``, the number of the member in whose buffer member i is after a step, None for a
    free one."""

    members: list[int]
    sources: list[int | None]

    @property
    def free(self) -> int:
        """How many free buffers a step takes, and leaves."""
        return self.sources.count(None)

    def step(self, buffers: Sequence[B]) -> list[B]:
        """The buffers of the members, then the free ones, after a step."""
        count = len(self.members)
        unused = iter(buffers[count:])
        taken = [next(unused) if s is None else buffers[s] for s in self.sources]
        return [*taken, *(b for i, b in enumerate(buffers[:count]) if i not in self.sources)]

    def starts(self, length: int, last: Sequence[B]) -> list[B]:
        """The buffers of the members, and the free ones, before ``length`` steps after which they are ``last``."""
        order = list(range(len(last)))
        power, left = self.step(order), length
        while left:
            order = [order[i] for i in power] if left % 2 else order
            power, left = [power[i] for i in power], left // 2
        return [last[order.index(i)] for i in range(len(last))]


def find_rotation(step: ControlStep, on_stack: Sequence[bool]) -> Rotation | None:
    """The carries of a scan that change places; None where there are none, or too few steps for it to pay that each starts in a buffer of its own."""
    if step.node.op is not scan:
        return None
    plan, length = step.execution_plans[-1], step.node.attrs[3]
    outputs, donors = plan.outputs, plan.donors()
    moving = [k for k, carry in enumerate(step.carries) if carry is Carry.TWO_BUFFERS and not on_stack[k]]
    sources: dict[int, int] = {}
    computed = [outputs[k].index for k in moving if outputs[k].kind == "computed"]
    for kind in ("input", "computed"):
        for k in (k for k in moving if outputs[k].kind == kind):
            given = [outputs[k].index] if kind == "input" else donors[outputs[k].index] if computed.count(outputs[k].index) == 1 else []
            like = nbytes(outputs[k].node)
            free = [j for j in (i - step.consts for i in given) if j in moving and j not in sources.values() and nbytes(outputs[j].node) == like]
            sources.update({k: free[0]} if free else {})
    members = sorted({*sources, *sources.values()})
    if not members or not isinstance(length, int) or length <= len(members):
        return None
    number = {k: i for i, k in enumerate(members)}
    return Rotation(members, [number[sources[k]] if k in sources else None for k in members])
