"""Native code that tells whether a call is one of a specialisation: the first half of what stands between a caller and a compiled graph.

A specialisation's ``parameters`` are words in the order in which the arguments are walked; each value is one of

====================================  =====================================================================================
``TENSOR aval``                       a Tensor with a Storage of this Aval
``ARRAY descr ndim extents…``         an aligned C-contiguous ``ndarray`` with this very dtype object and shape
``VALUE type``                        a NumPy scalar of this very type
``FLOAT format``                      a Python float, converted to the format
``INTEGER format low high``           a Python int within bounds, converted
``BOOLEAN format``                    a Python bool, converted
``SAME object``                       this object, or an equal int or str
``REMOTE aval pool``                  a Tensor of this Aval on the device whose memory is in this pool
``BUFFER dtype least most``           an SDK buffer of this DType with that many bytes
``FIELD type slot object``            an object of this very type whose slot holds this very object
``TUPLE n``, ``LIST n``               followed by n values
``DICT n``                            followed by n times: key object, value
====================================  =====================================================================================

and ``result`` is ``RESULT i``, ``NUMBER i format``, ``SAME object``, ``TUPLE n``, ``LIST n``, ``DICT n`` likewise.

A result may be written into a buffer that is an argument, where that overlaps no other argument, or one at the same address that the graph
reads in time.
"""

from __future__ import annotations

from hologram.backends.native.code.call import need_words
from hologram.backends.native.code.capi import (
    Py_DecRef,
    Py_IncRef,
    PyDict_GetItemWithError,
    PyDict_Size,
    PyFloat_AsDouble,
    PyLong_AsLongLongAndOverflow,
    PyObject_RichCompareBool,
)
from hologram.backends.native.code.object_layout import VALUE_OFFSET, layout
from hologram.backends.native.code.records import WRITABLE, Context, List, NDArray, Object, Output, Sized, Spec, Storage, heap, process, remote
from hologram.backends.native.code.scalars import put_float, put_integer
from hologram.backends.native_lang.language import (
    Array,
    address,
    i64,
    integer,
    native,
    offset,
    ptr,
    shift_right,
    void,
)

Words, Pointers = Array[i64], Array[ptr]

TENSOR, ARRAY, VALUE, FLOAT, INTEGER, BOOLEAN, SAME, REMOTE, BUFFER, FIELD, TUPLE, LIST, DICT, RESULT, NUMBER = range(15)
CONTIGUOUS_ALIGNED = 0x101  # NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED
PY_EQ = 2


# --- Python scalars -------------------------------------------------------------------------------------------------------------------------


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


# --- matching -------------------------------------------------------------------------------------------------------------------------------


@native
def take_leaf(context: Context, obj: ptr, keeper: ptr, data: ptr) -> void:
    """Notes the leaf's argument and its memory, which ``keeper`` keeps alive."""
    leaf = context.leaf
    context.buffers[leaf] = data
    context.arguments[leaf] = obj
    context.held[leaf] = keeper
    context.leaf = leaf + 1
    Py_IncRef(keeper)


@native
def match_tensor(context: Context, obj: ptr) -> i64:
    if Object(obj).type != process.tensor_type:
        return 0
    storage = Storage(Pointers(offset(obj, process.tensor_storage))[0])
    if storage is None or storage.type != heap.storage_type or storage.aval != Pointers(context.code)[context.position + 1]:
        return 0
    context.position += 2
    take_leaf(context, obj, storage, storage.data)
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
    if Object(obj).type != process.buffer_type:
        return 0
    storage = Storage(Pointers(offset(obj, process.buffer_storage))[0])
    if storage is None or storage.type != heap.storage_type or storage.nbytes < code[2] or storage.nbytes > code[3]:
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


@native
def match_tuple(context: Context, obj: ptr, n: i64) -> i64:
    if Object(obj).type != process.tuple_type or Sized(obj).size != n:
        return 0
    for i in range(n):
        if match(context, Pointers(offset(obj, layout.tuple_items))[i]) == 0:
            return 0
    return 1


@native
def match_list(context: Context, obj: ptr, n: i64) -> i64:
    if Object(obj).type != process.list_type or Sized(obj).size != n:
        return 0
    for i in range(n):
        if Sized(obj).size != n or match(context, List(obj).items[i]) == 0:  # a comparison of keys may have changed the list
            return 0
    return 1


