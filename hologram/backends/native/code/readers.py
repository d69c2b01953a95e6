"""Native methods of Tensors that read elements: ``x[i]``, ``x[i:j]``, ``float(x)`` and the like, of realised Tensors on the host outside of traces.

Each is a vectorcall function of an :class:`Operator`, whose Python function does what is not known here, and raises what there is to be raised.
"""

from __future__ import annotations

from hologram.backends.native.code.capi import (
    Py_DecRef,
    PyDict_GetItemWithError,
    PyErr_Clear,
    PyErr_Occurred,
    PyLong_AsLongLong,
    PyLong_FromLongLong,
    PyObject_Vectorcall,
    PyTuple_New,
    PyTuple_SetItem,
)
from hologram.backends.native.code.expression_records import Operator
from hologram.backends.native.code.heap import storage_unwritten
from hologram.backends.native.code.object_layout import layout
from hologram.backends.native.code.reading import end_of, is_bound, storage_number
from hologram.backends.native.code.records import Object, Sized, Slice, Storage, heap, process, readers
from hologram.backends.native.code.slots import first_value, new_tensor, shared, slot

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native_lang.language import Array, copy, exported, i64, native, offset, ptr, shift_right

Pointers = Array[ptr]


@native
def readable(tensor: ptr) -> Storage:
    """The Storage of a strong Tensor that is realised on the host, borrowed; None for others, and while something is traced."""
    if process.tracing[0] != 0 or Object(tensor).type != process.tensor_type or slot(tensor, process.tensor_weak) != process.false:
        return None
    storage = Storage(slot(tensor, process.tensor_storage))
    return storage if storage.type == heap.storage_type else None


@native
def tensor_owning(storage: Storage) -> ptr:
    """A Tensor of a Storage, which becomes its own; None, and an exception, without memory."""
    if storage is None:
        return None
    made = new_tensor(storage)
    Py_DecRef(storage)
    return made


@native
def extent_of(storage: Storage) -> i64:
    """How many elements a Storage of one axis has; -1 for another rank."""
    shape = slot(storage.aval, heap.aval_shape)
    if Sized(shape).size != 1:
        return -1
    return PyLong_AsLongLong(Pointers(offset(shape, layout.tuple_items))[0])


@native
def element_of(storage: Storage, key: ptr, n: i64) -> ptr:
    """The Tensor of one of ``n`` elements; None, maybe with an exception, for an integer out of range."""
    i = PyLong_AsLongLong(key)
    if i < 0:
        i += n
    aval = PyDict_GetItemWithError(readers.elements, slot(storage.aval, heap.aval_dtype))
    if i < 0 or i >= n or aval is None or PyErr_Occurred() is not None:
        return None
    made = storage_unwritten(aval, 0)
    if made is None:
        return None
    copy(made.data, offset(storage.data, i * made.nbytes), made.nbytes)
    found = tensor_owning(made)
    if found is not None:
        first_value(found, readers.tensor_alias, readers.element)
    return found


@native
def aval_of_part(dtype: ptr, count: i64) -> ptr:
    """The Aval of a small vector, borrowed; None, maybe with an exception, where Python has not noted it."""
    vectors = PyDict_GetItemWithError(readers.vectors, dtype)
    if vectors is None:
        return None
    key = PyLong_FromLongLong(count)
    if key is None:
        return None
    found = PyDict_GetItemWithError(vectors, key)
    Py_DecRef(key)
    return found


@native
def triple(a: ptr, b: ptr, c: ptr) -> ptr:
    """A tuple; None, and an exception, without memory."""
    made = PyTuple_New(3)
    if made is not None:
        PyTuple_SetItem(made, 0, shared(a))
        PyTuple_SetItem(made, 1, shared(b))
        PyTuple_SetItem(made, 2, shared(c))
    return made


@native
def share(source: ptr, part: ptr, steps: ptr) -> ptr:
    """Calls Python's function of this name; what it gives. None, and an exception, where it fails, or for no ``steps``."""
    if steps is None:
        return None
    arguments = triple(source, part, steps)
    if arguments is None:
        return None
    found = PyObject_Vectorcall(readers.share, offset(arguments, layout.tuple_items), 3, None)
    Py_DecRef(arguments)
    return found


