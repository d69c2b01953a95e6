"""Arrow's C data interface: Tensors as Arrow arrays, which share their memory, in PyCapsules.

A Tensor of one axis is an array of numbers, one of more axes an array of lists of fixed size. A capsule, and what a consumer moves out of it, holds
the memory until its ``release`` is called, in whatever thread. https://arrow.apache.org/docs/format/CDataInterface.html
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.backends.native.code.object_layout import why_not_native
from hologram.backends.native.module import immortal, module
from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError, UnsupportedError
from hologram.support.user_lines import located
from hologram.trace.tensor import Tensor


class _Schema(ctypes.Structure):
    """``struct ArrowSchema``."""


class _Array(ctypes.Structure):
    """``struct ArrowArray``."""


_Schema._fields_ = [
    *((name, ctypes.c_char_p) for name in ("format", "name", "metadata")),
    *((name, ctypes.c_int64) for name in ("flags", "n_children")),
    *((name, ctypes.c_void_p) for name in ("children", "dictionary", "release", "private_data")),
]
_Array._fields_ = [
    *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    *((name, ctypes.c_void_p) for name in ("buffers", "children", "dictionary", "release", "private_data")),
]

_NULLABLE = 2  # a flag that types have where they are not told otherwise
_FORMATS = {  # of element types; bools are bits
    **{dtypes.of(name): letter for name, letter in zip(("int8", "int16", "int32", "int64"), "csil", strict=True)},
    **{dtypes.of(name): letter for name, letter in zip(("uint8", "uint16", "uint32", "uint64"), "CSIL", strict=True)},
    **{dtypes.of(name): letter for name, letter in zip(("bool", "float16", "float32", "float64"), "befg", strict=True)},
}


def capsules(t: Tensor, requested_schema: Any = None) -> tuple[Any, Any]:
    """``Tensor.__arrow_c_array__``: capsules of the type and of the values, in the type of numbers that is requested, if one is."""
    reason, (shape, of) = why_not_native(), t._aval()
    if reason is not None:
        raise located(UnsupportedError(f"Arrow arrays of Tensors need native code: {reason}; take pyarrow.array(np.asarray(tensor))"))
    if of not in _FORMATS:
        raise located(DTypeError(f"Arrow has no type for {of}: take astype, or the real and imaginary parts"))
    if not shape:
        raise located(ShapeError("an Arrow array has an axis: take reshape(1) of a Tensor of shape []"))
    values = np.ascontiguousarray(t._view("__arrow_c_array__()"))
    wanted = None if requested_schema is None else _numbers(_Schema.from_address(_pointer(requested_schema, ctypes.addressof(_NAMES["schema"]))))
    if wanted is not None and wanted is not of:
        of, values = wanted, _converted(values, of, wanted)
    return _capsule(_schema_of(of, values.shape[1:], b""), "schema"), _capsule(_array_of(values, values.shape), "array")


def _numbers(schema: _Schema) -> DType | None:
    """The element type that an Arrow type has at the end of its lists of fixed size; None where that is no number."""
    while schema.format.startswith(b"+w:"):
        schema = _Schema.from_address(ctypes.c_void_p.from_address(schema.children).value or 0)
    return {letter: of for of, letter in _FORMATS.items()}.get(schema.format.decode())


def _converted(values: np.ndarray, of: DType, to: DType) -> np.ndarray:
    """``values`` in another type. Raises DTypeError where one of them is not a number of it; floats are rounded."""
    with np.errstate(invalid="ignore", over="ignore"):
        made = values.astype(to.np)
        if not to.is_float and not np.array_equal(made, values):
            raise located(DTypeError(f"an Arrow array of {to} is asked for, and of these values of {of} not all are of that type: take astype"))
    return made


def _schema_of(of: DType, inner: tuple[int, ...], name: bytes) -> _Schema:
    """The type of an array whose elements are lists of these sizes."""
    keeps: list[Any] = []
    made = _Schema(format=f"+w:{inner[0]}".encode() if inner else _FORMATS[of].encode(), name=name, flags=_NULLABLE)
    if inner:
        keeps = _adopt(made, _schema_of(of, inner[1:], b"item"))
    return _given(made, "schema", keeps)


def _array_of(values: np.ndarray, shape: tuple[int, ...]) -> _Array:
    """The array of ``shape`` over all elements of ``values``, in C order."""
    made = _Array(length=shape[0], n_buffers=1 if len(shape) > 1 else 2)
    keeps: list[Any] = []
    buffers = (ctypes.c_void_p * 2)()  # which elements are valid: all; the elements
    if len(shape) > 1:
        keeps = _adopt(made, _array_of(values, (shape[0] * shape[1], *shape[2:])))
    else:
        data = np.packbits(values.reshape(-1), bitorder="little") if values.dtype == bool else values
        buffers[1] = data.ctypes.data
        keeps = [data]  # over a Storage, which counts it as an export
    made.buffers = ctypes.addressof(buffers)
    return _given(made, "array", [*keeps, buffers])


def _adopt(parent: Any, child: Any) -> list[Any]:
    """Makes a structure the only child of another; what the parent has to keep."""
    children = (ctypes.c_void_p * 1)(ctypes.addressof(child))
    parent.n_children, parent.children = 1, ctypes.addressof(children)
    return [child, children]


def _given(made: Any, kind: str, keeps: list[Any]) -> Any:
    """A structure to be handed out, which owns a reference to what it refers to until it is released."""
    made.private_data = id(immortal(keeps))
    made.release = module().address(f"hg_arrow_{kind}_release")
    return made


_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_set_context = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(("PyCapsule_SetContext", ctypes.pythonapi))
_NAMES = {kind: ctypes.create_string_buffer(f"arrow_{kind}".encode()) for kind in ("schema", "array")}  # which capsules refer to


def _capsule(structure: Any, kind: str) -> Any:
    """A capsule of a structure, which owns a reference to the object whose memory that is in."""
    made = _new_capsule(ctypes.addressof(structure), ctypes.addressof(_NAMES[kind]), module().address(f"hg_arrow_{kind}_destroy"))
    _set_context(made, id(immortal(structure)))
    return made
