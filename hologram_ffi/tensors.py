"""Tensors over buffers by handle. Shapes and strides are JSON lists, strides and offsets count elements."""

from __future__ import annotations

import ctypes
import json
from typing import Any

import numpy as np

from hologram.errors import ArgumentError, DeviceError, ShapeError
from hologram.sdk.buffer import Buffer
from hologram.sdk.strided import StridedTensor, broadcast_shapes
from hologram.support.user_lines import located
from hologram_ffi.handles import buffers, executors, integers, tensors

__all__ = [
    "tensor_broadcast_shapes", "tensor_buffer", "tensor_cleanup", "tensor_contiguous", "tensor_dlpack_device_id", "tensor_dlpack_device_type",
    "tensor_from_buffer", "tensor_from_buffer_with_strides", "tensor_from_dlpack_capsule", "tensor_is_broadcast_compatible_with",
    "tensor_is_contiguous", "tensor_matmul", "tensor_narrow", "tensor_ndim", "tensor_numel", "tensor_offset", "tensor_permute",
    "tensor_reshape", "tensor_select", "tensor_shape", "tensor_slice", "tensor_strides", "tensor_to_dlpack", "tensor_transpose",
    "tensor_view_1d",
]  # fmt: skip

DLPACK_CPU = 1  # kDLCPU
_is_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))


def tensor_from_buffer(buffer: int, shape: str) -> int:
    """Tensor over the first elements of a buffer, in C order: its handle. ``shape`` is a JSON list.

    Raises HandleError, ArgumentError for another text, ShapeError where the buffer is too small.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> hologram_ffi.tensor_shape(tensor)
    '[2, 2]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return tensors.add(StridedTensor(buffers.get(buffer), integers(shape, "shape")))


def tensor_from_buffer_with_strides(buffer: int, shape: str, strides: str) -> int:
    """Tensor over a buffer with strides in elements: its handle. ``shape`` and ``strides`` are JSON lists.

    Raises HandleError, ArgumentError for another text, ShapeError where elements would lie outside of the buffer.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer_with_strides(buffer, "[2]", "[2]")
    >>> hologram_ffi.tensor_is_contiguous(tensor)
    False
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return tensors.add(StridedTensor(buffers.get(buffer), integers(shape, "shape"), integers(strides, "strides")))


# --- what a tensor is ---------------------------------------------------------------------------------------------------------


def tensor_shape(tensor: int) -> str:
    """Shape of a tensor, a JSON list. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> hologram_ffi.tensor_shape(tensor)
    '[2, 2]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return json.dumps(tensors.get(tensor).shape)


def tensor_strides(tensor: int) -> str:
    """Strides of a tensor in elements, a JSON list. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> hologram_ffi.tensor_strides(tensor)
    '[2, 1]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return json.dumps(tensors.get(tensor).strides)


def tensor_offset(tensor: int) -> int:
    """Number of elements in the buffer before the tensor's first one. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> hologram_ffi.tensor_offset(tensor)
    0
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return tensors.get(tensor).offset


def tensor_ndim(tensor: int) -> int:
    """Number of axes. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> hologram_ffi.tensor_ndim(tensor)
    2
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return tensors.get(tensor).ndim


def tensor_numel(tensor: int) -> int:
    """Number of elements. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> hologram_ffi.tensor_numel(tensor)
    4
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return tensors.get(tensor).numel


def tensor_is_contiguous(tensor: int) -> bool:
    """Whether the elements follow each other in C order. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> hologram_ffi.tensor_is_contiguous(tensor)
    True
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return tensors.get(tensor).is_contiguous


def tensor_buffer(tensor: int) -> int:
    """Handle of the buffer below a tensor. The caller releases that of a buffer which was made for the tensor.

    Raises HandleError and FreedBufferError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> hologram_ffi.tensor_buffer(tensor) == buffer
    True
    >>> hologram_ffi.executor_cleanup(executor)
    """
    buffer = tensors.get(tensor).buffer
    buffer._memory()  # a freed one has no handle any more
    return buffers.add(buffer)


def tensor_cleanup(tensor: int) -> None:
    """Releases the handle. The buffer stays, unless it was made for the tensor and no one asked for it. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> hologram_ffi.tensor_cleanup(tensor)
    >>> hologram_ffi.executor_cleanup(executor)
    """
    tensors.release(tensor)


