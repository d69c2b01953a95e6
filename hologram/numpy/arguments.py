"""Arguments that many functions share: arrays, axes, shapes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hologram.errors import ArgumentError, AxisOutOfRange, ShapeError
from hologram.primitives.movement import broadcast, reshape, transpose
from hologram.primitives.op import Shape
from hologram.symbolic import Expr, Int
from hologram.trace.apply import extent_node, node_as, operand, weak_default, wrap
from hologram.trace.convert import element_type
from hologram.trace.node import Node
from hologram.trace.recorder import located, plain, record, whole_cast

__all__ = [
    "array", "axes_of", "axis_of", "cast_to", "choice", "element_type", "extent", "extent_node", "function", "has_items", "integer", "items",
    "number", "permuted", "reshaped", "shape_of", "spread", "wrap",
]  # fmt: skip


def array(x: Any, what: str) -> Node:
    """Anything array-like as a node; a Python scalar, or a weak Tensor, in its kind's default type. Nested lists become arrays."""
    if isinstance(x, (list, tuple)):
        from hologram.trace.convert import tensor

        x = tensor(x)
    node, dtype, weak = operand(x, what)
    return node_as(node, weak_default(dtype) if weak else dtype)


def integer(n: Any, what: str, role: str) -> int:
    """An integer of Python or NumPy, or a Tensor that holds one. Raises ArgumentError for others, saying that ``role`` is an integer."""
    try:
        return operator.index(n)
    except TypeError:
        raise located(ArgumentError(f"{what}: {role} is an integer, not {type(n).__name__}")) from None


def has_items(x: Any) -> bool:
    """Whether ``x`` can be gone through: arrays without axes cannot, though their types have the method for it."""
    return isinstance(x, Iterable) and getattr(x, "ndim", 1) != 0


def items(values: Any, what: str, role: str = "arrays") -> list[Any]:
    """The items of a sequence of ``role``. Raises ArgumentError for what has none."""
    if not has_items(values):
        raise located(ArgumentError(f"{what} takes a sequence of {role}, not {type(values).__name__}"))
    return list(values)


def choice(value: Any, what: str, role: str, names: Iterable[str]) -> str:
    """One of ``names``. Raises ArgumentError for anything else."""
    if not isinstance(value, str) or value not in names:
        given = repr(value) if isinstance(value, str) else type(value).__name__
        raise located(ArgumentError(f"{what}: {role} is {' or '.join(map(repr, names))}, not {given}"))
    return value


def number(x: Any, what: str, role: str) -> float:
    """A real number. Raises ArgumentError for others, saying that ``role`` is one."""
    try:
        return float(x)
    except (TypeError, ValueError):
        raise located(ArgumentError(f"{what}: {role} is a number, not {type(x).__name__}")) from None


def function(f: Any, what: str) -> Callable[..., Any]:
    if not callable(f):
        raise located(ArgumentError(f"{what} takes a function, not {type(f).__name__}"))
    return f


def axis_of(axis: Any, ndim: int, what: str) -> int:
    """``axis`` counted from the front. Raises AxisOutOfRange where there is none such."""
    i = integer(axis, what, "an axis")
    if not -ndim <= i < ndim:
        raise located(AxisOutOfRange(f"{what}: axis {i} of an array with {ndim} axes"))
    return i % ndim


def axes_of(axis: Any, ndim: int, what: str) -> tuple[int, ...]:
    """The axes that an ``axis`` argument names, ascending; None names all. Raises ShapeError for one named twice."""
    if axis is None:
        return tuple(range(ndim))
    axes = [axis_of(a, ndim, what) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    if len(set(axes)) != len(axes):
        raise located(ShapeError(f"{what}: an axis is named twice in {axis}"))
    return tuple(sorted(axes))


def extent(n: Any, what: str) -> Int:
    """One extent of a shape argument. Raises ShapeError where it is negative."""
    if isinstance(n, Expr):
        return plain(n)
    i = integer(n, what, "an extent")
    if i < 0:
        raise located(ShapeError(f"{what}: negative extent {i}"))
    return i


def shape_of(shape: Any, what: str) -> Shape:
    """A shape argument: an integer or a sequence of them."""
    if has_items(shape):
        return tuple(extent(n, what) for n in shape)
    return (extent(shape, what),)


def reshaped(node: Node, shape: Shape) -> Node:
    return node if node.shape == shape else record(reshape, (node,), (shape,))


def permuted(node: Node, order: Sequence[int]) -> Node:
    return node if list(order) == list(range(len(order))) else record(transpose, (node,), (tuple(order),))


def spread(node: Node, shape: Shape, dims: Sequence[int]) -> Node:
    """``node`` with its axes at ``dims`` of ``shape``, stretched along the rest."""
    return node if node.shape == shape else record(broadcast, (node,), (shape, tuple(dims)))


def cast_to(node: Node, dtype: Any) -> Node:
    """``node`` as the user's ``dtype``; as it is for None. Raises DTypeError where imaginary parts would be lost."""
    return node if dtype is None else whole_cast(node, element_type(dtype))
