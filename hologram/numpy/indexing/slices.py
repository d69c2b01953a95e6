"""Slices of nodes."""

from __future__ import annotations

from hologram.ir.node import Node
from hologram.ir.symbolic import Expr, Int
from hologram.primitives.movement import slice_
from hologram.trace.recorder import assume, record


def sliced(node: Node, axis: int, start: Int, stop: Int, step: int = 1) -> Node:
    """``node`` with ``start:stop:step`` read along ``axis``; a stop of -1 is before the first element."""
    shape = node.shape
    if step == 1 and start == 0 and stop == shape[axis]:
        return node
    _assume_within(start, stop, step, shape[axis])
    after = len(shape) - axis - 1
    starts, stops = (0,) * axis + (start,) + (0,) * after, shape[:axis] + (stop,) + shape[axis + 1 :]
    return record(slice_, (node,), (starts, stops, (1,) * axis + (step,) + (1,) * after))


def sliced_by(node: Node, triples: list[tuple[Int, Int, int]]) -> Node:
    """``node`` sliced by ``(start, stop, step)`` along every axis; the node itself where that is all of it."""
    if all(s == 1 and a == 0 and b == n for (a, b, s), n in zip(triples, node.shape, strict=True)):
        return node
    for triple, n in zip(triples, node.shape, strict=True):
        _assume_within(*triple, n)
    return record(slice_, (node,), tuple(zip(*triples, strict=True)))


def _assume_within(start: Int, stop: Int, step: int, n: Int) -> None:
    """Takes it that a slice with symbols does not leave its axis of extent ``n``."""
    if type(start) is type(stop) is type(n) is int:
        return
    for slack in (start, stop - start, n - stop) if step > 0 else (n - 1 - start, start - stop, stop + 1):
        if isinstance(slack, Expr):
            assume(slack)
