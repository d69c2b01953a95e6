"""Ops on nodes, for rules: shapes and types are known to fit, so nothing is promoted and only scalars broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hologram import dtypes
from hologram.dtypes import DType
from hologram.ir.node import Node, const_value
from hologram.ir.op import Op, Shape
from hologram.ir.symbolic import Int, bounds
from hologram.primitives.indexing import scatter_add
from hologram.primitives.movement import broadcast, concatenate, pad, reshape, slice_, transpose
from hologram.primitives.reductions import reduce_sum
from hologram.primitives.scalar import elementwise as ew
from hologram.trace.recorder import constant, record


class _Recording:
    """The recorder as what makes nodes."""

    __call__ = staticmethod(record)
    const = staticmethod(constant)


RECORDING = _Recording()


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


def padded(x: Node, low: Sequence[Int], high: Sequence[Int], fill: Node | None = None) -> Node:
    """``x`` amid zeros, or amid ``fill``, a scalar."""
    return x if not any(n != 0 for n in (*low, *high)) else record(pad, (x, number(0, x) if fill is None else fill), (tuple(low), tuple(high)))


def spaced(x: Node, axis: int, step: int, fill: Node | None = None) -> Node:
    """``step - 1`` zeros, or ``fill``, after each element along ``axis``."""
    shape = x.shape
    column = reshaped(x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    none = [0] * len(column.shape)
    filled = padded(column, none, [step - 1 if i == axis + 1 else 0 for i in range(len(none))], fill)
    return reshaped(filled, (*shape[:axis], shape[axis] * step, *shape[axis + 1 :]))


def apart(x: Node, axis: int, step: int, fill: Node | None = None) -> Node:
    """``step - 1`` zeros, or ``fill``, between the elements along ``axis``."""
    k = x.shape[axis]
    return x if step == 1 or k == 0 else along(spaced(x, axis, step, fill), axis, 0, (k - 1) * step + 1)


def placed(x: Node, shape: Shape, start: Sequence[Int], step: Sequence[int], fill: Node | None = None) -> Node:
    """The reverse of a slice: ``x`` at ``start``, ``start + step``, … of an array of ``shape`` that is zero, or ``fill``, elsewhere.

    Where a symbolic extent of ``x`` may be 0, no step of the way has a negative extent: the last element too is followed by ``step - 1`` zeros,
    which are cut off at the end.
    """
    low: list[Int] = []
    high: list[Int] = []
    for axis, (n, first, s) in enumerate(zip(shape, start, step, strict=True)):
        k = x.shape[axis]
        if s < 0 and k != 0:
            x, first, s = along(x, axis, k - 1, -1, -1), first + (k - 1) * s, -s
        some = (bounds(k)[0] or 0) > 0
        x = apart(x, axis, s, fill) if some else spaced(x, axis, s, fill) if k != 0 and s > 1 else x
        low.append(first if k != 0 else 0)
        high.append(n - low[-1] - ((k - 1) * s + 1 if k != 0 else 0))
    whole = padded(x, low, high, fill)
    return sliced(whole, [0] * len(shape), shape)


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


def first_of(x: Node) -> Node:
    """The first of a stack."""
    return reshaped(along(x, 0, 0, 1), x.shape[1:])


def joined(parts: Sequence[Node], axis: int) -> Node:
    return record(concatenate, tuple(parts), (axis,))


def sum_over(x: Node, axes: Sequence[int]) -> Node:
    return record(reduce_sum, (x,), (tuple(axes),)) if axes else x


def sum_to(x: Node, shape: Shape) -> Node:
    """The cotangent of a scalar operand from that of an elementwise result; of any other operand, ``x``."""
    return x if shape or not x.shape else sum_over(x, range(len(x.shape)))


def accumulated(x: Node, y: Node) -> Node:
    """The sum of two cotangents. One that is windows amid zeros is added to the other window by window, so that what reads little of an array has a
    derivative that touches little."""
    for whole, part in ((x, y), (y, x)):
        added = _windows_amid_zeros(part)
        if added:
            for windows in reversed(added):
                whole = record(scatter_add, (whole, *windows.inputs[1:]), windows.attrs)
            return whole
        amid = _amid_negative_zeros(part)
        if amid is None:
            continue
        if amid.op is pad and all(isinstance(n, int) for widths in amid.attrs for n in widths):
            axes = tuple(a for a, widths in enumerate(zip(*amid.attrs, strict=True)) if widths != (0, 0))
            starts = [constant(amid.attrs[0][a], dtypes.int64) for a in axes]
            return record(scatter_add, (whole, amid.inputs[0], *starts), (axes, 0)) if axes else add(whole, amid.inputs[0])
        return add(whole, amid)
    return add(x, y)


def _amid_negative_zeros(x: Node) -> Node | None:
    """``x`` with -0.0 for the zeros that it was padded with, None if it was not. ``y + -0.0`` has the bits of y: so a sum has those of a sum window
    by window, which symbolic extents and steps between elements do not allow."""
    moves = []
    while x.op in (pad, slice_, reshape, transpose) and (x.op is not pad or _is_zero(x.inputs[1])):
        moves.append(x)
        x = x.inputs[0]
    if not any(move.op is pad for move in moves):
        return None
    fill = constant(complex(-0.0, -0.0) if x.dtype.is_complex else -0.0 if x.dtype.is_float else 0, x.dtype)
    for move in reversed(moves):
        x = record(move.op, (x, fill) if move.op is pad else (x,), move.attrs)
    return x


def _windows_amid_zeros(x: Node) -> list[Node]:
    """The scatters, the last one first, that make all of ``x`` from zeros; none if something else does."""
    added = []
    while x.op is scatter_add:
        added.append(x)
        x = x.inputs[0]
    return added if _is_zero(x) else []


def _is_zero(x: Node) -> bool:
    while x.op.name == "broadcast":
        (x,) = x.inputs
    return x.op.name == "const" and const_value(x) == 0


def total(terms: Sequence[Node | None]) -> Node | None:
    """The sum of those that are not zero, None if all are."""
    found: Node | None = None
    for t in terms:
        if t is not None:
            found = t if found is None else add(found, t)
    return found
