"""Loops of lanes whose items take several neighbours at a time, so that memory is read and written 16 bytes at once."""

from __future__ import annotations

from typing import NamedTuple

from hologram.graph.kernel.ir import Accumulate, Buffer, Loop, Store
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Expr, Int, split_linear

ACCESS_BYTES = 16  # the widest access of an item
MAX_WIDTH = 8
MAX_COST = 300  # of the instructions that a loop holds, written for each neighbour
MAX_LOADS_AHEAD = 8  # vectors that an item reads before it uses the first: enough are under way to hide what memory takes

Access = tuple[Buffer, Int]


class Vectors(NamedTuple):
    """``width`` neighbours at a time; ``loads`` and ``stores`` are the accesses of the loop that are vectors; ``whole``: no item has fewer.
    ``cost``: of the loop's instructions, for all neighbours."""

    width: int
    loads: dict[Access, None]
    stores: dict[Access, None]
    whole: bool
    cost: int

    def loads_ahead(self, unrolled: int) -> int:
        """How many of an item's unrolled vectors are read before the first is used."""
        if not self.whole:
            return 1
        return max(1, min(unrolled, MAX_LOADS_AHEAD // max(1, len(self.loads)), 2 * MAX_COST // max(1, self.cost)))


def vectors(loop: Loop) -> Vectors | None:
    """How the loop takes its elements several at a time; None where it cannot."""
    if loop.accs or any(isinstance(s, (Loop, Accumulate)) or (isinstance(s, Ins) and s.op == "scan") for s in loop.body):
        return None
    loads = {s.attrs[:2]: None for s in loop.body if isinstance(s, Ins) and s.op == "load" and not s.args}
    stores = {(s.buffer, s.index): None for s in loop.body if isinstance(s, Store) and s.mask is None}
    near = [p for p in (*loads, *stores) if _step(p[1], loop.var) == 1]
    both = {b for b, _ in loads} & {b for b, _ in stores}
    width = min([MAX_WIDTH, *(ACCESS_BYTES // b.dtype.itemsize for b, _ in near)])
    cost = sum(1 if isinstance(s.op, str) else s.op.cost for s in loop.body if isinstance(s, Ins))
    if width < 2 or not near or cost * width > MAX_COST or not divides(width, loop.start) or (isinstance(loop.extent, int) and loop.extent < width):
        return None
    kept = {p for p in near if p[0] not in both and divides(width, split_linear(p[1], loop.var)[1])}  # type: ignore[index]
    if not kept:
        return None
    whole = divides(width, loop.extent) and (loop.limit is None or divides(width, loop.limit))
    return Vectors(width, {p: None for p in loads if p in kept}, {p: None for p in stores if p in kept}, whole, cost * width)


def _step(index: Int, name: str) -> Int | None:
    split = split_linear(index, name)
    return None if split is None else split[0]


def divides(n: int, x: Int) -> bool:
    """Whether ``n`` divides an expression, whatever its variables are."""
    return all(c % n == 0 for c in x.terms.values()) if isinstance(x, Expr) else x % n == 0
