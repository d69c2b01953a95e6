"""The DEBUG ladder: what Hologram tells on standard error, by ``settings.debug``.

1 devices, 2 timings, 3 kernels, 4 source, 5 graphs, 6 every pass that changed something, 7 assembly; a level includes those below it.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from hologram.settings import settings
from hologram.support.progress.bars import phase

Watcher = Callable[[str, int, int], None]  # of a phase of the compiler: its name, when it began and ended, as time.perf_counter_ns tells
watchers: list[Watcher] = []

DEVICES, TIMINGS, KERNELS, SOURCE, GRAPHS, PASSES, ASSEMBLY = range(1, 8)


def tell(level: int, title: str, text: Callable[[], object]) -> None:
    """Prints ``text()`` under ``title`` where the ladder stands at ``level`` or higher; else ``text`` is not called."""
    if settings.debug >= level:
        print(f"--- hologram: {title} ---\n{text()}", file=sys.stderr)


_SILENT = contextlib.nullcontext()


def timed(title: str) -> contextlib.AbstractContextManager[None]:
    """Tells how long a block took, and whoever watches; it is what the thread does now."""
    phase(title)
    return _SILENT if settings.debug < TIMINGS and not watchers else _told(title)


def noted(title: str, start: int) -> None:
    """Tells those who watch of a block that began at ``start``, and has just ended."""
    for watcher in list(watchers):
        watcher(title, start, time.perf_counter_ns())


def tell_time(title: str, seconds: float) -> None:
    """Tells a time that was measured elsewhere."""
    if settings.debug >= TIMINGS:
        print(f"--- hologram: {title}: {1e3 * seconds:.3f} ms", file=sys.stderr)


@contextlib.contextmanager
def _told(title: str) -> Iterator[None]:
    start = time.perf_counter_ns()
    try:
        yield
    finally:
        tell_time(title, (time.perf_counter_ns() - start) * 1e-9)
        noted(title, start)
