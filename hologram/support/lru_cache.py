"""A bounded cache that lets the least recently used go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _Entry:
    __slots__ = ("value", "used", "nbytes")

    def __init__(self, value: Any, used: int, nbytes: int) -> None:
        self.value, self.used, self.nbytes = value, used, nbytes


class Recent:
    """A mapping of at most ``limit`` keys, and of at most ``byte_limit()`` bytes. Looking a key up hashes it once, which an ordered dict cannot do.

    Safe to use from many threads: every step is one dict operation, and a lost update of ``used`` or ``nbytes`` costs nothing but precision.
    """

    __slots__ = ("limit", "byte_limit", "nbytes", "_entries", "_clock")

    def __init__(self, limit: int, byte_limit: Callable[[], int] | None = None) -> None:
        self.limit, self.byte_limit = limit, byte_limit
        self.nbytes = 0  # of all values, as they were put
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

    def put(self, key: Any, value: Any, nbytes: int = 0) -> None:
        """Adds ``key``, whose value has ``nbytes``; where a limit is passed, the least recently used go until an eighth of it is free again."""
        self._clock += 1
        before = self._entries.get(key)
        self._entries[key] = _Entry(value, self._clock, nbytes)
        self.nbytes += nbytes - (0 if before is None else before.nbytes)
        if len(self._entries) > self.limit or self._has_too_much(1.0):
            self._evict(key)

    def _has_too_much(self, part: float) -> bool:
        return self.byte_limit is not None and self.nbytes > part * self.byte_limit()

    def _evict(self, kept: Any) -> None:
        """Lets keys go, but for ``kept``."""
        entries = sorted(list(self._entries.items()), key=lambda e: e[1].used)
        self.nbytes = sum(e.nbytes for _, e in entries)
        least = min(self.limit - max(1, self.limit // 8) + 1, self.limit)
        for key, entry in entries:
            if len(self._entries) <= least and not self._has_too_much(7 / 8):
                break
            if key is not kept and self._entries.pop(key, None) is not None:
                self.nbytes -= entry.nbytes

    def clear(self) -> None:
        self._entries.clear()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def values(self) -> list[Any]:
        return [e.value for e in list(self._entries.values())]
