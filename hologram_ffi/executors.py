"""Executors by handle."""

from __future__ import annotations

from hologram.sdk.executor import Executor
from hologram_ffi.handles import buffers, end, executors

__all__ = [
    "executor_allocate_boundary_buffer", "executor_allocate_buffer", "executor_cleanup", "new_executor", "new_executor_auto",
    "new_executor_with_backend",
]  # fmt: skip


def new_executor() -> int:
    """A handle of a new executor on the CPU."""
    return new_executor_with_backend("cpu")


def new_executor_with_backend(name: str) -> int:
    """A handle of a new executor. Raises BackendNameError, and DeviceError for a backend that is not there."""
    return executors.add(Executor(name))


def new_executor_auto() -> int:
    """A handle of a new executor on the first backend that is there: Metal, CUDA, a GPU with OpenCL, the CPU."""
    return new_executor_with_backend("auto")


def executor_cleanup(executor: int) -> None:
    """Ends an executor. Its handle and those of its buffers are released."""
    end(executors.release(executor))


def executor_allocate_buffer(executor: int, length: int) -> int:
    """A handle of a buffer of ``length`` float32 elements, all 0, in the linear pool."""
    return buffers.add(executors.get(executor).allocate(length))


def executor_allocate_boundary_buffer(executor: int, class_index: int, width: int, height: int) -> int:
    """A handle of a buffer of ``width * height`` bytes as float32 elements, all 0, in the page of a class."""
    return buffers.add(executors.get(executor).allocate_boundary(class_index, width, height))
