"""What a backend of devices implements: a :class:`Device` (memory, programs), its :class:`Queue` (copies and launches, in order), an :class:`Event`.

A place in device memory is a pair ``(handle, offset)``: what :meth:`Device.allocate` gave, and bytes from its start.

A driver's own exceptions, :attr:`Device.errors`, may leave any method; callers turn them into Hologram's by :meth:`Device.failure`.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from hologram.backends import timing
from hologram.backends.c.analysis.gemm import GPU_TILE
from hologram.backends.c.dialects import Dialect
from hologram.errors import DeviceError, OutOfMemory
from hologram.graph.schedule.tiles import GpuTileConfig
from hologram.support import forks
from hologram.support.cached_property import cached_property

Place = tuple[Any, int]


class LaunchContext(Protocol):
    """What a launch asks of the call that it is a step of (:class:`hologram.backends.device.steps.Call`)."""

    @property
    def queue(self) -> Queue: ...

    @property
    def workspace(self) -> Any: ...


class Launch:
    """A kernel, and what its launches have in common.

    ``groups`` work-groups of ``items`` run it. Its parameters are ``operands``, of which each is a slot of the call, an offset there in bytes, and
    the bytes of an element; then ``integers``; then a workspace, of ``workspace`` bytes, unless that is 0. ``bound`` is the driver's own: what it has
    prepared. ``source`` tells profiles whose kernel it is: the program's compilation, and the step of its plan.
    """

    __slots__ = ("kernel", "groups", "items", "operands", "integers", "workspace", "bound", "source")
    whole = unattended = True  # as an action of a block

    def __init__(
        self, kernel: Any, groups: int, items: int, operands: Sequence[tuple[int, int, int]], integers: Sequence[int], workspace: int
    ) -> None:
        self.kernel, self.groups, self.items = kernel, groups, items
        self.operands, self.integers, self.workspace = operands, integers, workspace
        self.bound: Any = None
        self.source: Any = None

    def at(self, slots: Sequence[Place]) -> list[Place]:
        """Where its arrays are."""
        return [(slots[s][0], slots[s][1] + offset) for s, offset, _ in self.operands]

    def run(self, call: LaunchContext, slots: Sequence[Place]) -> None:
        """As a step of a call."""
        call.queue.launch(self, slots, call.workspace)


class Event(ABC):
    """A point in a queue's work."""

    __slots__ = ()

    @abstractmethod
    def is_done(self) -> bool:
        """Whether all work up to the event has ended; does not wait. Raises one of :attr:`Device.errors` where any of it failed."""

    @abstractmethod
    def wait(self) -> None:
        """Returns when all work up to the event has ended. Raises one of :attr:`Device.errors` where any of it failed."""


class Queue(ABC):
    """Work for a device, done in the order in which it is put here. Methods return before the work is done, but for :meth:`read`.

    The public methods count what they do in :attr:`Device.counts`; a driver implements those with an underscore.
    """

    retired = False  # whether nothing comes here any more

    def __init__(self, device: Device) -> None:
        self.device = device

    def write(self, to: Place, array: np.ndarray) -> None:
        """Copies a contiguous array to the device. The caller keeps it alive and unchanged until an event recorded later is done."""
        if array.nbytes:
            self.device.count(copies_in=1, bytes_in=array.nbytes)
            if timing.logs:
                return timing.timed(self, "copy to the device", array.nbytes, lambda: self._write(to, array))
            self._write(to, array)

    def read(self, array: np.ndarray, source: Place) -> None:
        """Fills a contiguous array from the device; waits for what was put here before, and for the copy."""
        if array.nbytes:
            with self.device.lock:
                self.device.count(copies_out=1, bytes_out=array.nbytes)
            if timing.logs:
                return timing.timed(self, "copy to the host", array.nbytes, lambda: self._read(array, source))
            self._read(array, source)

    def copy(self, to: Place, source: Place, nbytes: int) -> None:
        """Copies within the device. The ranges do not overlap."""
        if nbytes:
            self.device.count(copies_within=1, bytes_within=nbytes)
            if timing.logs:
                return timing.timed(self, "copy on the device", nbytes, lambda: self._copy(to, source, nbytes))
            self._copy(to, source, nbytes)

    def launch(self, launch: Launch, slots: Sequence[Place], workspace: Any) -> None:
        """Runs a kernel of :meth:`Device.build`, whose arrays are in ``slots``; ``workspace`` is the handle of what it may need besides."""
        self.device.counts["launches"] += 1
        if timing.logs:
            return timing.timed(self, launch.source, 0, lambda: self._launch(launch, slots, workspace))
        self._launch(launch, slots, workspace)

    def launch_all(self, launches: Sequence[Launch], slots: Sequence[Place], workspace: Any) -> None:
        """As :meth:`launch`, one after the other."""
        if timing.logs:
            for x in launches:
                self.launch(x, slots, workspace)
            return
        self.device.counts["launches"] += len(launches)
        launch = self._launch
        for x in launches:
            launch(x, slots, workspace)

    def timed(self, action: Callable[[], Any]) -> timing.Times | None:
        """Puts a command here, by ``action``; what tells its times when the device is done, None where the driver does not know."""
        action()
        return None

    @abstractmethod
    def _write(self, to: Place, array: np.ndarray) -> None: ...
    @abstractmethod
    def _read(self, array: np.ndarray, source: Place) -> None: ...
    @abstractmethod
    def _copy(self, to: Place, source: Place, nbytes: int) -> None: ...
    @abstractmethod
    def _launch(self, launch: Launch, slots: Sequence[Place], workspace: Any) -> None: ...

    @abstractmethod
    def record(self) -> Event:
        """The event after all work put here so far, which the device is told to begin."""

    @abstractmethod
    def wait_for(self, event: Event) -> None:
        """What is put here from now on begins after ``event``, of another queue of the same device. Does not wait itself."""

    @abstractmethod
    def finish(self) -> None:
        """Returns when everything is done."""