# --- views --------------------------------------------------------------------------------------------------------------------


def tensor_transpose(tensor: int) -> int:
    """Transpose of a matrix: the handle of a view. Raises HandleError, ShapeError for other tensors.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> hologram_ffi.tensor_strides(hologram_ffi.tensor_transpose(tensor))
    '[1, 2]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return tensors.add(tensors.get(tensor).transpose())


def tensor_permute(tensor: int, order: str) -> int:
    """Permutes the axes: axis ``i`` of the view, whose handle this gives, is axis ``order[i]``, a JSON list.

    Raises HandleError, ShapeError where ``order`` does not name each axis once.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> hologram_ffi.tensor_strides(hologram_ffi.tensor_permute(tensor, "[1, 0]"))
    '[1, 2]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return tensors.add(tensors.get(tensor).permute(integers(order, "order")))


def tensor_select(tensor: int, dim: int, index: int) -> int:
    """The elements at one index of an axis, which vanishes: the handle of a view.

    Raises HandleError, AxisOutOfRange, IndexOutOfRange.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> hologram_ffi.tensor_shape(hologram_ffi.tensor_select(tensor, 0, 1))
    '[2]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return tensors.add(tensors.get(tensor).select(dim, index))


def tensor_narrow(tensor: int, dim: int, start: int, length: int) -> int:
    """``length`` elements of an axis from ``start`` on: the handle of a view. Raises HandleError, AxisOutOfRange, IndexOutOfRange.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> hologram_ffi.tensor_shape(hologram_ffi.tensor_narrow(tensor, 1, 0, 1))
    '[2, 1]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return tensors.add(tensors.get(tensor).narrow(dim, start, length))


def tensor_slice(tensor: int, dim: int, start: int, end: int, step: int = 1) -> int:
    """The elements ``start, start + step, …`` of an axis before ``end``: the handle of a view.

    Raises HandleError, AxisOutOfRange, IndexOutOfRange.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> hologram_ffi.tensor_shape(hologram_ffi.tensor_slice(tensor, 1, 0, 2, 2))
    '[2, 1]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return tensors.add(tensors.get(tensor).slice(dim, start, end, step))


def tensor_view_1d(tensor: int) -> int:
    """All elements on one axis: the handle of a view. Raises HandleError, ShapeError where they do not follow each other.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> hologram_ffi.tensor_shape(hologram_ffi.tensor_view_1d(tensor))
    '[4]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return tensors.add(tensors.get(tensor).view_1d())


# --- what makes elements ------------------------------------------------------------------------------------------------------


def tensor_contiguous(executor: int, tensor: int) -> int:
    """Tensor whose elements follow each other: over the same buffer if they do, else a copy in a new one. Its handle. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> turned = hologram_ffi.tensor_contiguous(executor, hologram_ffi.tensor_transpose(tensor))
    >>> hologram_ffi.buffer_to_vec(executor, hologram_ffi.tensor_buffer(turned))
    '[1.0, 3.0, 2.0, 4.0]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    found = tensors.get(tensor)
    whole = found.contiguous(executors.get(executor))
    return tensors.add(StridedTensor(whole.buffer, whole.shape, None, whole.offset))


def tensor_reshape(executor: int, tensor: int, shape: str) -> int:
    """The elements in C order in another shape, copied to a new buffer only where they do not follow each other: a handle.

    Raises HandleError, ShapeError where the numbers of elements differ.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> hologram_ffi.tensor_shape(hologram_ffi.tensor_reshape(executor, tensor, "[4, 1]"))
    '[4, 1]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return tensors.add(tensors.get(tensor).reshape(executors.get(executor), integers(shape, "shape")))


