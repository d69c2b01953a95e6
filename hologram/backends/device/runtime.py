"""What is under way on one device: its memory, its queues, and submissions that have not ended."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Any

import numpy as np

from hologram.backends.device import driver
from hologram.backends.device.driver import Event, Place, Queue
from hologram.backends.device.memory import Memory, Piece, Pool
from hologram.backends.device.storage import DeviceStorage, Submission
from hologram.backends.native import storage as host
from hologram.backends.native.code.submissions import COLLECTED, MAX_SUBMISSIONS
from hologram.backends.native.replays import know_classes
from hologram.errors import DeviceError
from hologram.ir.aval import Aval
from hologram.support import forks
from hologram.support.cached_property import cached_property

APART_BYTES = 1 << 18  # of copies that are worth a wait of one queue for another


class _Streams(threading.local):
    """The streams that a thread is inside of, by device, the innermost last."""

    def __init__(self) -> None:
        self.of: dict[Runtime, list[Queue]] = {}


_streams = _Streams()
_made: list[Runtime] = []
know_classes(DeviceStorage, Memory, Piece, Submission)


def runtimes() -> list[Runtime]:
    """Those of the devices that have been used."""
    return list(_made)


@forks.in_child
def _after_fork() -> None:
    """Threads and connections of drivers are the parent's: a child that waited for them would wait for ever."""
    for r in _made:
        if not r.device.survives_forks:
            r.device.gone = "its driver does not outlive a fork; use it in processes that multiprocessing has begun by 'spawn'"


class Device(driver.Device):
    """A device on which programs run."""

    executable: Any = None  # a class in the place of :class:`hologram.backends.device.executable.Executable`
    _runtime: Runtime | None = None

    @property
    def runtime(self) -> Runtime:
        """What is under way here: one, whichever thread asks first."""
        with self.lock:
            if self._runtime is None:
                self._runtime = Runtime(self)
            return self._runtime

    def holdings(self) -> str:
        return self._runtime.pool.holdings() if self._runtime is not None else super().holdings()


class Runtime:
    """Memory, queues and submissions of ``device``."""

    def __init__(self, device: Device) -> None:
        self.device = device
        _made.append(self)
        self.pool = Pool(self)
        self.under_way: deque[Submission] = deque()  # the oldest first
        self._reading = forks.guard(forks.READERS, threading.RLock())  # of the reader; whoever holds it may take the device's

    # --- queues --------------------------------------------------------------------------------------------------------

    def current_queue(self) -> Queue:
        """Where this thread's work goes."""
        if self.device.gone is not None:
            self.device.require()
        inside = _streams.of.get(self)
        return inside[-1] if inside else self.device.queue

    @property
    def queue(self) -> Queue:
        """As :meth:`current_queue`."""
        return self.current_queue()

    def enter(self, queue: Queue) -> None:
        """This thread's work goes to ``queue``, until :meth:`leave`."""
        _streams.of.setdefault(self, []).append(queue)

    def leave(self, queue: Queue) -> None:
        """Ends the last :meth:`enter` of ``queue``. Raises DeviceError in a thread that has not entered it."""
        inside = _streams.of.get(self, [])
        last = next((i for i in reversed(range(len(inside))) if inside[i] is queue), None)
        if last is None:
            raise DeviceError(f"this thread is not inside of that stream of {self.device.name}: the thread that enters a stream leaves it")
        del inside[last]

    # --- submissions ---------------------------------------------------------------------------------------------------

    def submit(self, work: Work) -> Submission:
        """Ends ``work``: what it put in its queue is one submission."""
        queue = work.queue
        event = queue.record()
        made = Submission(queue, event, work.after, work.kept)
        for memory in work.borrowed:
            memory.used(queue, event)
        under_way = self.under_way
        under_way.append(made)
        if len(under_way) >= COLLECTED or any(x.nbytes >= APART_BYTES for x in work.kept):
            self.collect()
        return made

    def collect(self) -> None:
        """Lets go of what submissions hold that have ended, and waits for the oldest of too many."""
        waiting = self.under_way
        last = self._ended_after_others()
        while waiting and waiting[0].has_ended(last is not None and waiting[0].queue is last.queue):
            if waiting.popleft() is last:
                last = None
        while len(waiting) > MAX_SUBMISSIONS:
            waiting.popleft().end()

    def _ended_after_others(self) -> Submission | None:
        """One that has ended well, and so have earlier ones of its queue, of which the driver need not be asked; None where that cannot be said."""
        waiting = self.under_way
        if not self.device.fails_for_good or len(waiting) < COLLECTED:
            return None
        last = waiting[COLLECTED - 1]
        return last if last.has_ended() and last.error is None else None

    def finish(self) -> None:
        """Returns when all work has ended."""
        with self.device.lock:
            while self.under_way:
                self.under_way.popleft().end()

    @cached_property
    def _reader(self) -> Queue:
        """A queue for reads of values that are there: they need not wait in turn."""
        return self.device.guarded(self.device.new_queue)

    @cached_property
    def _uploads(self) -> Queue:
        """A queue for large copies from the host, which run beside what is computed."""
        return self.device.new_queue()

    # --- arrays --------------------------------------------------------------------------------------------------------

    def put(self, source: Any) -> DeviceStorage:
        """A storage of any device, or of the host, on this one."""
        if type(source) is DeviceStorage and source.runtime is self:
            return source if source.owner is None else self.device.guarded(partial(self.copied, source))
        self.fetch([source])
        return self.device.guarded(partial(self.brought, source, lambda: f"a copy of {source.aval}"))

    def fetch(self, sources: Iterable[Any]) -> None:
        """Brings what is on other devices to the host, from where work copies it. To be called without this device's lock: under it, two threads that
        carry values between two devices in opposite directions would each hold the lock that the other waits for."""
        if self.device.has_values:  # others need nothing brought to them
            for source in sources:
                if type(source) is DeviceStorage and source.memory.pool is not self.pool:
                    source.on_host()

    def copied(self, source: DeviceStorage) -> DeviceStorage:
        """A copy on this device of a storage that is there, or of borrowed memory. To be called with the device's lock."""
        with Work(self) as work:
            given, memory = work.operand(source, str), work.memory(source.nbytes, lambda: f"a copy of {source.aval}")
            work.queue.copy((memory.handle, 0), (given.handle, 0), source.nbytes)
            return DeviceStorage(source.aval, memory, self.submit(work))

    def brought(self, source: Any, what: Callable[[], str]) -> DeviceStorage:
        """A copy of a storage of the host, or of one that :meth:`fetch` has brought there. Large ones go by a queue of their own."""
        with Work(self, self._uploads if source.nbytes >= APART_BYTES else None) as work:
            memory = work.memory(source.nbytes, what)
            work.write((memory.handle, 0), source)
            return DeviceStorage(source.aval, memory, self.submit(work))

    def unwritten(self, of: Aval) -> DeviceStorage:
        """A value that nothing has written, for programs that do not read it."""

        def make() -> DeviceStorage:
            with Work(self) as work:
                return DeviceStorage(of, work.memory(of.nbytes, lambda: f"unwritten {of}"), self.submit(work))

        return self.device.guarded(make)

    def joined(self, head: Any, whole: Any) -> DeviceStorage:
        """A new value: ``whole`` with the elements of ``head`` as its first."""

        def make() -> DeviceStorage:
            with Work(self) as work:
                first, old = work.operand(head, str), work.operand(whole, str)
                memory = work.memory(whole.nbytes, lambda: f"a copy of {whole.aval}")
                work.queue.copy((memory.handle, 0), (first.handle, 0), head.nbytes)
                work.queue.copy((memory.handle, head.nbytes), (old.handle, head.nbytes), whole.nbytes - head.nbytes)
                return DeviceStorage(whole.aval, memory, self.submit(work))

        return self.device.guarded(make)

    def read(self, array: np.ndarray, source: DeviceStorage) -> None:
        """Fills ``array`` with the elements of ``source``, of this device, which are there. Waits for no other work.

        Raises DeviceError where the device computes nothing.
        """
        if not self.device.has_values:
            raise DeviceError(f"{self.device.name} computes nothing: its arrays have no values to read")
        reader = self._reader
        with self._reading:  # and not the device's lock: others may compute meanwhile
            self.device.translated(lambda: reader.read(_bytes_of(array), (source.memory.handle, 0)))


