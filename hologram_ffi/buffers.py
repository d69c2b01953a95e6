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
    """Elements."""
    return buffers.get(buffer).size


def buffer_is_empty(buffer: int) -> bool:
    """Whether there are no elements, which no buffer has."""
    return buffer_length(buffer) == 0


def buffer_is_linear(buffer: int) -> bool:
    """Whether it is in the linear pool."""
    return buffers.get(buffer).is_linear


def buffer_is_boundary(buffer: int) -> bool:
    """Whether it is a page of the 96-class pool."""
    return buffers.get(buffer).is_boundary


def buffer_pool(buffer: int) -> str:
    """Which pool it is in: "Linear", "Boundary", or "External" for the memory of another library's array."""
    return buffers.get(buffer).pool.capitalize()


def buffer_element_size(buffer: int) -> int:
    """Bytes of an element."""
    return buffers.get(buffer).dtype.itemsize


def buffer_size_bytes(buffer: int) -> int:
    """Bytes of all elements."""
    return buffers.get(buffer).nbytes


def buffer_class_index(buffer: int) -> int:
    """The class of a boundary buffer's page, from 0 to 95; 0 for others."""
    return buffers.get(buffer).class_index


def buffer_cleanup(buffer: int) -> None:
    """Frees a buffer and releases its handle."""
    buffers.release(buffer).free()


def buffer_as_ptr(executor: int, buffer: int) -> int:
    """The address of the first element."""
    return _buffer(executor, buffer).ptr


def buffer_as_mut_ptr(executor: int, buffer: int) -> int:
    """The address of the first element, for writing."""
    return _buffer(executor, buffer).ptr


# --- contents -----------------------------------------------------------------------------------------------------------------


def buffer_to_bytes(executor: int, buffer: int) -> bytes:
    """A copy of the bytes."""
    return _buffer(executor, buffer).to_bytes()


def buffer_copy_from_bytes(executor: int, buffer: int, data: Any) -> None:
    """Copies as many bytes as the buffer has from anything with the buffer protocol. Raises ShapeError for another length."""
    _buffer(executor, buffer).from_bytes(data)


def buffer_to_vec(executor: int, buffer: int) -> str:
    """The elements as a JSON list; beyond JSON, it may hold ``NaN``, ``Infinity`` and ``-Infinity``. Raises DTypeError for complex numbers."""
    b = _buffer(executor, buffer)
    if b.dtype.kind == "c":
        raise located(DTypeError(f"buffer_to_vec: {b.dtype} has no form in JSON: use buffer_to_bytes"))
    return json.dumps(b.to_numpy().tolist())


buffer_copy_to_slice = buffer_to_vec


def buffer_copy_from_slice(executor: int, buffer: int, data: str) -> None:
    """Sets all elements from a JSON list of numbers, of integers for buffers of these; floats beyond the type are infinite.

    Raises ArgumentError for another text, ShapeError for another length.
    """
    b = _buffer(executor, buffer)
    b.from_numpy(_numbers(data, b))


def buffer_fill(executor: int, buffer: int, value: float, n: int | None = None) -> None:
    """Sets the first ``n`` elements, all of them without it."""
    ops.fill(executors.get(executor), buffers.get(buffer), value, n)


def buffer_copy(executor: int, source: int, target: int, n: int | None = None) -> None:
    """Copies the first ``n`` elements of one buffer to another, all of them without it."""
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
    """As :func:`buffer_copy_from_slice`; then the lowest bit of every byte is cleared."""
    buffer_copy_from_slice(executor, buffer, data)
    buffer_canonicalize_all(executor, buffer)


def buffer_canonicalize_all(executor: int, buffer: int) -> None:
    """Clears the lowest bit of every byte."""
    view = _buffer(executor, buffer)._writable("buffer_canonicalize_all").view(np.uint8)
    np.bitwise_and(view, CANONICAL, out=view)


def buffer_verify_canonical(executor: int, buffer: int) -> bool:
    """Whether the lowest bit of every byte is 0."""
    view = _buffer(executor, buffer).to_numpy().view(np.uint8)
    return not np.any(view & ~CANONICAL)
