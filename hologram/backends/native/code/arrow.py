"""Native code that ends structures of Arrow's C data interface: consumers release them in any thread, and while an exception is on its way."""

from __future__ import annotations

# None is the null pointer.
# mypy: disable-error-code="assignment,arg-type"
from hologram.backends.native.code.capi import (
    Py_DecRef,
    PyCapsule_GetContext,
    PyCapsule_GetName,
    PyCapsule_GetPointer,
    PyErr_Fetch,
    PyErr_Restore,
    PyGILState_Ensure,
    PyGILState_Release,
    PyMem_RawFree,
    PyMem_RawMalloc,
)
from hologram.backends.native_lang.language import Array, Function, Struct, at, exported, i64, native, offset, ptr, void

Pointers = Array[ptr]


class ArrowSchema(Struct):
    n_children: i64 = at(32)
    children: Array[ptr] = at(40)
    release: ptr = at(56)
    private_data: ptr = at(64)


class ArrowArray(Struct):
    n_children: i64 = at(32)
    children: Array[ptr] = at(48)
    release: ptr = at(64)
    private_data: ptr = at(72)


class Release(Function):
    def __call__(self, structure: ptr) -> void:
        raise NotImplementedError


@native
def drop(obj: ptr) -> void:
    """Gives up a reference, in whatever thread; an exception that is set there stays."""
    state = PyGILState_Ensure()
    raised = Pointers(PyMem_RawMalloc(24))
    if raised is not None:
        PyErr_Fetch(raised, offset(raised, 8), offset(raised, 16))
    Py_DecRef(obj)
    if raised is not None:
        PyErr_Restore(raised[0], raised[1], raised[2])
        PyMem_RawFree(raised)
    PyGILState_Release(state)


@exported
def arrow_schema_release(self: ArrowSchema) -> void:
    """``ArrowSchema.release``: of its child too, unless a consumer moved that out; then of what it refers to."""
    if self.n_children != 0:
        child = ArrowSchema(self.children[0])
        if child.release is not None:
            Release(child.release)(child)
    kept = self.private_data
    self.release = None
    drop(kept)


@exported
def arrow_array_release(self: ArrowArray) -> void:
    """As :func:`arrow_schema_release`, of an array."""
    if self.n_children != 0:
        child = ArrowArray(self.children[0])
        if child.release is not None:
            Release(child.release)(child)
    kept = self.private_data
    self.release = None
    drop(kept)


@exported
def arrow_schema_destroy(capsule: ptr) -> void:
    """A capsule's destructor: releases a schema that no consumer moved out, then the object whose memory it is in."""
    schema = ArrowSchema(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)))
    if schema.release is not None:
        Release(schema.release)(schema)
    drop(PyCapsule_GetContext(capsule))


@exported
def arrow_array_destroy(capsule: ptr) -> void:
    """As :func:`arrow_schema_destroy`, of an array."""
    array = ArrowArray(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)))
    if array.release is not None:
        Release(array.release)(array)
    drop(PyCapsule_GetContext(capsule))
