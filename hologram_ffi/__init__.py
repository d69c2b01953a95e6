"""The Hologram SDK by handles: integers for executors, buffers and tensors, JSON texts for lists of numbers.

``import hologram_ffi as hg``. Everything is done by :mod:`hologram.sdk`: handles are looked up, texts read and written. A handle that was
never given out, or whose object was released, raises HandleError; other errors are those of the SDK.
"""

from typing import Any

from hologram import __version__
from hologram_ffi import ops, tensors
from hologram_ffi.buffers import (
    buffer_as_mut_ptr,
    buffer_as_ptr,
    buffer_canonicalize_all,
    buffer_class_index,
    buffer_cleanup,
    buffer_copy,
    buffer_copy_from_bytes,
    buffer_copy_from_canonical_slice,
    buffer_copy_from_slice,
    buffer_copy_to_slice,
    buffer_element_size,
    buffer_fill,
    buffer_is_boundary,
    buffer_is_empty,
    buffer_is_linear,
    buffer_length,
    buffer_pool,
    buffer_size_bytes,
    buffer_to_bytes,
    buffer_to_vec,
    buffer_verify_canonical,
)
from hologram_ffi.executors import (
    executor_allocate_boundary_buffer,
    executor_allocate_buffer,
    executor_cleanup,
    new_executor,
    new_executor_auto,
    new_executor_with_backend,
)
from hologram_ffi.handles import clear_all_registries
from hologram_ffi.tensors import *  # noqa: F403

__all__ = [
    "buffer_as_mut_ptr", "buffer_as_ptr", "buffer_canonicalize_all", "buffer_class_index", "buffer_cleanup", "buffer_copy",
    "buffer_copy_from_bytes", "buffer_copy_from_canonical_slice", "buffer_copy_from_slice", "buffer_copy_to_slice", "buffer_element_size",
    "buffer_fill", "buffer_is_boundary", "buffer_is_empty", "buffer_is_linear", "buffer_length", "buffer_pool", "buffer_size_bytes",
    "buffer_to_bytes", "buffer_to_vec", "buffer_verify_canonical", "clear_all_registries", "executor_allocate_boundary_buffer",
    "executor_allocate_buffer", "executor_cleanup", "get_version", "new_executor", "new_executor_auto", "new_executor_with_backend",
    *tensors.__all__,
]  # fmt: skip


def get_version() -> str:
    """Hologram's version: a text.

    >>> hologram_ffi.get_version() == hg.__version__
    True
    """
    return __version__


def __getattr__(name: str) -> Any:
    function = globals()[name] = ops.function(name)
    return function


def __dir__() -> list[str]:
    return sorted([*__all__, *ops.names()])
