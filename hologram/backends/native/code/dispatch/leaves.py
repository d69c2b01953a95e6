"""Native code that tells whether an argument, or a part of one, is a leaf that a specialisation takes (:mod:`.words`)."""

from __future__ import annotations

from hologram.backends.native.code.capi import Py_IncRef, PyFloat_AsDouble, PyLong_AsLongLongAndOverflow, PyObject_RichCompareBool
from hologram.backends.native.code.dispatch.words import BOOLEAN, FLOAT
from hologram.backends.native.code.object_layout import VALUE_OFFSET
from hologram.backends.native.code.records import Context, NDArray, Object, Storage, heap, process, remote
from hologram.backends.native.code.scalars import put_float, put_integer

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native_lang.language import Array, address, i64, native, offset, ptr, void

Words, Pointers = Array[i64], Array[ptr]

CONTIGUOUS_ALIGNED = 0x101  # NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED
PY_EQ = 2


@native
def keep(context: Context, obj: ptr) -> void:
    """Holds an owned object until the call ends."""
    context.kept[context.n_kept] = obj
    context.n_kept += 1


@native
def match_scalar(context: Context, obj: ptr, code: Array[i64], cell: ptr) -> i64:
    kind = Object(obj).type
    if code[0] == FLOAT:
        if kind != process.float_type:
            return 0
        put_float(cell, PyFloat_AsDouble(obj), code[1])
        return 1
    if code[0] == BOOLEAN:
        if obj != process.true and obj != process.false:
            return 0
        return put_integer(cell, 1 if obj == process.true else 0, code[1])
    if kind != process.int_type:
        return 0
    n = PyLong_AsLongLongAndOverflow(obj, address(context.overflow))
    if context.overflow & 0xFFFFFFFF != 0 or n < code[2] or n > code[3]:
        return 0
    return put_integer(cell, n, code[1])


@native
def take_leaf(context: Context, obj: ptr, keeper: ptr, data: ptr) -> void:
    """Notes the leaf's argument and its memory, which ``keeper`` keeps alive."""
    leaf = context.leaf
    context.buffers[leaf] = data
    context.arguments[leaf] = obj
    context.held[leaf] = keeper
    context.leaf = leaf + 1
    Py_IncRef(keeper)
    if context.keeps != 0:  # code of a class may take it out of the caller's containers, or make it anew each time
        Py_IncRef(obj)
        keep(context, obj)


@native
def host_storage(obj: ptr, kind: ptr, at: i64) -> ptr:
    """The Storage of the host that an object of type ``kind`` holds at an offset; None for another object."""
    if Object(obj).type != kind:
        return None
    storage = Pointers(offset(obj, at))[0]
    if storage is None or Object(storage).type != heap.storage_type:
        return None
    return storage


@native
def match_tensor(context: Context, obj: ptr) -> i64:
    storage = Storage(host_storage(obj, process.tensor_type, process.tensor_storage))
    if storage is None or storage.aval != Pointers(context.code)[context.position + 1]:
        return 0
    context.position += 2
    take_leaf(context, obj, storage, storage.data)
    return 1


@native
def match_owner(context: Context, obj: ptr) -> i64:
    if match_tensor(context, obj) == 0:
        return 0
    if Storage(context.held[context.leaf - 1]).capacity == 0:
        return 0  # the caller drops the leaf
    return 1


@native
def match_remote(context: Context, obj: ptr) -> i64:
    expected = Pointers(offset(context.code, context.position << 3))
    if Object(obj).type != process.tensor_type:
        return 0
    storage = Pointers(offset(obj, process.tensor_storage))[0]
    if storage is None or Object(storage).type != remote.storage_type or Pointers(offset(storage, remote.storage_aval))[0] != expected[1]:
        return 0
    memory = Pointers(offset(storage, remote.storage_memory))[0]
    if memory is None or Object(memory).type != remote.memory_type or Pointers(offset(memory, remote.memory_pool))[0] != expected[2]:
        return 0
    context.position += 3
    take_leaf(context, obj, storage, None)
    return 1


@native
def match_array(context: Context, obj: ptr) -> i64:
    position = context.position
    code = context.code
    if Object(obj).type != process.ndarray_type:
        return 0
    array = NDArray(obj)
    ndim = code[position + 2]
    if array.descr != Pointers(code)[position + 1] or array.ndim != ndim or array.flags & CONTIGUOUS_ALIGNED != CONTIGUOUS_ALIGNED:
        return 0
    for axis in range(ndim):
        if array.shape[axis] != code[position + 3 + axis]:
            return 0
    context.position = position + 3 + ndim
    take_leaf(context, obj, obj, array.data)
    return 1


@native
def match_value(context: Context, obj: ptr) -> i64:
    if Object(obj).type != Pointers(context.code)[context.position + 1]:
        return 0
    context.position += 2
    take_leaf(context, obj, obj, offset(obj, VALUE_OFFSET))
    return 1


@native
def match_same(context: Context, obj: ptr) -> i64:
    expected = Pointers(context.code)[context.position + 1]
    context.position += 2
    if obj == expected:
        return 1
    kind = Object(obj).type
    if kind != Object(expected).type or (kind != process.int_type and kind != process.str_type):
        return 0
    return PyObject_RichCompareBool(obj, expected, PY_EQ)


@native
def match_buffer(context: Context, obj: ptr) -> i64:
    code = Words(offset(context.code, context.position << 3))
    storage = Storage(host_storage(obj, process.buffer_type, process.buffer_storage))
    if storage is None or storage.nbytes < code[2] or storage.nbytes > code[3]:
        return 0
    if Pointers(offset(storage.aval, heap.aval_dtype))[0] != Pointers(code)[1]:
        return 0
    context.position += 4
    take_leaf(context, obj, storage, storage.data)
    return 1


@native
def match_field(context: Context, obj: ptr) -> i64:
    code = Words(offset(context.code, context.position << 3))
    if Object(obj).type != Pointers(code)[1] or Pointers(offset(obj, code[2]))[0] != Pointers(code)[3]:
        return 0
    context.position += 4
    return 1
