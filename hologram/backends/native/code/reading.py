"""Native code that reads values without a program: elements and small parts of arrays as Storages, and single elements as Python numbers."""

from __future__ import annotations

from hologram.backends.native.code.capi import (
    Py_DecRef,
    PyDict_GetItemWithError,
    PyErr_Clear,
    PyErr_Occurred,
    PyFloat_FromDouble,
    PyLong_AsLongLong,
    PyLong_FromLongLong,
    PyLong_FromUnsignedLongLong,
)
from hologram.backends.native.code.heap import storage_unwritten
from hologram.backends.native.code.object_layout import layout
from hologram.backends.native.code.records import NDArray, Object, Sized, Slice, Storage, heap, process
from hologram.backends.native.code.slots import shared

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native_lang.language import Array, copy, exported, f32, f64, i64, integer, native, offset, ptr, u8, u16, u32, void
from hologram.dtypes import DType

Words, Pointers, Doubles, Singles = Array[i64], Array[ptr], Array[f64], Array[f32]
Bytes, Halves, Quarters = Array[u8], Array[u16], Array[u32]

AS_DOUBLE, AS_SINGLE, AS_BOOL, AS_SIGNED, AS_UNSIGNED = range(5)  # how an element becomes a Python number


def form_of(d: DType) -> int | None:
    """How an element of type ``d`` becomes a Python number; None for complex numbers and narrow floats."""
    if d.is_complex or d.is_narrow_float:
        return None
    by_kind = {"b": AS_BOOL, "i": AS_SIGNED, "u": AS_UNSIGNED}
    return by_kind.get(d.kind, AS_DOUBLE if d.itemsize == 8 else AS_SINGLE)


# --- elements and windows -------------------------------------------------------------------------------------------------------------------


@native
def is_bound(x: ptr) -> i64:
    """Whether an end of a slice, or its step, is a Python integer or None."""
    return 1 if x == process.none or Object(x).type == process.int_type else 0


@native
def is_basic(part: ptr) -> i64:
    """Whether a part of an index is an integer, a slice of integers, None or Ellipsis, of exactly these classes."""
    kind = Object(part).type
    if kind == process.slice_type:
        bounds = Slice(part)
        return is_bound(bounds.start) & is_bound(bounds.stop) & is_bound(bounds.step)
    return 1 if kind == process.int_type or part == process.none or part == process.ellipsis else 0


@native
def element_at(array: NDArray, axis: i64, index: ptr, at: ptr) -> ptr:
    """The address ``at`` moved to ``index`` along an axis; None for what is no integer that is in range."""
    if Object(index).type != process.int_type:
        return None
    i = PyLong_AsLongLong(index)
    if i == -1 and PyErr_Occurred() is not None:
        PyErr_Clear()
        return None
    n = array.shape[axis]
    if i < 0:
        i += n
    if i < 0 or i >= n:
        return None
    return offset(at, i * array.strides[axis])


@native
def element(array: NDArray, key: ptr) -> ptr:
    """The address of the one element that ``key`` chooses; None for another key."""
    if Object(key).type != process.tuple_type:
        return element_at(array, 0, key, array.data) if array.ndim == 1 else None
    if Sized(key).size != array.ndim:
        return None
    found = array.data
    for axis in range(array.ndim):
        found = element_at(array, axis, Pointers(offset(key, layout.tuple_items))[axis], found)
        if found is None:
            return None
    return found


@native
def copy_row(target: ptr, source: ptr, n: i64, stride: i64, itemsize: i64) -> void:
    """Copies elements that lie ``stride`` bytes apart."""
    aligned = (integer(source) | stride) & (itemsize - 1) == 0
    if stride == itemsize:
        copy(target, source, n * itemsize)
    elif aligned and itemsize == 4:
        for i in range(n):
            Quarters(target)[i] = Quarters(offset(source, i * stride))[0]
    elif aligned and itemsize == 8:
        for i in range(n):
            Words(target)[i] = Words(offset(source, i * stride))[0]
    else:
        for i in range(n):
            copy(offset(target, i * itemsize), offset(source, i * stride), itemsize)


@native
def end_of(bound: ptr, n: i64, without: i64) -> i64:
    """Where a slice of ``n`` elements begins or ends that has this bound: ``without`` for None; -1 for an integer that is out of range."""
    if bound == process.none:
        return without
    i = PyLong_AsLongLong(bound)
    if i == -1 and PyErr_Occurred() is not None:
        PyErr_Clear()
        return -1
    if i < 0:
        i += n
    return i if 0 <= i and i <= n else -1


