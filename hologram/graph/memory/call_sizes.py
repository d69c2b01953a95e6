"""What a call must know that depends on the sizes of its arrays: the shapes of results, the addresses of intermediates, and about how long it takes.

All of it is polynomials in the program's symbols, and says nothing of nodes and kernels: a program that comes from the disk cache has it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from hologram.graph.memory import arena
from hologram.graph.memory.symbolic_arena import SymbolicLifetime
from hologram.graph.memory.verify import verify_allocation
from hologram.ir.op import Shape
from hologram.ir.symbolic import evaluator
from hologram.settings import settings
from hologram.support.cached_property import cached_property

_PS_PER_NS = 1000


class Cost(NamedTuple):
    """``fixed``: rough nanoseconds, on one thread, of what takes as long for all sizes; ``work``: rough picoseconds of the rest, as a function of the
    symbols' values in order."""

    fixed: float
    work: Callable[..., int]


class CallSizes:
    """``shapes`` of the computed results, and the ``lifetimes`` of the intermediates, by the values of ``symbols``."""

    def __init__(self, symbols: Sequence[str], shapes: Sequence[Shape], lifetimes: Sequence[SymbolicLifetime], cost: Cost) -> None:
        self.symbols, self.shapes, self.lifetimes, self.cost = list(symbols), list(shapes), list(lifetimes), cost

    @property
    def integers(self) -> int:
        """How many integers code takes: the symbols, and the place of each intermediate."""
        return len(self.symbols) + len(self.lifetimes)

    def at(self, *values: int) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
        """The shapes, and the bytes of intermediates, for values of the symbols in order."""
        found: tuple[Any, Any] = self._evaluated(*values)
        return found

    @cached_property
    def _evaluated(self) -> Callable[..., Any]:
        return evaluator((tuple(map(tuple, self.shapes)), tuple([b.nbytes for b in self.lifetimes])), self.symbols)

    def cost_at(self, values: Mapping[str, int]) -> float:
        """Rough nanoseconds on one thread."""
        return self.cost.fixed + self.cost.work(*[values[s] for s in self.symbols]) / _PS_PER_NS

    def allocate(self, values: Mapping[str, int]) -> arena.ArenaAllocation:
        """Addresses of the intermediates, by their numbers."""
        return allocated(self.lifetimes, self.at(*[values[s] for s in self.symbols])[1])


def allocated(lifetimes: Sequence[SymbolicLifetime], sizes: Sequence[int]) -> arena.ArenaAllocation:
    """Addresses of buffers that have these bytes, by their numbers."""
    asked = [arena.Lifetime(i, nbytes, b.first, b.last, b.may_alias) for i, (b, nbytes) in enumerate(zip(lifetimes, sizes, strict=True))]
    found = arena.allocate(asked)
    if settings.verify:
        verify_allocation(asked, found)
    return found
