"""How the op table's rows run on a stack of examples whose axis comes first. Elementwise rows need no rule: see :func:`elementwise`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hologram import dtypes
from hologram.ir.node import Node
from hologram.ir.op import TABLE, Op, Shape, transforms
from hologram.ir.symbolic import Int
from hologram.transform.nodes import apply, full, number, reshaped, select, spread

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


def _gather(size: Int, batched: Flags, x: Node, *rest: Any) -> Node:
    *starts, axes, sizes, batch = rest
    if not batched[0] and batch == 0:  # of one array: the stack becomes the first of the places' axes
        attrs: tuple[Any, ...] = (axes, sizes, 0)
        return apply(TABLE["gather"], x, *_each(size, batched[1:], starts), attrs=attrs)
    return apply(TABLE["gather"], *_each(size, batched, (x, *starts)), attrs=(tuple(a + 1 for a in axes), sizes, batch + 1))


def _scatter(op: Op) -> Callable[..., Node]:
    def batch_rule(size: Int, batched: Flags, *rest: Any) -> Node:
        *inputs, axes, batch = rest
        return apply(op, *_each(size, batched, inputs), attrs=(tuple(a + 1 for a in axes), batch + 1))

    return batch_rule


_RULES: dict[str, Callable[..., Node]] = {
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "slice": _slice,
    "pad": _pad,
    "concatenate": _concatenate,
    "gather": _gather,
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
