"""Native code that reads and writes the slots of Python objects, and keeps objects."""

from __future__ import annotations

from hologram.backends.native.code.capi import Py_DecRef, Py_IncRef, PyType_GenericAlloc
from hologram.backends.native.code.records import process
from hologram.backends.native_lang.language import Array, i64, inlined, native, offset, ptr, void

Pointers = Array[ptr]


@native
def shared(obj: ptr) -> ptr:
    """A new reference to an object."""
    Py_IncRef(obj)
    return obj


@inlined
def slot(obj: ptr, at: i64) -> ptr:
    """What a slot holds, borrowed."""
    return Pointers(offset(obj, at))[0]


@inlined
def first_value(obj: ptr, at: i64, value: ptr) -> void:
    """Gives a new object's slot its first value."""
    Py_IncRef(value)
    Pointers(offset(obj, at))[0] = value


@native
def set_slot(obj: ptr, at: i64, value: ptr) -> void:
    """Replaces what a slot holds."""
    place = Pointers(offset(obj, at))
    before = place[0]
    Py_IncRef(value)
    place[0] = value
    Py_DecRef(before)


@native
def keep_all(objects: Array[ptr], n: i64) -> void:
    for i in range(n):
        Py_IncRef(objects[i])


@native
def drop_all(objects: Array[ptr], n: i64) -> void:
    for i in range(n):
        Py_DecRef(objects[i])


@native
def new_tensor(storage: ptr) -> ptr:
    """A Tensor of a Storage; None, and an exception, without memory."""
    tensor = PyType_GenericAlloc(process.tensor_type, 0)
    if tensor is not None:
        first_value(tensor, process.tensor_node, process.none)
        first_value(tensor, process.tensor_storage, storage)
        first_value(tensor, process.tensor_weak, process.false)
    return tensor
