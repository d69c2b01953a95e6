"""Native code that records an operator of Tensors outside of traces: a pending node and its Tensor.

It takes Tensors of one type and shape, or of one type where one has no axes, and Tensors beside numbers that Python has met there. Everything else,
and whatever raises, is the Python function's.
"""

from __future__ import annotations

from hologram.backends.native.code.capi import (
    Py_DecRef,
    PyDict_GetItemWithError,
    PyErr_BadArgument,
    PyErr_Clear,
    PyErr_Occurred,
    PyLong_AsLongLong,
    PyLong_FromLongLong,
    PyMethod_New,
    PyObject_RichCompareBool,
    PyObject_Vectorcall,
    PyTuple_New,
    PyTuple_SetItem,
    PyType_GenericAlloc,
)
from hologram.backends.native.code.expression_records import Operator, expressions, recorder
from hologram.backends.native.code.object_layout import layout
from hologram.backends.native.code.records import Object, Sized, Storage, heap, process
from hologram.backends.native.code.slots import first_value, set_slot, shared, slot

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native_lang.language import Array, exported, i64, native, offset, ptr, shift_right

Pointers = Array[ptr]
EQUAL = 2  # Py_EQ


@native
def new_node(op: ptr, inputs: ptr, attrs: ptr, shape: ptr, dtype: ptr, depth: i64) -> ptr:
    """An owned pending node; ``inputs`` and ``attrs``, owned tuples, become its own. None, and an exception, without memory."""
    made: ptr = None
    level = PyLong_FromLongLong(depth)
    if inputs is not None and attrs is not None and level is not None:
        made = PyType_GenericAlloc(expressions.pending_type, 0)
    if made is not None:
        first_value(made, expressions.node_op, op)
        first_value(made, expressions.node_inputs, inputs)
        first_value(made, expressions.node_attrs, attrs)
        first_value(made, expressions.node_shape, shape)
        first_value(made, expressions.node_dtype, dtype)
        first_value(made, expressions.node_seen, process.false)
        first_value(made, expressions.node_depth, level)
        first_value(made, expressions.node_array, process.none)
    Py_DecRef(inputs)
    Py_DecRef(attrs)
    Py_DecRef(level)
    return made


@exported
def pending_new(module: ptr, args: Array[ptr], nargs: i64) -> ptr:
    """METH_FASTCALL (op, inputs, attrs, shape, dtype): a pending node; inputs are a tuple of such nodes, attrs one of objects."""
    if nargs != 5 or Object(args[1]).type != process.tuple_type or Object(args[2]).type != process.tuple_type:
        PyErr_BadArgument()
        return None
    depth = -1
    for i in range(Sized(args[1]).size):
        node = Pointers(offset(args[1], layout.tuple_items))[i]
        if Object(node).type != expressions.pending_type:
            PyErr_BadArgument()
            return None
        if depth_of(node) > depth:
            depth = depth_of(node)
    return new_node(args[0], shared(args[1]), shared(args[2]), args[3], args[4], depth + 1)


@native
def leaf_of(tensor: ptr) -> ptr:
    """The leaf of a realised Tensor on the host, which becomes its node, borrowed. None, maybe with an exception, for one that Python is to see."""
    storage = Storage(slot(tensor, process.tensor_storage))
    if storage.type != heap.storage_type or storage.owner is not None:
        return None
    shape = slot(storage.aval, recorder.aval_shape)
    dtype = slot(storage.aval, heap.aval_dtype)
    attrs = PyTuple_New(3)
    if attrs is None:
        return None
    PyTuple_SetItem(attrs, 0, shared(storage))
    PyTuple_SetItem(attrs, 1, shared(shape))
    PyTuple_SetItem(attrs, 2, shared(slot(dtype, recorder.dtype_name)))
    made = new_node(expressions.leaf, shared(expressions.nothing), attrs, shape, dtype, 0)
    if made is not None:
        set_slot(tensor, process.tensor_node, made)
        Py_DecRef(made)
    return made


@native
def pending_of(tensor: ptr) -> ptr:
    """The node of a Tensor, borrowed; None, maybe with an exception, for one that Python is to see."""
    node = slot(tensor, process.tensor_node)
    if node == process.none:
        return leaf_of(tensor)
    return node if Object(node).type == expressions.pending_type else None


@native
def constant_beside(dtype: ptr, number: ptr) -> ptr:
    """The node that Python has made of a number beside an operand of this type, borrowed; None, maybe with an exception, where it has not."""
    kind = Object(number).type
    if kind != process.float_type and kind != process.int_type:
        return None
    key = PyTuple_New(3)
    if key is None:
        return None
    PyTuple_SetItem(key, 0, shared(dtype))
    PyTuple_SetItem(key, 1, shared(kind))
    PyTuple_SetItem(key, 2, shared(number))
    found = PyDict_GetItemWithError(recorder.constants, key)
    Py_DecRef(key)
    return found


