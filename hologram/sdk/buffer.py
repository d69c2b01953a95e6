"""Buffers: memory with a length and an element type that ops read and write in place."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from hologram.backends.native import storage
from hologram.backends.native.buffer_protocol import has_buffers
from hologram.backends.native.classes import register_buffer_class
from hologram.backends.residence import on_host
from hologram.dlpack import capsule
from hologram.errors import ArgumentError, DTypeError, FreedBufferError, ShapeError
from hologram.sdk.arguments import as_array, element_type, extent, scalar
from hologram.support.user_lines import located

if TYPE_CHECKING:
    from hologram.backends.device.runtime import Runtime
    from hologram.ir.aval import Aval

handles = itertools.count(1)  # of executors, buffers and tensors: one number never means two things


@has_buffers
class Buffer:
    """One-dimensional array of ``size`` elements of ``dtype`` at a fixed address, that ops read and write in place.

    Executors make buffers (:meth:`Executor.allocate`, :meth:`Executor.allocate_boundary`), :meth:`wrap` makes one of an array. What is read
    through :meth:`to_numpy`, DLPack, the buffer protocol or ``__array_interface__`` is this very memory. After :meth:`free`, or the end of
    the executor, every use raises FreedBufferError; memory that arrays still view stays theirs until they die.

    >>> array = np.array([1, 2, 3], np.float32)
    >>> buffer = hg.Buffer.wrap(array)
    >>> buffer.fill(7)
    >>> array
    array([7., 7., 7.], dtype=float32)
    """

    __slots__ = ("_storage", "_executor", "_aval", "_pool", "_class_index", "_handle", "_end", "__weakref__")
    _storage: Any  # None at the end
    _executor: Any
    _aval: Aval
    _pool: str
    _class_index: int
    _handle: int
    _end: str  # why there is no Storage, once there is none

    def __init__(self, *args: Any, **options: Any) -> None:
        raise located(ArgumentError("buffers are made by Executor.allocate, Executor.allocate_boundary and Buffer.wrap"))

    @classmethod
    def _made(cls, memory: Any, executor: Any, pool: str, class_index: int = 0) -> Buffer:
        """A buffer over a Storage of one axis."""
        made = cls.__new__(cls)
        made._storage, made._aval = memory, memory.aval
        made._executor, made._pool, made._class_index = executor, pool, class_index
        made._handle = next(handles)
        made._end = "it was freed"
        return made

    @staticmethod
    def wrap(array: Any) -> Buffer:
        """A buffer over the memory of an array, without a copy: ops read and write the array itself, which the buffer keeps alive.

        Takes NumPy arrays and anything with DLPack on the CPU, of any shape, C-contiguous and aligned; read-only ones cannot be written by
        ops either. Raises ArgumentError for another layout, DTypeError for another element type.
        """
        found = as_array(array, "Buffer.wrap")
        return Buffer._over(found, found.flags.writeable)

    @staticmethod
    def _over(found: np.ndarray, writable: bool) -> Buffer:
        if not storage.borrowable(found) or found.size == 0:
            raise located(ArgumentError("Buffer.wrap takes a C-contiguous, aligned array of native byte order with at least one element"))
        of = extent(element_type(found.dtype, "Buffer.wrap"), found.size)
        return Buffer._made(storage.wrapping(of, found, writable), None, "external")

    # --- what it is ----------------------------------------------------------------------------------------------------

    @property
    def handle(self) -> int:
        """A number that no other executor or buffer of this process has."""
        return self._handle

    @property
    def executor(self) -> Any:
        """The executor that owns it; None for a wrapped array."""
        return self._executor

    @property
    def size(self) -> int:
        """Elements."""
        return self._aval.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type, a NumPy dtype."""
        return self._aval.dtype.np

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._aval.nbytes

    @property
    def pool(self) -> str:
        """Where the memory is: "boundary", a page of the executor's pool; "linear", a span of its own; "external", a wrapped array's."""
        return self._pool

    @property
    def is_boundary(self) -> bool:
        """Whether the memory is a page of the executor's pool."""
        return self._pool == "boundary"

    @property
    def is_linear(self) -> bool:
        """Whether the memory is a span of its own in the linear pool."""
        return self._pool == "linear"

    @property
    def class_index(self) -> int:
        """The class of a boundary buffer's page, from 0 to 95; 0 for others."""
        return self._class_index

    @property
    def ptr(self) -> int:
        """The address of the first element."""
        return self._memory().data

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        state = f"{self._pool}{f', class {self._class_index}' if self.is_boundary else ''}" if self._storage is not None else self._end
        return f"<Buffer {self._handle}: {self.size} x {self._aval.dtype}, {state}>"

    def _require_live(self) -> None:
        """Raises FreedBufferError."""
        if self._storage is None:
            raise located(FreedBufferError(f"buffer {self._handle} of {self.size} {self._aval.dtype} cannot be used: {self._end}"))

    def _memory(self) -> Any:
        """The Storage. Raises FreedBufferError."""
        self._require_live()
        return self._storage

    # --- contents ------------------------------------------------------------------------------------------------------

    def to_numpy(self) -> np.ndarray:
        """The memory as an array of shape ``(size,)``: no copy, and what is written to one is seen in the other."""
        return storage.view(self._memory())

    def from_numpy(self, array: Any) -> None:
        """Copies an array of ``size`` elements, of any shape and layout, in C order. Elements are cast within a kind (float64 to float32).

        Raises ShapeError for another number of elements, DTypeError where a cast would lose the kind.
        """
        source = as_array(array, "from_numpy")
        self._require_writable("from_numpy")
        if source.size != self.size:
            raise located(ShapeError(f"from_numpy: an array of {source.size} elements for a buffer of {self.size}"))
        if not np.can_cast(source.dtype, self.dtype, "same_kind"):
            raise located(DTypeError(f"from_numpy: {source.dtype} is not cast to {self._aval.dtype}: use astype"))
        np.copyto(self._overwritable("from_numpy").reshape(source.shape), source, casting="same_kind")

    def to_bytes(self) -> bytes:
        """A copy of the memory's bytes."""
        return self.to_numpy().tobytes()

    def from_bytes(self, data: Any) -> None:
        """Copies ``nbytes`` bytes from anything with the buffer protocol. Raises ArgumentError for anything else, ShapeError for another length."""
        try:
            source = np.frombuffer(data, np.uint8)
        except (TypeError, ValueError, BufferError) as e:
            raise located(ArgumentError(f"from_bytes: a {type(data).__name__} cannot be read as bytes: {e}")) from None
        if source.size != self.nbytes:
            raise located(ShapeError(f"from_bytes: {source.size} bytes for a buffer of {self.nbytes}"))
        np.copyto(self._overwritable("from_bytes").view(np.uint8), source)

    def fill(self, value: Any) -> None:
        """Sets every element. Raises ArgumentError for what is no number, DTypeError for one that the element type cannot hold."""
        number = scalar(value, self._aval.dtype, "fill", "value")
        self._overwritable("fill").fill(number)

    def copy_from(self, source: Buffer) -> None:
        """Copies the contents of a buffer of the same size and type. Raises ArgumentError, ShapeError, DTypeError."""
        if not isinstance(source, Buffer):
            raise located(ArgumentError(f"copy_from takes a Buffer, not a {type(source).__name__}"))
        if source._aval is not self._aval:
            error = DTypeError if source._aval.dtype is not self._aval.dtype else ShapeError
            raise located(error(f"copy_from: {source._aval} for a buffer of {self._aval}"))
        elements = source.to_numpy()
        np.copyto(self._overwritable("copy_from"), elements)

    def _writable(self, what: str) -> np.ndarray:
        """The memory, to be written to in parts. Raises ArgumentError for that of a read-only array."""
        view = self.to_numpy()
        if not view.flags.writeable:
            raise located(ArgumentError(f"{what}: buffer {self._handle} wraps a read-only array"))
        return view

    def _overwritable(self, what: str) -> np.ndarray:
        """The memory, all of which is to be written. Raises as :meth:`_writable`."""
        return self._writable(what)

    def _require_writable(self, what: str) -> None:
        """Raises as :meth:`_writable`."""
        self._writable(what)

    # --- as an argument of an op on a device ---------------------------------------------------------------------------

    def _resident(self, runtime: Runtime) -> Any:
        """The elements on the device: a copy."""
        there = runtime.put(self._memory())
        there.wait()  # the memory may be written to when the op has returned
        return there

    def _room(self, of: Aval, runtime: Runtime) -> Any:
        """A value of a type for a program that does not read it."""
        return runtime.unwritten(of)

    def _take(self, result: Any, runtime: Runtime) -> None:
        """Makes a result the first elements."""
        self.to_numpy()[: result.aval.size] = storage.view(on_host(result)).reshape(-1)

    # --- its end -------------------------------------------------------------------------------------------------------

    def free(self) -> None:
        """Gives the memory back, once no array views it any more. Freeing twice is allowed."""
        self._storage = None

    def _finish(self) -> None:
        """Frees because the executor ends."""
        if self._storage is not None:
            self._storage, self._end = None, "its executor has ended"

    def __reduce__(self) -> Any:
        """Raises ArgumentError: a copy of the object would be a second owner of the memory, which neither ``free`` nor the executor's end reaches."""
        raise located(ArgumentError("a buffer is neither copied nor pickled: copy_from and to_bytes copy what it holds"))

    # --- protocols -----------------------------------------------------------------------------------------------------

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.to_numpy().__array_interface__

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise AttributeError("the memory of this buffer is the CPU's: it has no __cuda_array_interface__")

    def __dlpack__(self, **options: Any) -> Any:
        """A DLPack capsule over the memory, as ``numpy.ndarray.__dlpack__`` makes it; it keeps the memory alive."""
        return capsule(self.to_numpy(), **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # kDLCPU

    def __buffer__(self, flags: int) -> memoryview:
        return self.to_numpy().data


register_buffer_class(Buffer)
