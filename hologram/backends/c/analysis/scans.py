"""Scans in lanes, several turns of the items at one time: how many, and what stands before and after each scan.

An item takes ``neighbours`` elements a turn and keeps those of ``turns`` turns in registers. The statements of the loop are in *phases*: what needs
no scan, what needs the scans of that, and so on. Between two phases the items exchange what stands before each GROUP of elements.
"""

from __future__ import annotations

from typing import NamedTuple

from hologram.backends.c.analysis.vectors import ACCESS_BYTES, MAX_COST, divides
from hologram.graph.kernel.ir import Buffer, Loop, Stmt, Store
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Int, split_linear, variables_of

MAX_NEIGHBOURS = 4  # a page of 3,072 is then whole turns of 256 items
MAX_WORDS = 24  # of 32 bits that an item keeps from one phase to another
MAX_TURNS = 12
TEXT_COST = 3 * MAX_COST  # of the instructions of all elements of an item, which are written out
FREE = ("const", "index", "inside")  # rather computed again than kept


class Turns(NamedTuple):
    """``phases``: of each statement, by its place in the loop's body. ``kept``: instructions that later phases use. ``vectors``: places of loads and
    stores of all neighbours at one time."""

    neighbours: int
    turns: int
    phases: list[int]
    kept: frozenset[Ins]
    vectors: frozenset[int]

    @property
    def elements(self) -> int:
        """Of one item."""
        return self.neighbours * self.turns


def neighbours(loop: Loop) -> int:
    """Elements that an item takes side by side: as many as all accesses have in 16 bytes, 1 where one of them has no such vectors."""
    accesses = [s for s in loop.body if _is_access(s) and _step(_place(s)[1], loop.var) != 0]
    loads, stores = ({_place(s)[0] for s in accesses if isinstance(s, kind)} for kind in (Ins, Store))
    width = min([MAX_NEIGHBOURS, *(ACCESS_BYTES // _place(s)[0].dtype.itemsize for s in accesses)])
    alike = accesses and width > 1 and not loads & stores and divides(width, loop.start) and _is_straight(loop)
    own = {s.name for s in loop.body if isinstance(s, Ins) and s.name}
    return width if alike and _cost(loop) * width <= MAX_COST and all(_is_vector(s, loop, own, width) for s in accesses) else 1


def find_turns(loop: Loop, items: int) -> Turns | None:
    """None where a turn is all that is done at one time: there are loops in the loop."""
    if not _is_straight(loop):
        return None
    phases = _phases(loop)
    kept = _kept(loop, phases)
    width = neighbours(loop)
    loads = [s for s in loop.body if isinstance(s, Ins) and s.op == "load"]
    at_once = max(len(loads), len(loop.accs)) * _words(max([s.dtype.itemsize for s in loop.body if isinstance(s, Ins)]))
    words = sum(_words(s.dtype.itemsize) for s in kept) + at_once
    most = max(1, min(MAX_TURNS, MAX_WORDS // (width * words), TEXT_COST // (width * max(1, _cost(loop)))))
    turns = -(-loop.extent // (items * width)) if isinstance(loop.extent, int) else most
    turns = max(1, -(-turns // -(-turns // most))) if turns else 1
    vectors = frozenset(i for i, s in enumerate(loop.body) if width > 1 and _is_access(s) and _step(_place(s)[1], loop.var) == 1)
    return Turns(width, turns, phases, kept, vectors)


def uses(s: Stmt, named: dict[str, Ins]) -> list[Ins]:
    """The instructions whose values a statement needs; ``named``: those that are integers of index expressions."""
    if isinstance(s, Store):
        values, integers = [s.value, s.mask], variables_of(s.index)
    else:
        assert isinstance(s, Ins)
        values, integers = list(s.args), variables_of(s.attrs)
    return [*(v for v in values if isinstance(v, Ins)), *(named[a.name] for a in integers if a.name in named)]


def named_values(loop: Loop) -> dict[str, Ins]:
    return {s.name: s for s in loop.body if isinstance(s, Ins) and s.name}


def _phases(loop: Loop) -> list[int]:
    """A scan is in the phase after its argument's; a store follows all accesses that it followed before, a load what is stored in its buffer."""
    named, phases, of = named_values(loop), [], dict[Ins, int]()
    accessed, written = 0, dict[Buffer, int]()
    for s in loop.body:
        phase = max([0, *(of.get(v, 0) for v in uses(s, named))])
        if isinstance(s, Store):
            phase = max(phase, accessed)
            written[s.buffer] = phase
        else:
            assert isinstance(s, Ins)
            phase += s.op == "scan"
            if s.op == "load":
                phase = max(phase, written.get(s.attrs[0], 0))
            of[s] = phase
        if _is_access(s):
            accessed = max(accessed, phase)
        phases.append(phase)
    return phases


def _kept(loop: Loop, phases: list[int]) -> frozenset[Ins]:
    """What a later phase uses, by way of what is computed again if need be."""
    named = named_values(loop)
    last: dict[Ins, int] = {}  # the last phase that uses it
    for s, phase in reversed(list(zip(loop.body, phases, strict=True))):
        used = phase
        if isinstance(s, Ins):
            used = last.get(s, phase) if s.op in FREE else phase - (s.op == "scan")
        for v in uses(s, named):
            last[v] = max(last.get(v, 0), used)
    return frozenset(
        s for s, phase in zip(loop.body, phases, strict=True) if isinstance(s, Ins) and s.op not in FREE and last.get(s, 0) > phase
    )  # fmt: skip


def _is_vector(s: Stmt, loop: Loop, own: set[str], width: int) -> bool:
    """Whether neighbours' accesses are one of ``width`` elements at a multiple of it; some of them may be masked out."""
    index, mask = _place(s)[1], _mask(s)
    split = split_linear(index, loop.var)
    if split is None or split[0] != 1 or not divides(width, split[1]) or any(a.name in own for a in variables_of(index)):
        return False
    if mask is None or mask not in loop.body:
        return True
    return mask.op == "inside" and _step(mask.attrs[0], loop.var) in (0, 1) and not any(a.name in own for a in variables_of(mask.attrs))


def _is_straight(loop: Loop) -> bool:
    return all(isinstance(s, (Ins, Store)) for s in loop.body)


def _is_access(s: Stmt) -> bool:
    return isinstance(s, Store) or (isinstance(s, Ins) and s.op == "load")


def _place(s: Stmt) -> tuple[Buffer, Int]:
    if isinstance(s, Store):
        return s.buffer, s.index
    assert isinstance(s, Ins)
    buffer, index = s.attrs
    return buffer, index


def _mask(s: Stmt) -> Ins | None:
    mask = s.mask if isinstance(s, Store) else s.args[0] if isinstance(s, Ins) and s.args else None
    assert mask is None or isinstance(mask, Ins)
    return mask


def _step(index: Int, name: str) -> Int | None:
    split = split_linear(index, name)
    return None if split is None else split[0]


def _cost(loop: Loop) -> int:
    return sum(1 if isinstance(s.op, str) else s.op.cost for s in loop.body if isinstance(s, Ins))


def _words(itemsize: int) -> int:
    return max(1, itemsize // 4)
