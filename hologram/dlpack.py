"""DLPack capsules of arrays, by way of NumPy: version 2.0 knows only what came before DLPack 1.0, which has no flag for memory that is read-only.

NumPy's DLPack has no bfloat16 and no 8-bit floats: their bits go as unsigned integers, and the capsule's type is written by itself.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType

VERSIONED = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
_UNSIGNED = 1  # kDLUInt
_MINOR = 1  # of DLPack 1, the first version with 8-bit floats
# kDLBfloat, kDLFloat8_e4m3fn, kDLFloat8_e5m2
_CODES: dict[DType, int] = {dtypes.bfloat16: 4, dtypes.float8_e4m3fn: 10, dtypes.float8_e5m2: 12}


class _DataType(ctypes.Structure):
    """``DLDataType``."""

    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Plain(ctypes.Structure):
    """The beginning of ``DLManagedTensor``: of a ``DLTensor`` up to its type."""

    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("dtype", _DataType)]


class _Versioned(ctypes.Structure):
    """The beginning of ``DLManagedTensorVersioned``."""

    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Plain),
    ]


_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def _type_in(made: Any) -> _DataType:
    """The element type that a capsule tells, where it stands; its version becomes one that knows all of them."""
    if not _is_valid(made, b"dltensor_versioned"):
        return _Plain.from_address(_pointer_of(made, b"dltensor")).dtype
    whole = _Versioned.from_address(_pointer_of(made, b"dltensor_versioned"))
    whole.version[1] = max(whole.version[1], _MINOR)
    return whole.tensor.dtype


def capsule(array: np.ndarray, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
    """``array.__dlpack__``. Raises BufferError for memory that cannot be handed out so."""
    dtype = dtypes.of(array.dtype)
    if dtype.bit_type is not None:
        made = capsule(array.view(dtype.bit_type), stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
        _type_in(made).code = _CODES[dtype]
        return made
    if VERSIONED:
        return array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
    if dl_device is not None and tuple(dl_device) != array.__dlpack_device__():
        raise BufferError(f"the array is not on the device {dl_device}")
    return (array.copy() if copy else array).__dlpack__(stream=stream)


class _Unmarked:
    """An array's memory, which it keeps alive, without the mark that it is read-only."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def unmarked(array: np.ndarray) -> np.ndarray:
    """``array`` over the same memory, for who cannot be told that it is read-only."""
    dtype = dtypes.of(array.dtype)
    return unmarked(array.view(dtype.bit_type)).view(dtype.np) if dtype.bit_type is not None else np.asarray(_Unmarked(array))


class _Bits:
    """An object with DLPack whose elements of a type that NumPy lacks are given as their bits; ``dtype`` is then that type."""

    def __init__(self, x: Any) -> None:
        self.x = x
        self.dtype: DType | None = None

    def __dlpack__(self, **options: Any) -> Any:
        made = self.x.__dlpack__(**options)
        told = _type_in(made)
        self.dtype = next((d for d, code in _CODES.items() if (code, d.bits) == (told.code, told.bits) and told.lanes == 1), None)
        if self.dtype is not None:
            told.code = _UNSIGNED
        return made

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.x.__dlpack_device__()


def array_of(x: Any) -> np.ndarray:
    """``np.from_dlpack(x)``, also of the types that NumPy lacks. Raises BufferError or RuntimeError as that does."""
    try:
        return np.from_dlpack(x)
    except (BufferError, RuntimeError):
        bits = _Bits(x)
        array = np.from_dlpack(bits)
        return array.view(bits.dtype.np) if bits.dtype is not None else array
