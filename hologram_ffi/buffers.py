"""Buffers by handle. Functions that take an executor check that it has not ended."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from hologram.errors import ArgumentError, DTypeError
from hologram.sdk import ops
from hologram.sdk.buffer import Buffer
from hologram.support.user_lines import located
from hologram_ffi.handles import buffers, executors, parsed

__all__ = [
    "buffer_as_mut_ptr", "buffer_as_ptr", "buffer_canonicalize_all", "buffer_class_index", "buffer_cleanup", "buffer_copy",
    "buffer_copy_from_bytes", "buffer_copy_from_canonical_slice", "buffer_copy_from_slice", "buffer_copy_to_slice", "buffer_element_size",
    "buffer_fill", "buffer_is_boundary", "buffer_is_empty", "buffer_is_linear", "buffer_length", "buffer_pool", "buffer_size_bytes",
    "buffer_to_bytes", "buffer_to_vec", "buffer_verify_canonical",
]  # fmt: skip

CANONICAL = np.uint8(0xFE)  # the bits that a canonical byte may have


def _buffer(executor: int, buffer: int) -> Buffer:
    executors.get(executor)
    return buffers.get(buffer)


# --- what a buffer is ---------------------------------------------------------------------------------------------------------


def buffer_length(buffer: int) -> int:
    """Number of elements. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_length(buffer)
    4
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return buffers.get(buffer).size


def buffer_is_empty(buffer: int) -> bool:
    """Whether there are no elements, which no buffer has. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_is_empty(buffer)
    False
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return buffer_length(buffer) == 0


def buffer_is_linear(buffer: int) -> bool:
    """Whether the buffer is in the linear pool. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_is_linear(buffer)
    True
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return buffers.get(buffer).is_linear


def buffer_is_boundary(buffer: int) -> bool:
    """Whether the buffer is a page of the 96-class pool. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_is_boundary(buffer)
    False
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return buffers.get(buffer).is_boundary


def buffer_pool(buffer: int) -> str:
    """Pool that the buffer is in: "Linear", "Boundary", or "External" for the memory of another library's array. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_pool(buffer)
    'Linear'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return buffers.get(buffer).pool.capitalize()


def buffer_element_size(buffer: int) -> int:
    """Bytes of an element. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_element_size(buffer)
    4
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return buffers.get(buffer).dtype.itemsize


def buffer_size_bytes(buffer: int) -> int:
    """Bytes of all elements. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_size_bytes(buffer)
    16
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return buffers.get(buffer).nbytes


def buffer_class_index(buffer: int) -> int:
    """Class of a boundary buffer's page, from 0 to 95; 0 for other buffers. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_class_index(buffer)
    0
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return buffers.get(buffer).class_index


def buffer_cleanup(buffer: int) -> None:
    """Frees a buffer and releases its handle. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_cleanup(buffer)
    >>> hologram_ffi.executor_cleanup(executor)
    """
    buffers.release(buffer).free()


def buffer_as_ptr(executor: int, buffer: int) -> int:
    """Address of the first element. Raises HandleError and FreedBufferError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_as_ptr(executor, buffer) > 0
    True
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return _buffer(executor, buffer).ptr


def buffer_as_mut_ptr(executor: int, buffer: int) -> int:
    """Address of the first element, for writing. Raises HandleError and FreedBufferError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_as_mut_ptr(executor, buffer) > 0
    True
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return _buffer(executor, buffer).ptr


# --- contents -----------------------------------------------------------------------------------------------------------------


def buffer_to_bytes(executor: int, buffer: int) -> bytes:
    r"""Copy of the bytes. Raises HandleError and FreedBufferError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> hologram_ffi.buffer_to_bytes(executor, buffer)[:4]
    b'\x00\x00\x80?'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return _buffer(executor, buffer).to_bytes()