@native
def match_dict(context: Context, obj: ptr, n: i64) -> i64:
    if Object(obj).type != process.dict_type or PyDict_Size(obj) != n:
        return 0
    for _ in range(n):
        value = PyDict_GetItemWithError(obj, Pointers(context.code)[context.position])
        context.position += 1
        if value is None or match(context, value) == 0:
            return 0
    return 1


@native
def match(context: Context, obj: ptr) -> i64:
    """Whether the value is what the code at ``context.position`` says; goes past that code."""
    op = context.code[context.position]
    if op == TENSOR:
        return match_tensor(context, obj)
    if op == ARRAY:
        return match_array(context, obj)
    if op == VALUE:
        return match_value(context, obj)
    if op <= BOOLEAN:
        code = Words(offset(context.code, context.position << 3))
        cell = offset(context.scalars, context.leaf << 3)
        if match_scalar(context, obj, code, cell) == 0:
            return 0
        context.position += 4 if op == INTEGER else 2
        take_leaf(context, obj, None, cell)
        return 1
    if op == SAME:
        return match_same(context, obj)
    if op == REMOTE:
        return match_remote(context, obj)
    if op == BUFFER:
        return match_buffer(context, obj)
    if op == FIELD:
        return match_field(context, obj)
    n = context.code[context.position + 1]
    context.position += 2
    Py_IncRef(obj)  # a comparison of keys may run Python code, which may drop it
    if op == TUPLE:
        matched = match_tuple(context, obj, n)
    elif op == LIST:
        matched = match_list(context, obj, n)
    else:
        matched = match_dict(context, obj, n)
    Py_DecRef(obj)
    return matched


@native
def overlap(a: Storage, b: Storage) -> i64:
    """Whether two Storages have bytes in common."""
    start = integer(a.data)
    other = integer(b.data)
    return start < other + b.nbytes and other < start + a.nbytes


@native
def may_write(context: Context, leaves: i64, output: Output) -> i64:
    """Whether a result may be written into the buffer it is meant for: it can be written, is aligned, and shares nothing with other arguments
    that the graph may read after it is written."""
    into = Storage(context.held[output.source])
    if into.flags & WRITABLE == 0 or integer(into.data) & output.misaligned != 0:
        return 0
    for leaf in range(leaves):
        other = Storage(context.held[leaf])
        if leaf != output.source and other is not None and overlap(into, other) != 0:
            if other.data != into.data or shift_right(output.sharers, leaf) & 1 == 0:
                return 0
    return 1


@native
def drop_leaves(context: Context) -> void:
    for i in range(context.leaf):
        Py_DecRef(context.held[i])


@native
def match_call(context: Context, spec: Spec, args: Array[ptr], nargs: i64, kwnames: ptr) -> i64:
    """Whether the call is one of the specialisation; if so its leaves are held."""
    n_keywords = 0
    if kwnames is not None:
        n_keywords = Sized(kwnames).size
    if nargs != spec.n_positional or n_keywords != spec.n_keywords:
        return 0
    for i in range(n_keywords):
        if Pointers(offset(kwnames, layout.tuple_items))[i] != spec.keywords[i]:
            return 0
    if need_words(context, spec.words) == 0:
        return 0
    leaves = spec.n_leaves
    slots = leaves + spec.n_constants + spec.n_outputs + spec.n_symbols
    context.buffers = Pointers(context.words)
    context.arguments = Pointers(offset(context.words, slots << 3))
    context.held = Pointers(offset(context.arguments, leaves << 3))
    context.scalars = Words(offset(context.held, leaves << 3))
    context.results = Pointers(offset(context.scalars, leaves << 3))
    context.code = spec.parameters
    context.position = 0
    context.leaf = 0
    for i in range(nargs + n_keywords):
        if match(context, args[i]) == 0:
            drop_leaves(context)
            return 0
    for i in range(spec.n_outputs):
        if spec.outputs[i].sharers >= 0 and may_write(context, leaves, spec.outputs[i]) == 0:
            drop_leaves(context)
            return 0
    return 1