def tensor_matmul(executor: int, a: int, b: int) -> int:
    """Product of two matrices, in a new buffer: the handle of a tensor.

    Raises HandleError, ShapeError where the shapes do not fit, DTypeError for different types.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> product = hologram_ffi.tensor_matmul(executor, tensor, tensor)
    >>> hologram_ffi.buffer_to_vec(executor, hologram_ffi.tensor_buffer(product))
    '[7.0, 10.0, 15.0, 22.0]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    return tensors.add(tensors.get(a).matmul(executors.get(executor), tensors.get(b)))


# --- broadcasting -------------------------------------------------------------------------------------------------------------


def tensor_is_broadcast_compatible_with(a: int, b: int) -> bool:
    """Whether two tensors' shapes broadcast. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> hologram_ffi.tensor_is_broadcast_compatible_with(tensor, hologram_ffi.tensor_select(tensor, 0, 0))
    True
    >>> hologram_ffi.executor_cleanup(executor)
    """
    try:
        broadcast_shapes(tensors.get(a).shape, tensors.get(b).shape)
    except ShapeError:
        return False
    return True


def tensor_broadcast_shapes(a: str, b: str) -> str:
    """Common shape of two shapes, JSON lists. Raises ArgumentError for other texts, ShapeError where there is none.

    >>> hologram_ffi.tensor_broadcast_shapes("[2, 1]", "[3]")
    '[2, 3]'
    """
    return json.dumps(broadcast_shapes(integers(a, "a shape"), integers(b, "a shape")))


# --- DLPack -------------------------------------------------------------------------------------------------------------------


class _Capsule:
    """A capsule as an object of the DLPack protocol."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return DLPACK_CPU, 0


def tensor_to_dlpack(executor: int, tensor: int) -> Any:
    """DLPack capsule over the memory of a tensor, which it keeps alive: no copy. Raises HandleError, ArgumentError for read-only memory.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> capsule = hologram_ffi.tensor_to_dlpack(executor, tensor)
    >>> hologram_ffi.tensor_shape(hologram_ffi.tensor_from_dlpack_capsule(executor, capsule))
    '[2, 2]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    executors.get(executor)
    try:
        return tensors.get(tensor).to_numpy().__dlpack__()
    except BufferError as e:
        raise located(ArgumentError(f"tensor_to_dlpack: read-only memory cannot be handed out: {e}")) from None


def tensor_from_dlpack_capsule(executor: int, capsule: Any) -> int:
    """Tensor over the memory of a DLPack capsule, C-contiguous and on the CPU, which is used up: its handle, no copy.

    Raises HandleError, DeviceError for memory of other devices, ArgumentError for what is no fresh capsule.

    >>> executor = hologram_ffi.new_executor()
    >>> buffer = hologram_ffi.executor_allocate_buffer(executor, 4)
    >>> hologram_ffi.buffer_copy_from_slice(executor, buffer, "[1, 2, 3, 4]")
    >>> tensor = hologram_ffi.tensor_from_buffer(buffer, "[2, 2]")
    >>> capsule = hologram_ffi.tensor_to_dlpack(executor, tensor)
    >>> hologram_ffi.tensor_shape(hologram_ffi.tensor_from_dlpack_capsule(executor, capsule))
    '[2, 2]'
    >>> hologram_ffi.executor_cleanup(executor)
    """
    executors.get(executor)
    legacy = bool(_is_capsule(capsule, b"dltensor"))  # of a version that cannot say that its memory is read-only
    try:
        array = np.from_dlpack(_Capsule(capsule))
    except (BufferError, RuntimeError) as e:
        raise located(DeviceError(f"tensor_from_dlpack_capsule: {e}")) from None
    except (TypeError, ValueError) as e:
        raise located(ArgumentError(f"tensor_from_dlpack_capsule takes a DLPack capsule that was not used: {e}")) from None
    return tensors.add(StridedTensor(Buffer._over(array, legacy or array.flags.writeable), array.shape))


def tensor_dlpack_device_type(executor: int) -> int:
    """DLPack number of the kind of device that buffers lie on: 1, the CPU. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> hologram_ffi.tensor_dlpack_device_type(executor)
    1
    >>> hologram_ffi.executor_cleanup(executor)
    """
    executors.get(executor)
    return DLPACK_CPU


def tensor_dlpack_device_id(executor: int) -> int:
    """Number of the device that buffers lie on: 0. Raises HandleError.

    >>> executor = hologram_ffi.new_executor()
    >>> hologram_ffi.tensor_dlpack_device_id(executor)
    0
    >>> hologram_ffi.executor_cleanup(executor)
    """
    executors.get(executor)
    return 0
