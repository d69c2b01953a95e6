"""The numbers that a program with operands takes: what must hold of them, and which of them are its arguments and its symbols.

They are data, from which a Python function is made, and the code by which native code decides it
(:mod:`hologram.backends.native.number_programs`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hologram.ir.symbolic import MAX_EXTENT, Int, source_of
from hologram.trace.lazy_programs.recording import Recording
from hologram.trace.lazy_programs.structure import Numbers


@dataclass(frozen=True)
class NumberConditions:
    """``fixed`` are numbers that must be these, by their slots; ``constants`` the slots of those that are arguments. ``symbols`` has the slot of each
    symbol, which is 2 at least, as long as the numbers keep to ``equal``, slots of pairs, to ``defined``, slots of numbers that polynomials in
    symbols give, and to ``ranges`` of polynomials, both ends included."""

    fixed: Mapping[int, Any]
    constants: Sequence[int]
    symbols: Mapping[str, int]
    equal: Sequence[tuple[int, int]]
    defined: Sequence[tuple[int, Int]]
    ranges: Mapping[Int, tuple[int, int]]

    def symbols_of(self) -> Callable[[Numbers], dict[str, int] | None]:
        """A function of numbers that gives the values of the symbols; None for numbers that break a condition."""
        spelled = {s: f"n[{slot}]" for s, slot in self.symbols.items()}
        holds = [f"{number} >= 2" for number in spelled.values()]
        holds += [f"n[{i}] == n[{j}]" for i, j in self.equal]
        holds += [f"n[{i}] == {source_of(e, spelled)}" for i, e in self.defined]
        holds += [f"{least} <= {source_of(e, spelled)} <= {most}" for e, (least, most) in self.ranges.items()]
        sizes = ", ".join([f"{s!r}: {number}" for s, number in spelled.items()])
        slots = list(self.fixed)
        fixed: Callable[[Numbers], Any] = operator.itemgetter(*slots) if slots else _nothing
        values = tuple(self.fixed.values()) if len(slots) > 1 else self.fixed[slots[0]] if slots else None
        text = f"lambda n: {{{sizes}}} if {' and '.join(['fixed(n) == values', *holds])} else None"
        found: Callable[[Numbers], dict[str, int] | None] = eval(text, {"fixed": fixed, "values": values})
        return found


def _nothing(numbers: Numbers) -> None:
    return None


def conditions_of(numbers: Numbers, constants: Sequence[int], made: Recording) -> NumberConditions:
    """The conditions of the program that was recorded for ``numbers``.

    Of what the symbols make no extent may be 0 or 1, and sizes by which programs by value choose an order of sums are in the ranges of this one.
    """
    groups, defined = made.slots, made.defined
    ranges: dict[Int, tuple[int, int]] = dict.fromkeys(made.extents(), (2, MAX_EXTENT))
    for n, (least, most) in made.conditions().items():
        ranges[n] = max(least, ranges[n][0]) if n in ranges else least, most
    varying = {*constants, *(i for slots in groups.values() for i in slots)}
    return NumberConditions(
        {i: n for i, n in enumerate(numbers) if i not in varying},
        constants,
        {s: slots[0] for s, slots in groups.items() if s not in defined},
        [(i, slots[0]) for slots in groups.values() for i in slots[1:]],
        [(groups[s][0], e) for s, e in defined.items()],
        ranges,
    )


__all__ = ["NumberConditions", "conditions_of"]
