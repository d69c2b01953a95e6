"""How many traces are open in the process. While one is, calls of jitted functions go to Python, where they are traced.

Native code reads the count; nothing of it need be loaded to count.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator

from hologram import forks

open_traces = ctypes.c_int64(0)
_lock = forks.guard(forks.INNERMOST, threading.Lock())


def opened() -> None:
    with _lock:
        open_traces.value += 1


def closed() -> None:
    with _lock:
        open_traces.value -= 1


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """Counts a trace for the length of a block."""
    opened()
    try:
        yield
    finally:
        closed()
