"""How the op table's rows run on a stack of examples whose axis comes first. Elementwise rows need no rule: see :func:`elementwise`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hologram import dtypes
from hologram.ir.node import Node
from hologram.ir.op import TABLE, Op, Shape, transforms
from hologram.ir.symbolic import Int, prod
from hologram.trace.operators import extent_node
from hologram.trace.recorder import cast_node
from hologram.transform.nodes import add, apply, full, moved, mul, number, permuted, reshaped, select, spread

Flags = Sequence[bool]


def elementwise(op: Op, size: Int, batched: Flags, inputs: Sequence[Node], attrs: tuple[Any, ...], shape: Shape) -> Node:
    """A row of equal shapes and scalars; ``shape`` is one example's result."""
    stacked = [_aligned(x, shape, size, flag) for x, flag in zip(inputs, batched, strict=True)]
    return apply(op, *stacked, attrs=attrs)


def _aligned(x: Node, shape: Shape, size: Int, batched: bool) -> Node:
    if batched:
        return spread(x, (size, *shape), (0,)) if len(x.shape) == 1 else x
    return stack_of(x, size) if x.shape else x


def stack_of(x: Node, size: Int) -> Node:
    """``size`` times the same."""
    return spread(x, (size, *x.shape), range(1, len(x.shape) + 1))


def _each(size: Int, batched: Flags, inputs: Sequence[Node]) -> list[Node]:
    return [x if flag else stack_of(x, size) for x, flag in zip(inputs, batched, strict=True)]


# --- movement --------------------------------------------------------------------------------------------------------


def _reshape(size: Int, batched: Flags, x: Node, shape: Shape) -> Node:
    return reshaped(x, (size, *shape))


def _transpose(size: Int, batched: Flags, x: Node, perm: Sequence[int]) -> Node:
    return apply(TABLE["transpose"], x, attrs=((0, *[p + 1 for p in perm]),))


def _broadcast(size: Int, batched: Flags, x: Node, shape: Shape, dims: Sequence[int]) -> Node:
    return spread(x, (size, *shape), (0, *[d + 1 for d in dims]))


def _slice(size: Int, batched: Flags, x: Node, start: Any, stop: Any, step: Any) -> Node:
    return apply(TABLE["slice"], x, attrs=((0, *start), (size, *stop), (1, *step)))


def _pad(size: Int, batched: Flags, x: Node, fill: Node, low: Any, high: Any) -> Node:
    if not batched[1]:
        return apply(TABLE["pad"], x, fill, attrs=((0, *low), (0, *high)))
    if not batched[0]:
        x = stack_of(x, size)
    no, yes = (full(value, dtypes.bool_, shape) for value, shape in ((False, x.shape[1:]), (True, ())))
    outside = apply(TABLE["pad"], no, yes, attrs=(tuple(low), tuple(high)))
    widths = (0, *low), (0, *high)
    moved_x = apply(TABLE["pad"], x, number(0, x), attrs=widths)
    return select(stack_of(outside, size), spread(fill, moved_x.shape, (0,)), moved_x)


def _concatenate(size: Int, batched: Flags, *rest: Any) -> Node:
    return apply(TABLE["concatenate"], *_each(size, batched, rest[:-1]), attrs=(rest[-1] + 1,))


# --- along axes ------------------------------------------------------------------------------------------------------


def _reduction(op: Op) -> Callable[..., Node]:
    if op.attrs == ("axes",):
        return lambda size, batched, x, axes: apply(op, x, attrs=(tuple(a + 1 for a in axes),))
    return lambda size, batched, x, axis: apply(op, x, attrs=(axis + 1,))


def _scan(op: Op) -> Callable[..., Node]:
    return lambda size, batched, x, axis, reverse: apply(op, x, attrs=(axis + 1, reverse))


def _sort(op: Op) -> Callable[..., Node]:
    return lambda size, batched, x, axis, descending: apply(op, x, attrs=(axis + 1, descending))


def _take(size: Int, batched: Flags, x: Node, indices: Node, axis: int) -> Node:
    if not batched[1]:
        return apply(TABLE["take"], x, indices, attrs=(axis + 1,))
    if not batched[0]:
        return moved(apply(TABLE["take"], x, indices, attrs=(axis,)), axis, 0)
    return gathered(x, indices, axis + 1, 1)


def gathered(x: Node, indices: Node, axis: int, shared: int) -> Node:
    """``take`` along ``axis`` of arrays that share their first ``shared`` axes: in each of these stacks by its own indices, which are in range."""
    if not shared:
        return apply(TABLE["take"], x, indices, attrs=(axis,))
    stacks, places, n = x.shape[:shared], indices.shape[shared:], x.shape[axis]
    before, after = x.shape[shared:axis], x.shape[axis + 1 :]
    rows = moved(x, axis, shared)
    flat = reshaped(rows, (prod(stacks) * n, *before, *after))
    start = mul(apply(TABLE["iota"], attrs=((prod(stacks),), 0, "int64")), extent_node(n, dtypes.int64))
    wide = cast_node(indices, dtypes.int64)
    flat_indices = add(wide, spread(reshaped(start, stacks), wide.shape, range(shared)))
    taken = apply(TABLE["take"], flat, flat_indices, attrs=(0,))  # stacks, places, before, after
    middle = shared + len(places)
    order = [*range(shared), *range(middle, middle + len(before)), *range(shared, middle), *range(middle + len(before), len(taken.shape))]
    return permuted(taken, order)


def _scatter(op: Op) -> Callable[..., Node]:
    return lambda size, batched, *rest: apply(op, *_each(size, batched, rest[:3]), attrs=(rest[3] + 1, rest[4] + 1))


_RULES: dict[str, Callable[..., Node]] = {
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "slice": _slice,
    "pad": _pad,
    "concatenate": _concatenate,
    "take": _take,
    "mark": lambda size, batched, x, token: x,
    "place": lambda size, batched, x, device: apply(TABLE["place"], x, attrs=(device,)),
    "stop": lambda size, batched, x: apply(TABLE["stop"], x),
}
for _name, _rule in _RULES.items():
    transforms(TABLE[_name], batch=_rule)
for _row in TABLE.values():
    if _row.kind == "reduce":
        transforms(_row, batch=_reduction(_row))
    elif _row.kind == "sort":
        transforms(_row, batch=_sort(_row))
    elif _row.kind == "scatter":
        transforms(_row, batch=_scatter(_row))
    elif _row.kind == "scan" and _row.attrs == ("axis", "reverse"):
        transforms(_row, batch=_scan(_row))
