"""Arguments that many functions share: arrays, axes, shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ArgumentError, AxisOutOfRange, DTypeError, ShapeError
from hologram.ir.node import Node
from hologram.ir.op import Shape
from hologram.primitives.movement import broadcast, reshape, transpose
from hologram.support.user_lines import located
from hologram.trace.checks import extent, has_items, integer, require_shape, shape_of
from hologram.trace.convert import element_type, tensor
from hologram.trace.operators import common_type, extent_node, node_as, node_of, operand, promoted, weak_default, wrap
from hologram.trace.recorder import cast_node, current, pending, record, remember, whole_cast
from hologram.trace.tensor import Tensor

__all__ = [
    "alike", "array", "array_as", "as_tensor", "axes_of", "axis_of", "cast", "cast_to", "element_type", "extent", "extent_node", "floats",
    "permuted", "promoted_pair", "reshaped", "shape_of", "spread", "weakly", "wrap",
]  # fmt: skip


def array(x: Any, what: str) -> Node:
    """Anything array-like as a node; a Python scalar, or a weak Tensor, in its kind's default type. Nested lists become arrays."""
    if isinstance(x, (list, tuple)):
        x = tensor(x)
    node, dtype, weak = operand(x, what)
    return node_as(node, weak_default(dtype) if weak else dtype)


def as_tensor(x: Any, what: str) -> Tensor:
    """As :func:`array`, as a Tensor."""
    return wrap(array(x, what))


def weakly(x: Any, what: str) -> Tensor:
    """As :func:`array`, but what is weakly typed stays so, in the type that Python's numbers are computed in: for functions of elementwise ones."""
    if isinstance(x, (list, tuple)):
        return wrap(array(x, what))
    (node,), _, weak = promoted(what, (x,), keep=True)
    return wrap(node, weak)


def array_as(x: Any, dtype: DType, what: str) -> Node:
    """Anything array-like as a node of type ``dtype``; numbers are rounded once."""
    if isinstance(x, (list, tuple)):
        return node_of(tensor(x, dtype=dtype))
    return cast_node(node_of(weakly(x, what)), dtype)


def alike(arrays: Sequence[Any], what: str) -> list[Node]:
    """Anything array-like as nodes of one type, in which a number counts as its kind's default; numbers are rounded once."""
    parts = [weakly(x, what) for x in arrays]
    dtype, _ = common_type([(t, element_type(t.dtype), False) for t in parts])
    return [cast_node(node_of(t), dtype) for t in parts]


def promoted_pair(what: str, x1: Any, x2: Any, adjust: Callable[[DType], DType] | None = None) -> tuple[Tensor, Tensor]:
    """Two operands in their common type, which ``adjust`` may change, broadcast or not; weak where both are."""
    (a, b), _, weak = promoted(what, (x1, x2), adjust, keep=True)
    return wrap(a, weak), wrap(b, weak)


def axis_of(axis: Any, ndim: int, what: str) -> int:
    """``axis`` counted from the front. Raises AxisOutOfRange where there is none such, ArgumentError for what is no integer, or a bool."""
    if type(axis) is bool:
        raise located(ArgumentError(f"{what}: an axis is an integer, not bool"))
    i = integer(axis, what, "an axis")
    if not -ndim <= i < ndim:
        raise located(AxisOutOfRange(f"{what}: axis {i} of an array with {ndim} axes"))
    return i % ndim


def axes_of(axis: Any, ndim: int, what: str, lists: bool = False) -> tuple[int, ...]:
    """The axes that an ``axis`` argument names, ascending; None names all. Raises ShapeError for one named twice.

    Lists, ranges and arrays are taken only where ``lists`` says so, as by NumPy; ArgumentError elsewhere.
    """
    if axis is None:
        return tuple(range(ndim))
    several = type(axis) is tuple or (has_items(axis) if lists else isinstance(axis, tuple))
    axes = [axis_of(a, ndim, what) for a in (axis if several else (axis,))]
    if len(set(axes)) != len(axes):
        raise located(ShapeError(f"{what}: an axis is named twice in {axis}"))
    return tuple(sorted(axes))


def reshaped(node: Node, shape: Shape) -> Node:
    return node if node.shape == shape else record(reshape, (node,), (shape,))


def permuted(node: Node, order: Sequence[int]) -> Node:
    return node if list(order) == list(range(len(order))) else record(transpose, (node,), (tuple(order),))


def spread(node: Node, shape: Shape, dims: Sequence[int]) -> Node:
    """``node`` with its axes at ``dims`` of ``shape``, stretched along the rest."""
    if node.shape == shape:
        return node
    if not node.shape and current() is None:  # a scalar stretches to any shape
        attrs = _to_shape.get(shape)
        if attrs is None:
            require_shape(shape, node.dtype)
            attrs = shape, ()
            remember(_to_shape, shape, attrs)
        return pending(broadcast, (node,), attrs, attrs[0], node.dtype)
    return record(broadcast, (node,), (shape, tuple(dims)))


_to_shape: dict[Shape, tuple[Shape, tuple[int, ...]]] = {}  # attributes: native code knows equal ones by their being one object


def cast_to(node: Node, dtype: Any) -> Node:
    """``node`` as the user's ``dtype``; as it is for None. Raises DTypeError where imaginary parts would be lost."""
    return node if dtype is None else whole_cast(node, element_type(dtype))


def floats(x: Any, what: str) -> tuple[Tensor, DType]:
    """``x`` in the type it is computed in (float32 for narrow floats), and the type of the result. Raises DTypeError for complex numbers."""
    node = array(x, what)
    if node.dtype.is_complex:
        raise located(DTypeError(f"{what}: takes real numbers, not {node.dtype.name}"))
    node = cast_node(node, dtypes.to_inexact(node.dtype))
    return wrap(cast_node(node, dtypes.compute_type(node.dtype))), node.dtype


def cast(x: Tensor, dtype: DType) -> Tensor:
    return wrap(cast_node(array(x, "cast"), dtype))
