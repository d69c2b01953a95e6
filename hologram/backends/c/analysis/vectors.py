"""Loops of lanes whose items take several neighbours at a time, so that memory is read and written 16 bytes at once."""

from __future__ import annotations

from typing import NamedTuple

from hologram.graph.kernel.ir import Accumulate, Buffer, Loop, Store
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Atom, Expr, Int, split_linear, var

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
    near = [p for p in (*loads, *stores) if _is_near(p[1], loop.var, ACCESS_BYTES // p[0].dtype.itemsize)]
    both = {b for b, _ in loads} & {b for b, _ in stores}
    width = min([MAX_WIDTH, *(ACCESS_BYTES // b.dtype.itemsize for b, _ in near)])
    cost = sum(1 if isinstance(s.op, str) else s.op.cost for s in loop.body if isinstance(s, Ins))
    if width < 2 or not near or cost * width > MAX_COST or not divides(width, loop.start) or (isinstance(loop.extent, int) and loop.extent < width):
        return None
    kept = {p for p in near if p[0] not in both and _is_aligned(p[1], loop.var, width)}
    if not kept:
        return None
    whole = divides(width, loop.extent) and (loop.limit is None or divides(width, loop.limit))
    return Vectors(width, {p: None for p in loads if p in kept}, {p: None for p in stores if p in kept}, whole, cost * width)


def _is_near(index: Int, name: str, width: int) -> bool:
    """Whether the index goes up by one with ``name`` inside of each ``width`` values of it."""
    split = _split_in_vectors(index, name, max(2, width))
    return split is not None and split[0] == 1


def _is_aligned(index: Int, name: str, width: int) -> bool:
    """Whether the elements of a vector are neighbours, of which the first has an index that ``width`` divides."""
    split = _split_in_vectors(index, name, width)
    return split is not None and split[0] == 1 and divides(width, split[1])


def _split_in_vectors(index: Int, name: str, width: int) -> tuple[Int, Int] | None:
    """``(coefficient, rest)`` of an index that is linear in ``name`` inside of each ``width`` values of it, the first of which ``width`` divides.

    There quotients by multiples of ``width`` stay the same, and remainders go up as ``name`` does. Rows that are heads of a few elements, one after
    another, are read by such.
    """
    if not isinstance(index, Expr):
        return 0, index
    plain: Int = 0
    for m, c in index.terms.items():
        term: Int = c
        for a in m:
            term = term * _in_vectors(a, name, width)
        plain = plain + term
    return split_linear(plain, name)


def _in_vectors(a: Atom, name: str, width: int) -> Int:
    """An atom as what it is inside of a vector: a quotient is some number; a remainder is ``name`` and some multiple of ``width``."""
    own = next((b for b in a.inside if b.name == name), None)
    dividend, divisor = a.args if own is not None else (0, 0)
    split = split_linear(dividend, name) if own is not None and isinstance(divisor, int) and divisor % width == 0 else None
    if own is None or split is None or split[0] != 1 or not divides(width, split[1]):
        return Expr({(a,): 1})
    some = var(f"hg_{a.name}", None)
    return Expr({(own,): 1}) + width * some if a.key[0] == "mod" else some


def divides(n: int, x: Int) -> bool:
    """Whether ``n`` divides an expression, whatever its variables are."""
    return all(c % n == 0 for c in x.terms.values()) if isinstance(x, Expr) else x % n == 0
