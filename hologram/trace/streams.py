"""Streams: work for a device that need not wait for other work there."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from hologram.errors import DeviceError
from hologram.ir.devices import CPU, find
from hologram.support.user_lines import located


class Stream:
    """An order of work on a device, apart from all others: ``with stream:`` puts there what a thread calls for that device.

    A call waits on the device, and nobody waits on the host, for work of other streams whose results it reads. Raises DeviceError for the CPU,
    which has no streams, and for a device that is not there.

    >>> hg.stream("cpu")
    Traceback (most recent call last):
        ...
    hologram.errors.DeviceError: the CPU has no streams: name a device of hg.devices() (at ...)
    """

    __slots__ = ("_runtime", "_queue")

    def __init__(self, device: Any = None) -> None:
        name = CPU if device is None else str(device)
        if name == CPU:
            raise located(DeviceError("the CPU has no streams: name a device of hg.devices()"))
        try:
            self._runtime = find(name).runtime
            self._queue = self._runtime.device.guarded(self._runtime.device.new_queue)
        except DeviceError as e:
            raise located(e) from None

    def __del__(self) -> None:
        if hasattr(self, "_queue"):
            self._runtime.pool.retire(self._queue)

    @property
    def device(self) -> str:
        """The device's name."""
        return self._runtime.device.name

    def __repr__(self) -> str:
        return f"<stream of {self.device}>"

    def __enter__(self) -> Stream:
        self._runtime.enter(self._queue)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._runtime.leave(self._queue)
        except DeviceError as e:
            raise located(e) from None

    def synchronize(self) -> None:
        """Returns when the work that was put here is done. Results that failed say so when they are read."""
        self._runtime.device.guarded(self._queue.finish)


stream = Stream
