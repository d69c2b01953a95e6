"""Memory of a device: a caching allocator for what crosses calls and lives in them, which knows what everything is for.

Freed memory goes to a free list of its queue and size class, from which the queue may take it while work that uses it is still under way: that work
comes first. So no call waits, and in a steady state the driver allocates nothing. What another queue uses is not taken before that is done, as long
as there is not much of it: copies to memory that a call has read should not wait for the call. What was taken for a queue to which nothing comes any
more goes back to the driver. Size classes are an eighth of a power of two apart.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict, deque
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from hologram.backends.device.driver import Event, Queue
from hologram.errors import OutOfMemory
from hologram.ir.devices import Runtime

MIN_BYTES = 256
MAX_NAMED = 8  # buffers that an error names
SCRATCHES = 2  # kinds of memory that calls need on their way
MAX_LENT = 3  # of one size, before a queue waits for others to be done with one


class Piece:
    """Memory that the driver gave: ``size`` bytes, a size class. ``nbytes`` and ``what``, where it is taken, say what for; ``home`` is its free list,
    of one queue and size, which stays the same list for as long as work comes to the queue."""

    __slots__ = ("handle", "size", "home", "nbytes", "what")

    def __init__(self, handle: Any, size: int, home: list[Piece]) -> None:
        self.handle, self.size, self.home = handle, size, home
        self.nbytes = 0
        self.what: Callable[[], str] | None = None


class Memory:
    """A piece that is taken, until nobody holds this object. Native code makes such objects too: what is to be done for one is done here and in
    :mod:`hologram.backends.native.code.dispatch.replay`."""

    __slots__ = ("handle", "pool", "queue", "piece", "uses")

    def __init__(self, pool: Pool, queue: Queue, piece: Piece) -> None:
        self.pool, self.queue, self.piece, self.handle = pool, queue, piece, piece.handle
        self.uses: dict[Queue, Event | None] | None = None

    @property
    def size(self) -> int:
        return self.piece.size

    def used(self, queue: Queue, event: Event | None) -> None:
        """Another queue than its own uses it until ``event``; None: until all that is put there as long as anybody holds this."""
        uses = self.uses = self.uses or {}
        if event is None or uses.get(queue, event) is not None:
            uses[queue] = event

    def __del__(self) -> None:  # may run anywhere, and so takes no lock
        piece = self.piece
        piece.what = None
        if self.uses is not None:
            self.pool.returned.append((self.queue, piece, self.uses))
            return
        piece.home.append(piece)
        if self.queue.retired:  # perhaps after the list was emptied for the last time
            self.pool.returned.append((self.queue, piece, None))


class _Lent(NamedTuple):
    """Memory that nobody holds, and that other queues use until ``events``."""

    piece: Piece
    events: list[Event]


class Pool:
    """The memory of one device. :meth:`take` and :meth:`scratch` are called under the device's lock. ``limit`` bounds the bytes taken and kept;
    0: what the device has."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self.device, self.limit = runtime, runtime.device, 0
        self.allocated_bytes = self.peak_bytes = 0  # from the driver
        self._pieces: set[Piece] = set()  # all that the driver gave
        self._free: defaultdict[Queue, dict[int, list[Piece]]] = defaultdict(dict)  # by size
        self._lent: defaultdict[Queue, list[_Lent]] = defaultdict(list)
        self._scratch: dict[Queue, list[Memory | None]] = {}  # by kind; the lists stay, as those of free pieces do
        # by finalisers: what other queues use, and what came back to a queue that is retired
        self.returned: deque[tuple[Queue, Piece, dict[Queue, Event | None] | None]] = deque()
        self._retired: deque[Queue] = deque()  # by finalisers, too

    def take(self, nbytes: int, queue: Queue, what: Callable[[], str]) -> Memory:
        """Memory for work in ``queue``. Raises OutOfMemory, which names what fills the device."""
        if self.returned or self._retired:
            self._sort_returned()
        size = size_class(nbytes, self.device.largest_buffer)
        home = self._free[queue].get(size)
        if home is None:
            home = self.home(size, queue)
        piece = home.pop() if home else self._taken_back(queue, size) or self._allocated(nbytes, size, home, what)
        piece.nbytes, piece.what = nbytes, what
        return Memory(self, queue, piece)

    def home(self, size: int, queue: Queue) -> list[Piece]:
        """The free list of pieces of a size class, for work in ``queue``: anybody may take its last, with the device's lock."""
        return self._free[queue].setdefault(size, [])

    def scratch(self, kind: int, nbytes: int, queue: Queue, what: Callable[[], str]) -> Memory:
        """Memory that work in ``queue`` needs only on its way: one for each ``kind``, for all work there, which comes in turn. The caller holds it
        until that is in the queue. Raises OutOfMemory."""
        shared = self.scratches(queue)
        kept = shared[kind]
        if kept is None or kept.size < nbytes:
            kept = shared[kind] = None  # so that what is too small may be given back for the larger
            kept = shared[kind] = self.take(nbytes, queue, what)
        return kept

    def scratches(self, queue: Queue) -> list[Memory | None]:
        """What :meth:`scratch` gives for ``queue`` now, by kind."""
        return self._scratch.setdefault(queue, [None] * SCRATCHES)

    def _allocated(self, nbytes: int, size: int, home: list[Piece], what: Callable[[], str]) -> Piece:
        if nbytes > self.device.largest_buffer:
            raise self._exhausted(nbytes, what, f"the largest buffer of the device has {self.device.largest_buffer:,} bytes")
        found = self._tried(size)
        if isinstance(found, BaseException):
            self.trim()
            found = self._tried(size)
        if isinstance(found, BaseException):
            raise self._exhausted(nbytes, what, str(found)) from None
        self.allocated_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.allocated_bytes)
        piece = Piece(found, size, home)
        self._pieces.add(piece)
        return piece

    def _tried(self, size: int) -> Any:
        """A handle, or the error that says that there is no memory."""
        if self.limit and self.allocated_bytes + size > self.limit:
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
        live = sorted([(p.nbytes, p.what) for p in list(self._pieces) if p.what is not None], key=lambda entry: -entry[0])
        named = [f"{what()} {nbytes:,}" for nbytes, what in live[:MAX_NAMED]]
        more = [f"{len(live) - MAX_NAMED} more"] if len(live) > MAX_NAMED else []
        return ", ".join(named + more) or "nothing"

    def retire(self, queue: Queue) -> None:
        """Nothing is put in ``queue`` any more, so its free lists would never be used again; runs in a finaliser."""
        queue.retired = True
        self._retired.append(queue)

    def _sort_returned(self) -> None:
        """Puts what came back where it belongs. Whatever the driver fails in, no piece is lost: what cannot be used again is released."""
        while self._retired:
            gone = self._retired.popleft()
            self._scratch.pop(gone, None)
            self._release(gone)
            self._free.pop(gone, None)
        while self.returned:
            queue, piece, uses = self.returned.popleft()
            if uses is None:
                self._empty(piece.home)
            elif queue.retired:
                self._drop(piece)
            elif not self._is_lent(queue, piece, uses):
                piece.home.append(piece)

    def _is_lent(self, queue: Queue, piece: Piece, uses: dict[Queue, Event | None]) -> bool:
        """Keeps memory apart that other queues use, so that its own need not wait for these. False where they do not use it any more."""
        try:
            events = [event or other.record() for other, event in uses.items() if other is not queue]
        except self.device.errors:
            self._drop(piece)  # nobody can say until when
            return True
        if all(map(self._is_over, events)):
            return False
        self._lent[queue].append(_Lent(piece, events))
        return True

    def _is_over(self, event: Event) -> bool:
        try:
            return event.is_done()
        except self.device.errors:
            return True

    def _taken_back(self, queue: Queue, size: int) -> Piece | None:
        """A piece that others used; None where more are to be allocated first."""
        lent = self._lent.get(queue)
        if not lent:
            return None
        alike = [x for x in lent if x.piece.size == size]
        for x in alike:
            if all(map(self._is_over, x.events)):
                lent.remove(x)
                return x.piece
        while len(alike) >= MAX_LENT:
            x = alike.pop(0)
            lent.remove(x)
            try:
                for event in x.events:
                    queue.wait_for(event)
                return x.piece
            except self.device.errors:
                self._drop(x.piece)
        return None

    def _drop(self, piece: Piece) -> None:
        """Gives memory back to the driver; what it says of memory of a device that is lost is of no use to anyone."""
        self._pieces.discard(piece)
        self.allocated_bytes -= piece.size
        with contextlib.suppress(*self.device.errors):
            self.device.release(piece.handle)

    def _empty(self, home: list[Piece]) -> None:
        while home:
            self._drop(home.pop())

    def _release(self, queue: Queue) -> None:
        """Gives the free pieces of ``queue`` back to the driver, and what it has lent."""
        for x in self._lent.pop(queue, ()):
            self._drop(x.piece)
        for home in self._free.get(queue, {}).values():
            self._empty(home)

    def trim(self) -> None:
        """Gives what nobody holds back to the driver."""
        with self.device.lock:
            if self.device.gone is not None:
                return
            for shared in self._scratch.values():
                shared[:] = [None] * SCRATCHES
            self._sort_returned()
            for queue in {*self._free, *self._lent}:
                self._release(queue)

    def statistics(self) -> dict[str, int]:
        """Bytes in use; bytes kept for reuse, to which scratch belongs; and the most there were of both."""
        with self.device.lock:
            self._sort_returned()
            free = sum(p.size for lists in self._free.values() for home in lists.values() for p in home)
            lent = sum(x.piece.size for entries in self._lent.values() for x in entries)
            scratch = sum(m.size for shared in self._scratch.values() for m in shared if m is not None)
            cached = free + lent + scratch
            return {"live": self.allocated_bytes - cached, "peak": self.peak_bytes, "cached": cached}


@lru_cache(maxsize=4096)
def size_class(nbytes: int, most: int) -> int:
    """The size that memory for ``nbytes`` has: the next of sizes an eighth of a power of two apart, and, where that fits, not above ``most``."""
    step = max(MIN_BYTES, 1 << max(0, nbytes.bit_length() - 4))
    return min(max(1, -(-nbytes // step)) * step, max(nbytes, most))
