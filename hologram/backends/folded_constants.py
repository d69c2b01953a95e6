"""Storages of folded constants, which initializers compute, and which programs share: one storage for the same computation on the same arrays.

A folded constant is known by the text of what computes it and by the storages that it is computed from. An entry keeps those alive, so that their
identities stay theirs. The table keeps no entry alive: an entry goes with the last program that uses it.
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
    """Another thread, which the child lacks, may have had the lock when the child was made."""
    global _lock
    _lock = threading.RLock()


class Value:
    """A storage, and those that it was computed from."""

    __slots__ = ("storage", "sources", "__weakref__")

    def __init__(self, storage: Any, sources: Sequence[Any]) -> None:
        self.storage, self.sources = storage, sources


def shared(wanted: Sequence[tuple[str, Sequence[Any]]], compute: Callable[[], Sequence[Any]]) -> list[Value]:
    """The values of ``wanted``, each the text of a computation and the storages that it reads: those that a living program has; if one is missing,
    ``compute()`` gives the storages of all, in order. Raises what ``compute`` raises."""
    keys = [(text, *map(id, sources)) for text, sources in wanted]
    with _lock:
        found = [v for k in keys if (v := _known.get(k)) is not None]
        if len(found) < len(keys):
            computed = compute()
            found = [_known.setdefault(k, Value(s, sources)) for k, s, (_, sources) in zip(keys, computed, wanted, strict=True)]
        return found
