"""Arrays of other libraries on CUDA devices, and ours for them, without copies: ``__cuda_array_interface__`` (version 3) and DLPack.

Both sides work in streams. What another library put in its stream comes before what we do with its array, and the other way round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.backends.common import driver
from hologram.backends.common.runtime import Runtime, Work
from hologram.backends.common.storage import DeviceStorage
from hologram.backends.cuda import device as cuda_device
from hologram.backends.cuda.device import Block, Device, Queue
from hologram.errors import DeviceError
from hologram.graph.plan import LINE_BYTES
from hologram.trace.aval import aval

KIND = 2  # kDLCUDA, of DLPack's devices
ALIGNMENT = 16  # of an array's first element: kernels access as many bytes at once
LEGACY_STREAM = 1  # how the interface names the default stream; 0 would be ambiguous


class Borrowed:
    """Memory of another library's array, in the place of :class:`hologram.backends.common.memory.Memory`."""

    __slots__ = ("handle", "nbytes", "pool", "queue", "what")

    def __init__(self, runtime: Runtime, queue: Queue, address: int, nbytes: int, what: Callable[[], str]) -> None:
        self.handle, self.nbytes, self.pool, self.queue, self.what = Block(address), nbytes, runtime.pool, queue, what

    def used(self, queue: driver.Queue, event: driver.Event | None) -> None:
        """Whoever uses it holds the array until it is done."""


def is_foreign(x: Any) -> bool:
    """Whether ``x`` is an array on a CUDA device."""
    if hasattr(x, "__cuda_array_interface__"):
        return True
    kind = getattr(x, "__dlpack_device__", None)
    return kind is not None and kind()[0] == KIND


def adopted(x: Any) -> DeviceStorage:
    """The elements of ``x`` where they are, or those of a copy on its device, if they are not in C order or not aligned.

    The caller holds what it gives no longer than ``x`` is unchanged. Raises DeviceError for memory that Hologram has no device for.
    """
    device = _first_device()
    if not hasattr(x, "__cuda_array_interface__"):
        x = device.cuda.from_dlpack(x)
    of = x.__cuda_array_interface__
    shape, dtype = tuple(of["shape"]), np.dtype(of["typestr"])
    if not _is_plain(of, shape, dtype):
        x = device.cuda.contiguous(x)
        of = x.__cuda_array_interface__
    address = of["data"][0]
    there = cuda_device.found()[0][device.cuda.device_of(address) if address else device.number]
    return there.guarded(lambda: _borrowed(there, x, address, shape, dtype, of.get("stream")))


def _first_device() -> Device:
    there, reason = cuda_device.found()
    if not there:
        raise DeviceError(f"an array is on a CUDA device: {reason}")
    return there[0]


def _is_plain(of: dict[str, Any], shape: tuple[int, ...], dtype: np.dtype) -> bool:
    strides = of.get("strides")
    expected = np.empty(shape, dtype).strides if strides is not None else None  # no page of it is touched
    return of["data"][0] % ALIGNMENT == 0 and (strides is None or tuple(strides) == expected)


def _borrowed(device: Device, x: Any, address: int, shape: tuple[int, ...], dtype: np.dtype, stream: int | None) -> DeviceStorage:
    of = aval(dtypes.of(dtype), shape)
    with Work(device.runtime) as work:
        queue = work.queue
        assert isinstance(queue, Queue)
        if stream is not None:
            queue.follow(0 if stream == LEGACY_STREAM else stream)
        memory = Borrowed(device.runtime, queue, address, of.nbytes, lambda: f"another library's array {of}")
        return DeviceStorage(of, memory, device.runtime.submit(work), owner=x)  # type: ignore[arg-type]


def interface(storage: DeviceStorage) -> dict[str, Any]:
    """What ``__cuda_array_interface__`` gives. Raises AttributeError, as the protocol has it, for memory of another kind and for bfloat16."""
    device = storage.runtime.device
    if not isinstance(device, Device):
        raise AttributeError(f"{storage.device} is no CUDA device")
    dtype = np.dtype(storage.aval.dtype.np)
    if dtype.kind == "V":
        raise AttributeError(f"the interface has no name for {storage.aval.dtype}: use DLPack")
    queue = storage.memory.queue
    assert isinstance(queue, Queue)
    storage.memory.used(storage.runtime.queue, None)  # where others read it
    storage.exports += 1
    data = storage.memory.handle.address if storage.nbytes else 0, True
    return {"shape": storage.aval.shape, "typestr": dtype.str, "data": data, "strides": None, "version": 3, "stream": queue.stream or LEGACY_STREAM}


def exported(storage: DeviceStorage) -> Any:
    """A CuPy array of the elements, for those who cannot read the interface. Whoever has it must not write to it."""
    device, queue = storage.runtime.device, storage.runtime.queue
    assert isinstance(device, Device) and isinstance(queue, Queue)
    if storage.memory.queue is not queue and storage.made.event is not None:
        queue.wait_for(storage.made.event)
    storage.memory.used(queue, None)
    nbytes = max(storage.nbytes, LINE_BYTES)
    return device.cuda.as_array(storage.memory.handle.address, nbytes, storage.aval.shape, storage.aval.dtype.np, device.number, storage)
