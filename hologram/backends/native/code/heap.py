"""Native code of the caching allocator and of the type of Storage objects. Runs with the GIL held."""

from __future__ import annotations

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native.code.blocks import block_free, block_new
from hologram.backends.native.code.capi import (
    Py_DecRef,
    Py_IncRef,
    PyBuffer_FillInfo,
    PyErr_BadArgument,
    PyErr_NoMemory,
    PyErr_Occurred,
    PyLong_AsLongLong,
    PyLong_AsVoidPtr,
    PyLong_FromLongLong,
    PyMem_RawFree,
    PyMem_RawMalloc,
    PyObject_CallOneArg,
    PyObject_Free,
    PyObject_GetBuffer,
    PyObject_Init,
    PyObject_Vectorcall,
    PyType_GenericAlloc,
)
from hologram.backends.native.code.object_layout import layout
from hologram.backends.native.code.records import SIZE_CLASSES, WRITABLE, NDArray, NumberForm, Object, PyBuffer, Sized, Storage, heap, process
from hologram.backends.native_lang.language import (
    Array,
    exported,
    i32,
    i64,
    leading_zeros,
    native,
    offset,
    offset_of,
    ptr,
    size_of,
    void,
)

Pointers, Words = Array[ptr], Array[i64]
VIEW_OBJECT = offset_of(PyBuffer, "exporter")
NUMBER_FORM, LETTER_AT = size_of(NumberForm), offset_of(NumberForm, "letter")
# what a consumer of a buffer asks for, numbers of CPython's API: memory to write to, Fortran's order, and a format, a shape and strides
WRITABLE_BUFFER, FORTRAN_ORDER, ANY_STRIDES = 0x1, 0x40, 0x1C
BORROWED = SIZE_CLASSES - 1  # the free list of Storages without memory of their own
CACHE_SLACK = 256 << 20  # free memory that is kept beyond as much as is live


# --- size classes: 64, 128, 192, 256 bytes, then four steps to each power of two ------------------------------------------------------------


@exported
def size_class_of(nbytes: i64) -> i64:
    """The smallest class that holds ``nbytes``."""
    units = (nbytes + 63) >> 6
    if units <= 4:
        return 0 if units == 0 else units - 1
    shift = 61 - leading_zeros(units - 1)
    return shift * 4 + ((units - 1) >> shift)


@exported
def bytes_of_class(size_class: i64) -> i64:
    if size_class < 4:
        return (size_class + 1) << 6
    shift = (size_class >> 2) - 1
    return ((size_class & 3) + 5) << (shift + 6)


# --- Storages -------------------------------------------------------------------------------------------------------------------------------


@native
def out_of_memory(nbytes: i64) -> void:
    """Sets the OutOfMemory exception."""
    size = PyLong_FromLongLong(nbytes)
    if size is not None:
        Py_DecRef(PyObject_CallOneArg(heap.raise_out_of_memory, size))
        Py_DecRef(size)


@exported
def heap_trim() -> void:
    """Gives all memory that is not in use back to the system."""
    for size_class in range(SIZE_CLASSES):
        found = Storage(heap.free[size_class])
        heap.free[size_class] = None
        while found is not None:
            following = Storage(found.next)
            if found.capacity != 0:
                heap.cached -= found.capacity
                block_free(found.data, found.capacity)
            PyObject_Free(found)
            found = following


@native
def storage_fresh(size_class: i64, capacity: i64) -> Storage:
    """A Storage with fresh memory; None, and an exception, where there is none."""
    if heap.cached > heap.live + CACHE_SLACK or (heap.limit != 0 and heap.live + heap.cached + capacity > heap.limit):
        heap_trim()
    data = block_new(capacity)
    if data is None:
        heap_trim()
        data = block_new(capacity)
        if data is None:
            return None
    found = Storage(PyType_GenericAlloc(heap.storage_type, 0))
    if found is None:
        block_free(data, capacity)
        return None
    found.data = data
    found.capacity = capacity
    found.size_class = size_class
    return found


