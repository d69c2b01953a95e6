"""Memory layout analysis: where the elements of a value lie in memory, by index propagation, before there are loops.

Values that are neither elementwise work nor movement count as arrays in memory, in C order.
"""

from __future__ import annotations

from hologram.ir.index_maps import linear, propagate_index, variables
from hologram.ir.node import Node
from hologram.ir.symbolic import Int, split_linear

MAX_READS = 64  # of a value; what is made of more counts as an array of its own


def memory_offsets(node: Node) -> list[Int]:
    """The positions, in the arrays that it is made of, of what element ``variables(node.shape)`` of ``node`` is computed from."""
    found: list[Int] = []
    stack = [(node, variables(node.shape))]
    for _ in range(MAX_READS):
        if not stack:
            return found
        x, at = stack.pop()
        if x.op.kind in ("elementwise", "movement"):
            stack += [(y, index) for y, index, _ in propagate_index(x, at, ())]
        elif x.shape:
            found.append(linear(at, x.shape))
    return [linear(variables(node.shape), node.shape)]


def stride_along(offset: Int, axis: int) -> Int | None:
    """How far apart neighbours along ``axis`` are at a position that :func:`memory_offsets` gave; None where that differs."""
    split = split_linear(offset, f"d{axis}")
    return None if split is None else split[0]
