"""Ops on nodes, for rules: shapes and types are known to fit, so nothing is promoted and only scalars broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hologram.dtypes import DType
from hologram.primitives import elementwise as ew
from hologram.primitives.movement import broadcast, concatenate, pad, reshape, slice_, transpose
from hologram.primitives.op import Op, Shape
from hologram.primitives.reductions import reduce_sum
from hologram.symbolic import Int
from hologram.trace.node import Node
from hologram.trace.recorder import constant, record


def has_tangents(dtype: DType) -> bool:
    """Whether values of this type can be differentiated."""
    return dtype.is_float or dtype.is_complex


def apply(op: Op, *inputs: Node, attrs: tuple[Any, ...] = ()) -> Node:
    return record(op, inputs, attrs)


def add(x: Node, y: Node) -> Node:
    return record(ew.add, (x, y))


def sub(x: Node, y: Node) -> Node:
    return record(ew.sub, (x, y))


def mul(x: Node, y: Node) -> Node:
    return record(ew.mul, (x, y))


def div(x: Node, y: Node) -> Node:
    return record(ew.div, (x, y))


def neg(x: Node) -> Node:
    return record(ew.neg, (x,))


def select(condition: Node, x: Node, y: Node) -> Node:
    return record(ew.select, (condition, x, y))


def number(value: Any, like: Node) -> Node:
    """A scalar of the type of ``like``."""
    return constant(value, like.dtype)


def full(value: Any, dtype: DType, shape: Shape) -> Node:
    return fit(constant(value, dtype), shape)


def zeros_like(x: Node) -> Node:
    return full(0, x.dtype, x.shape)


def fit(x: Node, shape: Shape) -> Node:
    """``x``, which has that shape or is a scalar, in that shape."""
    return x if x.shape == shape else record(broadcast, (x,), (shape, ()))


def spread(x: Node, shape: Shape, dims: Sequence[int]) -> Node:
    return x if x.shape == shape else record(broadcast, (x,), (shape, tuple(dims)))


def reshaped(x: Node, shape: Shape) -> Node:
    return x if x.shape == shape else record(reshape, (x,), (shape,))


def permuted(x: Node, order: Sequence[int]) -> Node:
    return x if list(order) == list(range(len(order))) else record(transpose, (x,), (tuple(order),))


def moved(x: Node, axis: int, to: int) -> Node:
    """``x`` with one axis elsewhere."""
    order = [i for i in range(len(x.shape)) if i != axis]
    order.insert(to, axis)
    return permuted(x, order)


def padded(x: Node, low: Sequence[Int], high: Sequence[Int]) -> Node:
    """``x`` amid zeros."""
    return x if not any(n != 0 for n in (*low, *high)) else record(pad, (x, number(0, x)), (tuple(low), tuple(high)))


def sliced(x: Node, start: Sequence[Int], stop: Sequence[Int], step: Sequence[int] | None = None) -> Node:
    steps = tuple(step) if step is not None else (1,) * len(x.shape)
    whole = all(a == 0 and b == n and s == 1 for a, b, s, n in zip(start, stop, steps, x.shape, strict=True))
    return x if whole else record(slice_, (x,), (tuple(start), tuple(stop), steps))


def along(x: Node, axis: int, start: Int, stop: Int, step: int = 1) -> Node:
    """``start:stop:step`` of one axis; a stop of -1 is before the first element."""
    n = len(x.shape)
    starts: list[Int] = [0] * n
    stops, steps = list(x.shape), [1] * n
    starts[axis], stops[axis], steps[axis] = start, stop, step
    return sliced(x, starts, stops, steps)


def joined(parts: Sequence[Node], axis: int) -> Node:
    return record(concatenate, tuple(parts), (axis,))


def sum_over(x: Node, axes: Sequence[int]) -> Node:
    return record(reduce_sum, (x,), (tuple(axes),)) if axes else x


def sum_to(x: Node, shape: Shape) -> Node:
    """The cotangent of a scalar operand from that of an elementwise result; of any other operand, ``x``."""
    return x if shape or not x.shape else sum_over(x, range(len(x.shape)))


def total(terms: Sequence[Node | None]) -> Node | None:
    """The sum of those that are not zero, None if all are."""
    found: Node | None = None
    for t in terms:
        if t is not None:
            found = t if found is None else add(found, t)
    return found