class Work:
    """What is being put in a queue. ``after``: submissions that it reads from; ``kept``: what copies read; ``borrowed``: memory of other queues.

    Where a block under it fails, what was put there already is waited for: copies may be under way.
    """

    __slots__ = ("runtime", "queue", "after", "kept", "borrowed")

    def __init__(self, runtime: Runtime, queue: Queue | None = None) -> None:
        self.runtime, self.queue = runtime, queue or runtime.queue
        self.after: list[Submission] = []
        self.kept: list[Any] = []
        self.borrowed: list[Memory] = []

    def __enter__(self) -> Work:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            with contextlib.suppress(*self.runtime.device.errors):
                self.queue.finish()

    def memory(self, nbytes: int, what: Callable[[], str]) -> Memory:
        return self.runtime.pool.take(nbytes, self.queue, what)

    def operand(self, source: Any, what: Callable[[], str]) -> Any:
        """What has the elements of ``source`` on this device: the handle of its memory, or of a copy. Give it to nobody beyond this work."""
        if type(source) is DeviceStorage and source.runtime is self.runtime:
            return self._local(source)
        if source.nbytes >= APART_BYTES:
            return self._local(self.runtime.brought(source, what))
        memory = self.memory(source.nbytes, what)
        self.write((memory.handle, 0), source)
        return memory

    def reads(self, made: Submission) -> Event | None:
        """What is put here comes after ``made``, of whose end this is the event, if it is to come. Raises what it failed with."""
        event = made.event
        if event is not None:
            self.after.append(made)
        elif made.error is not None:
            made.wait()
        return event

    def _local(self, source: DeviceStorage) -> Memory:
        memory = source.memory
        event = self.reads(source.made)
        if memory.queue is not self.queue:
            if event is not None:
                self.queue.wait_for(event)
            self.borrowed.append(memory)
        if source.owner is not None:
            self.kept.append(source)
        return memory

    def write(self, to: Place, source: Any) -> None:
        """Copies a storage of the host, or of another device, which :meth:`Runtime.fetch` has brought to the host. What the caller may write to is
        copied there first."""
        if type(source) is DeviceStorage:
            if not self.runtime.device.has_values:  # which nothing needs to be brought to
                source.runtime.device.count(copies_out=1, bytes_out=source.nbytes)
                return self.queue.write(to, np.empty(source.nbytes, np.uint8))
            source = source.on_host()
        elif source.owner is not None:
            source = host.copy_of(host.view(source))
        self.write_array(to, host.view(source))
        self.kept.append(source)

    def write_array(self, to: Place, array: np.ndarray) -> None:
        """Copies an array that nobody changes."""
        self.kept.append(array)
        self.queue.write(to, _bytes_of(array))


def _bytes_of(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)
