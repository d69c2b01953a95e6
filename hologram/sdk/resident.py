"""Buffers of executors on devices: their elements are where they were last wanted.

Ops bring a buffer's elements to the device, once, and leave results there. What reads or writes the buffer's memory from outside brings them to the
host. Nobody can tell when an array over that memory is written to; so while one lives, and for good once the address is known, the host has the
elements, and each op copies them to the device and its result back.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from hologram.backends.device.storage import DeviceStorage
from hologram.backends.native import storage
from hologram.errors import DeviceError, OutOfMemory
from hologram.ir import devices
from hologram.ir.aval import Aval, aval
from hologram.sdk.buffer import Buffer
from hologram.support.user_lines import located
from hologram.trace import compiling

if TYPE_CHECKING:
    from hologram.backends.device.runtime import Runtime

_UNVIEWED = 3  # references to a Storage that no array views: the buffer's two, and that of who counts


class DeviceBuffer(Buffer):
    """A buffer of an executor on a device.

    ``_there``: its elements on the device; ``_stale``: whether the host's memory lacks them; ``_held``: whether the host's address is known outside;
    ``_keeper``: what copies from the host's memory hold while they are under way, so that they do not count as arrays that view it.
    """

    __slots__ = ("_there", "_stale", "_held", "_keeper")
    _there: Any
    _stale: bool
    _held: bool
    _keeper: Any

    @classmethod
    def _made(cls, memory: Any, executor: Any, pool: str, class_index: int = 0) -> Buffer:
        made: Any = super()._made(memory, executor, pool, class_index)
        made._there, made._stale, made._held, made._keeper = None, False, False, (memory,)
        return made

    @property
    def on_device(self) -> bool:
        """Whether the elements are in the device's memory now."""
        return self._there is not None

    # --- on the host ---------------------------------------------------------------------------------------------------

    def _memory(self) -> Any:
        """The host's Storage with the elements, which are the host's from now on. Raises FreedBufferError, and DeviceError where the device fails."""
        self._fetch()
        self._there = None
        return self._storage

    def _fetch(self) -> None:
        """Brings the host's memory up to date, and waits for copies from it."""
        self._require_live()
        there = self._there
        if there is None:
            return
        try:
            there.wait()
            if self._stale:
                there.runtime.read(storage.view(self._storage), there)
        except (DeviceError, OutOfMemory) as e:
            raise located(e) from None
        self._stale = False

    def _overwritable(self, what: str) -> np.ndarray:
        self._require_live()
        if self._there is not None:
            self._there.made.end()  # a copy from the memory may be under way
        self._there, self._stale = None, False
        return storage.view(self._storage)

    def _require_writable(self, what: str) -> None:
        self._require_live()

    def to_bytes(self) -> bytes:
        """A copy of the elements' bytes."""
        self._fetch()
        return storage.view(self._storage).tobytes()

    @property
    def ptr(self) -> int:
        """The address of the first element in the host's memory, which has the elements from now on."""
        self._held = True
        return super().ptr

    @property
    def __array_interface__(self) -> dict[str, Any]:
        self._held = True
        return super().__array_interface__

    def copy_from(self, source: Buffer) -> None:
        """As :meth:`Buffer.copy_from`; from a buffer on the same device nothing is copied until one of them is written to."""
        if type(source) is DeviceBuffer and source._aval is self._aval and source.on_device and not self._is_seen():
            self._require_live()
            self._keep(source._resident(source._there.runtime))
        else:
            super().copy_from(source)

    # --- on the device -------------------------------------------------------------------------------------------------

    def _is_seen(self) -> bool:
        """Whether the host's memory may be read or written without our knowing."""
        return self._held or sys.getrefcount(self._storage) > _UNVIEWED

    def _resident(self, runtime: Runtime) -> Any:
        """The elements on the device, for an op."""
        if self._is_seen():
            self._memory()
            there = runtime.put(self._lent())
            there.wait()  # whoever sees the memory may write to it when the op has returned
            return there
        self._require_live()
        if self._there is None or self._there.runtime is not runtime:
            self._fetch()
            self._there = runtime.put(self._lent())
        return self._there

    def _lent(self) -> Any:
        """The host's memory, to be copied."""
        return storage.over(self._aval, self._storage.data, self._keeper, False)

    def _room(self, of: Aval, runtime: Runtime) -> Any:
        """A value of a type for a program that does not read it."""
        if self._there is not None and self._there.runtime is runtime:
            return viewed(self._there, of)
        return runtime.unwritten(of)

    def _keep(self, value: DeviceStorage) -> None:
        self._there, self._stale = viewed(value, self._aval), True

    def _take(self, result: Any, runtime: Runtime) -> None:
        if self._is_seen():
            super()._take(result, runtime)
        elif result.aval.size == self.size:
            self._keep(result)
        else:
            self._keep(runtime.joined(result, self._resident(runtime)))

    # --- its end -------------------------------------------------------------------------------------------------------

    def free(self) -> None:
        """Gives the memory back, on the device and on the host, there once no array views it any more."""
        super().free()
        self._there = self._keeper = None

    def _finish(self) -> None:
        super()._finish()
        self._there = self._keeper = None


def viewed(value: DeviceStorage, of: Aval) -> DeviceStorage:
    """The first elements of a value as one of another shape."""
    return DeviceStorage(of, value.memory, value.made, owner=value.owner)


def run(executable: Any, row: Any, values: Any, shapes: Any, dtype: Any, into: Buffer, device: str) -> Any:
    """Runs an op's program on a device with buffers where they are; the result, which is ``into``'s from now on."""
    runtime: Any = devices.runtime(device)
    given = []
    for p, shape in zip(row.parameters, shapes, strict=True):
        of = aval(dtype, shape)
        if isinstance(p, str):
            given.append(storage.over(of, values[p].ctypes.data, values[p], False))
        elif p is row.result:
            given.append(into._room(of, runtime))
        else:
            given.append(viewed(values[p.name]._resident(runtime), of))
    (result,) = compiling.run(executable, given)
    into._take(result, runtime)
    return result
