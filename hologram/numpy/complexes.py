"""Complex numbers: their parts, conjugates and angles; which arrays and which elements are complex.

Real arrays are taken as well: they are their own real parts and conjugates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.ir.node import Node
from hologram.numpy.arguments import array, weakly, wrap
from hologram.numpy.creation import zeros
from hologram.numpy.indexing.views import frozen, viewed
from hologram.primitives import TABLE
from hologram.primitives.complex import parts as complexes
from hologram.trace.convert import element_type
from hologram.trace.operators import node_of
from hologram.trace.recorder import cast_node, constant, number_operand, record
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
    """Real part, a view in the type of the parts; of a real array the array itself.

    >>> hnp.real([1 + 2j, 3])
    Tensor([1., 3.], dtype=float32)
    """
    t = weakly(x, "real")
    node = node_of(t)
    return wrap(real_part(node), True) if t._weak else viewed(x, node, real_part(node))


def imag(x: Any, /) -> Tensor:
    """Imaginary part, a view in the type of the parts; of a real array zeros, to which nobody may assign.

    >>> hnp.imag([1 + 2j, 3])
    Tensor([2., 0.], dtype=float32)
    """
    t = weakly(x, "imag")
    node = node_of(t)
    if t._weak:
        return wrap(record(complexes.imag, (node,)) if node.dtype.is_complex else number_operand(0, node.dtype, node.shape), True)
    if node.dtype.is_complex:
        return viewed(x, node, record(complexes.imag, (node,)))
    return frozen(zeros(node.shape, dtype=node.dtype), "a real Tensor has no imaginary part that could change: make it complex first")


def conj(x: Any, /) -> Tensor:
    """Complex conjugate of each element; a real array itself. Also called ``conjugate``.

    >>> hnp.conj([1 + 2j, 3])
    Tensor([1.-2.j, 3.-0.j], dtype=complex64)
    """
    t = weakly(x, "conj")
    return wrap(conjugated(node_of(t)), t._weak)


conjugate = conj


def angle(x: Any, /, deg: bool = False) -> Tensor:
    """Angle of each element from the positive real axis in radians, from -π to π; in degrees if ``deg``.

    The result has the float type of the parts; the angle of a negative real number is π.

    >>> hnp.angle([1j, -1.0], deg=True)
    Tensor([ 90., 180.], dtype=float32)
    """
    node = array(x, "angle")
    if not node.dtype.is_complex:
        node = cast_node(node, dtypes.to_inexact(node.dtype))
        parts = constant(0.0, node.dtype), node
    else:
        parts = record(complexes.imag, (node,)), record(complexes.real, (node,))
    found = wrap(record(TABLE["atan2"], parts))
    return found * (180.0 / np.pi) if deg else found


def iscomplex(x: Any, /) -> Tensor:
    """Whether each element has an imaginary part other than 0; bool.

    >>> hnp.iscomplex([1 + 2j, 3])
    Tensor([ True, False], dtype=bool)
    """
    return imag(x) != 0


def isreal(x: Any, /) -> Tensor:
    """Whether each element's imaginary part is 0; bool.

    >>> hnp.isreal([1 + 2j, 3])
    Tensor([False,  True], dtype=bool)
    """
    return imag(x) == 0


def iscomplexobj(x: Any, /) -> bool:
    """Whether the elements of an array, or a number, are of a complex type, whatever their values.

    >>> hnp.iscomplexobj([1 + 0j]), hnp.iscomplexobj(1.5)
    (True, False)
    """
    if isinstance(x, (bool, int, float, complex)):
        return isinstance(x, complex)
    return element_type(x.dtype).is_complex if hasattr(x, "dtype") else array(x, "iscomplexobj").dtype.is_complex


def isrealobj(x: Any, /) -> bool:
    """Whether the elements of an array, or a number, are of a real type.

    >>> hnp.isrealobj([1 + 0j]), hnp.isrealobj(1.5)
    (False, True)
    """
    return not iscomplexobj(x)
