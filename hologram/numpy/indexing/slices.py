"""Slices of nodes."""

from __future__ import annotations

from hologram.ir.node import Node
from hologram.ir.symbolic import Expr, Int
from hologram.primitives.movement import slice_
from hologram.trace.recorder import assume, record


def sliced(node: Node, axis: int, start: Int, stop: Int, step: int = 1) -> Node:
    """``node`` with ``start:stop:step`` read along ``axis``; a stop of -1 is before the first element."""
    shape = node.shape
    return sliced_by(node, [(start, stop, step) if i == axis else (0, n, 1) for i, n in enumerate(shape)])


def sliced_by(node: Node, triples: list[tuple[Int, Int, int]]) -> Node:
    """``node`` sliced by ``(start, stop, step)`` along every axis; the node itself where that is all of it."""
    if all(s == 1 and a == 0 and b == n for (a, b, s), n in zip(triples, node.shape, strict=True)):
        return node
    for (start, stop, step), n in zip(triples, node.shape, strict=True):
        for slack in (start, stop - start, n - stop) if step > 0 else (n - 1 - start, start - stop, stop + 1):
            if isinstance(slack, Expr):
                assume(slack)
    return record(slice_, (node,), tuple(zip(*triples, strict=True)))
