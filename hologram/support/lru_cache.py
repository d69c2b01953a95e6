"""A bounded cache that lets the least recently used go."""

from __future__ import annotations

from typing import Any


class _Entry:
    __slots__ = ("value", "used")

    def __init__(self, value: Any, used: int) -> None:
        self.value, self.used = value, used


class Recent:
    """A mapping of at most ``limit`` keys. Looking a key up hashes it once, which an ordered dict cannot do.

    Safe to use from many threads: every step is one dict operation, and a lost update of ``used`` costs nothing but precision.
    """

    __slots__ = ("limit", "_entries", "_clock")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._entries: dict[Any, _Entry] = {}
        self._clock = 0

    def get(self, key: Any) -> Any:
        """The value of ``key``, which is then the most recently used; None where there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._clock += 1
        entry.used = self._clock
        return entry.value

    def put(self, key: Any, value: Any) -> None:
        """Adds ``key``; where the limit is passed, the least recently used eighth goes."""
        self._clock += 1
        self._entries[key] = _Entry(value, self._clock)
        if len(self._entries) > self.limit:
            entries = sorted(list(self._entries.items()), key=lambda e: e[1].used)
            for old, _ in entries[: max(1, self.limit // 8)]:
                self._entries.pop(old, None)

    def clear(self) -> None:
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)

    def values(self) -> list[Any]:
        return [e.value for e in list(self._entries.values())]
