"""Complex numbers: their parts, conjugates and angles; which arrays and which elements are complex.

Real arrays are taken as well: they are their own real parts and conjugates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.ir.node import Node
from hologram.numpy.arguments import array, wrap
from hologram.numpy.creation import zeros
from hologram.numpy.indexing.views import frozen, viewed
from hologram.primitives import TABLE
from hologram.primitives.complex import parts as complexes
from hologram.trace.convert import element_type
from hologram.trace.recorder import cast_node, constant, record
from hologram.trace.tensor import Tensor

__all__ = ["angle", "conj", "conjugate", "imag", "iscomplex", "iscomplexobj", "isreal", "isrealobj", "real"]


def conjugated(node: Node) -> Node:
    """The complex conjugate; a real node itself."""
    return record(complexes.conj, (node,)) if node.dtype.is_complex else node


def real_part(node: Node) -> Node:
    """The real part; a real node itself."""
    return record(complexes.real, (node,)) if node.dtype.is_complex else node


def squared_modulus(t: Tensor) -> Tensor:
    """``|t|**2``, which is real."""
    return (t * conj(t)).real if t._aval()[1].is_complex else t * t


def real(x: Any, /) -> Tensor:
    """The real part, a view; of a real array the array itself."""
    node = array(x, "real")
    return viewed(x, node, real_part(node))


def imag(x: Any, /) -> Tensor:
    """The imaginary part; of a real array zeros, to which nobody may assign."""
    node = array(x, "imag")
    if node.dtype.is_complex:
        return viewed(x, node, record(complexes.imag, (node,)))
    return frozen(zeros(node.shape, dtype=node.dtype), "a real Tensor has no imaginary part that could change: make it complex first")


def conj(x: Any, /) -> Tensor:
    """The complex conjugate; of a real array the array itself."""
    return wrap(conjugated(array(x, "conj")))


conjugate = conj


def angle(x: Any, /, deg: bool = False) -> Tensor:
    """The angle from the positive real axis, from -π to π; in degrees if ``deg``. Of a negative real number π."""
    node = array(x, "angle")
    if not node.dtype.is_complex:
        node = cast_node(node, dtypes.to_inexact(node.dtype))
        parts = constant(0.0, node.dtype), node
    else:
        parts = record(complexes.imag, (node,)), record(complexes.real, (node,))
    found = wrap(record(TABLE["atan2"], parts))
    return found * (180.0 / np.pi) if deg else found


def iscomplex(x: Any, /) -> Tensor:
    """Whether each element has an imaginary part other than 0."""
    return imag(x) != 0


def isreal(x: Any, /) -> Tensor:
    """Whether each element's imaginary part is 0."""
    return imag(x) == 0


def iscomplexobj(x: Any, /) -> bool:
    """Whether the elements, or the number, are of a complex type."""
    if isinstance(x, (bool, int, float, complex)):
        return isinstance(x, complex)
    return element_type(x.dtype).is_complex if hasattr(x, "dtype") else array(x, "iscomplexobj").dtype.is_complex


def isrealobj(x: Any, /) -> bool:
    """Whether the elements, or the number, are of a real type."""
    return not iscomplexobj(x)
