"""Peaks of memory while profiles are made, which may overlap: the process has one, which begins anew where one of them begins or ends."""

from __future__ import annotations

import threading

from hologram.backends.native import storage

_lock = threading.RLock()
_open: list[Peak] = []
_before = 0  # the process's, before the first of them


class Peak:
    """The most bytes that arrays have had since it was made, until :meth:`end`, which gives it."""

    def __init__(self) -> None:
        global _before
        self._most = 0
        with _lock:
            found = _turned_over()
            _before = max(found, _before) if _open else found
            _open.append(self)

    def end(self) -> int:
        with _lock:
            _turned_over()
            _open[:] = [x for x in _open if x is not self]
            if not _open:
                storage.raise_peak(max(_before, self._most))
        return self._most


def _turned_over() -> int:
    """The process's peak, of which all learn; it begins anew."""
    global _before
    found: int = storage.statistics()["peak"]
    storage.reset_peak()
    _before = max(_before, found) if _open else _before
    for x in _open:
        x._most = max(x._most, found)
    return found
