"""Programs and their kernels in the traces of ``torch.profiler``: each is a range, as PyTorch's own ops are."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from torch._C._profiler import _RecordFunctionFast
from torch.autograd import profiler

from hologram.profiling import ranges


def _opened(name: str) -> Callable[[], Any]:
    found = _RecordFunctionFast(name)
    found.__enter__()
    return lambda: found.__exit__(None, None, None)


def _at_work() -> ranges.Opener | None:
    return _opened if profiler._is_profiler_enabled else None


class Ranges:
    """Follows PyTorch's profiler: programs count, and open ranges, from the first call that is made while it is at work to the first one after."""

    def __init__(self) -> None:
        self.is_on = False
        self._lock = threading.RLock()

    def follow(self) -> None:
        """To be called before programs run, where :attr:`is_on` is not what PyTorch's profiler is."""
        from hologram.profiling import switch  # loads LLVM

        with self._lock:
            is_on = profiler._is_profiler_enabled
            if is_on == self.is_on:
                return
            self.is_on = is_on
            if is_on:
                switch.on(self)
                ranges.start(self, _opened)
            else:
                switch.off(self)
                ranges.stop(self)


ranges.sources.append(_at_work)
RANGES = Ranges()


def follow() -> None:
    """What runs programs calls this before."""
    if profiler._is_profiler_enabled is not RANGES.is_on:
        RANGES.follow()
