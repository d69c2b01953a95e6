"""Dot products of bfloat16 pairs, for machines that multiply and add two at a time (AVX512-BF16, which has twice the operations of float32).

A sum of products becomes one of half as many terms, of :data:`~hologram.primitives.scalar.composite.pair_dot` of neighbours; of an odd number the
last is added to the sum. What rows share is packed once, in pairs; of the other factor a pair is 32 bits in memory where the axis lies along it.

The machine's instruction rounds each of its two sums, and takes subnormal numbers, of any factor or sum, for zeros: nothing for ``exact``.
"""

from __future__ import annotations

from hologram import dtypes
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE


def pair_bfloat16(b: Builder, x: Node, axis: int) -> tuple[Node, Node | None] | None:
    """Of the terms ``x`` of a sum over ``axis``: those of pairs of them, half as many, and the last term where one is left over. None where they are
    no products of bfloat16."""
    n = x.shape[axis]
    if not isinstance(n, int) or n < 2 or not is_of_bfloat16(x):
        return None
    first, second = (_pairs(b, f, axis) for f in x.inputs)
    return b(TABLE["pair_dot"], (first, second)), _last(b, x, axis) if n % 2 else None


def _last(b: Builder, x: Node, axis: int) -> Node:
    """The last of the terms ``x`` along ``axis``, which goes."""
    start, shape = [0] * x.ndim, x.shape[:axis] + x.shape[axis + 1 :]
    start[axis] = int(x.shape[axis]) - 1
    factors = [b(TABLE["slice"], (f,), (tuple(start), x.shape, (1,) * x.ndim)) for f in x.inputs]
    return b(x.op, tuple([b(TABLE["reshape"], (f,), (shape,)) for f in factors]))


def is_of_bfloat16(x: Node) -> bool:
    """Whether ``x`` is products of bfloat16."""
    return x.op.name == "mul" and all(map(_is_bfloat16, x.inputs))


def _is_bfloat16(f: Node) -> bool:
    """Whether the elements of ``f``, float32, are made from bfloat16 and moved."""
    while f.op.kind == "movement" and len(f.inputs) == 1:
        f = f.inputs[0]
    return f.op.name == "cast" and f.inputs[0].dtype is dtypes.bfloat16


def _pairs(b: Builder, f: Node, axis: int) -> Node:
    """Neighbours along ``axis`` in one number: the upper halves of the bits of float32 are those of bfloat16, the lower are 0."""
    first, second = (b(TABLE["bitcast"], (b.slice_axis(f, axis, i, f.shape[axis] // 2 * 2, 2),), ("uint32",)) for i in (0, 1))
    sixteen = b.const(16, dtypes.uint32)
    return b(TABLE["or"], (b(TABLE["shr_low"], (first, sixteen)), second))
