"""Storages in plain Python, for interpreters whose objects native code cannot read: the same functions over NumPy's memory."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

from hologram.backends.native import tracing
from hologram.dtypes import int64
from hologram.errors import OutOfMemory
from hologram.ir.aval import Aval
from hologram.ir.aval import aval as aval_of
from hologram.settings import settings

ALIGNMENT = 64


class Storage:
    """Memory of one array: aval, data (its address), nbytes."""

    __slots__ = ("aval", "owner", "data", "nbytes", "_array")

    def __init__(self, aval: Aval, array: np.ndarray, owner: object) -> None:
        self.aval, self.owner, self._array = aval, owner, array
        self.data, self.nbytes = array.__array_interface__["data"][0], aval.nbytes
        if owner is None:
            _count(aval.nbytes)

    def __del__(self) -> None:
        if self.owner is None:
            _count(-self.nbytes)

    @property
    def exports(self) -> int:
        """How many arrays view the memory, beside the Storage's own."""
        return 0 if self.owner is not None else _views(self._array) - _OWN

    def __repr__(self) -> str:
        return f"<Storage {self.aval} at {self.data:#x}>"


def _views(array: np.ndarray) -> int:
    """The references to the array that owns the memory, to which each view refers."""
    return sys.getrefcount(array.base)


_OWN = _views(np.empty(2)[:1])
_bytes = {"live": 0, "peak": 0, "cached": 0}


def _count(nbytes: int) -> None:
    _bytes["live"] += nbytes
    _bytes["peak"] = max(_bytes["peak"], _bytes["live"])


def new(aval: Aval) -> Storage:
    """A writable Storage of unwritten memory. Raises OutOfMemory."""
    if settings.memory_limit and _bytes["live"] + aval.nbytes > settings.memory_limit:
        raise OutOfMemory(f"a result of {aval.nbytes:,} bytes cannot be allocated: the limit is {settings.memory_limit:,} bytes")
    try:
        raw = np.empty(aval.nbytes + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError) as e:
        raise OutOfMemory(f"a result of {aval.nbytes:,} bytes cannot be allocated") from e
    start = -raw.__array_interface__["data"][0] % ALIGNMENT
    return Storage(aval, np.ndarray(aval.shape, aval.dtype.np, raw, start), None)


def seal(storage: Storage) -> Storage:
    """From now on the Storage is read-only. Gives it back."""
    memory: Any = storage._array.base
    storage._array.flags.writeable = memory.flags.writeable = False
    return storage


def give(tensor: Any) -> None:
    """No Tensor gives its Storage away: how many hold that is not known here."""


def of_number(aval: Aval, value: Any) -> None:
    """No number is converted natively."""


def of_index(value: int) -> Storage:
    """A Storage of one int64, the integer ``value``."""
    return small_copy(_INDEX, np.asarray(value, np.int64))


_INDEX = aval_of(int64, ())

_BASIC = {int, slice, type(None), type(Ellipsis)}


def pick(array: np.ndarray, key: Any, element: Any, vectors: dict[int, Aval]) -> Any:
    """A Storage with a copy of the element, of this Aval, that a key of integers in range chooses; True for another key of integers, slices, None
    and Ellipsis; False for any other, and while something is traced."""
    parts = key if type(key) is tuple else (key,)
    if tracing.open_traces.value or not all(type(p) in _BASIC for p in parts):
        return False
    bounds = [b for p in parts if type(p) is slice for b in (p.start, p.stop, p.step)]
    if not all(b is None or type(b) is int for b in bounds):
        return False
    whole = len(parts) == array.ndim and all(type(p) is int and -n <= p < n for p, n in zip(parts, array.shape, strict=True))
    return small_copy(element, np.asarray(array[key])) if whole else True


def small_copy(aval: Aval, array: np.ndarray) -> Storage:
    """A Storage with the elements of an array of any layout."""
    made = new(aval)
    np.copyto(made._array, array)
    return seal(made)


def number(storage: Any) -> None:
    """No element becomes a Python number natively."""


def borrow_memory(aval: Aval, array: np.ndarray, writable: bool = False) -> Storage:
    """A Storage over the memory of an aligned C-contiguous array, of any shape with as many elements."""
    view = array.view().reshape(aval.shape)
    view.flags.writeable = writable and array.flags.writeable
    return Storage(aval, view, array)


def over_memory(aval: Aval, address: int, owner: object, writable: bool) -> Storage:
    """A Storage over memory at an address that ``owner`` keeps alive."""
    memory: Any = (ctypes.c_char * aval.nbytes).from_address(address)
    memory.owner = owner  # whatever views the memory holds this object
    array = np.ndarray(aval.shape, aval.dtype.np, memoryview(memory))
    array.flags.writeable = writable
    return Storage(aval, array, owner)


def view(storage: Storage) -> np.ndarray:
    """The array in ``storage``, without a copy; writable where the Storage is."""
    return storage._array.view()


def trim() -> None:
    """Nothing is kept for reuse here."""


def statistics() -> dict[str, int]:
    """Bytes in use by results, their peak, and bytes kept for reuse."""
    return dict(_bytes)


def reset_peak() -> None:
    _bytes["peak"] = _bytes["live"]


def raise_peak(peak: int) -> None:
    """The peak is at least so many bytes: what it was before it was reset."""
    _bytes["peak"] = max(_bytes["peak"], peak)
