"""C functions that native code calls, declared once. CPython's API, so that no operating system's is needed."""

from __future__ import annotations

from hologram.backends.native_lang.language import external, f64, i32, i64, ptr, void

# mypy: disable-error-code="empty-body"


@external
def Py_IncRef(obj: ptr) -> void: ...


@external
def Py_DecRef(obj: ptr) -> void: ...


@external
def PyMem_RawMalloc(nbytes: i64) -> ptr: ...


@external
def PyMem_RawCalloc(count: i64, nbytes: i64) -> ptr: ...


@external
def PyMem_RawFree(block: ptr) -> void: ...


@external
def PyType_GenericAlloc(kind: ptr, items: i64) -> ptr: ...


@external
def PyObject_Init(obj: ptr, kind: ptr) -> ptr: ...


@external
def PyObject_Free(obj: ptr) -> void: ...


@external
def PyObject_CallNoArgs(function: ptr) -> ptr: ...


@external
def PyObject_CallOneArg(function: ptr, argument: ptr) -> ptr: ...


@external
def PyObject_Vectorcall(function: ptr, args: ptr, nargs: i64, kwnames: ptr) -> ptr: ...


@external
def PyObject_RichCompareBool(a: ptr, b: ptr, op: i32) -> i32: ...


@external
def PyObject_GetAttr(obj: ptr, name: ptr) -> ptr: ...


@external
def PyObject_GenericSetAttr(obj: ptr, name: ptr, value: ptr) -> i32: ...


@external
def PySequence_Tuple(items: ptr) -> ptr: ...


@external
def PyObject_Size(obj: ptr) -> i64: ...


@external
def PyBuffer_FillInfo(view: ptr, exporter: ptr, data: ptr, nbytes: i64, readonly: i32, flags: i32) -> i32: ...


@external
def PyObject_GetBuffer(obj: ptr, view: ptr, flags: i32) -> i32: ...


@external
def PyTuple_New(n: i64) -> ptr: ...


@external
def PyTuple_SetItem(items: ptr, i: i64, stolen: ptr) -> i32: ...


@external
def PyList_New(n: i64) -> ptr: ...


@external
def PyList_SetItem(items: ptr, i: i64, stolen: ptr) -> i32: ...


@external
def PyList_Append(items: ptr, item: ptr) -> i32: ...


@external
def PyList_SetSlice(items: ptr, start: i64, stop: i64, others: ptr) -> i32: ...


@external
def PyBytes_FromStringAndSize(data: ptr, nbytes: i64) -> ptr: ...


@external
def PyBytes_AsString(obj: ptr) -> ptr: ...


@external
def PyDict_New() -> ptr: ...


@external
def PyDict_SetItem(table: ptr, key: ptr, value: ptr) -> i32: ...


@external
def PyDict_Next(table: ptr, position: ptr, key: ptr, value: ptr) -> i32: ...


@external
def PyDict_Size(table: ptr) -> i64: ...


@external
def PyDict_GetItemWithError(table: ptr, key: ptr) -> ptr: ...


@external
def PyFloat_AsDouble(obj: ptr) -> f64: ...


@external
def PyFloat_FromDouble(x: f64) -> ptr: ...


@external
def PyLong_AsLongLong(obj: ptr) -> i64: ...


@external
def PyLong_AsVoidPtr(obj: ptr) -> ptr: ...


@external
def PyLong_AsLongLongAndOverflow(obj: ptr, overflow: ptr) -> i64: ...


@external
def PyLong_FromLongLong(n: i64) -> ptr: ...


@external
def PyLong_FromUnsignedLongLong(n: i64) -> ptr: ...


@external
def PyMethod_New(function: ptr, obj: ptr) -> ptr: ...


@external
def PyErr_Occurred() -> ptr: ...


@external
def PyErr_ExceptionMatches(kind: ptr) -> i32: ...


@external
def PyErr_Clear() -> void: ...


@external
def PyErr_Fetch(kind: ptr, value: ptr, trace: ptr) -> void: ...


@external
def PyErr_Restore(kind: ptr, value: ptr, trace: ptr) -> void: ...


@external
def PyErr_BadArgument() -> i32: ...


@external
def PyErr_NoMemory() -> ptr: ...


@external
def PyErr_CheckSignals() -> i32: ...


@external
def PyEval_SaveThread() -> ptr: ...


@external
def PyEval_RestoreThread(state: ptr) -> void: ...


@external
def PyThread_get_thread_ident() -> i64: ...


@external
def PyThread_acquire_lock(lock: ptr, wait: i32) -> i32: ...


@external
def PyThread_acquire_lock_timed(lock: ptr, microseconds: i64, interruptible: i32) -> i32: ...


@external
def PyThread_release_lock(lock: ptr) -> void: ...


@external
def PyGILState_Ensure() -> i32: ...


@external
def PyGILState_Release(state: i32) -> void: ...


@external
def PyCapsule_GetName(capsule: ptr) -> ptr: ...


@external
def PyCapsule_GetPointer(capsule: ptr, name: ptr) -> ptr: ...


@external
def PyCapsule_GetContext(capsule: ptr) -> ptr: ...
