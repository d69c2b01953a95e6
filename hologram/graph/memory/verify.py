"""Verification of arena allocations, buffer by buffer: :func:`verify_allocation`. With ``settings.verify`` it is called on each one that is made."""

from __future__ import annotations

from collections.abc import Sequence

from hologram.errors import CompileError
from hologram.graph.memory.arena import LINE_BYTES, PAGE_BYTES, POOL_PAGES, ArenaAllocation, Id, Lifetime, Placement


def verify_allocation(asked: Sequence[Lifetime], allocation: ArenaAllocation) -> None:
    """Raises :class:`CompileError`, naming the buffers and with the allocation's text, unless it serves ``asked``:

    - each buffer has a place, of its bytes and for its life, inside the arena and at a cache line; one in the pool at a page of the pool;
    - no two buffers that live at one time overlap, but for one that takes over the place of another that dies as it is written, where that is asked.
    """
    placed = list(allocation.buffers.values())
    if [(p.id, p.nbytes, p.first, p.last) for p in placed] != [(b.id, b.nbytes, b.first, b.last) for b in asked]:
        raise CompileError(f"malformed plan, it does not place the buffers that were asked for:\n{allocation}")
    for p in placed:
        if trouble := _misplaced(p, allocation):
            raise CompileError(f"malformed plan, buffer {p.id} {trouble}:\n{allocation}")
    may_alias = {b.id: b.may_alias for b in asked}
    for a, b in _living_together(placed):
        (a_low, a_high), (b_low, b_high) = extent(a), extent(b)
        apart = a_high <= b_low or b_high <= a_low
        if not (apart or _hands_over(a, b, may_alias[b.id]) or _hands_over(b, a, may_alias[a.id])):
            raise CompileError(f"malformed plan, buffers {a.id} and {b.id} live at one time and overlap:\n{allocation}")


def extent(p: Placement) -> tuple[int, int]:
    """The bytes that a placement owns: whole pages, or whole lines."""
    unit = PAGE_BYTES if p.kind == "page" else LINE_BYTES
    return p.offset, p.offset + -(-p.nbytes // unit) * unit


def _misplaced(p: Placement, allocation: ArenaAllocation) -> str:
    low, high = extent(p)
    if low % LINE_BYTES or not 0 <= low <= high <= allocation.arena_bytes:
        return f"at {low} is no whole number of lines inside of the arena's {allocation.arena_bytes} bytes"
    if p.kind == "linear":
        return "" if p.class_index is None else "has a page and is linear"
    inside = p.class_index is not None and p.offset == p.class_index * PAGE_BYTES and high <= POOL_PAGES * PAGE_BYTES
    return "" if inside else "is not in its page of the pool"


def _living_together(placed: Sequence[Placement]) -> list[tuple[Placement, Placement]]:
    """All pairs of buffers with bytes that live at one time, by a sweep over time."""
    found: list[tuple[Placement, Placement]] = []
    alive: list[Placement] = []
    for p in sorted((p for p in placed if p.nbytes), key=lambda p: p.first):
        alive = [a for a in alive if a.last >= p.first]
        found += [(a, p) for a in alive]
        alive.append(p)
    return found


def _hands_over(old: Placement, new: Placement, may_alias: tuple[Id, ...]) -> bool:
    """Whether ``new`` may be where ``old`` is: the same bytes, at the one kernel where the old one dies and the new one is written."""
    return old.id in may_alias and old.last == new.first and (old.offset, old.nbytes) == (new.offset, new.nbytes)
