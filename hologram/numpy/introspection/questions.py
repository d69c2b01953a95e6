"""What kind of thing something is: no values are read. Other names of types, and kinds of types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from hologram.ir.symbolic import Int, prod
from hologram.numpy.arguments import array, axis_of, element_type
from hologram.numpy.introspection.types import DTYPES
from hologram.trace.operators import SCALARS
from hologram.trace.tensor import Tensor

__all__ = [
    "bool_", "cdouble", "complex_", "complexfloating", "csingle", "double", "float_", "floating", "generic", "half", "inexact", "int_", "integer",
    "isscalar", "issubdtype", "iterable", "number", "shape", "signedinteger", "single", "size", "uint", "unsignedinteger",
]  # fmt: skip

generic, number, inexact, floating, complexfloating = np.generic, np.number, np.inexact, np.floating, np.complexfloating
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger
bool_, half, single, double = (DTYPES[name] for name in ("bool", "float16", "float32", "float64"))
int_, uint, csingle, cdouble = (DTYPES[name] for name in ("int64", "uint64", "complex64", "complex128"))
float_, complex_ = double, cdouble


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether the type ``arg1`` is ``arg2``, or of the kind ``arg2``; bfloat16 is a floating type.

    >>> hnp.issubdtype(hnp.float32, hnp.floating)
    True
    """
    d = element_type(arg1.dtype if isinstance(arg1, (Tensor, np.ndarray, np.generic)) else arg1)
    if isinstance(arg2, type) and issubclass(arg2, np.generic):
        return issubclass(np.floating if d.is_float else d.np.type, arg2) or d.np.type is arg2
    return d is element_type(arg2)


def isscalar(x: Any) -> bool:
    """Whether ``x`` is a number, or an array without axes.

    >>> hnp.isscalar(3.5), hnp.isscalar([3.5])
    (True, False)
    """
    return type(x) in SCALARS or isinstance(x, np.generic) or (isinstance(x, (Tensor, np.ndarray)) and x.ndim == 0)


def iterable(x: Any) -> bool:
    """Whether ``x`` can be iterated over; a scalar Tensor cannot.

    >>> hnp.iterable([1, 2]), hnp.iterable(3)
    (True, False)
    """
    return x.ndim > 0 if isinstance(x, (Tensor, np.ndarray)) else isinstance(x, Iterable)


def shape(x: Any) -> tuple[Int, ...]:
    """Shape of an array, a tuple of extents; inside ``jit(dynamic=…)`` some may be symbols.

    >>> hnp.shape([[1, 2, 3]])
    (1, 3)
    """
    return array(x, "shape").shape


def size(x: Any, axis: int | None = None) -> Int:
    """Number of elements, or the extent of ``axis``; inside ``jit(dynamic=…)`` it may be a symbol.

    >>> hnp.size([[1, 2, 3], [4, 5, 6]]), hnp.size([[1, 2, 3], [4, 5, 6]], 1)
    (6, 3)
    """
    extents = array(x, "size").shape
    return prod(extents) if axis is None else extents[axis_of(axis, len(extents), "size")]