@native
def storage_take(aval: ptr, nbytes: i64, size_class: i64) -> Storage:
    """A Storage of unwritten memory; None, and an exception, where there is none."""
    found = Storage(heap.free[size_class])
    capacity = bytes_of_class(size_class)
    if heap.limit != 0 and heap.live + capacity > heap.limit:
        out_of_memory(nbytes)
        return None
    if found is not None:
        heap.free[size_class] = found.next
        heap.cached -= capacity
        PyObject_Init(found, heap.storage_type)
    else:
        found = storage_fresh(size_class, capacity)
        if found is None:
            if PyErr_Occurred() is None:
                out_of_memory(nbytes)
            return None
    heap.live += capacity
    if heap.live > heap.peak:
        heap.peak = heap.live
    Py_IncRef(aval)
    found.aval = aval
    found.nbytes = nbytes
    found.owner = None
    found.exports = 0
    found.flags = 0
    return found


@exported
def storage_dealloc(self: Storage) -> void:
    """tp_dealloc: the object goes to its free list together with its memory."""
    aval = self.aval
    owner = self.owner
    size_class = self.size_class
    heap.live -= self.capacity
    heap.cached += self.capacity
    self.next = heap.free[size_class]
    heap.free[size_class] = self
    Py_DecRef(heap.storage_type)
    Py_DecRef(aval)
    Py_DecRef(owner)


@exported
def storage_getbuffer(self: Storage, view: ptr, flags: i32) -> i32:
    """bf_getbuffer: read-only bytes."""
    status = PyBuffer_FillInfo(view, self, self.data, self.nbytes, 1 - (self.flags & WRITABLE), flags)
    if status == 0:
        self.exports += 1
    return status


@exported
def storage_releasebuffer(self: Storage, view: PyBuffer) -> void:
    """bf_releasebuffer."""
    self.exports -= 1
    if view.internal is not None:
        PyMem_RawFree(view.internal)


@native
def letter_of(storage: Storage) -> ptr:
    """The format of a Storage's elements in the buffer protocol; None for complex numbers and narrow floats."""
    dtype = Pointers(offset(storage.aval, heap.aval_dtype))[0]
    for i in range(heap.n_numbers):
        if heap.numbers[i].dtype == dtype:
            return offset(heap.numbers, i * NUMBER_FORM + LETTER_AT)
    return None


@native
def storage_exported(self: Storage, view: PyBuffer) -> i64:
    """Exports an array of one axis and more, read-only, in C order: whether it could. The export has the memory of its shape and strides."""
    letter = letter_of(self)
    shape = Pointers(offset(self.aval, heap.aval_shape))[0]
    ndim = Sized(shape).size
    if letter is None or ndim == 0 or self.nbytes == 0:
        return 0
    extents = Words(PyMem_RawMalloc(16 * ndim))
    if extents is None:
        return 0
    size = 1
    for i in range(ndim):
        extents[i] = PyLong_AsLongLong(Pointers(offset(shape, layout.tuple_items))[i])
        size = size * extents[i]
    stride = self.nbytes // size
    view.itemsize = stride
    for i in range(ndim):
        axis = ndim - 1 - i
        extents[ndim + axis] = stride
        stride = stride * extents[axis]
    view.data = self.data
    view.exporter = self
    view.nbytes = self.nbytes
    view.readonly = 1
    view.ndim = ndim
    view.format = letter
    view.shape = extents
    view.strides = Words(offset(extents, 8 * ndim))
    view.suboffsets = None
    view.internal = extents
    self.exports += 1
    Py_IncRef(self)
    return 1


