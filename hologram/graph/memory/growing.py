"""Arena allocations of a plan with symbolic extents: one serves all sizes at which its buffers are large enough.

Packing takes milliseconds, and a sequence that grows by one in each call would pack anew in each. So buffers are packed at the next powers of two,
and the addresses are kept for the sizes up to there. What is never written costs no memory but addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hologram.graph.memory.arena import ArenaAllocation
from hologram.support.lru_cache import Recent

MAX_ALLOCATIONS = 16  # that a plan keeps


class SizedPlan(Protocol):
    """The part of an execution plan that is packed: the names of its symbols, and for values of these in order the bytes of its intermediates and
    their allocation."""

    symbols: list[str]

    def at(self, *values: int) -> tuple[Any, tuple[int, ...]]: ...
    def allocate(self, values: Mapping[str, int]) -> ArenaAllocation: ...


class GrowingArena:
    """The allocations of ``plan``, by size."""

    def __init__(self, plan: SizedPlan) -> None:
        self._plan, self._known = plan, Recent(MAX_ALLOCATIONS)

    def at(self, sizes: tuple[int, ...], needed: tuple[int, ...]) -> tuple[list[int], int]:
        """Offsets of the intermediates and bytes of the arena, for these values of the symbols, at which they have ``needed`` bytes."""
        if not needed:
            return [], 0
        rounded = tuple([1 << (n - 1).bit_length() for n in sizes])
        _, offsets, arena = self.packed(rounded if self._fit(rounded, needed) else sizes)
        return offsets, arena

    def packed(self, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], list[int], int]:
        """The bytes for which intermediates are packed at these values of the symbols, their offsets, and the bytes of the arena."""
        return self._known.get(sizes) or self._packed(sizes, self._needed(sizes))

    def _fit(self, sizes: tuple[int, ...], needed: tuple[int, ...]) -> bool:
        """Whether buffers packed for ``sizes`` have at least ``needed`` bytes. What shrinks while a symbol grows may need more than at the powers of
        two, where it may be negative, and a divisor 0."""
        known = self._known.get(sizes)
        try:
            room = self._needed(sizes) if known is None else known[0]
        except ZeroDivisionError:
            return False
        return needed == room or all(map(int.__le__, needed, room))

    def _needed(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        return self._plan.at(*sizes)[1]

    def _packed(self, sizes: tuple[int, ...], room: tuple[int, ...]) -> tuple[tuple[int, ...], list[int], int]:
        found = self._plan.allocate(dict(zip(self._plan.symbols, sizes, strict=True)))
        buffers = [found.buffers[i] for i in range(len(found.buffers))]
        made = room, [b.offset for b in buffers], found.arena_bytes
        self._known.put(sizes, made)
        return made