class Device(ABC):
    """One device: ``name`` is what users call it, ``dialect`` the row of the C walk for its programs, ``errors`` what its driver raises.

    ``kind`` is ``gpu`` or ``cpu``, or ``null`` where nothing computes. ``units`` work-groups run at one time; ``largest_buffer`` and
    ``memory_bytes`` bound what can be allocated. ``tile``: how products share their work among groups. ``lock`` guards the queues.
    """

    name: str
    dialect: Dialect
    kind: str
    units: int
    largest_buffer: int
    memory_bytes: int
    errors: tuple[type[Exception], ...] = ()
    tile: GpuTileConfig = GPU_TILE
    has_values = True  # whether memory can be read: kernels run for real
    fails_for_good = False  # whether no work succeeds after work that failed
    survives_forks = False  # whether a child process may go on with it
    gone: str | None = None  # why nothing can be done with it any more
    inside = 0  # calls that whoever has the lock is putting in queues; a second is made inside of the first, by a finaliser or a signal's handler
    backend_module = "hologram.backends.device.backend"

    def __init__(self) -> None:
        self.lock = forks.guard(forks.DEVICES, threading.RLock())
        self.counts: Counter[str] = Counter()

    def count(self, **what: int) -> None:
        """Notes launches, copies and bytes."""
        for name, n in what.items():
            self.counts[name] += n

    def __repr__(self) -> str:
        return f"{self.name}: {self.describe()}"

    @abstractmethod
    def describe(self) -> str:
        """The device and its driver, in a few words."""

    @abstractmethod
    def why_not(self, precision: str, double: bool) -> str | None:
        """Why programs of a precision, with float64 or without, cannot run here; None where they can."""

    @abstractmethod
    def build(self, source: str, names: Sequence[str]) -> dict[str, Any]:
        """Kernels by name, of a program's text. Raises CompileError with the compiler's words and the numbered lines that they are about."""

    @abstractmethod
    def allocate(self, nbytes: int) -> Any:
        """The handle of new memory, aligned to 64 bytes. Raises MemoryError, or one of ``errors`` that :meth:`failure` makes an OutOfMemory of."""

    @abstractmethod
    def release(self, handle: Any) -> None:
        """Gives memory back; work already in a queue may still use it."""

    @abstractmethod
    def new_queue(self) -> Queue: ...

    @cached_property
    def queue(self) -> Queue:
        """The queue of programs that are called outside of ``with hg.stream(…)``."""
        return self.new_queue()

    def holdings(self) -> str:
        """What fills its memory, in the words of errors."""
        return "nothing"

    def is_out_of_memory(self, e: BaseException) -> bool:
        return isinstance(e, MemoryError)

    def failure(self, e: BaseException) -> DeviceError | OutOfMemory:
        """What an error of the driver is for the user. Memory may be found to be missing late, as by drivers that allocate when it is first used."""
        if not self.is_out_of_memory(e):
            return DeviceError(f"{self.name} failed: {e}")
        return OutOfMemory(f"{self.name} has no memory for what it was given to do ({e}); it holds: {self.holdings()}")

    def require(self) -> None:
        """Raises DeviceError where nothing can be done with the device any more."""
        if self.gone is not None:
            raise DeviceError(f"{self.name} is gone: {self.gone}")

    def translated(self, action: Callable[[], Any]) -> Any:
        """``action()``, with the driver's errors as Hologram's."""
        self.require()
        try:
            return action()
        except self.errors as e:
            raise self.failure(e) from None

    def guarded(self, action: Callable[[], Any]) -> Any:
        """As :meth:`translated`, alone among threads."""
        with self.lock:
            return self.translated(action)

    def unguarded(self, action: Callable[[], Any]) -> Any:
        """``action()``, a user's, inside of what is :meth:`guarded`: other threads may use the device meanwhile, and ``action`` may wait for them."""
        inside, self.inside = self.inside, 0
        self.lock.release()
        try:
            return action()
        finally:
            self.lock.acquire()
            self.inside = inside
