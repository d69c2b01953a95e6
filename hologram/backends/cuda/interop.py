"""Arrays of other libraries on CUDA devices, and ours for them, without copies: ``__cuda_array_interface__`` (version 3) and DLPack.

Both sides work in streams. What another library put in its stream comes before what we do with its array, and the other way round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.backends.cuda import device as cuda_device
from hologram.backends.cuda.device import Block, Device, Queue
from hologram.backends.device import driver
from hologram.backends.device.runtime import Runtime, Work
from hologram.backends.device.storage import DeviceStorage
from hologram.errors import DeviceError, UnsupportedError
from hologram.graph.memory.arena import LINE_BYTES
from hologram.ir.aval import aval

INTERFACE = "__cuda_array_interface__"
KIND = 2  # kDLCUDA, of DLPack's devices
ALIGNMENT = 16  # of an array's first element: kernels access as many bytes at once
LEGACY_STREAM = 1  # how the interface names the default stream; 0 would be ambiguous


class Borrowed:
    """Memory of another library's array, in the place of :class:`hologram.backends.device.memory.Memory`."""

    __slots__ = ("handle", "nbytes", "pool", "queue", "what")

    def __init__(self, runtime: Runtime, queue: Queue, address: int, nbytes: int, what: Callable[[], str]) -> None:
        self.handle, self.nbytes, self.pool, self.queue, self.what = Block(address), nbytes, runtime.pool, queue, what

    def used(self, queue: driver.Queue, event: driver.Event | None) -> None:
        """Whoever uses it holds the array until it is done."""


def is_foreign(x: Any) -> bool:
    """Whether ``x`` is an array on a CUDA device."""
    try:
        if hasattr(x, INTERFACE):
            return True
    except (RuntimeError, KeyError):  # it is one, of which :func:`adopted` says why it has no interface
        return True
    kind = getattr(x, "__dlpack_device__", None)
    return kind is not None and kind()[0] == KIND


def adopted(x: Any) -> DeviceStorage:
    """The elements of ``x`` where they are, or those of a copy on its device, if they are not in C order or not aligned.

    The caller holds what it gives no longer than ``x`` is unchanged. Raises DeviceError for memory that Hologram has no device for, and
    UnsupportedError for masked arrays and those in another byte order.
    """
    device = _first_device()
    try:
        if not hasattr(x, INTERFACE):
            x = device.cuda.from_dlpack(x, x.__dlpack_device__()[1])
        of = getattr(x, INTERFACE)
    except RuntimeError as e:  # as PyTorch says of tensors that autograd follows
        raise DeviceError(str(e)) from None
    except KeyError as e:  # as PyTorch says of 8-bit floats
        raise UnsupportedError(f"CUDA's array interface has no name for elements {e}: hologram_torch.from_torch takes PyTorch's") from None
    shape, dtype = tuple(of["shape"]), _dtype_of(x, of["typestr"])
    if of.get("mask") is not None:
        raise UnsupportedError("an array on a CUDA device has a mask, and Hologram's arrays have none: fill it, or give the mask as an argument")
    if not dtype.isnative:
        raise UnsupportedError(f"an array on a CUDA device has elements {of['typestr']}, in another byte order than the device's")
    address = of["data"][0]
    there = cuda_device.found()[0][device.cuda.device_of(address) if address else device.number]
    if not _is_plain(of, shape, dtype):
        named = device.cuda.from_dlpack(x, there.number) if dtype.kind == "V" else x
        x = device.cuda.contiguous(named, there.number)
        of = getattr(x, INTERFACE)
        address = of["data"][0]
    return there.guarded(lambda: _borrowed(there, x, address, shape, dtype, of.get("stream")))


def _first_device() -> Device:
    there, reason = cuda_device.found()
    if not there:
        raise DeviceError(f"an array is on a CUDA device: {reason}")
    return there[0]


def _dtype_of(x: Any, typestr: str) -> np.dtype:
    """The interface has no name for bfloat16, and gives its bytes."""
    of = np.dtype(typestr)
    return np.dtype(dtypes.of(str(getattr(x, "dtype", of)).rpartition(".")[2]).np) if of.kind == "V" else of


def _is_plain(of: dict[str, Any], shape: tuple[int, ...], dtype: np.dtype) -> bool:
    strides = of.get("strides")
    expected = np.empty(shape, dtype).strides if strides is not None else None  # no page of it is touched
    return of["data"][0] % ALIGNMENT == 0 and (strides is None or tuple(strides) == expected)


def _borrowed(device: Device, x: Any, address: int, shape: tuple[int, ...], dtype: np.dtype, stream: int | None) -> DeviceStorage:
    of = aval(dtypes.of(dtype), shape)
    with Work(device.runtime) as work:
        queue = work.queue
        assert isinstance(queue, Queue)
        # without a stream the array is its library's current work
        queue.follow(device.cuda.current_stream(device.number) if stream is None else _handle(stream))
        memory = Borrowed(device.runtime, queue, address, of.nbytes, lambda: f"another library's array {of}")
        return DeviceStorage(of, memory, device.runtime.submit(work), owner=x)  # type: ignore[arg-type]


def interface(storage: DeviceStorage) -> dict[str, Any]:
    """What ``__cuda_array_interface__`` gives. Raises AttributeError, as the protocol has it, for other memory and for types that NumPy lacks."""
    device = storage.runtime.device
    if not isinstance(device, Device):
        raise AttributeError(f"{storage.device} is no CUDA device")
    dtype = np.dtype(storage.aval.dtype.np)
    if storage.aval.dtype.bit_type is not None:
        raise AttributeError(f"the interface has no name for {storage.aval.dtype}: use DLPack")
    queue = storage.memory.queue
    assert isinstance(queue, Queue)
    storage.memory.used(storage.runtime.queue, None)  # where others read it
    storage.exports += 1
    data = storage.memory.handle.address if storage.nbytes else 0, True
    return {"shape": storage.aval.shape, "typestr": dtype.str, "data": data, "strides": None, "version": 3, "stream": queue.stream or LEGACY_STREAM}


def _handle(stream: int | None) -> int:
    """Of a stream as other libraries name it."""
    return 0 if stream in (None, LEGACY_STREAM) else int(stream)


def capsule(storage: DeviceStorage, stream: int | None, copy: bool) -> Any:
    """DLPack's of the elements, or of a ``copy``, which its consumer may write to. The consumer works in ``stream``, which waits for them; -1: no
    stream is to wait."""
    device = storage.runtime.device
    assert isinstance(device, Device)
    queue = device.queue if stream == -1 else device.queue_of(_handle(stream))

    def made() -> Any:
        return _lent(storage.runtime.copied(storage) if copy else storage, queue, stream != -1)

    return device.guarded(made).__dlpack__(stream=-1)


def exported(storage: DeviceStorage) -> Any:
    """A CuPy array of the elements for a library that works in the device's current stream. Whoever has it must not write to it."""
    device = storage.runtime.device
    assert isinstance(device, Device)
    return _lent(storage, device.queue, True)


def _lent(storage: DeviceStorage, queue: Queue, waits: bool) -> Any:
    """A CuPy array of the elements, which ``queue`` uses."""
    device = storage.runtime.device
    assert isinstance(device, Device)
    if waits and storage.memory.queue is not queue and storage.made.event is not None:
        queue.wait_for(storage.made.event)
    storage.memory.used(queue, None)
    nbytes = max(storage.nbytes, LINE_BYTES)
    return device.cuda.as_array(storage.memory.handle.address, nbytes, storage.aval.shape, storage.aval.dtype.np, device.number, storage)
