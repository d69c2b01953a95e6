"""Memory of a device: a caching allocator for what crosses calls and lives in them, which knows what everything is for.

Freed memory goes to a free list of its queue and size class, from which the queue may take it while work that uses it is still under way: that work
comes first. So no call waits, and in a steady state the driver allocates nothing. What was taken for a queue to which nothing comes any more goes
back to the driver. Size classes are an eighth of a power of two apart.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hologram.errors import OutOfMemory

if TYPE_CHECKING:
    from hologram.backends.common.driver import Event, Queue
    from hologram.backends.common.runtime import Runtime

LEAST_BYTES = 256
MOST_NAMED = 8  # buffers that an error names


class Memory:
    """Memory that is taken, until nobody holds this object: ``size`` bytes, a size class."""

    __slots__ = ("handle", "size", "pool", "queue", "uses")

    def __init__(self, pool: Pool, queue: Queue, handle: Any, size: int) -> None:
        self.pool, self.queue, self.handle, self.size = pool, queue, handle, size
        self.uses: dict[Queue, Event] = {}  # the last of each other queue's

    def __del__(self) -> None:
        self.pool.put_back(self)


class Pool:
    """The memory of one device. ``limit`` bounds the bytes taken and kept, 0: what the device has."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self.device, self.limit = runtime, runtime.device, 0
        self.live_bytes = self.cached_bytes = self.peak_bytes = 0
        self._live: dict[int, tuple[int, Callable[[], str]]] = {}  # bytes, and what for, by the identity of the handle
        self._free: defaultdict[tuple[Queue, int], list[Any]] = defaultdict(list)
        self._returned: deque[tuple[Queue, int, Any, list[Event]]] = deque()  # by finalisers, which may run anywhere and so take no lock
        self._retired: deque[Queue] = deque()  # by finalisers, too

    def take(self, nbytes: int, queue: Queue, what: Callable[[], str]) -> Memory:
        """Memory for work in ``queue``. Raises OutOfMemory, which names what fills the device."""
        with self.device.lock:
            self._sort_returned()
            size = min(size_class(nbytes), max(nbytes, self.device.largest_buffer))
            free = self._free[queue, size]
            if free:
                handle = free.pop()
                self.cached_bytes -= size
            else:
                handle = self._allocated(nbytes, size, what)
            self.live_bytes += size
            self.peak_bytes = max(self.peak_bytes, self.live_bytes)
            self._live[id(handle)] = nbytes, what
            return Memory(self, queue, handle, size)

    def _allocated(self, nbytes: int, size: int, what: Callable[[], str]) -> Any:
        if nbytes > self.device.largest_buffer:
            raise self._exhausted(nbytes, what, f"the largest buffer of the device has {self.device.largest_buffer:,} bytes")
        found = self._tried(size)
        if isinstance(found, BaseException):
            self.trim()
            found = self._tried(size)
        if isinstance(found, BaseException):
            raise self._exhausted(nbytes, what, str(found)) from None
        return found

    def _tried(self, size: int) -> Any:
        """A handle, or the error that says that there is no memory."""
        if self.limit and self.live_bytes + self.cached_bytes + size > self.limit:
            return MemoryError(f"the limit is {self.limit:,} bytes")
        failures: tuple[type[Exception], ...] = (MemoryError, *self.device.errors)
        try:
            return self.device.allocate(size)
        except failures as e:
            if not self.device.is_out_of_memory(e):
                raise
            return e

    def _exhausted(self, nbytes: int, what: Callable[[], str], why: str) -> OutOfMemory:
        return OutOfMemory(f"{self.device.name} has no {nbytes:,} bytes for {what()} ({why}); it holds: {self.holdings()}")

    def holdings(self) -> str:
        """What fills the device, the largest first."""
        live = sorted(self._live.values(), key=lambda entry: -entry[0])
        named = [f"{what()} {nbytes:,}" for nbytes, what in live[:MOST_NAMED]]
        more = [f"{len(live) - MOST_NAMED} more"] if len(live) > MOST_NAMED else []
        return ", ".join(named + more) or "nothing"

    def put_back(self, memory: Memory) -> None:
        """Takes memory that nobody holds any longer; runs in a finaliser."""
        self._returned.append((memory.queue, memory.size, memory.handle, list(memory.uses.values())))

    def retire(self, queue: Queue) -> None:
        """Nothing is put in ``queue`` any more, so its free lists would never be used again; runs in a finaliser."""
        queue.retired = True
        self._retired.append(queue)

    def _sort_returned(self) -> None:
        while self._returned:
            queue, size, handle, uses = self._returned.popleft()
            del self._live[id(handle)]
            self.live_bytes -= size
            if queue.retired:
                self.device.release(handle)
                continue
            self.cached_bytes += size
            for event in uses:
                queue.wait_for(event)
            self._free[queue, size].append(handle)
        while self._retired:
            gone = self._retired.popleft()
            self._release([key for key in self._free if key[0] is gone])

    def _release(self, keys: list[tuple[Queue, int]]) -> None:
        """Gives free lists back to the driver."""
        for key in keys:
            for handle in self._free.pop(key):
                self.cached_bytes -= key[1]
                self.device.release(handle)

    def trim(self) -> None:
        """Gives what nobody holds back to the driver."""
        with self.device.lock:
            self._sort_returned()
            self._release(list(self._free))

    def statistics(self) -> dict[str, int]:
        """Bytes in use, their peak, and bytes kept for reuse."""
        with self.device.lock:
            self._sort_returned()
            return {"live": self.live_bytes, "peak": self.peak_bytes, "cached": self.cached_bytes}


@lru_cache(maxsize=4096)
def size_class(nbytes: int) -> int:
    """The size that memory for ``nbytes`` has: the next of sizes an eighth of a power of two apart."""
    step = max(LEAST_BYTES, 1 << max(0, nbytes.bit_length() - 4))
    return max(1, -(-nbytes // step)) * step
