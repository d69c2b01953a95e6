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
    """A tensor over the first elements of a buffer, in C order. Raises ShapeError where the buffer is too small."""
    return tensors.add(StridedTensor(buffers.get(buffer), integers(shape, "shape")))


def tensor_from_buffer_with_strides(buffer: int, shape: str, strides: str) -> int:
    """A tensor over a buffer with strides in elements. Raises ShapeError where elements would lie outside of the buffer."""
    return tensors.add(StridedTensor(buffers.get(buffer), integers(shape, "shape"), integers(strides, "strides")))


# --- what a tensor is ---------------------------------------------------------------------------------------------------------


def tensor_shape(tensor: int) -> str:
    return json.dumps(tensors.get(tensor).shape)


def tensor_strides(tensor: int) -> str:
    return json.dumps(tensors.get(tensor).strides)


def tensor_offset(tensor: int) -> int:
    """Elements before the first."""
    return tensors.get(tensor).offset


def tensor_ndim(tensor: int) -> int:
    return tensors.get(tensor).ndim


def tensor_numel(tensor: int) -> int:
    return tensors.get(tensor).numel


def tensor_is_contiguous(tensor: int) -> bool:
    """Whether the elements follow each other in C order."""
    return tensors.get(tensor).is_contiguous


def tensor_buffer(tensor: int) -> int:
    """The handle of the buffer below. The caller releases that of a buffer which was made for the tensor."""
    buffer = tensors.get(tensor).buffer
    buffer._memory()  # a freed one has no handle any more
    return buffers.add(buffer)


def tensor_cleanup(tensor: int) -> None:
    """Releases the handle. The buffer stays, unless it was made for the tensor and no one asked for it."""
    tensors.release(tensor)


# --- views --------------------------------------------------------------------------------------------------------------------


def tensor_transpose(tensor: int) -> int:
    """The transpose of a matrix."""
    return tensors.add(tensors.get(tensor).transpose())


def tensor_permute(tensor: int, order: str) -> int:
    """Axis ``i`` of the view is axis ``order[i]``, a JSON list."""
    return tensors.add(tensors.get(tensor).permute(integers(order, "order")))


def tensor_select(tensor: int, dim: int, index: int) -> int:
    """The elements at one index of an axis, which vanishes."""
    return tensors.add(tensors.get(tensor).select(dim, index))


def tensor_narrow(tensor: int, dim: int, start: int, length: int) -> int:
    """``length`` elements of an axis from ``start`` on."""
    return tensors.add(tensors.get(tensor).narrow(dim, start, length))


def tensor_slice(tensor: int, dim: int, start: int, end: int, step: int = 1) -> int:
    """The elements ``start, start + step, …`` of an axis before ``end``."""
    return tensors.add(tensors.get(tensor).slice(dim, start, end, step))


def tensor_view_1d(tensor: int) -> int:
    """All elements on one axis. Raises ShapeError where they do not follow each other."""
    return tensors.add(tensors.get(tensor).view_1d())


# --- what makes elements ------------------------------------------------------------------------------------------------------


def tensor_contiguous(executor: int, tensor: int) -> int:
    """A tensor whose elements follow each other: over the same buffer if they do, else a copy in a new one."""
    found = tensors.get(tensor)
    whole = found.contiguous(executors.get(executor))
    return tensors.add(StridedTensor(whole.buffer, whole.shape, None, whole.offset))


def tensor_reshape(executor: int, tensor: int, shape: str) -> int:
    """The elements in C order in another shape, copied to a new buffer only where they do not follow each other."""
    return tensors.add(tensors.get(tensor).reshape(executors.get(executor), integers(shape, "shape")))


def tensor_matmul(executor: int, a: int, b: int) -> int:
    """The product of two matrices, in a new buffer."""
    return tensors.add(tensors.get(a).matmul(executors.get(executor), tensors.get(b)))


# --- broadcasting -------------------------------------------------------------------------------------------------------------


def tensor_is_broadcast_compatible_with(a: int, b: int) -> bool:
    """Whether the shapes have a common one."""
    try:
        broadcast_shapes(tensors.get(a).shape, tensors.get(b).shape)
    except ShapeError:
        return False
    return True


def tensor_broadcast_shapes(a: str, b: str) -> str:
    """The common shape of two shapes. Raises ShapeError where there is none."""
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
    """A DLPack capsule over the memory, which it keeps alive: no copy."""
    executors.get(executor)
    try:
        return tensors.get(tensor).to_numpy().__dlpack__()
    except BufferError as e:
        raise located(ArgumentError(f"tensor_to_dlpack: read-only memory cannot be handed out: {e}")) from None


def tensor_from_dlpack_capsule(executor: int, capsule: Any) -> int:
    """A tensor over the memory of a DLPack capsule, C-contiguous and on the CPU, which is used up: no copy."""
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
    """The DLPack number of the kind of device that buffers lie on: 1, the CPU."""
    executors.get(executor)
    return DLPACK_CPU


def tensor_dlpack_device_id(executor: int) -> int:
    """The number of the device that buffers lie on: 0."""
    executors.get(executor)
    return 0
