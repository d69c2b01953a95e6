"""How many traces are open in the process. While one is, calls of jitted functions go to Python, where they are traced.

Native code reads the count; nothing of it need be loaded to count.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from typing import Any

from hologram.support import forks
from hologram.support.weak import WeakSet

open_traces = ctypes.c_int64(0)
_open: WeakSet[Any] = WeakSet()
_lock = forks.guard(forks.INNERMOST, threading.Lock())


def opened(trace: Any) -> None:
    """Counts ``trace``, any object that can be referred to weakly, until it is closed or gone: an interrupt may come before it is closed."""
    with _lock:
        _open.add(trace)
        open_traces.value = len(_open)


def closed(trace: Any) -> None:
    with _lock:
        _open.discard(trace)
        open_traces.value = len(_open)


class _Block:
    """A block that is counted as a trace."""


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """Sends native calls to Python for the length of a block."""
    block = _Block()
    opened(block)
    try:
        yield
    finally:
        closed(block)
