"""The buffer protocol of classes written in Python, which have a method ``__buffer__(flags)``.

From Python 3.12 on the interpreter calls that method by itself. Python 3.11 calls a C function whose address stands in the class: here it is written
there, once for each class. Native code is loaded when a buffer is first asked for, not when the class is made.

The classes have a function for the end of an export, too, which has nothing to do: NumPy keeps exports of such objects alone, and of others no more
than the object itself, whose memory may go before it does.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

_GetBuffer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
_get_buffer = _GetBuffer(("PyObject_GetBuffer", ctypes.pythonapi))
_VIEW_OBJECT = 8  # offset of a Py_buffer's exporter
_WORD = ctypes.sizeof(ctypes.c_void_p)
_TABLE_AT = sys.getsizeof(object()) + 18 * _WORD  # offset of tp_as_buffer in a type: behind ob_size and 17 words, in Python 3.11
_classes: list[type] = []


def has_buffers(cls: type) -> type:
    """Class decorator: instances have the buffer protocol by ``__buffer__``. Where Python 3.11 has types of another layout they do not."""
    if sys.version_info >= (3, 12):
        cls.__release_buffer__ = _end_of_export  # type: ignore[attr-defined]
    elif sys.implementation.name == "cpython" and _slots(cls) is not None:
        _classes.append(cls)
        _write(cls, ctypes.cast(_first_export, ctypes.c_void_p).value)
    return cls


def _end_of_export(exporter: Any, view: Any) -> None:
    """``__release_buffer__``: the memoryview that ``__buffer__`` gave ends by itself."""


def _slots(cls: type) -> Any:
    """The class's pointers to its two functions; None where the class is not laid out as known: its table stands within it."""
    table = ctypes.c_uint64.from_address(id(cls) + _TABLE_AT).value
    return (ctypes.c_void_p * 2).from_address(table) if id(cls) < table < id(cls) + sys.getsizeof(cls) else None


def _write(cls: type, function: int | None) -> None:
    _slots(cls)[:] = [function, ctypes.cast(_end, ctypes.c_void_p).value]


def _export(exporter: Any, view: int, flags: int) -> int:
    """``bf_getbuffer`` before native code is loaded, which serves all later calls where there is any. An exception cannot leave it: the interpreter
    raises SystemError instead."""
    from hologram.backends.native.code.object_layout import why_not_native

    try:
        if why_not_native() is None:
            address = _native_export()
            for cls in _classes:
                _write(cls, address)
            return _GetBuffer(address)(exporter, view, flags)
        return _get_buffer(exporter.__buffer__(flags), view, flags)
    except BaseException:
        ctypes.c_void_p.from_address(view + _VIEW_OBJECT).value = None
        return -1


def _native_export() -> int:
    """The address of native code for ``bf_getbuffer``, told what to call."""
    from hologram.backends.native.module import immortal, module

    module().process.buffer_view = id(immortal(lambda exporter, flags: exporter.__buffer__(flags)))
    return module().address("hg_buffer_getbuffer")


_first_export = _GetBuffer(_export)
_end = ctypes.PYFUNCTYPE(None, ctypes.py_object, ctypes.c_void_p)(_end_of_export)
