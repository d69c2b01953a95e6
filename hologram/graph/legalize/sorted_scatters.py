"""Legalization of large scatters on devices: updates are sorted by index, so that one work item has all that goes to one element, in order.

The order in which updates are combined is that of the indices, so what is given is what a loop over them would give, bit for bit, where the order
matters to an ``exact`` program. Where it does not (integers, extremes, other precisions), runs of updates for one element are cut at multiples of
about the root of their number, and the pieces combined: an item then combines few, even if all updates go to one element.

Numbers of updates that are all alike, as in histograms, are counts, by :func:`hologram.graph.legalize.radix_plan.counted` for few indices.
:mod:`hologram.graph.lower.sorted_scatters` lowers the result."""

from __future__ import annotations

from hologram import dtypes
from hologram.graph.legalize.radix_plan import COUNTED_BITS, counted
from hologram.graph.legalize.sorts import INDEX_BITS, LongSorts, sorted_by
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE, Op
from hologram.ir.symbolic import Int
from hologram.primitives.reductions import is_order_free, reduction_by
from hologram.primitives.sorted_scatter import run_sums, scatter_runs
from hologram.primitives.sorting import unsigned_of

MIN_SORTED_UPDATES = 128  # of a row, from which they are sorted
MIN_CUT, UNKNOWN_CUT = 32, 1024


def is_sorted(m: Int) -> bool:
    """Whether so many updates of a row may be sorted."""
    return not isinstance(m, int) or m >= MIN_SORTED_UPDATES


def scatter_by_sorting(b: Builder, op: Op, x: Node, indices: Node, updates: Node, long: LongSorts, exact: bool) -> Node | None:
    """A scatter of ``updates`` (shared, outer, m, inner) to ``indices`` (shared, m) of ``x`` (shared, outer, n, inner); None where it is as well done
    one after the other, or where indices and numbers of updates are too large together."""
    n, m = x.shape[2], indices.shape[1]
    if not isinstance(n, int) or not is_sorted(m):
        return None
    if op.monoid is not None and x.dtype.kind not in reduction_by(op.monoid).kinds:
        return None
    only = _only_value(b, updates)
    key_bits = n.bit_length()
    index_bits = 0 if only is not None else INDEX_BITS if not isinstance(m, int) else max(1, (m - 1).bit_length())
    width = next((bits for bits in (8, 16, 32, 64) if key_bits + index_bits <= bits), None)
    if width is None:
        return None
    low, keys = width - key_bits, _keys(b, indices, n, width)
    if only is not None and op.name == "scatter_add" and x.dtype.is_integer and key_bits <= COUNTED_BITS and x.size == x.shape[0] * n:
        return _counts_added(b, x, keys, only, long.shared_bytes)
    d = keys.dtype
    items = b(TABLE["shl_low"], (keys, b.const(low, d))) if low else keys
    if index_bits:
        items = b(TABLE["or"], (items, b(TABLE["iota"], (), (items.shape, 1, d.name))))
    pairs = sorted_by(b, items, low, (), long)
    if op.monoid is None or (exact and not is_order_free(op.monoid, x.dtype)):
        return b(scatter_runs, (x, pairs, updates), (op.name, low, index_bits, 0))
    cut = max(MIN_CUT, 1 << (m.bit_length() // 2)) if isinstance(m, int) else UNKNOWN_CUT
    attrs = (op.name, low, index_bits, cut)
    return b(scatter_runs, (x, pairs, b(run_sums, (pairs, updates), attrs)), attrs)


def _keys(b: Builder, indices: Node, n: int, width: int) -> Node:
    """Indices as numbers of so many bits; what is out of range, a negative number being a large one, becomes ``n``."""
    wide = b.cast(b.cast(indices, dtypes.int64) if indices.dtype.kind == "i" else indices, dtypes.uint64)
    return b.cast(b(TABLE["min"], (wide, b.const(n, wide.dtype))), unsigned_of(width))


def _only_value(b: Builder, updates: Node) -> Node | None:
    """The number that all updates are; None where they may differ."""
    if updates.op.name == "const":
        return updates
    if updates.op.name not in ("broadcast", "reshape", "cast"):
        return None
    value = _only_value(b, updates.inputs[0])
    return value if value is None or updates.op.name != "cast" else b.cast(value, updates.dtype)


def _counts_added(b: Builder, x: Node, keys: Node, update: Node, shared_bytes: int) -> Node:
    """Integers wrap, so as many times an update is its product with their number."""
    n = x.shape[2]
    totals = counted(b, keys, n.bit_length(), x.dtype, shared_bytes)  # type: ignore[union-attr]
    known = b(TABLE["slice"], (totals,), ((0, 0), (totals.shape[0], n), (1, 1)))
    return b(TABLE["add"], (x, b(TABLE["reshape"], (b(TABLE["mul"], (known, update)),), (x.shape,))))