@native
def depth_of(node: ptr) -> i64:
    return PyLong_AsLongLong(slot(node, expressions.node_depth))


@native
def common_shape(a: ptr, b: ptr) -> ptr:
    """The shape of an op on operands of these shapes, borrowed; None where they are to be broadcast along axes."""
    if a == b or Sized(b).size == 0:
        return a
    if Sized(a).size == 0:
        return b
    return a if PyObject_RichCompareBool(a, b, EQUAL) == 1 else None


@native
def new_pending(node: ptr, weak: ptr) -> ptr:
    """The Tensor of a node, which becomes its own; None, and an exception, without memory."""
    if node is None:
        return None
    tensor = PyType_GenericAlloc(process.tensor_type, 0)
    if tensor is not None:
        first_value(tensor, process.tensor_node, node)
        first_value(tensor, process.tensor_storage, process.none)
        first_value(tensor, process.tensor_weak, weak)
    Py_DecRef(node)
    return tensor


@native
def is_tensor(x: ptr) -> i64:
    return 1 if Object(x).type == process.tensor_type else 0


@native
def hold(inputs: ptr, i: i64, node: ptr) -> ptr:
    """The node, as an item of a tuple: whatever Python code runs from here on, it stays. None for None."""
    if node is not None:
        PyTuple_SetItem(inputs, i, shared(node))
    return node


@native
def operand_beside(x: ptr, a: ptr, y: ptr) -> ptr:
    """The node of the other operand, borrowed: a Tensor's, or a number's beside a strong Tensor. None, maybe with an exception, for what Python is to
    see."""
    if is_tensor(y) != 0:
        return pending_of(y)
    return constant_beside(slot(a, expressions.node_dtype), y) if slot(x, process.tensor_weak) == process.false else None


@native
def finish(operator: Operator, inputs: ptr, shape: ptr, of: ptr, depth: i64, weak: ptr) -> ptr:
    """The Tensor of the op on ``inputs``, a tuple that becomes its own; None, maybe with an exception, where Python is to record it."""
    dtype = PyDict_GetItemWithError(operator.results, of)
    if dtype is None or shape is None or depth >= recorder.max_depth:
        Py_DecRef(inputs)
        return None
    return new_pending(new_node(operator.op, inputs, shared(expressions.nothing), shape, dtype, depth + 1), weak)


@native
def record_unary(operator: Operator, x: ptr) -> ptr:
    """The Tensor of an op; None, maybe with an exception, where Python is to record it."""
    inputs = PyTuple_New(1)
    if inputs is None:
        return None
    a = hold(inputs, 0, pending_of(x))
    if a is None:
        Py_DecRef(inputs)
        return None
    return finish(operator, inputs, slot(a, expressions.node_shape), slot(a, expressions.node_dtype), depth_of(a), slot(x, process.tensor_weak))


@native
def record_binary(operator: Operator, x: ptr, y: ptr) -> ptr:
    """As :func:`record_unary`."""
    inputs = PyTuple_New(2)
    if inputs is None:
        return None
    a = hold(inputs, operator.swapped, pending_of(x))
    b: ptr = None
    if a is not None:
        b = hold(inputs, 1 - operator.swapped, operand_beside(x, a, y))
    if b is None or slot(b, expressions.node_dtype) != slot(a, expressions.node_dtype):
        Py_DecRef(inputs)
        return None
    shape = common_shape(slot(a, expressions.node_shape), slot(b, expressions.node_shape))
    depth = depth_of(a)
    if depth_of(b) > depth:
        depth = depth_of(b)
    weak = slot(x, process.tensor_weak)
    if is_tensor(y) != 0 and slot(y, process.tensor_weak) == process.false:
        weak = process.false
    return finish(operator, inputs, shape, slot(a, expressions.node_dtype), depth, weak)


@exported
def operator_call(operator: Operator, args: Array[ptr], flagged: i64, kwnames: ptr) -> ptr:
    """The vectorcall function of operators. The highest bit of ``flagged``, the number of arguments, says what may be done with ``args[-1]``."""
    if shift_right(flagged << 1, 1) == operator.arity and kwnames is None and process.tracing[0] == 0 and is_tensor(args[0]) != 0:
        made = record_unary(operator, args[0]) if operator.arity == 1 else record_binary(operator, args[0], args[1])
        if made is not None:
            return made
        if PyErr_Occurred() is not None:
            PyErr_Clear()
    return PyObject_Vectorcall(operator.python, args, flagged, kwnames)


@exported
def operator_bind(operator: ptr, obj: ptr, kind: ptr) -> ptr:
    """The ``__get__`` of operators: a bound method, or the operator itself where it is read from the class."""
    if obj is None or obj == process.none:
        return shared(operator)
    return PyMethod_New(operator, obj)
