"""What the machine can do at most: operations and bytes a second. The roof of a roofline.

**Definition.** A kernel takes at least the time of its bytes, and at least that of its operations, whichever is more. A byte takes what it takes in
the fastest loop over a working set of no more bytes: a read, a copy, a copy past the caches. So arrays may be where they are if the same kernel
runs again and again: small ones in caches. An operation takes half of a multiply-add of float32 in registers, and more in proportion for wider
numbers. All threads work together. By this definition no kernel takes less time than that, and its share of the roofline is at most 1.

The loops (:mod:`hologram.backends.limit_loops`) are measured once in a process, and the best of all processes is kept in the disk cache: other work
on the machine makes what is measured slower, never faster.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from hologram.backends import object_cache as disk
from hologram.backends.limit_loops import multiply_adds, stream
from hologram.backends.llvm.toolchain import target
from hologram.backends.native.pool import num_threads

SMALLEST, LARGEST, STEP = 1 << 14, 1 << 28, 4  # bytes of a working set: of each thread, of all together; from one to the next
CACHED_BYTES = 1 << 22  # of a working set; more is copied past the caches
ATTEMPTS = 6
MAX_MEASURED = 32  # processes that measure: then what is known is the best
_FORM = {"operation": float, "levels": [(int, float)], "measured": int}


@dataclass(frozen=True, slots=True)
class Limits:
    """Nanoseconds, of all threads together: ``operation`` on float32, half a multiply-add; ``levels`` have bytes of a working set, and what a byte of
    it takes, read or written; a larger set is never faster. ``launch`` is what a kernel costs before it does anything."""

    operation: float
    levels: tuple[tuple[int, float], ...]
    launch: float = 0.0

    @property
    def byte(self) -> float:
        """A byte of memory: of the largest working set."""
        return self.levels[-1][1]

    @property
    def cached_byte(self) -> float:
        """A byte in the fastest cache: of the smallest working set."""
        return self.levels[0][1]

    def byte_of(self, nbytes: float) -> float:
        """A byte of arrays that have ``nbytes`` together."""
        return next((byte for size, byte in reversed(self.levels) if size <= nbytes), self.cached_byte)

    def seconds(self, nbytes: float, operations: float, itemsize: int = 4) -> tuple[float, str]:
        """The least time of a kernel, and what it is bound by: ``memory`` or ``arithmetic``, on elements of ``itemsize`` bytes."""
        moving = nbytes * self.byte_of(nbytes)
        computing = operations * self.operation * max(1.0, itemsize / 4)
        return (self.launch + max(moving, computing)) / 1e9, "memory" if moving >= computing else "arithmetic"

    def as_dict(self) -> dict[str, Any]:
        """Plain data, which JSON can hold."""
        return asdict(self) | {"levels": [list(x) for x in self.levels], "byte": self.byte, "cached_byte": self.cached_byte}


def limits() -> Limits:
    """Of the CPU and as many threads as kernels may use now; to measure them takes some tenths of a second, once in a process."""
    return _best(num_threads(), target.host().id)


def known() -> Limits | None:
    """What :func:`limits` gives, without measuring; None where no process has measured it."""
    return _known(_key(num_threads(), target.host().id))[0]


@cache
def _best(threads: int, machine: str) -> Limits:
    before, measured = _known(key := _key(threads, machine))
    if before is not None and measured >= MAX_MEASURED:
        return before
    now = _measured(threads)
    best = now if before is None else _better(before, now)
    disk.store(key, b"", {"operation": best.operation, "levels": [list(x) for x in best.levels], "measured": measured + 1}, kind="limits")
    return best


def _key(threads: int, machine: str) -> str:
    return disk.key("limits", f"cpu, {threads} threads", machine)


def _known(key: str) -> tuple[Limits | None, int]:
    """Limits, and how many processes measured them."""
    found = disk.load_entry(key, lambda data, meta: disk.fits(meta, _FORM) and len(meta["levels"]) > 0)
    if found is None:
        return None, 0
    return Limits(found[1]["operation"], tuple((size, byte) for size, byte in found[1]["levels"])), found[1]["measured"]


def _better(a: Limits, b: Limits) -> Limits:
    return Limits(min(a.operation, b.operation), _falling([(size, min(a.byte_of(size), byte)) for size, byte in b.levels]))


def _measured(threads: int) -> Limits:
    sizes = [size := SMALLEST * threads]
    while (size := size * STEP) <= LARGEST:
        sizes.append(size)
    levels = [(size, min(_byte(loop, size) for loop in ("read", "copy" if size <= CACHED_BYTES else "copy_past_caches"))) for size in sizes]
    run, operations = multiply_adds()
    return Limits(fastest(run, 4 * ATTEMPTS) / operations, _falling(levels))


def _falling(levels: list[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    """A part of a working set is not slower than the whole."""
    return tuple((size, min(byte for _, byte in levels[i:])) for i, (size, _) in enumerate(levels))


def _byte(loop: str, size: int) -> float:
    """Nanoseconds of a byte of a working set."""
    run, moved = stream(loop, size)
    return fastest(run, ATTEMPTS) / moved


def fastest(run: Callable[[], Any], attempts: int) -> float:
    """Nanoseconds of the fastest of some runs, after one that compiles, and finds caches empty and threads asleep."""
    run()
    best = float("inf")
    for _ in range(attempts):
        start = time.perf_counter_ns()
        run()
        best = min(best, time.perf_counter_ns() - start)
    return best