@native
def window(array: NDArray, key: Slice, avals: ptr) -> ptr:
    """A Storage with a copy of neighbours in an array of one axis, between bounds that are in range; how many these are where ``avals`` has no Aval
    for it; None, and perhaps an exception, for other slices."""
    n = array.shape[0]
    if key.step != process.none or is_bound(key.start) & is_bound(key.stop) == 0:
        return None
    start = end_of(key.start, n, 0)
    stop = end_of(key.stop, n, n)
    if start < 0 or stop < start:
        return None
    count = PyLong_FromLongLong(stop - start)
    if count is None:
        return None
    aval = PyDict_GetItemWithError(avals, count)
    if aval is None:
        return count
    Py_DecRef(count)
    made = storage_unwritten(aval, 0)
    if made is not None and stop > start:
        stride = array.strides[0]
        copy_row(made.data, offset(array.data, start * stride), stop - start, stride, made.nbytes // (stop - start))
    return made


@exported
def storage_pick(module: ptr, args: Array[ptr], nargs: i64) -> ptr:
    """METH_FASTCALL (ndarray, key, aval of an element, dict from extents to avals of vectors): a Storage with a copy of the element that a key of
    integers in range chooses, or of the part that a slice chooses, or how long that is where the dict has no Aval for it; True for another key of
    integers, slices, None and Ellipsis; False for any other, and while something is traced."""
    if process.tracing[0] != 0:
        return shared(process.false)
    key = args[1]
    if Object(key).type == process.slice_type and NDArray(args[0]).ndim == 1:
        part = window(NDArray(args[0]), Slice(key), args[3])
        if part is not None or PyErr_Occurred() is not None:
            return part
    at = element(NDArray(args[0]), key)
    if at is not None:
        made = storage_unwritten(args[2], 0)
        if made is None:
            return None
        copy(made.data, at, made.nbytes)
        return made
    if Object(key).type != process.tuple_type:
        return shared(process.true if is_basic(key) != 0 else process.false)
    for i in range(Sized(key).size):
        if is_basic(Pointers(offset(key, layout.tuple_items))[i]) == 0:
            return shared(process.false)
    return shared(process.true)


@native
def copy_axes(target: ptr, array: NDArray, axis: i64, source: ptr, itemsize: i64) -> ptr:
    """Copies the elements of an array from an axis on, in C order; gives the address behind the copy."""
    n = array.shape[axis]
    stride = array.strides[axis]
    if axis == array.ndim - 1:
        copy_row(target, source, n, stride, itemsize)
        return offset(target, n * itemsize)
    for i in range(n):
        target = copy_axes(target, array, axis + 1, offset(source, i * stride), itemsize)
    return target


@exported
def storage_copied(module: ptr, args: Array[ptr], nargs: i64) -> Storage:
    """METH_FASTCALL (aval, ndarray of this type and shape): a Storage with its elements."""
    made = storage_unwritten(args[0], 0)
    if made is None:
        return None
    array = NDArray(args[1])
    size = 1
    for axis in range(array.ndim):
        size = size * array.shape[axis]
    if array.ndim == 0:
        copy(made.data, array.data, made.nbytes)
    elif size != 0:
        copy_axes(made.data, array, 0, array.data, made.nbytes // size)
    return made


# --- numbers --------------------------------------------------------------------------------------------------------------------------------


@native
def whole(data: ptr, nbytes: i64) -> i64:
    """The bits of an unsigned integer of 1, 2, 4 or 8 bytes."""
    if nbytes == 8:
        return Words(data)[0]
    if nbytes == 4:
        return Quarters(data)[0]
    return Halves(data)[0] if nbytes == 2 else Bytes(data)[0]


@exported
def storage_number(module: ptr, self: Storage) -> ptr:
    """METH_O: the one element of a Storage as a Python number; None where it has another number of elements, or a type that Python lacks."""
    if self.type != heap.storage_type:
        return shared(process.none)
    dtype = Pointers(offset(self.aval, heap.aval_dtype))[0]
    for i in range(heap.n_numbers):
        number = heap.numbers[i]
        if number.dtype == dtype and number.nbytes == self.nbytes:
            if number.form == AS_DOUBLE:
                return PyFloat_FromDouble(Doubles(self.data)[0])
            if number.form == AS_SINGLE:
                return PyFloat_FromDouble(Singles(self.data)[0])
            n = whole(self.data, self.nbytes)
            if number.form == AS_BOOL:
                return shared(process.true if n != 0 else process.false)
            if number.form == AS_UNSIGNED:
                return PyLong_FromUnsignedLongLong(n)
            unused = 64 - 8 * self.nbytes
            return PyLong_FromLongLong((n << unused) >> unused)
    return shared(process.none)
