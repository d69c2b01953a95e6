"""Executors by handle."""

from __future__ import annotations

from hologram.sdk.executor import Executor
from hologram_ffi.handles import buffers, end, executors

__all__ = [
    "executor_allocate_boundary_buffer", "executor_allocate_buffer", "executor_cleanup", "new_executor", "new_executor_auto",
    "new_executor_with_backend",
]  # fmt: skip


def new_executor() -> int:
    """Creates an executor on the CPU: its handle.

    >>> executor = hologram_ffi.new_executor()
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return new_executor_with_backend("cpu")


def new_executor_with_backend(name: str) -> int:
    """Creates an executor on a backend, ``cpu``, ``cuda``, ``metal``, ``opencl`` or ``auto``: its handle.

    Raises BackendNameError for another name, DeviceError for a backend that is not there.

    >>> executor = hologram_ffi.new_executor_with_backend("cpu")
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return executors.add(Executor(name))


def new_executor_auto() -> int:
    """Creates an executor on the first backend that is there, Metal, CUDA, a GPU with OpenCL, the CPU: its handle.

    >>> executor = hologram_ffi.new_executor_auto()
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return new_executor_with_backend("auto")


def executor_cleanup(executor: int) -> None:
    """Ends an executor. Its handle and those of its buffers are released. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> hologram_ffi.executor_cleanup(executor)
    """
    end(executors.release(executor))


def executor_allocate_buffer(executor: int, length: int) -> int:
    """Allocates a buffer of ``length`` float32 elements, all 0, in the linear pool: its handle.

    Raises HandleError, ShapeError for a length below 1, OutOfMemory.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_to_vec(executor, buffer)
    '[0.0, 0.0, 0.0, 0.0]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return buffers.add(executors.get(executor).allocate(length))


def executor_allocate_boundary_buffer(executor: int, class_index: int, width: int, height: int) -> int:
    """Allocates a buffer of ``width * height`` bytes as float32 elements, all 0, in the page of a class: its handle.

    ``class_index`` from 0 to 95, ``width`` from 1 to 48, ``height`` from 1 to 256; the bytes are whole elements. Raises HandleError, ShapeError
    beyond these bounds, OutOfMemory while the page is in use.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_boundary_buffer(executor, 7, 4, 2)
    >>> hologram_ffi.buffer_length(buffer), hologram_ffi.buffer_class_index(buffer)
    (2, 7)
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return buffers.add(executors.get(executor).allocate_boundary(class_index, width, height))