@exported
def buffer_getbuffer(self: ptr, view: ptr, flags: i32) -> i32:
    """bf_getbuffer of classes that have a method ``__buffer__``: what the memoryview exports that it gives. A Tensor of a Storage exports that itself
    to consumers that take any strides."""
    if Object(self).type == process.tensor_type and flags & (WRITABLE_BUFFER | FORTRAN_ORDER) == 0 and flags & ANY_STRIDES == ANY_STRIDES:
        storage = Storage(Pointers(offset(self, process.tensor_storage))[0])
        if storage.type == heap.storage_type and storage.flags & WRITABLE == 0 and storage_exported(storage, PyBuffer(view)) != 0:
            return 0
    made: ptr = None
    wanted = PyLong_FromLongLong(flags)
    if wanted is not None:
        args = Pointers(view)  # the record is still to be filled: it has room for two arguments
        args[0] = self
        args[1] = wanted
        made = PyObject_Vectorcall(process.buffer_view, args, 2, None)
        Py_DecRef(wanted)
    if made is None:
        Pointers(offset(view, VIEW_OBJECT))[0] = None
        return -1
    status = PyObject_GetBuffer(made, view, flags)
    Py_DecRef(made)
    return status


# --- functions for Python -------------------------------------------------------------------------------------------------------------------


@native
def nbytes_of(aval: ptr) -> i64:
    """Bytes of an Aval; -1, and an exception, where it is none."""
    if Object(aval).type != heap.aval_type:
        PyErr_BadArgument()
        return -1
    return PyLong_AsLongLong(Pointers(offset(aval, heap.aval_nbytes))[0])


@native
def storage_unwritten(aval: ptr, flags: i64) -> Storage:
    """A Storage of unwritten memory; None, and an exception, where there is none."""
    nbytes = nbytes_of(aval)
    if nbytes < 0:
        return None
    found = storage_take(aval, nbytes, size_class_of(nbytes))
    if found is not None:
        found.flags = flags
    return found


@exported
def storage_new(module: ptr, aval: ptr) -> Storage:
    """METH_O: a writable Storage of unwritten memory."""
    return storage_unwritten(aval, WRITABLE)


@exported
def storage_seal(module: ptr, self: Storage) -> ptr:
    """METH_O: from now on the Storage is read-only. Gives it back."""
    if self.type != heap.storage_type:
        PyErr_BadArgument()
        return None
    self.flags = self.flags & ~WRITABLE
    Py_IncRef(self)
    return self


@exported
def storage_give(module: ptr, tensor: ptr) -> ptr:
    """METH_O (Tensor): its Storage, writable from now on, where nothing else holds that and the memory is its own; else None."""
    if Object(tensor).type == process.tensor_type:
        self = Storage(Pointers(offset(tensor, process.tensor_storage))[0])
        if self is not None and self.type == heap.storage_type and self.refcount == 1 and self.exports == 0 and self.owner is None:
            self.flags = self.flags | WRITABLE
            Py_IncRef(self)
            return self
    Py_IncRef(process.none)
    return process.none


@native
def storage_borrowed(aval: ptr, owner: ptr, data: ptr, flags: i64) -> Storage:
    """A Storage over memory that ``owner`` keeps alive; None, and an exception, where it cannot be."""
    nbytes = nbytes_of(aval)
    if nbytes < 0:
        return None
    found = Storage(heap.free[BORROWED])
    if found is not None:
        heap.free[BORROWED] = found.next
        PyObject_Init(found, heap.storage_type)
    else:
        found = Storage(PyType_GenericAlloc(heap.storage_type, 0))
        if found is None:
            PyErr_NoMemory()
            return None
    Py_IncRef(aval)
    Py_IncRef(owner)
    found.aval = aval
    found.owner = owner
    found.data = data
    found.nbytes = nbytes
    found.capacity = 0
    found.size_class = BORROWED
    found.exports = 0
    found.flags = flags
    return found


@exported
def storage_borrow(module: ptr, args: Array[ptr], nargs: i64) -> Storage:
    """METH_FASTCALL (aval, ndarray, flags): a Storage over the array's memory."""
    return storage_borrowed(args[0], args[1], NDArray(args[1]).data, PyLong_AsLongLong(args[2]))


@exported
def storage_over(module: ptr, args: Array[ptr], nargs: i64) -> Storage:
    """METH_FASTCALL (aval, address, owner, flags): a Storage over memory at an address."""
    data = PyLong_AsVoidPtr(args[1])
    if data is None:
        return None
    return storage_borrowed(args[0], args[2], data, PyLong_AsLongLong(args[3]))
