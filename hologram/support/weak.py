"""Weak sets and tables in which no Python code runs when an object dies.

The collections of the standard library remove what dies by a Python function, as a finaliser: what a signal's handler raises in it (Ctrl-C) is
lost. Each step here is one of the interpreter's own, so threads, handlers and finalisers may come between any two of them.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MIN_PURGE = 1024  # entries: from how many on a table looks for dead ones


class WeakSet(Generic[V]):
    """Objects, for as long as they live elsewhere."""

    __slots__ = ("references",)

    def __init__(self) -> None:
        self.references: set[weakref.ref[V]] = set()

    def add(self, x: V) -> None:
        self.references.add(weakref.ref(x, self.references.discard))

    def discard(self, x: V) -> None:
        self.references.discard(weakref.ref(x))

    def __iter__(self) -> Iterator[V]:
        return iter([x for r in list(self.references) if (x := r()) is not None])

    def __len__(self) -> int:
        return len(self.references)


class WeakTable(Generic[K, V]):
    """Interned objects by key: a key has one object for as long as that lives elsewhere. Keys of dead ones stay until they are half of the table."""

    __slots__ = ("_references", "_purge_at")

    def __init__(self) -> None:
        self._references: dict[K, weakref.ref[V]] = {}
        self._purge_at = MIN_PURGE

    def get(self, key: K) -> V | None:
        found = self._references.get(key)
        return None if found is None else found()

    def setdefault(self, key: K, value: V) -> V:
        """The object of ``key``, which is ``value`` where there was none."""
        reference = weakref.ref(value)
        while (found := self._references.setdefault(key, reference)()) is None:
            _remove_if_dead(self._references, key)
        if len(self._references) > self._purge_at:
            self._purge()
        return found

    def __len__(self) -> int:
        return sum(r() is not None for r in list(self._references.values()))

    def _purge(self) -> None:
        for key, reference in list(self._references.items()):
            if reference() is None:
                _remove_if_dead(self._references, key)
        self._purge_at = max(MIN_PURGE, 2 * len(self._references))


# Removes an entry if its reference is dead, in one step: what the standard library's own tables use.
_remove_if_dead = weakref._remove_dead_weakref  # type: ignore[attr-defined]
