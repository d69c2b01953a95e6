"""Native code that gives a call's results the shape that its caller expects: Tensors, numbers, and containers of them."""

from __future__ import annotations

from hologram.backends.native.code.capi import (
    Py_DecRef,
    Py_IncRef,
    PyDict_New,
    PyDict_SetItem,
    PyFloat_FromDouble,
    PyList_New,
    PyList_SetItem,
    PyObject_CallOneArg,
    PyObject_GenericSetAttr,
    PyObject_Vectorcall,
    PyTuple_New,
    PyTuple_SetItem,
)
from hologram.backends.native.code.dispatch.words import ASSIGNED, CALLED, DICT, JOINED, LIST, NUMBER, PASSED, RESULT, SAME, TUPLE
from hologram.backends.native.code.records import Context, List, Object, Storage, process
from hologram.backends.native.code.scalars import AS_DOUBLE
from hologram.backends.native.code.slots import new_tensor

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native_lang.language import Array, f32, f64, i64, native, offset, ptr, void

Words, Pointers, Doubles, Singles = Array[i64], Array[ptr], Array[f64], Array[f32]


@native
def drop_results(context: Context, n: i64) -> void:
    for i in range(n):
        Py_DecRef(context.results[i])


@native
def tensor_of(result: ptr) -> ptr:
    """The Tensor of a Storage, of the host or of a device; a Tensor itself."""
    if Object(result).type != process.tensor_type:
        return new_tensor(result)
    Py_IncRef(result)
    return result


@native
def build(context: Context) -> ptr:
    """The result that the code at ``context.position`` describes; None, and an exception, without memory."""
    code = context.code
    position = context.position
    op = code[position]
    context.position = position + 2
    if op == NUMBER:
        context.position = position + 3
        cell = Storage(context.results[code[position + 1]]).data
        return PyFloat_FromDouble(Doubles(cell)[0] if code[position + 2] == AS_DOUBLE else Singles(cell)[0])
    if op == RESULT:
        return tensor_of(context.results[code[position + 1]])
    if op == PASSED:
        return new_tensor(context.held[code[position + 1]])
    if op == SAME:
        known = Pointers(code)[position + 1]
        Py_IncRef(known)
        return known
    if op == CALLED:
        return build_called(context)
    if op == JOINED:
        return build_joined(context)
    if op == ASSIGNED:
        return build_assigned(context)
    n = code[position + 1]
    if op == DICT:
        return build_dict(context, n)
    return build_sequence(context, n, op)


@native
def build_dict(context: Context, n: i64) -> ptr:
    made = PyDict_New()
    if made is None:
        return None
    for _ in range(n):
        key = Pointers(context.code)[context.position]
        context.position += 1
        item = build(context)
        if item is None or PyDict_SetItem(made, key, item) != 0:
            Py_DecRef(item)
            Py_DecRef(made)
            return None
        Py_DecRef(item)
    return made


@native
def build_sequence(context: Context, n: i64, kind: i64) -> ptr:
    """A tuple, for TUPLE, or a list of the n values that follow."""
    made = PyTuple_New(n) if kind == TUPLE else PyList_New(n)
    if made is None:
        return None
    for i in range(n):
        item = build(context)
        if item is None:
            Py_DecRef(made)
            return None
        if kind == TUPLE:
            PyTuple_SetItem(made, i, item)
        else:
            PyList_SetItem(made, i, item)
    return made


@native
def build_called(context: Context) -> ptr:
    code = Pointers(offset(context.code, (context.position - 2) << 3))
    n = context.code[context.position]
    context.position += 1
    children = build_sequence(context, n, LIST)
    if children is None:
        return None
    made = PyObject_Vectorcall(code[1], List(children).items, n, None)
    Py_DecRef(children)
    return made


@native
def build_joined(context: Context) -> ptr:
    code = Pointers(offset(context.code, (context.position - 2) << 3))
    n = context.code[context.position + 1]
    context.position += 2
    pair = PyList_New(2)
    if pair is None:
        return None
    Py_IncRef(code[2])
    PyList_SetItem(pair, 0, code[2])
    children = build_sequence(context, n, LIST)
    if children is None:
        Py_DecRef(pair)
        return None
    PyList_SetItem(pair, 1, children)
    made = PyObject_Vectorcall(code[1], List(pair).items, 2, None)
    Py_DecRef(pair)
    return made


@native
def build_assigned(context: Context) -> ptr:
    words = Words(offset(context.code, (context.position - 2) << 3))
    context.position += 3
    made = PyObject_CallOneArg(Pointers(words)[1], Pointers(words)[2])
    if made is None:
        return None
    for i in range(words[3] + words[4]):
        name = Pointers(context.code)[context.position]
        context.position += 1
        if i < words[3]:
            value = build(context)
        else:
            value = Pointers(context.code)[context.position]
            context.position += 1
            Py_IncRef(value)
        if value is None or PyObject_GenericSetAttr(made, name, value) != 0:
            Py_DecRef(value)
            Py_DecRef(made)
            return None
        Py_DecRef(value)
    return made
