"""The memory of Tensors for other libraries: the buffer protocol, ``__array_interface__``, ``ctypes`` and NumPy's attributes of arrays.

What is handed out is read-only and keeps the memory alive. It is never written to: a Storage counts its exports, and who would write where a value
is (donations, updates in place) copies while there are any.
"""

from __future__ import annotations

import itertools
import operator
import weakref
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.backends.native import storage
from hologram.backends.native.module import why_not_native
from hologram.errors import ShapeError, TracedValueError
from hologram.ir.symbolic import is_static
from hologram.primitives.scalar.elementwise import bitcast
from hologram.support.user_lines import located
from hologram.trace.recorder import current
from hologram.trace.tensor import Tensor, namespace

# what a consumer of a buffer asks for: numbers of CPython's API
_WRITABLE, _FORMAT, _STRIDES = 0x1, 0x4, 0x18
_C_CONTIGUOUS, _F_CONTIGUOUS, _ANY_CONTIGUOUS = 0x20, 0x40, 0x80


if why_not_native() is None:  # native code exports what is realised by itself
    from hologram.backends.native.classes import register_tensor_class

    register_tensor_class(Tensor)

_interrupted: list[weakref.ref[Tensor]] = []  # the Tensor during whose export an interrupt came


def buffer(t: Tensor, flags: int) -> memoryview:
    """``Tensor.__buffer__``: the values, read-only, laid out as the consumer's ``flags`` ask for; a copy where they lie otherwise. A number is a copy
    that is not read-only: NumPy makes an array of it that its caller may change, as of a scalar of its own.

    Raises BufferError for a consumer that would write, and for an element type without a format unless plain bytes are asked for.
    """
    if flags & _WRITABLE:
        raise BufferError("a Tensor's memory is read-only: np.array(tensor) is a copy to write to")
    if _interrupted:
        _interrupted.clear()
    try:
        array = t._view("a buffer")
    except KeyboardInterrupt:
        _interrupted.append(weakref.ref(t))
        raise
    if not array.shape:
        array = array.copy()
    if array.flags.c_contiguous and array.dtype.isbuiltin == 1 and not flags & _F_CONTIGUOUS:
        return array.data
    return _laid_out(array, flags)


def _laid_out(array: np.ndarray, flags: int) -> memoryview:
    """An array's memory, or that of a copy, for a consumer with these flags."""
    if flags & _F_CONTIGUOUS:
        array = np.asfortranarray(array)
    elif flags & _C_CONTIGUOUS or flags & _STRIDES != _STRIDES or (flags & _ANY_CONTIGUOUS and not array.flags.forc):
        array = np.ascontiguousarray(array)
    of = dtypes.of(array.dtype)
    if of.bit_type is not None:
        if flags & _FORMAT:
            raise BufferError(f"the buffer protocol has no format for {of}: take astype('float32'), view('uint{of.bits}') or tobytes()")
        array = array.view(of.bit_type)
    array.flags.writeable = False
    return array.data


def raise_interrupt(t: Tensor) -> None:
    """Raises the KeyboardInterrupt that came while the Tensor's buffer was made: NumPy asks for a buffer first, and drops what that raises."""
    if _interrupted and _interrupted.pop()() is t:
        raise KeyboardInterrupt


# --- addresses -------------------------------------------------------------------------------------------------------


def addressed(t: Tensor, reading: str) -> np.ndarray:
    """The values in C order as an array whose address may be told: the Tensor keeps its memory for as long as it lives, even if it is assigned to.

    Who takes an address may take the elements to lie in C order, so those of a view, such as a transpose, are copied.
    """
    array = t._view(reading)
    lent = getattr(t, "_lent", None)
    if lent is None:
        lent = t._lent = {}
    place = array.ctypes.data, array.strides
    if place not in lent:
        made = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        made.flags.writeable = False
        lent[place] = array, made
    return lent[place][1]


def interface(t: Tensor) -> dict[str, Any]:
    """``Tensor.__array_interface__``. Raises AttributeError, after which NumPy asks for ``__array__``, for element types that it has no name for, and
    while tracing."""
    raise_interrupt(t)
    name = "__array_interface__"
    if t._aval()[1].bit_type is not None:
        raise AttributeError(f"a Tensor of {t.dtype} has no {name}")
    try:
        return addressed(t, name).__array_interface__
    except TracedValueError as e:
        raise AttributeError(str(e)) from None


# --- attributes of NumPy's arrays ------------------------------------------------------------------------------------


def strides(t: Tensor) -> tuple[int, ...]:
    """``Tensor.strides``. Raises TracedValueError for symbolic extents."""
    shape = t._aval()[0]
    if not all(is_static(n) for n in shape):
        raise located(TracedValueError(f"the strides of shape {list(t.shape)} are unknown while tracing"))
    following = itertools.accumulate(reversed(shape[1:]), operator.mul, initial=t.itemsize)
    return tuple(following)[::-1] if shape else ()


def _of_width(kind: type, of: dtypes.DType) -> Any:
    """The type for which Python's number type stands beside elements of type ``of``."""
    bits = of.bits // 2 if of.is_complex else of.bits
    if bits not in (32, 64):
        return kind
    return f"complex{2 * bits}" if kind is complex else f"{kind.__name__}{bits}"


def viewed(t: Tensor, dtype: Any) -> Tensor:
    """``Tensor.view``: the same bits as elements of another type; where that has another width the last axis is counted in it.

    Python's ``float``, ``int`` and ``complex`` have the width of the elements, or of their parts: default types would tear elements apart.
    """
    from hologram.trace.convert import element_type, of_storage

    if dtype is float or dtype is int or dtype is complex:  # NumPy's may be equal to these
        dtype = _of_width(dtype, t._aval()[1])
    to, (shape, of) = element_type(dtype), t._aval()
    if current() is not None or (of.bits == to.bits and of.kind in bitcast.kinds and to.kind in bitcast.kinds and not t._weak):
        bits: Tensor = namespace(".numbers.bits").viewed_as(t, dtype)
        return bits
    try:
        found = np.ascontiguousarray(t._view("view()")).reshape(shape).view(to.np)
    except ValueError as e:
        raise located(ShapeError(f"view: {e}")) from None
    return of_storage(storage.copy_of(found))
