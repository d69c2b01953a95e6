"""Executors: a device, a pool of 96 pages, and the buffers that live on them."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from hologram.backends.native import storage
from hologram.errors import ClosedExecutorError, DeviceError, ShapeError
from hologram.ir import devices
from hologram.sdk import backend as backends
from hologram.sdk.arguments import bounded, count, element_type, extent
from hologram.sdk.backend import BackendType
from hologram.sdk.buffer import Buffer, handles
from hologram.sdk.pool import CLASSES, PAGE_HEIGHT, PAGE_WIDTH, Pool, zero
from hologram.sdk.resident import DeviceBuffer
from hologram.support.user_lines import located


class Executor:
    """Runs ops on one device, and owns buffers. As a context manager it ends with the block.

    ``backend`` is "auto", "cpu", "cuda", "metal" or "opencl". Raises BackendNameError for another name, DeviceError, which says why, for a
    backend that is not there; "auto" takes the first that is: Metal, CUDA, a GPU with OpenCL, the CPU. On a device, elements of buffers stay there
    from op to op, until something reads or writes a buffer's memory (:mod:`hologram.sdk.resident`).

    >>> with hg.Executor("cpu") as executor:
    ...     a = executor.allocate(3)
    ...     a.from_numpy([1, 2, 3])
    ...     hg.ops.vector_add(executor, a, a, a)
    ...     print(a.to_numpy())
    [2. 4. 6.]
    """

    __slots__ = ("_device", "_backend", "_handle", "_pool", "_buffers", "__weakref__")

    def __init__(self, backend: Any = BackendType.AUTO) -> None:
        chosen = backends.backend_of(backend)
        self._backend = backends.get_default_backend() if chosen is BackendType.AUTO else chosen
        try:
            self._device: str | None = devices.resolve(self._backend.value)
        except DeviceError as e:
            raise located(e) from None
        self._handle = next(handles)
        self._pool = Pool()
        self._buffers: weakref.WeakValueDictionary[int, Buffer] = weakref.WeakValueDictionary()

    @property
    def handle(self) -> int:
        """A number that no other executor or buffer of this process has."""
        return self._handle

    @property
    def backend(self) -> BackendType:
        """What it runs on; never AUTO."""
        return self._backend

    def __repr__(self) -> str:
        return f"<Executor {self._handle}: {self._backend.value}{'' if self._device else ', ended'}>"

    def allocate(self, size: int, dtype: Any = np.float32) -> Buffer:
        """A buffer of ``size`` elements, all 0, in the linear pool. Raises ShapeError for a size below 1, DTypeError, OutOfMemory."""
        self._require_live("allocate")
        n = count(size, "allocate", "size")
        return self._own(self._buffer._made(zero(storage.mutable(extent(element_type(dtype, "allocate"), n))), self, "linear"))

    def allocate_boundary(self, class_index: int, width: int, height: int, dtype: Any = np.float32) -> Buffer:
        """A buffer of ``width * height`` bytes, all 0, at the start of the page of a class.

        ``class_index`` from 0 to 95, ``width`` from 1 to 48, ``height`` from 1 to 256; the bytes are whole elements. A page has one buffer at
        a time. Raises ShapeError beyond these bounds, DTypeError, OutOfMemory while the page is in use.
        """
        self._require_live("allocate_boundary")
        index = bounded(class_index, 0, CLASSES - 1, "allocate_boundary", "class_index")
        nbytes = bounded(width, 1, PAGE_WIDTH, "allocate_boundary", "width") * bounded(height, 1, PAGE_HEIGHT, "allocate_boundary", "height")
        of = element_type(dtype, "allocate_boundary")
        if nbytes % of.itemsize:
            raise located(ShapeError(f"allocate_boundary: {width} x {height} bytes are no whole number of {of}, which have {of.itemsize} each"))
        lease, address = self._pool.take(index)
        memory = storage.over(extent(of, nbytes // of.itemsize), address, lease, True)
        return self._own(self._buffer._made(zero(memory), self, "boundary", index))

    @property
    def _buffer(self) -> type[Buffer]:
        """The class of its buffers."""
        if self._backend is BackendType.CPU:
            return Buffer
        return DeviceBuffer

    def _own(self, buffer: Buffer) -> Buffer:
        self._buffers[buffer.handle] = buffer
        if self._device is None:  # another thread has ended it meanwhile
            buffer._finish()
        return buffer

    def _require_live(self, what: str) -> str:
        """The device. Raises ClosedExecutorError."""
        if self._device is None:
            raise located(ClosedExecutorError(f"{what}: executor {self._handle} has ended"))
        return self._device

    def cleanup(self) -> None:
        """Ends the executor: its buffers are freed, and neither can be used any more. Ending twice is allowed."""
        self._device = None
        for found in self._buffers.valuerefs():
            buffer = found()
            if buffer is not None:
                buffer._finish()

    def __enter__(self) -> Executor:
        self._require_live("with")
        return self

    def __exit__(self, *error: object) -> None:
        self.cleanup()
