"""Whether this interpreter's and NumPy's objects look the way native code reads them, found out on real objects when imported.

Native code reads a few fields directly: an object's type, a tuple's and a list's items, an ndarray's description, values of slots. Each is
looked at here from outside, where Python can tell what it must hold. Where anything differs, :func:`why_not_native` says so and Python code
serves every call.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import sysconfig
from functools import cache
from typing import Any

import numpy as np

from hologram.backends.llvm.toolchain.target import host
from hologram.backends.native.code.records import List, NDArray, Object, Sized, Slice, Storage
from hologram.backends.native_lang.intrinsics import ARCHITECTURES, FP_CONTROL
from hologram.backends.native_lang.language import offset_of

VALUE_OFFSET = 16  # of a NumPy scalar's bytes, behind the head; holds_value() finds out whether it does


class UnknownLayout(Exception):
    """An object is not laid out as native code expects."""


class Layout:
    """Constants of native code that depend on the interpreter and the machine."""

    tuple_items = 24  # offset of a tuple's first item; probe() corrects it
    storage_aval = offset_of(Storage, "aval")

    @property
    def fp_control(self) -> int:
        """The floating-point control bits that compiled code expects: IEEE 754's defaults."""
        return FP_CONTROL[host().architecture]


layout = Layout()


@cache
def why_not_native() -> str | None:
    """Why native code cannot read this interpreter's objects; None where it can."""
    if sys.implementation.name != "cpython":
        return f"the interpreter is {sys.implementation.name}, not CPython"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "this is a free-threaded build of CPython"
    if host().architecture not in ARCHITECTURES or sys.maxsize != 2**63 - 1 or sys.byteorder != "little":
        return f"the machine is {host().architecture}; native calls need {' or '.join(ARCHITECTURES)}"
    if _interpreter_number() != 0:
        return "this is a subinterpreter"
    try:
        _probe_head()
        _probe_containers()
        _probe_ndarray()
    except UnknownLayout as e:
        return str(e)
    return None


def _interpreter_number() -> int:
    api = ctypes.pythonapi
    api.PyInterpreterState_Get.restype = ctypes.c_void_p
    api.PyInterpreterState_GetID.restype = ctypes.c_int64
    return int(api.PyInterpreterState_GetID(ctypes.c_void_p(api.PyInterpreterState_Get())))


def word(obj: Any, at: int) -> int:
    """Eight bytes of an object's memory."""
    return ctypes.c_uint64.from_address(id(obj) + at).value


def slot_offset(cls: type, name: str) -> int:
    """The offset of a slot in instances of ``cls``. Raises UnknownLayout."""
    obj: Any = object.__new__(_without_finaliser(cls))
    mark = object()
    before = struct.unpack(f"{cls.__basicsize__ // 8}Q", ctypes.string_at(id(obj), cls.__basicsize__ // 8 * 8))
    getattr(cls, name).__set__(obj, mark)
    found = [8 * i for i, old in enumerate(before) if old == 0 and word(obj, 8 * i) == id(mark)]
    if len(found) != 1 or found[0] < 16:
        raise UnknownLayout(f"the slot {name} of {cls.__name__} is not a field of its instances")
    return found[0]


def _without_finaliser(cls: type) -> type:
    """A class with the same slots whose objects need not be complete."""
    return type(cls.__name__, (cls,), {"__slots__": (), "__del__": lambda self: None}) if hasattr(cls, "__del__") else cls


def holds_value(x: np.generic) -> bool:
    """Whether a NumPy scalar has its bytes at VALUE_OFFSET."""
    basic = VALUE_OFFSET + x.itemsize <= type(x).__basicsize__
    return basic and ctypes.string_at(id(x) + VALUE_OFFSET, x.itemsize) == x.tobytes()


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise UnknownLayout(f"{what} of this interpreter is not laid out as known")


def _probe_head() -> None:
    obj = object()
    count = ctypes.c_uint32.from_address(id(obj) + offset_of(Object, "refcount"))
    _expect(sys.getrefcount(obj) - count.value in (0, 1), "the reference count")  # the argument of getrefcount may be counted
    before = count.value
    others = [obj] * 5
    _expect(count.value == before + len(others), "the reference count")
    _expect(all(word(x, offset_of(Object, "type")) == id(type(x)) for x in (obj, 1.5, (), np.zeros(1))), "the head of objects")


def _probe_containers() -> None:
    items = (object(), object(), object())
    for at in (24, 32):
        if [word(items, at + 8 * i) for i in range(3)] == [id(x) for x in items]:
            layout.tuple_items = at
            break
    else:
        raise UnknownLayout("a tuple of this interpreter is not laid out as known")
    as_list = list(items)
    _expect(word(items, offset_of(Sized, "size")) == word(as_list, offset_of(Sized, "size")) == 3, "the size of tuples and lists")
    first = word(as_list, offset_of(List, "items"))
    bounds = slice(*items)
    _expect(all(word(bounds, offset_of(Slice, f)) == id(x) for f, x in zip(("start", "stop", "step"), items, strict=True)), "a slice")
    _expect([ctypes.c_uint64.from_address(first + 8 * i).value for i in range(3)] == [id(x) for x in items], "a list")


def _probe_ndarray() -> None:
    whole = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    for a in (whole, whole[:, ::-1], whole.T, whole[0, 0, :0], np.zeros((), np.float64), np.frombuffer(b"12345", np.uint8)[1:].view("<i4")):
        shape, strides = (word(a, offset_of(NDArray, name)) for name in ("shape", "strides"))
        flags = ctypes.c_int32.from_address(id(a) + offset_of(NDArray, "flags")).value
        _expect(word(a, offset_of(NDArray, "data")) == a.__array_interface__["data"][0], "an ndarray's data")
        _expect(ctypes.c_int32.from_address(id(a) + offset_of(NDArray, "ndim")).value == a.ndim, "an ndarray's rank")
        _expect(tuple(ctypes.c_int64.from_address(shape + 8 * i).value for i in range(a.ndim)) == a.shape, "an ndarray's shape")
        _expect(tuple(ctypes.c_int64.from_address(strides + 8 * i).value for i in range(a.ndim)) == a.strides, "an ndarray's strides")
        _expect(word(a, offset_of(NDArray, "descr")) == id(a.dtype), "an ndarray's dtype")
        _expect(bool(flags & 1) == a.flags.c_contiguous and bool(flags & 0x100) == a.flags.aligned, "an ndarray's flags")
