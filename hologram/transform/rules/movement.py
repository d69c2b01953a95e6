"""Derivatives of movement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hologram.ir.node import Node
from hologram.ir.op import TABLE, Shape
from hologram.ir.symbolic import Int
from hologram.transform.nodes import along, apply, full, joined, number, permuted, placed, reshaped, select, sliced, sum_over, zeros_like
from hologram.transform.rules.rules import Tangents, attach, call, itself


def _broadcast_transpose(ct: Node, linear: Any, x: Node, shape: Shape, dims: tuple[int, ...]) -> tuple[Node]:
    stretched = [d for n, d in zip(x.shape, dims, strict=True) if n == 1 and shape[d] != 1]
    new = [i for i in range(len(shape)) if i not in dims]
    return (reshaped(sum_over(ct, sorted([*new, *stretched])), x.shape),)


def _slice_transpose(ct: Node, linear: Any, x: Node, start: Any, stop: Any, step: Any) -> tuple[Node]:
    return (placed(ct, x.shape, start, step),)


def _pad_jvp(tangents: Tangents, out: Node, x: Node, fill: Node, low: Any, high: Any) -> Node:
    t, f = tangents
    return apply(TABLE["pad"], zeros_like(x) if t is None else t, number(0, fill) if f is None else f, attrs=(low, high))


def _pad_transpose(ct: Node, linear: Sequence[bool], x: Node, fill: Node, low: Any, high: Any) -> tuple[Node | None, ...]:
    stop = [a + n for a, n in zip(low, x.shape, strict=True)]
    inside = sliced(ct, low, stop) if linear[0] else None
    outside = None
    if linear[1]:
        holes = apply(TABLE["pad"], full(0, x.dtype, x.shape), number(1, fill), attrs=(low, high))
        outside = sum_over(select(call("ne", holes, number(0, fill)), ct, number(0, ct)), range(len(ct.shape)))
    return inside, outside


def _concatenate_jvp(tangents: Tangents, out: Node, *rest: Any) -> Node:
    inputs, axis = rest[:-1], rest[-1]
    return joined([zeros_like(x) if t is None else t for t, x in zip(tangents, inputs, strict=True)], axis)


def _concatenate_transpose(ct: Node, linear: Sequence[bool], *rest: Any) -> tuple[Node | None, ...]:
    inputs, axis = rest[:-1], rest[-1]
    parts: list[Node | None] = []
    start: Int = 0
    for flag, x in zip(linear, inputs, strict=True):
        stop = start + x.shape[axis]
        parts.append(along(ct, axis, start, stop) if flag else None)
        start = stop
    return tuple(parts)


def _inverse(perm: Sequence[int]) -> list[int]:
    return sorted(range(len(perm)), key=perm.__getitem__)


_MOVES: dict[str, Callable[..., Any]] = {
    "reshape": lambda ct, linear, x, shape: (reshaped(ct, x.shape),),
    "transpose": lambda ct, linear, x, perm: (permuted(ct, _inverse(perm)),),
    "broadcast": _broadcast_transpose,
    "slice": _slice_transpose,
}
for _name, _rule in _MOVES.items():
    attach(_name, jvp=itself(TABLE[_name]), transpose=_rule)
attach("pad", jvp=_pad_jvp, transpose=_pad_transpose)
attach("concatenate", jvp=_concatenate_jvp, transpose=_concatenate_transpose)
