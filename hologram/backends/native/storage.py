"""Memory of arrays: a :class:`Storage` holds the elements of one array, in C order and native byte order, aligned to 64 bytes.

Storages of Tensors are immutable once they are handed out, those of the SDK's buffers are not. Native ones come from a caching allocator
and export their bytes through the buffer protocol; where native code cannot read the interpreter's objects, plain Python ones take their
place.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.backends import timing
from hologram.backends.llvm.toolchain.signal_free import free_ended
from hologram.backends.native.module import why_not_native
from hologram.ir.aval import Aval, aval
from hologram.ir.node import const_attrs
from hologram.ir.storage import read_storages_by

if why_not_native() is None:
    from hologram.backends.native import native_storage as _made
else:
    from hologram.backends.native import python_storage as _made  # type: ignore[no-redef]

Storage: Any = _made.Storage
statistics = _made.statistics
reset_peak = _made.reset_peak
raise_peak = _made.raise_peak
SMALL_BYTES = 1 << 14  # bytes of an array that is copied sooner than anything is noted, or counted, to spare it
pick = _made.pick  # an element of an array as a Storage, or whether a key needs no program
give = _made.give  # (Tensor): its Storage, writable from then on, where nothing else holds that and its memory is its own; else None
host_view = _made.view  # as view, of a Storage
small_copy = _made.small_copy  # (aval, array): as copied, of a small array of native byte order
of_index = _made.of_index  # (integer): a Storage of one int64
number = _made.number  # the one element of a Storage as a Python number, None for what is none


def view(storage: Any) -> np.ndarray:
    """The array in ``storage``, without a copy; of one on a device the copy on the host. Raises DeviceError where the device failed."""
    return _made.view(storage if type(storage) is Storage else storage.on_host())


read_storages_by(view)


def empty(of: Aval) -> Any:
    """A Storage of unwritten memory, for native code to write. Raises OutOfMemory."""
    return _made.seal(_made.new(of))


def mutable(of: Aval) -> Any:
    """A Storage of unwritten memory that Python may write for as long as it lives: the SDK's buffers. Raises OutOfMemory."""
    return _made.new(of)


def wrapping(of: Aval, array: np.ndarray, writable: bool) -> Any:
    """A Storage over the memory of a :func:`borrowable` array of as many elements, which it keeps alive; writable where ``writable``."""
    return _made.borrow_memory(of, array, writable)


def over(of: Aval, address: int, owner: object, writable: bool) -> Any:
    """A Storage over memory at an address, aligned to its elements, that ``owner`` keeps alive."""
    return _made.over_memory(of, address, owner, writable)


def copy_of(array: Any) -> Any:
    """A Storage with the elements of an array of any layout and byte order. Raises TypeError for an unknown dtype, and OutOfMemory."""
    array = np.asarray(array)
    return copied(aval(dtypes.of(array.dtype), array.shape), array)


def copied(of: Aval, array: np.ndarray) -> Any:
    """:func:`copy_of` an array that is known to have this type and shape."""
    if array.nbytes <= SMALL_BYTES and array.dtype.isnative:
        return _made.small_copy(of, array)
    start = time.perf_counter_ns() if timing.logs else 0
    made = _made.new(of)
    np.copyto(view(made), array)
    if start:
        timing.copied("copy of an array", array.nbytes, start)
    return _made.seal(made)


def of_number(of: Aval, value: Any) -> Any:
    """A Storage of one element, the Python number ``value``, which its type holds, or which is rounded or truncated to it."""
    made = _made.of_number(of, value)
    return copy_of(np.frombuffer(const_attrs(value, of.dtype)[1], of.dtype.np).reshape(of.shape)) if made is None else made


def of_bits(of: Aval, bits: bytes) -> Any:
    """A Storage of the bytes of its elements."""
    made = _made.new(of)
    view(made)[...] = np.frombuffer(bits, of.dtype.np).reshape(of.shape)
    return _made.seal(made)


def filled(of: Aval, fill: Callable[[np.ndarray], None]) -> Any:
    """A Storage of memory that ``fill`` writes. Raises OutOfMemory."""
    made = _made.new(of)
    fill(view(made))
    return _made.seal(made)


def array_in_fresh_memory(of: Aval, strides: tuple[int, ...] | None = None) -> np.ndarray:
    """A writable array of unwritten memory from the allocator, to which it goes back with the last view of it; ``strides``, in bytes, are those of
    a permutation of C order, which None is. Raises OutOfMemory."""
    return np.ndarray(of.shape, of.dtype.np, _made.new(of), 0, strides)


def borrowable(array: np.ndarray) -> bool:
    """Whether the array's memory can serve as it is: C-contiguous, aligned, native byte order."""
    return array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative


def borrow(array: np.ndarray) -> Any:
    """A Storage over the memory of a :func:`borrowable` array, which it keeps alive."""
    if not borrowable(array):
        raise ValueError("only a C-contiguous aligned array of native byte order can be borrowed")
    return _made.borrow_memory(aval(dtypes.of(array.dtype), array.shape), array)


def clear_caches() -> None:
    """Gives memory that no array, no call and no program uses back to the system."""
    from hologram.backends.native.calls import trim_contexts

    _made.trim()
    trim_contexts()
    free_ended()
