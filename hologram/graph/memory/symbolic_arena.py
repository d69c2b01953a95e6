"""Arena allocation inside of loops and branches of symbolic shapes: offsets are expressions, which the graph function computes.

Where a buffer lies cannot depend on how large others are in a call. So buffers follow each other in the order in which they come to life, and a
buffer may take the place of one of the same size that is no longer needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hologram.graph.memory.arena import LINE_BYTES
from hologram.ir.symbolic import Expr, Int, floordiv


class SymbolicLifetime(NamedTuple):
    """A buffer of ``nbytes`` that is needed from step ``first`` to step ``last``; ``may_alias`` are the numbers of those whose place it may take."""

    nbytes: Int
    first: int
    last: int
    may_alias: tuple[int, ...] = ()


class SymbolicPlace(NamedTuple):
    """Where a buffer lies."""

    offset: Int


class SymbolicAllocation:
    """``buffers`` by their numbers, and the size of it all."""

    __slots__ = ("buffers", "arena_bytes")

    def __init__(self, lifetimes: Sequence[SymbolicLifetime]) -> None:
        self.buffers: dict[int, SymbolicPlace] = {}
        self.arena_bytes: Int = 0
        free: dict[Int, list[tuple[int, Int]]] = {}  # last steps and offsets, by size
        for i, b in sorted(enumerate(lifetimes), key=lambda pair: pair[1].first):
            lines = floordiv(b.nbytes + (LINE_BYTES - 1), LINE_BYTES) * LINE_BYTES
            places = free.setdefault(lines, [])
            found = next((p for p in places if p[0] < b.first), None)
            offset = self.arena_bytes if found is None else found[1]
            if found is None:
                self.arena_bytes = self.arena_bytes + lines
            else:
                places.remove(found)
            places.append((b.last, offset))
            self.buffers[i] = SymbolicPlace(offset)


def most(sizes: Sequence[Int]) -> Int:
    """A size that holds any one of ``sizes``."""
    static = max((n for n in sizes if isinstance(n, int)), default=0)
    return sum(dict.fromkeys(n for n in sizes if isinstance(n, Expr)), static)