def buffer_copy_from_bytes(executor: int, buffer: int, data: Any) -> None:
    """Copies as many bytes as the buffer has from anything with the buffer protocol.

    Raises HandleError, ShapeError for another length, ArgumentError for other objects.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_bytes(executor, buffer, np.float32([5, 6, 7, 8]))
    >>> hologram_ffi.buffer_to_vec(executor, buffer)
    '[5.0, 6.0, 7.0, 8.0]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    _buffer(executor, buffer).from_bytes(data)


def buffer_to_vec(executor: int, buffer: int) -> str:
    """The elements as a JSON list. Also called ``buffer_copy_to_slice``.

    Beyond JSON, it may hold ``NaN``, ``Infinity`` and ``-Infinity``. Raises HandleError, DTypeError for complex numbers.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> hologram_ffi.buffer_to_vec(executor, buffer)
    '[1.0, 2.0, 3.0, 4.0]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    b = _buffer(executor, buffer)
    if b.dtype.kind == "c":
        raise located(DTypeError(f"buffer_to_vec: {b.dtype} has no form in JSON: use buffer_to_bytes"))
    return json.dumps(b.to_numpy().tolist())


buffer_copy_to_slice = buffer_to_vec


def buffer_copy_from_slice(executor: int, buffer: int, data: str) -> None:
    """Sets all elements from a JSON list of numbers, of integers for buffers of these; floats beyond the type are infinite.

    Raises HandleError, ArgumentError for another text, ShapeError for another length.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2.5, 3, 4]")
    >>> hologram_ffi.buffer_to_vec(executor, buffer)
    '[1.0, 2.5, 3.0, 4.0]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    b = _buffer(executor, buffer)
    b.from_numpy(_numbers(data, b))


def buffer_fill(executor: int, buffer: int, value: float, n: int | None = None) -> None:
    """Sets the first ``n`` elements to ``value``, all of them without ``n``. Raises HandleError, ShapeError for more than there are.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_fill(executor, buffer, 7.0, 2)
    >>> hologram_ffi.buffer_to_vec(executor, buffer)
    '[7.0, 7.0, 0.0, 0.0]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    ops.fill(executors.get(executor), buffers.get(buffer), value, n)


def buffer_copy(executor: int, source: int, target: int, n: int | None = None) -> None:
    """Copies the first ``n`` elements of one buffer to another, all of them without ``n``.

    Raises HandleError, ShapeError for more than there are, DTypeError for different types.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> target = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy(executor, buffer, target, 2)
    >>> hologram_ffi.buffer_to_vec(executor, target)
    '[1.0, 2.0, 0.0, 0.0]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    ops.memcpy(executors.get(executor), buffers.get(source), buffers.get(target), n)


def _numbers(text: str, b: Buffer) -> np.ndarray:
    found = parsed(text, "data")
    try:
        if set(map(type, found)) <= _ELEMENTS.get(b.dtype.kind, {int, float}):
            with np.errstate(over="ignore"):
                return np.array(found, b.dtype)
    except OverflowError:
        pass
    raise located(ArgumentError(f"data is a JSON list of numbers of {b.dtype}, not {text!r:.80}"))


_ELEMENTS: dict[str, set[type]] = {"b": {bool}, "i": {int}, "u": {int}}  # what NumPy would read from texts, null and fractions is a guess


# --- canonical bytes ----------------------------------------------------------------------------------------------------------


def buffer_copy_from_canonical_slice(executor: int, buffer: int, data: str) -> None:
    """Sets all elements as :func:`buffer_copy_from_slice` does; then clears the lowest bit of every byte.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_canonical_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> hologram_ffi.buffer_verify_canonical(executor, buffer)
    True
    >>> hologram_ffi.executor_cleanup(executor)
    """
    buffer_copy_from_slice(executor, buffer, data)
    buffer_canonicalize_all(executor, buffer)


def buffer_canonicalize_all(executor: int, buffer: int) -> None:
    """Clears the lowest bit of every byte. Raises HandleError, ArgumentError for the memory of a read-only array.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> hologram_ffi.buffer_canonicalize_all(executor, buffer)
    >>> hologram_ffi.buffer_verify_canonical(executor, buffer)
    True
    >>> hologram_ffi.executor_cleanup(executor)
    """
    view = _buffer(executor, buffer)._writable("buffer_canonicalize_all").view(np.uint8)
    np.bitwise_and(view, CANONICAL, out=view)


def buffer_verify_canonical(executor: int, buffer: int) -> bool:
    """Whether the lowest bit of every byte is 0. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_verify_canonical(executor, buffer)
    True
    >>> hologram_ffi.executor_cleanup(executor)
    """
    view = _buffer(executor, buffer).to_numpy().view(np.uint8)
    return not np.any(view & ~CANONICAL)
