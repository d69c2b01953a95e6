"""Legalization of scans: long ones are cut in pages or blocks with carries between them; reverse ones are scans between two flips."""

from __future__ import annotations

import math
from typing import Any

from hologram import dtypes
from hologram.graph.legalize.paged_scans import join_pages
from hologram.graph.legalize.reductions import MIN_DEVICE_BLOCKS, reduce_run, split_in_pages
from hologram.graph.schedule.choose import COLUMNS
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE
from hologram.ir.symbolic import at_least, floordiv, prod
from hologram.primitives.reductions import LAST, PAGE, reduction_by

MAX_SEQUENTIAL_PAGES = 64  # of a scan: to add up so many totals one after the other takes long where many could at one time
MIN_BLOCKED_COLUMN = 256  # elements of a scan


def legalize_scan(b: Builder, node: Node, x: Node, at_once: bool) -> Node:
    """``at_once``: what stands before pages may be found not in the canonical reduction order, in parallel instead of one after the other."""
    axis, reverse = node.attrs
    x = b.cast(x, dtypes.compute_type(x.dtype))
    if reverse:
        x = b.flip(x, axis)
    n = x.shape[axis]
    if axis == x.ndim - 1 and not (isinstance(n, int) and n <= PAGE):
        return join_pages(b, b.cast(_paged_scan(b, node.op, x, axis, at_once), node.dtype), n, reverse)
    blocks = _scan_block_count(x, axis) if at_once else 1
    x = _blocked_scan(b, node.op, x, axis, blocks) if blocks > 1 else b(node.op, (x,), (axis, False))
    return b.cast(b.flip(x, axis) if reverse else x, node.dtype)


def _scan_block_count(x: Node, axis: int) -> int:
    """In how many blocks a scan down columns is cut that has few of them to do in parallel; 1: none."""
    n, rows, columns = x.shape[axis], prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    groups = rows * floordiv(columns + (COLUMNS - 1), COLUMNS)
    if axis == x.ndim - 1 or not isinstance(n, int) or not isinstance(groups, int) or n < MIN_BLOCKED_COLUMN or groups >= MIN_DEVICE_BLOCKS:
        return 1
    most = min(math.isqrt(n), MIN_DEVICE_BLOCKS // max(1, groups))
    return next((k for k in range(most, most // 4, -1) if n % k == 0), most)


def _blocked_scan(b: Builder, op: Any, x: Node, axis: int, blocks: int) -> Node:
    """Totals of blocks, what stands before each, and the scan again, not in the canonical reduction order."""
    n = x.shape[axis]
    assert isinstance(n, int)
    parts = split_in_pages(b, x, axis, n, op.identity(x.dtype), -(-n // blocks))
    totals = reduce_run(b, reduction_by(op.monoid), parts, (axis + 1,))
    before = _shifted(b, b(op, (totals,), (axis, False)), axis, op.identity(x.dtype))
    spread = b(TABLE["broadcast"], (before,), (parts.shape, tuple(i for i in range(parts.ndim) if i != axis + 1)))
    out = b(op.monoid, (spread, b(op, (parts,), (axis + 1, False))))
    whole = b.reshape(out, (*x.shape[:axis], out.shape[axis] * out.shape[axis + 1], *x.shape[axis + 1 :]))
    return whole if whole.shape == x.shape else b.slice_axis(whole, axis, 0, n)


def _shifted(b: Builder, x: Node, axis: int, identity: Any) -> Node:
    """``x`` one further along ``axis``; the first is the identity, the last is lost."""
    return _moved_on(b, b.slice_axis(x, axis, 0, x.shape[axis] - 1), axis, identity)


def _moved_on(b: Builder, x: Node, axis: int, identity: Any) -> Node:
    """``x`` behind one identity."""
    low = tuple(1 if i == axis else 0 for i in range(x.ndim))
    return b(TABLE["pad"], (x, b.const(identity, x.dtype)), (low, (0,) * x.ndim))


def running_sum(b: Builder, x: Node) -> Node:
    """Of integers, along the last axis."""
    return legalize_scan(b, Node(TABLE["cumsum"], (x,), (x.ndim - 1, False), x.shape, x.dtype), x, True)


def _paged_scan(b: Builder, op: Any, x: Node, axis: int, at_once: bool) -> Node:
    """The running values of a long axis, (…, pages, PAGE)."""
    pages = split_in_pages(b, x, axis, x.shape[axis], op.identity(x.dtype))
    inside = b(op, (pages,), (axis + 1, False))
    carry = _page_carries(b, op, pages, axis, at_once)
    spread = b(TABLE["broadcast"], (carry,), (inside.shape, tuple(range(carry.ndim))))
    return b(op.monoid, (spread, inside))


def _page_carries(b: Builder, op: Any, pages: Node, axis: int, at_once: bool) -> Node:
    """What stands before each page: the running totals of the pages before it, left to right; the first is the identity. Nothing is read for a single
    page."""
    count = pages.shape[axis]
    before = count - at_least(count, 1)
    totals = b(op, (b.slice_axis(pages, axis, 0, before),), (axis + 1, LAST))
    if at_once and isinstance(before, int) and before > MAX_SEQUENTIAL_PAGES:
        running = _running_totals(b, op, totals, axis)
    else:
        running = b(op, (b.reshape(totals, (*totals.shape, 1)),), (axis, False))
    carries = _moved_on(b, b.reshape(running, totals.shape), axis, op.identity(totals.dtype))
    carries = carries if before + 1 == count else b.slice_axis(carries, axis, 0, count)
    return b.reshape(carries, (*carries.shape, 1))


def _running_totals(b: Builder, op: Any, totals: Node, axis: int) -> Node:
    """The running values as those of a row, long ones by pages again."""
    n = totals.shape[axis]
    if isinstance(n, int) and n <= PAGE:
        return b(op, (totals,), (axis, False))
    return join_pages(b, _paged_scan(b, op, totals, axis, True), n, False)
