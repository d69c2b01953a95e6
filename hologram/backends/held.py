"""Values that programs hold because they depend on constants alone: computed once, and shared by all that want the same of the same constants.

A value is known by the text of what computes it and by the storages that it is computed from, which it keeps alive, so that their identities stay
theirs. The table keeps no value alive: it goes with the last program that holds it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from hologram.support import forks
from hologram.support.weak import WeakTable

_lock = threading.RLock()
_known: WeakTable[Any, Value] = WeakTable()


@forks.in_child
def _after_fork() -> None:
    """The child may have been made while another thread, which it lacks, held the lock."""
    global _lock
    _lock = threading.RLock()


class Value:
    """A storage, and those that it was computed from."""

    __slots__ = ("storage", "sources", "__weakref__")

    def __init__(self, storage: Any, sources: Sequence[Any]) -> None:
        self.storage, self.sources = storage, sources


def values(wanted: Sequence[tuple[str, Sequence[Any]]], compute: Callable[[], Sequence[Any]]) -> list[Value]:
    """The values for ``(text, sources)`` each: those that some program holds already, else what ``compute`` gives for all of ``wanted``."""
    keys = [(text, *map(id, sources)) for text, sources in wanted]
    with _lock:
        found = [_known.get(k) for k in keys]
        if None in found:
            computed = compute()
            found = [_known.setdefault(k, Value(s, sources)) for k, s, (_, sources) in zip(keys, computed, wanted, strict=True)]
        return found  # type: ignore[return-value]
