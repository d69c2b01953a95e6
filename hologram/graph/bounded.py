"""Loops of passes that are sure to end: a walk visits each item once, and rounds are counted.

What a pass walks or repeats goes through here unless it ends for a reason that stands beside it: an index that counts up to a length, a chain of
inputs that goes down to a leaf, a walk that notes what it has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from hologram.errors import PassLimitError

T = TypeVar("T")
MAX_VISITS = 10_000_000  # of one walk; graphs of so many nodes do not compile in hours


class Worklist(Generic[T]):
    """What a walk has still to visit: each item once, however often it is added, so that a graph is walked in time linear in its edges. The last
    that was added comes first. ``name`` is that of the pass::

        found = Worklist("fuse", [node])
        for n in found:
            found.add(n.inputs)

    Raises :class:`PassLimitError` where more than ``most`` items are added.
    """

    __slots__ = ("name", "most", "waiting", "seen")

    def __init__(self, name: str, items: Iterable[T] = (), most: int = MAX_VISITS) -> None:
        self.name, self.most = name, most
        self.waiting: list[T] = []
        self.seen: set[T] = set()
        self.add(items)

    def add(self, items: Iterable[T]) -> None:
        for x in items:
            if x not in self.seen:
                self.seen.add(x)
                self.waiting.append(x)
        if len(self.seen) > self.most:
            raise PassLimitError(f"the pass {self.name} walks without end: it comes to more than {self.most:,} things")

    def __iter__(self) -> Iterator[T]:
        while self.waiting:
            yield self.waiting.pop()


def rounds(name: str, most: int) -> Iterator[int]:
    """0, 1, … for a pass that repeats until nothing changes, which its loop then leaves.

    Raises :class:`PassLimitError`, with the ``name`` of the pass, where ``most`` rounds do not do.
    """
    yield from range(most)
    raise PassLimitError(f"the pass {name} runs without end: something changes after {most:,} rounds")
