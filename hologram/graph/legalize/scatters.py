"""Legalization of scatters: brings each to the form that kernels take.

That form is x (batch, outer, n, inner), indices (batch, m) and updates (batch, outer, m, inner). Narrow floats are combined in float32 and rounded
once. Many updates to few indices are cut in pieces (:func:`hologram.primitives.indexing.pieces`), each a row of a batch.
:mod:`hologram.graph.lower.scatters` lowers the result."""

from __future__ import annotations

from hologram import dtypes
from hologram.graph.legalize.sorted_scatters import scatter_by_sorting
from hologram.graph.legalize.sorts import LongSorts
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE, Op
from hologram.ir.symbolic import floordiv, prod
from hologram.primitives.indexing import pieces
from hologram.primitives.reductions import is_order_free, reduction_by


def legalize_scatter(b: Builder, node: Node, inputs: tuple[Node, ...], long: LongSorts | None, exact: bool) -> Node:
    """``long``: how a device sorts, by which it scatters many updates (:mod:`hologram.graph.legalize.sorted_scatters`)."""
    axis, batch = node.attrs
    x, indices, updates = inputs
    if updates.size == 0:
        return x
    work = x.dtype if node.op.monoid is None else dtypes.compute_type(x.dtype)
    shared, outer, n, inner = prod(x.shape[:batch]), prod(x.shape[batch:axis]), x.shape[axis], prod(x.shape[axis + 1 :])
    m = prod(indices.shape[batch:])
    rows = b.reshape(b.cast(x, work), (shared, outer, n, inner))
    flat_indices = b.reshape(indices, (shared, m))
    parts = b.reshape(b.cast(updates, work), (shared, outer, m, inner))
    count = pieces(n, m) if node.op.monoid is not None and x.size == n else 1
    in_order = exact and node.op.monoid is not None and not is_order_free(node.op.monoid, work)
    if count > 1 and (long is None or in_order):
        out = _in_pieces(b, node.op, rows, flat_indices, parts, count, long)
    else:
        out = _scattered(b, node.op, rows, flat_indices, parts, long, exact)
    return b.cast(b.reshape(out, node.shape), node.dtype)


def _scattered(b: Builder, op: Op, x: Node, indices: Node, updates: Node, long: LongSorts | None, exact: bool) -> Node:
    found = scatter_by_sorting(b, op, x, indices, updates, long, exact) if long is not None else None
    return b(op, (x, indices, updates), (2, 1)) if found is None else found


def _in_pieces(b: Builder, op: Op, x: Node, indices: Node, updates: Node, count: int, long: LongSorts | None) -> Node:
    """Every piece a row of its own, from the identity; then the rows, in order, and ``x``."""
    n, m = x.shape[2], indices.shape[1]
    size = floordiv(m + (count - 1), count)
    missing = count * size - m
    if missing != 0:
        indices = b.cast(indices, dtypes.int64)
        nowhere = b.const(-1, indices.dtype)
        indices = b(TABLE["pad"], (indices, nowhere), ((0, 0), (0, missing)))
        anything = b.const(0, updates.dtype)
        updates = b(TABLE["pad"], (updates, anything), ((0, 0, 0, 0), (0, 0, missing, 0)))
    identity = b.const(op.identity(x.dtype), x.dtype)
    start = b(TABLE["broadcast"], (identity,), ((count, 1, n, 1), ()))
    parts = _scattered(b, op, start, b.reshape(indices, (count, size)), b.reshape(updates, (count, 1, size, 1)), long, exact=True)
    total = b(reduction_by(op.monoid), (b.reshape(parts, (count, n)),), ((0,),))
    assert op.monoid is not None
    return b(op.monoid, (x, b.reshape(total, x.shape)))
