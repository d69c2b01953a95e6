"""Arrays on a device, and what was put in a queue together. Importing this module imports no driver: every program does, also one without devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hologram.errors import DeviceError, HologramError
from hologram.ir.aval import Aval
from hologram.ir.devices import Runtime

if TYPE_CHECKING:
    from hologram.backends.device.driver import Event, Queue
    from hologram.backends.device.memory import Memory


class Submission:
    """Work put in a queue together, such as a call: under way, done, or failed. Its failure is that of all work that reads what it gives.

    ``event`` is the end of the work, None where it is known to have ended. ``kept`` are arrays of the host that copies read, held until they have.
    """

    __slots__ = ("queue", "error", "event", "_after", "_kept")

    error: HologramError | None
    event: Event | None
    _after: Sequence[Submission]
    _kept: Sequence[Any]

    def __init__(self, queue: Queue, event: Event, after: Sequence[Submission], kept: Sequence[Any]) -> None:
        self.queue, self.error, self.event, self._after, self._kept = queue, None, event, after, kept

    def has_ended(self, over: bool = False) -> bool:
        """Whether the work has ended, well or not; does not wait. ``over``: the device's part is known to have ended well."""
        event = self.event
        if event is None:
            return True
        device = self.queue.device
        failed: HologramError | None = None
        try:
            device.require()
            if not (over or event.is_done()):
                return False
        except device.errors as e:
            failed = device.failure(e)
        except DeviceError as e:
            failed = e
        for s in self._after:
            if not s.has_ended():
                return False
        self._settle(failed)
        return True

    def wait(self) -> None:
        """Returns when the work is done. Raises what it, or work before it, failed with: the same at each call."""
        self.end()
        if self.error is not None:
            raise type(self.error)(*self.error.args)

    def end(self) -> None:
        """Returns when the work has ended, well or not."""
        for s in self._under_way():
            s._end()

    def _under_way(self) -> list[Submission]:
        """This work and what it waits for, as far as it has not ended, first come first."""
        order: list[Submission] = []
        stack = [(self, False)]
        seen: set[int] = set()
        while stack:
            s, below_done = stack.pop()
            if below_done:
                order.append(s)
            elif s.event is not None and id(s) not in seen:
                seen.add(id(s))
                stack.append((s, True))
                stack += [(a, False) for a in s._after]
        return order

    def _end(self) -> None:
        event = self.event
        if event is None:
            return
        device = self.queue.device
        failed: HologramError | None = None
        try:
            device.require()
            event.wait()
        except device.errors as e:
            failed = device.failure(e)
        except DeviceError as e:
            failed = e
        self._settle(failed)

    def _settle(self, failed: HologramError | None) -> None:
        """The work and all before it has ended; what it ``failed`` with counts less than what was before."""
        error = next((s.error for s in self._after if s.error is not None), failed)
        if self.event is not None:  # no other thread was faster
            self.error = error
            self.event, self._after, self._kept = None, (), ()


class DeviceStorage:
    """The elements of an array in the memory of a device, in C order, from the start of ``memory``. Immutable. ``made`` is what writes them.

    ``owner`` is another library's array whose memory it is, borrowed for a call; None where the memory is its own. ``exports``: how many times the
    address was told to others, who hold the Tensor alone: its memory is not given up by a donation.
    """

    __slots__ = ("aval", "memory", "made", "owner", "exports", "_host", "__weakref__")

    def __init__(self, aval: Aval, memory: Memory, made: Submission, owner: Any = None) -> None:
        self.aval, self.memory, self.made, self.owner, self._host = aval, memory, made, owner, None
        self.exports = 0

    _host: Any

    @property
    def runtime(self) -> Runtime:
        return self.memory.pool.runtime

    @property
    def device(self) -> str:
        """The name of the device."""
        return self.memory.pool.device.name

    @property
    def nbytes(self) -> int:
        return self.aval.nbytes

    def __repr__(self) -> str:
        return f"<DeviceStorage {self.aval} on {self.device}>"

    def wait(self) -> None:
        """Returns when the elements are there. Raises DeviceError or OutOfMemory where what computes them failed."""
        self.made.wait()

    def on_host(self) -> Any:
        """A Storage of the CPU with the elements, which are copied once. Raises as :meth:`wait`."""
        if self._host is None:
            from hologram.backends.native import storage

            self._host = storage.filled(self.aval, self._copied_out)
        return self._host

    def _copied_out(self, array: np.ndarray) -> None:
        self.wait()
        self.runtime.read(array, self)
