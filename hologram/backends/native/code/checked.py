"""Native code that checked kernels call: the first violation of bounds is kept for the caller of the graph, and memory is poisoned."""

from __future__ import annotations

from hologram.backends.native.code.capi import Py_DecRef, PyErr_Occurred, PyLong_FromLongLong, PyObject_CallOneArg
from hologram.backends.native.code.records import NOWHERE_BYTES, Context, nowhere, process
from hologram.backends.native_lang.language import Array, compare_exchange, exchange, exported, i64, integer, native, offset, ptr, u8, void

Pointers = Array[ptr]
Words = Array[i64]
Bytes = Array[u8]
POISON = 0x7FF4_7FF4_7FF4_7FF4  # a NaN in every floating type, a signalling one in float64; an index far outside of everything
LOW, HIGH = POISON & 0xFF, POISON >> 8 & 0xFF


@exported
def violated(context: Context, statement: ptr, kernel: ptr, index: i64, size: i64, writes: i64) -> ptr:
    """Keeps the first violation of a call and cancels the call; gives memory of nobody, from which an access may go either way."""
    if compare_exchange(context.violated, 0, 1) != 0:
        context.statement = statement
        context.kernel = kernel
        context.index = index
        context.size = size
        context.writes = writes
        exchange(context.cancelled, 1)
    return offset(nowhere, NOWHERE_BYTES + 2 * NOWHERE_BYTES * writes)


@native
def raise_violation(context: Context) -> void:
    """Sets BoundsError where a kernel of the call has violated bounds and nothing else is raised."""
    if context.violated == 0:
        return
    context.violated = 0
    if PyErr_Occurred() is not None:
        return
    where = PyLong_FromLongLong(integer(context))
    if where is not None:
        Py_DecRef(PyObject_CallOneArg(process.violation, where))
        Py_DecRef(where)


@exported
def poison(data: ptr, nbytes: i64) -> void:
    """Fills memory, whose start is aligned to a multiple of two bytes or is that of bytes, with :data:`POISON`."""
    words = Words(data)
    for i in range(nbytes >> 3):
        words[i] = POISON
    rest = nbytes & ~7
    for i in range(rest, nbytes):
        Bytes(data)[i] = HIGH if i & 1 != 0 else LOW


@exported
def poison_result(buffers: ptr, given: i64, data: ptr, nbytes: i64) -> void:
    """Fills a result that is not in the memory of one of the ``given`` first buffers."""
    for i in range(given):
        if Pointers(buffers)[i] == data:
            return
    poison(data, nbytes)
