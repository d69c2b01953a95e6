"""Storages made by native code: the type of their objects, and what Python does with them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from hologram.backends.native.code import reading, records
from hologram.backends.native.code.object_layout import slot_offset
from hologram.backends.native.code.scalars import AS_INTEGER, EXACT_IN_DOUBLE, format_of
from hologram.backends.native.module import METH_FASTCALL, METH_O, check_size, immortal, module
from hologram.backends.native_lang.language import offset_of, size_of
from hologram.dtypes import ALL, int64
from hologram.ir.aval import Aval
from hologram.ir.aval import aval as aval_of
from hologram.settings import listeners, settings


class _Slot(ctypes.Structure):
    _fields_ = [("number", ctypes.c_int), ("value", ctypes.c_void_p)]


class _TypeSpec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    ]


class _Member(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


_GETBUFFER, _RELEASEBUFFER, _DEALLOC, _DOC, MEMBERS = 1, 2, 52, 56, 72  # slot numbers of CPython's stable ABI
DISALLOW_INSTANTIATION, HAVE_VERSION_TAG = 1 << 7, 1 << 18
T_OBJECT, _T_LONGLONG, _T_ULONGLONG, READONLY = 6, 17, 18, 1
_DOCUMENTATION = b"Memory of one array: aval, data (its address), nbytes, and the number of buffer exports. Exports read-only bytes."


def _make_type() -> Any:
    kinds = {"aval": T_OBJECT, "owner": T_OBJECT, "data": _T_ULONGLONG, "nbytes": _T_LONGLONG, "exports": _T_LONGLONG}
    m = module()
    values = {
        _GETBUFFER: m.address("hg_storage_getbuffer"),
        _RELEASEBUFFER: m.address("hg_storage_releasebuffer"),
        _DEALLOC: m.address("hg_storage_dealloc"),
        _DOC: ctypes.cast(ctypes.c_char_p(_DOCUMENTATION), ctypes.c_void_p).value,
        MEMBERS: members([(name, kind, offset_of(records.Storage, name), READONLY) for name, kind in kinds.items()]),
    }
    return make_type(b"hologram.Storage", size_of(records.Storage), DISALLOW_INSTANTIATION | HAVE_VERSION_TAG, values)


def members(rows: Sequence[tuple[str, int, int, int]]) -> int:
    """The address of a class's table of members: names, kinds, offsets and flags."""
    made = [_Member(name.encode(), *rest, None) for name, *rest in rows]
    return ctypes.addressof(immortal((_Member * (len(made) + 1))(*made)))


def make_type(name: bytes, size: int, flags: int, values: dict[int, int | None]) -> Any:
    """A class with these slots, by number."""
    slots = immortal((_Slot * (len(values) + 1))(*[_Slot(number, value) for number, value in values.items()]))
    spec = immortal(_TypeSpec(name, size, 0, flags, ctypes.addressof(slots)))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(("PyType_FromSpec", ctypes.pythonapi))
    return immortal(make(ctypes.addressof(spec)))


Storage: Any = _make_type()
Storage.__repr__ = lambda self: f"<Storage {self.aval} at {self.data:#x}>"
_module = module()
_heap = _module.heap
_heap.storage_type, _heap.aval_type = id(Storage), id(Aval)
_heap.aval_nbytes, _heap.aval_dtype, _heap.aval_shape = (slot_offset(Aval, name) for name in ("nbytes", "dtype", "shape"))


def _number_forms() -> list[int]:
    """Words of the records that tell native code how elements become Python numbers. DTypes live for ever."""
    words: list[int] = []
    for d in ALL:
        form = reading.form_of(d)
        if form is not None:
            words += (id(d), d.itemsize, form, ord(d.np.char))
    return words


_forms = _number_forms()
_heap.numbers = ctypes.addressof(immortal((ctypes.c_int64 * len(_forms))(*_forms)))
_heap.n_numbers = 8 * len(_forms) // size_of(records.NumberForm)

_new = _module.builtin("hg_storage_new", "new", METH_O)
seal = _module.builtin("hg_storage_seal", "seal", METH_O)
give = _module.builtin("hg_storage_give", "give", METH_O)
_borrow = _module.builtin("hg_storage_borrow", "borrow", METH_FASTCALL)
_over = _module.builtin("hg_storage_over", "over", METH_FASTCALL)
_of_number = _module.builtin("hg_storage_of_number", "of_number", METH_FASTCALL)
pick = _module.builtin("hg_storage_pick", "pick", METH_FASTCALL)
small_copy = _module.builtin("hg_storage_copied", "copied", METH_FASTCALL)
number = _module.builtin("hg_storage_number", "number", METH_O)
_formats = {d: format_of(d) for d in ALL}
_trim = _module.function("hg_heap_trim", None)
size_class = _module.function("hg_size_class_of", ctypes.c_int64, ctypes.c_int64)


def _follow_limit() -> None:
    _heap.limit = settings.memory_limit


_follow_limit()
listeners.append(_follow_limit)


def new(aval: Aval) -> Any:
    """A writable Storage of unwritten memory. Raises OutOfMemory."""
    check_size(aval.nbytes)
    return _new(aval)


def of_number(aval: Aval, value: Any) -> Any:
    """A Storage of one element that is the Python number ``value``, which its type holds; None for what is not converted natively."""
    form = _formats[aval.dtype]
    if type(value) is float:
        native = form > AS_INTEGER
    elif type(value) is int:
        native = form >= AS_INTEGER and aval.dtype.kind != "b" and -EXACT_IN_DOUBLE <= value <= EXACT_IN_DOUBLE
    else:
        native = form >= AS_INTEGER and type(value) is bool
    return _of_number(aval, value, form) if native else None


_INDEX = aval_of(int64, ())


def of_index(value: int) -> Any:
    """A Storage of one int64, the integer ``value``."""
    return _of_number(_INDEX, value, AS_INTEGER)


def borrow_memory(aval: Aval, array: np.ndarray, writable: bool = False) -> Any:
    """A Storage over the memory of an aligned C-contiguous array, of any shape with as many elements."""
    return _borrow(aval, array, int(writable))


def over_memory(aval: Aval, address: int, owner: object, writable: bool) -> Any:
    """A Storage over memory at an address that ``owner`` keeps alive."""
    return _over(aval, address, owner, int(writable))


def view(storage: Any) -> np.ndarray:
    """The array in ``storage``, without a copy; writable where the Storage is."""
    aval = storage.aval
    return np.ndarray(aval.shape, aval.dtype.np, storage)


def trim() -> None:
    """Gives memory that is not in use back to the system."""
    _trim()


def statistics() -> dict[str, int]:
    """Bytes in use by results, their peak, and bytes kept for reuse."""
    return {"live": _heap.live, "peak": _heap.peak, "cached": _heap.cached}


def reset_peak() -> None:
    _heap.peak = _heap.live


def raise_peak(peak: int) -> None:
    """The peak is at least so many bytes: what it was before it was reset."""
    _heap.peak = max(_heap.peak, peak)
