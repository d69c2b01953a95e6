"""Operators of Tensors that native code records: objects that stand in the class of Tensors, or are called, where Python functions did."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from hologram.backends.native.code.expression_records import Operator
from hologram.backends.native.code.object_layout import slot_offset
from hologram.backends.native.module import METH_FASTCALL, Record, immortal, module
from hologram.backends.native.native_storage import (
    DISALLOW_INSTANTIATION,
    HAVE_VERSION_TAG,
    MEMBERS,
    READONLY,
    T_OBJECT,
    make_type,
    members,
)
from hologram.backends.native_lang.language import offset_of, size_of
from hologram.dtypes import ALL, DType
from hologram.ir.aval import Aval, aval
from hologram.support.once import once

_CALL, _DESCR_GET = 50, 54  # slot numbers of CPython's stable ABI
_METHOD_DESCRIPTOR, _HAVE_VECTORCALL = 1 << 17, 1 << 11
_T_SSIZE = 19
_SHOWN = {"__wrapped__": "python", "__name__": "name", "__doc__": "doc"}


@once
def _type() -> Any:
    """The class of operators: method descriptors, which CPython calls with their object as first argument."""
    rows = [("__vectorcalloffset__", _T_SSIZE, offset_of(Operator, "vectorcall"))]
    rows += [(name, T_OBJECT, offset_of(Operator, field)) for name, field in _SHOWN.items()]
    slots = {
        _CALL: ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p).value,
        _DESCR_GET: module().address("hg_operator_bind"),
        MEMBERS: members([(*row, READONLY) for row in rows]),
    }
    flags = DISALLOW_INSTANTIATION | HAVE_VERSION_TAG | _METHOD_DESCRIPTOR | _HAVE_VECTORCALL
    return make_type(b"hologram.operator", size_of(Operator), flags, slots)


def prepare(constants: dict[Any, Any], max_depth: int) -> Callable[..., Any]:
    """Tells native code of the nodes that numbers have become beside operands, and of the depth at which expressions are realised. Gives a builtin
    function that makes a pending node, of an op, inputs, attributes, a shape and a type.

    What it is to know of nodes it has been told by :mod:`.expressions`. Raises UnknownLayout.
    """
    state = module().recorder
    state.aval_shape, state.dtype_name = slot_offset(Aval, "shape"), slot_offset(DType, "name")
    state.constants, state.max_depth = id(immortal(constants)), max_depth
    return module().builtin("hg_pending_new", "pending", METH_FASTCALL)


def operator(python: Callable[..., Any], op: Any, results: dict[Any, Any], arity: int, swapped: bool) -> Any:
    """An operator that does what the function ``python`` does, for which it calls it where native code does not know how.

    ``results`` are the types of results by those of the operands, as ``python`` has found them. It stays for as long as the process lives.
    """
    made = _method("hg_operator_call", python)
    record = Record(Operator, id(made))
    record.op, record.results = id(immortal(op)), id(immortal(results))
    record.arity, record.swapped = arity, int(swapped)
    return made


_READERS = {"__getitem__": "hg_tensor_part", "__float__": "hg_tensor_float", "__int__": "hg_tensor_int", "item": "hg_tensor_item"}


def reading_methods(cls: type, element: Any, share: Callable[..., None], vectors: dict[DType, dict[int, Aval]]) -> dict[str, Any]:
    """Methods of a class of Tensors that read elements, which stay for as long as the process lives. Where native code does not know how, they call
    the Python functions that the class has.

    ``element`` is what the slot ``_alias`` holds of an element that integers pick; ``share(source, part, (key, shape, dtype))`` notes that a part is
    a view; ``vectors`` has the Avals of small vectors. Raises UnknownLayout.
    """
    state = module().readers
    state.tensor_alias = slot_offset(cls, "_alias")
    elements = {d: aval(d, ()) for d in ALL}
    state.element, state.share, state.elements, state.vectors = (id(immortal(x)) for x in (element, share, elements, vectors))
    return {name: _method(symbol, vars(cls)[name]) for name, symbol in _READERS.items()}


def _method(symbol: str, python: Callable[..., Any]) -> Any:
    """An object that is called natively, and knows a Python function."""
    allocate: Any = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_ssize_t)(("PyType_GenericAlloc", ctypes.pythonapi))
    made = immortal(allocate(_type(), 0))
    record = Record(Operator, id(made))
    record.vectorcall = module().address(symbol)
    for name, value in {"python": python, "name": python.__name__, "doc": python.__doc__}.items():
        setattr(record, name, id(immortal(value)))
    return made