@native
def view_of(source: ptr, part: ptr, key: ptr, storage: Storage) -> ptr:
    """The part, an owned Tensor, of which Python notes that it is a view of its source. None, and an exception, where that fails."""
    if part is None:
        return None
    steps = triple(key, slot(storage.aval, heap.aval_shape), slot(storage.aval, heap.aval_dtype))
    noted = share(source, part, steps)
    Py_DecRef(steps)
    if noted is None:
        Py_DecRef(part)
        return None
    Py_DecRef(noted)
    return part


@native
def part_of(source: ptr, storage: Storage, key: Slice, n: i64) -> ptr:
    """The Tensor of neighbours among ``n`` elements; None, maybe with an exception, for other slices."""
    if key.step != process.none or is_bound(key.start) & is_bound(key.stop) == 0:
        return None
    start = end_of(key.start, n, 0)
    stop = end_of(key.stop, n, n)
    if start < 0 or stop <= start:
        return None
    aval = aval_of_part(slot(storage.aval, heap.aval_dtype), stop - start)
    if aval is None:
        return None
    made = storage_unwritten(aval, 0)
    if made is None:
        return None
    copy(made.data, offset(storage.data, storage.nbytes // n * start), made.nbytes)
    return view_of(source, tensor_owning(made), key, storage)


@native
def read_part(tensor: ptr, key: ptr) -> ptr:
    """``tensor[key]``; None, maybe with an exception, where Python is to see: it copies memory that is borrowed when a part of it is first read."""
    storage = readable(tensor)
    if storage is None or storage.owner is not None:
        return None
    n = extent_of(storage)
    if n <= 0:
        return None
    if Object(key).type == process.int_type:
        return element_of(storage, key, n)
    return part_of(tensor, storage, Slice(key), n) if Object(key).type == process.slice_type else None


@native
def read_number(tensor: ptr, kind: ptr) -> ptr:
    """The one element of a Tensor as a Python number of a class, of whichever for None; None, maybe with an exception, where Python is to see."""
    storage = readable(tensor)
    if storage is None:
        return None
    found = storage_number(None, storage)
    if found is not None and (found == process.none or (kind is not None and Object(found).type != kind)):
        Py_DecRef(found)
        return None
    return found


@native
def by_python(operator: Operator, args: ptr, flagged: i64, kwnames: ptr) -> ptr:
    """What Python's function gives, whatever came before."""
    if PyErr_Occurred() is not None:
        PyErr_Clear()
    return PyObject_Vectorcall(operator.python, args, flagged, kwnames)


@native
def takes(flagged: i64, kwnames: ptr, arity: i64) -> i64:
    """Whether a vectorcall has so many arguments, none by keyword."""
    return 1 if shift_right(flagged << 1, 1) == arity and kwnames is None else 0


@exported
def tensor_part(operator: Operator, args: Array[ptr], flagged: i64, kwnames: ptr) -> ptr:
    """Tensor.__getitem__."""
    made: ptr = None
    if takes(flagged, kwnames, 2) != 0:
        made = read_part(args[0], args[1])
    return by_python(operator, args, flagged, kwnames) if made is None else made


@native
def number_or_python(operator: Operator, args: Array[ptr], flagged: i64, kwnames: ptr, kind: ptr) -> ptr:
    """A method without arguments that gives the one element as a Python number of a class, of whichever for None."""
    found: ptr = None
    if takes(flagged, kwnames, 1) != 0:
        found = read_number(args[0], kind)
    return by_python(operator, args, flagged, kwnames) if found is None else found


@exported
def tensor_float(operator: Operator, args: Array[ptr], flagged: i64, kwnames: ptr) -> ptr:
    """Tensor.__float__."""
    return number_or_python(operator, args, flagged, kwnames, process.float_type)


@exported
def tensor_int(operator: Operator, args: Array[ptr], flagged: i64, kwnames: ptr) -> ptr:
    """Tensor.__int__."""
    return number_or_python(operator, args, flagged, kwnames, process.int_type)


@exported
def tensor_item(operator: Operator, args: Array[ptr], flagged: i64, kwnames: ptr) -> ptr:
    """Tensor.item, without an index."""
    return number_or_python(operator, args, flagged, kwnames, None)
