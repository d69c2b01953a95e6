"""Buffers of the SDK from tensors, and tensors from buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from hologram.errors import ArgumentError, DeviceError, DTypeError, ShapeError
from hologram.sdk.buffer import Buffer
from hologram.sdk.executor import Executor
from hologram.support.user_lines import located
from hologram_torch.bridge import interop

__all__ = ["buffer_to_tensor", "create_executor_for_tensor", "match_device", "tensor_to_buffer", "validate_tensor_compatible"]

_BACKENDS = {"cpu": "cpu", "cuda": "cuda", "mps": "metal"}  # torch's types of devices and the backends that compute there


def tensor_to_buffer(executor: Executor, tensor: torch.Tensor, existing_buffer: Buffer | None = None) -> tuple[Buffer, torch.Tensor]:
    """Copies the elements of a CPU tensor in C order to a buffer of ``executor``; returns the buffer, and the tensor as one axis.

    The elements are copied, once: to ``existing_buffer`` where it is given, which must have as many and their type, else to a new one. A buffer
    over a tensor's own memory is ``Buffer.wrap(tensor)``. Raises as :func:`validate_tensor_compatible` does, and ShapeError for a buffer of another
    size.

    >>> with hg.Executor("cpu") as executor:
    ...     buffer, flat = hologram_torch.tensor_to_buffer(executor, torch.ones(2, 2))
    ...     print(buffer.to_numpy(), flat.shape)
    [1. 1. 1. 1.] torch.Size([4])
    """
    validate_tensor_compatible(tensor)
    flat = tensor.contiguous().view(-1)
    array = interop.to_numpy(flat)
    buffer = executor.allocate(flat.numel(), array.dtype) if existing_buffer is None else existing_buffer
    if buffer.size != flat.numel():
        raise located(ShapeError(f"tensor_to_buffer: a buffer of {buffer.size} elements for a tensor of {flat.numel()}"))
    if buffer.dtype != array.dtype:
        raise located(DTypeError(f"tensor_to_buffer: a buffer of {buffer.dtype} for a tensor of {tensor.dtype}"))
    buffer.from_numpy(array)
    return buffer, flat


def buffer_to_tensor(buffer: Buffer, shape: Sequence[int], device: Any = None, requires_grad: bool = False) -> torch.Tensor:
    """The buffer's memory as a tensor of ``shape``, without a copy: writes go both ways, and the memory stays while the tensor lives.

    Raises ShapeError for a shape of another size, DeviceError for a ``device`` other than the CPU.

    >>> with hg.Executor("cpu") as executor:
    ...     hologram_torch.buffer_to_tensor(executor.allocate(4), (2, 2))
    tensor([[0., 0.],
            [0., 0.]])
    """
    if device is not None and torch.device(device).type != "cpu":
        raise located(DeviceError(f"buffer_to_tensor: buffers are in the memory of the CPU, not on {device}"))
    sizes = torch.Size(shape)
    if sizes.numel() != buffer.size:
        raise located(ShapeError(f"buffer_to_tensor: shape {list(sizes)} for a buffer of {buffer.size} elements"))
    return interop.to_torch(buffer.to_numpy()).view(sizes).requires_grad_(requires_grad)


def validate_tensor_compatible(tensor: Any) -> None:
    """Checks that a tensor can be shared with Hologram's SDK. Returns None.

    Raises ArgumentError for what is no tensor of plain strided memory, DeviceError for one that is not on the CPU, DTypeError for an element type
    that Hologram lacks.

    >>> hologram_torch.validate_tensor_compatible(torch.ones(2))
    """
    interop.to_numpy(tensor)


def match_device(tensor: torch.Tensor, backend: str | None = None) -> str:
    """``backend``, or by default the backend that computes where the tensor is: "cpu", "cuda" or "metal". Raises DeviceError where there is none.

    >>> hologram_torch.match_device(torch.ones(2))
    'cpu'
    """
    if not isinstance(tensor, torch.Tensor):
        raise located(ArgumentError(f"match_device takes a torch.Tensor, not a {type(tensor).__name__}"))
    if backend is not None:
        return backend
    found = _BACKENDS.get(tensor.device.type)
    if found is None:
        raise located(DeviceError(f"match_device: no backend computes on {tensor.device}; name one"))
    return found


def create_executor_for_tensor(tensor: torch.Tensor, backend: str | None = None) -> Executor:
    """An executor of :func:`match_device`'s backend. Raises DeviceError, which says why, for a backend that is not there.

    >>> hologram_torch.create_executor_for_tensor(torch.ones(2)).backend
    <BackendType.CPU: 'cpu'>
    """
    return Executor(match_device(tensor, backend))
