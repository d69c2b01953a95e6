"""Conversion of tensors: torch's as Hologram's Tensors and NumPy arrays, and back, without a copy where layout and type allow.

Memory belongs to whoever allocated it, and every view keeps it alive. bfloat16 and 8-bit floats, which NumPy lacks, are ml_dtypes's types.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import hologram as hg
from hologram.backends.native.storage import array_in_fresh_memory
from hologram.errors import ArgumentError, DeviceError, DTypeError
from hologram.ir.aval import Aval
from hologram.trace.convert import of_storage
from hologram_torch.bridge import cuda
from hologram_torch.bridge.element_types import dtype_of, torch_dtype_of

__all__ = ["from_torch", "to_numpy", "to_torch"]


def to_numpy(t: torch.Tensor) -> np.ndarray:
    """The memory of a CPU tensor as an array of the same shape, strides and type; it keeps the memory alive, and writes go both ways.

    A tensor that requires a gradient is read as its value. Raises DeviceError for other devices, DTypeError for types that Hologram lacks,
    ArgumentError for what is no tensor of plain strided memory.

    >>> hologram_torch.interop.to_numpy(torch.tensor([1.0, 2.0]))
    array([1., 2.], dtype=float32)
    """
    if not isinstance(t, torch.Tensor):
        raise ArgumentError(f"to_numpy takes a torch.Tensor, not a {type(t).__name__}")
    if t.device.type != "cpu":
        raise DeviceError(f"a tensor on {t.device} has no memory that the CPU reads: call .cpu() first")
    if t.layout is not torch.strided:
        raise ArgumentError(f"a tensor of layout {t.layout} has no strides: call .to_dense() first")
    dtype = dtype_of(t.dtype)
    plain = t.detach().resolve_conj().resolve_neg()
    if dtype.bit_type is not None:
        return plain.view(torch_dtype_of(dtype.bit_type)).numpy().view(dtype.np)
    return plain.numpy()


def from_torch(t: torch.Tensor, *, copy: bool = False) -> hg.Tensor:
    """A Tensor of the tensor's value: its memory is borrowed where it is contiguous, unless ``copy``.

    As with :func:`hologram.asarray`, what a borrowed Tensor holds is read, or copied, when an op is recorded on it. A tensor on a CUDA device gives
    a Tensor there, of a copy. Raises as :func:`to_numpy` does, and DeviceError where Hologram cannot use the device.

    >>> hologram_torch.from_torch(torch.tensor([1.0, 2.0]))
    Tensor([1., 2.], dtype=float32)
    """
    if isinstance(t, torch.Tensor) and cuda.holds(t):
        dtype_of(t.dtype)
        lent = cuda.borrowed(t.contiguous())
        return of_storage(lent.runtime.put(lent))
    array = to_numpy(t)
    return hg.tensor(array) if copy else hg.asarray(array)


def to_torch(x: Any, *, copy: bool = False) -> torch.Tensor:
    """Tensor of torch with the value of ``x``, a Tensor (which is realised) or an array: over the same memory, unless ``copy``.

    A Tensor on a CUDA device that PyTorch can use gives a tensor there, others give CPU tensors. Tensors of Hologram are immutable and torch has no
    read-only tensors: before writing to the result in place, ask for a copy. Raises DTypeError for element types that torch lacks.

    >>> hologram_torch.to_torch(hnp.arange(3), copy=True)
    tensor([0, 1, 2])
    """
    if type(x) is hg.Tensor and cuda.shares(x.device):
        found = cuda.tensor_of(x._realised("to_torch"))
        return found.clone() if copy else found
    if type(x) is hg.Tensor:
        x._realised("numpy()")  # in memory of its own: that of a view may be another Tensor's
    array = x.numpy() if type(x) is hg.Tensor else np.asarray(x)
    try:
        dtype = torch_dtype_of(array.dtype)
    except TypeError as e:
        raise DTypeError(str(e)) from None
    if copy or not array.dtype.isnative or any(s < 0 for s in array.strides):
        array = np.array(array, array.dtype.newbyteorder("="), order="C")
    return over(array, dtype)


def over(array: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    """A tensor of ``dtype`` over the memory of an array of that type, whose strides are not negative."""
    bit_type = dtype_of(dtype).bit_type
    if bit_type is not None:
        array = array.view(bit_type)
    if not array.flags.writeable:
        array = _writable(array)
    t = torch.from_numpy(array)
    return t.view(dtype) if t.dtype is not dtype else t


def in_kept_memory(of: Aval, strides: tuple[int, ...] | None, dtype: torch.dtype) -> torch.Tensor:
    """Allocates an uninitialised tensor in memory that stays mapped when it is freed.

    Torch returns large memory to the system, so that each call would fault at every page. ``strides``, in bytes, are those of a permutation of C
    order; None is C order.
    """
    return over(array_in_fresh_memory(of, strides), dtype)


class _Exporter:
    """The memory of a read-only array under the array interface, declared writable; it keeps the array alive."""

    __slots__ = ("__array_interface__", "_array")

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.__array_interface__ = array.__array_interface__ | {"data": (array.__array_interface__["data"][0], False)}


def _writable(array: np.ndarray) -> np.ndarray:
    """An array over the same memory that torch takes without a warning about read-only arrays."""
    return np.asarray(_Exporter(array))
