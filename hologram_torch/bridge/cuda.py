"""CUDA tensors: torch's tensors as Hologram's values on the same device, and back, without copies and without a wait.

Hologram's work goes to torch's current stream of the device, so each side sees what the other did before. Memory is exchanged by
``__cuda_array_interface__`` and DLPack as integers of the elements' size, since not every library in between knows every element type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch._C._dynamo import guards

from hologram import dtypes
from hologram.backends.device.storage import DeviceStorage
from hologram.errors import DeviceError
from hologram.ir import devices
from hologram.ir.aval import aval
from hologram.support.precision import TF32
from hologram_torch.bridge.element_types import dtype_of, torch_dtype_of

if TYPE_CHECKING:
    from hologram.backends.cuda.device import Device

_LEGACY_STREAM = 1  # how the interface names the default stream


def device_of(x: torch.Tensor) -> torch.device:
    return x.device


def holds(x: torch.Tensor) -> bool:
    """Whether the tensor is in a CUDA device's memory."""
    return device_of(x).type == "cuda"


def shares(device: str) -> bool:
    """Whether ``device`` is a CUDA device that torch can use too."""
    return device.startswith("cuda") and torch.cuda.is_available()


def name_of(device: torch.device) -> str:
    """Hologram's name of a CUDA device. Raises DeviceError, with the reason, where Hologram cannot use it."""
    index = torch.cuda.current_device() if device.index is None else device.index
    return devices.resolve(f"cuda:{index}")


def device_named(name: str) -> Device:
    """Hologram's device of a name. Raises DeviceError as :func:`name_of`."""
    return devices.find(name)  # type: ignore[return-value]


# --- what PyTorch does there -----------------------------------------------------------------------------------------------


def raw_stream(device: torch.device) -> Callable[[], int]:
    """Returns a function that gives the handle of torch's current stream of the device."""
    return partial(torch._C._cuda_getCurrentRawStream, device.index)


def is_capturing() -> bool:
    """Whether PyTorch captures its current stream as a CUDA graph."""
    return bool(torch._C._cuda_isCurrentStreamCapturing())


def empty_on(device: torch.device) -> Callable[..., torch.Tensor]:
    """Returns a function of shape, strides and type that allocates an uninitialised tensor on the device."""
    if torch.cuda.device_count() == 1:
        return getattr(guards, "_empty_strided_cuda")  # noqa: B009  half the cost, and on the current device, which it is
    return lambda shape, strides, dtype: torch.empty_strided(shape, strides, dtype=dtype, device=device)


def sent(x: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Copies a small CPU tensor to the device in the current stream. Unpinned memory has been read when this returns."""
    return x.to(device, non_blocking=True)


def float32_precision() -> str:
    """The precision of float32 products on CUDA that torch is set to: ``tf32`` or ``standard``."""
    return TF32 if torch.backends.cuda.matmul.fp32_precision == "tf32" else "standard"


# --- values that cross -----------------------------------------------------------------------------------------------------


class CudaArray:
    """A C-contiguous tensor under ``__cuda_array_interface__``; it keeps the tensor alive."""

    __slots__ = ("tensor", "__cuda_array_interface__")

    def __init__(self, tensor: torch.Tensor, stream: int) -> None:
        size = tensor.element_size()
        kind = f"<u{size}" if size <= 8 else "<c16"
        data = tensor.data_ptr(), False
        self.tensor = tensor
        self.__cuda_array_interface__ = dict(shape=tuple(tensor.shape), typestr=kind, data=data, strides=None, version=3, stream=stream)


def current_stream(device: torch.device) -> int:
    """The handle of torch's current stream of the device, as ``__cuda_array_interface__`` writes it."""
    return torch.cuda.current_stream(device).cuda_stream or _LEGACY_STREAM


def borrowed(x: torch.Tensor) -> DeviceStorage:
    """The memory of a C-contiguous tensor as a storage of Hologram, for one call. Copies it on the device where kernels could not read it.

    Raises DeviceError where Hologram has no such device.
    """
    from hologram.backends.cuda.interop import adopted

    plain = x.detach()
    found = adopted(CudaArray(plain, current_stream(device_of(x))))
    of = aval(dtype_of(x.dtype), tuple(x.shape))
    return DeviceStorage(of, found.memory, found.made, owner=found.owner)


def tensor_of(storage: DeviceStorage) -> torch.Tensor:
    """A tensor over the memory of a value on a CUDA device, which it keeps alive. Writes to it are seen by all owners of the value."""
    from hologram.backends.cuda.interop import exported

    dtype = torch_dtype_of(storage.aval.dtype)
    itemsize = storage.aval.dtype.itemsize
    as_integers = np.dtype(f"i{itemsize}" if itemsize <= 8 else "c16")
    of = aval(dtypes.of(as_integers), storage.aval.shape)
    array = storage.runtime.device.guarded(lambda: exported(DeviceStorage(of, storage.memory, storage.made)))
    return over(array).view(dtype)


def over(array: Any) -> torch.Tensor:
    """A tensor over the memory of a CuPy array."""
    return torch.from_dlpack(array)


def common_device(tensors: list[torch.Tensor]) -> torch.device | None:
    """The CUDA device that all of the tensors are on; None for tensors on the CPU. Raises DeviceError for tensors of several devices."""
    found = {device_of(x): None for x in tensors}
    if len(found) > 1:
        raise DeviceError(f"arguments are on {' and on '.join(map(str, found))}: move them to one device")
    device = next(iter(found), None)
    return device if device is not None and device.type == "cuda" else None
