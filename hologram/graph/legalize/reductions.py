"""Legalization of reductions: long ones are cut in pages or blocks of rows, so that threads can share them; short ones are unrolled."""

from __future__ import annotations

from typing import Any

from hologram import dtypes
from hologram.graph.legalize.convolutions import max_unrolled_terms, unroll_reduction
from hologram.graph.legalize.short_reductions import is_short_horizontal, unroll_horizontal_reduction
from hologram.graph.schedule.choose import COLUMNS, MIN_ROW_BLOCKED_BYTES, ROW_BLOCK, UNCACHED_BYTES
from hologram.graph.size_conditions import SizeConditions
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE, Shape
from hologram.ir.symbolic import Int, floordiv, prod
from hologram.primitives.reductions import PAGE

MAX_KERNEL_TERMS = 256 * PAGE  # a longer reduction is always cut, lest a parallel iteration take long
ROW_BLOCK_PIECES = 32  # pieces of row blocks that keep threads busy, where rows are as many


MIN_DEVICE_BLOCKS = 1024  # blocks of columns that keep a device busy
MIN_ROW_BLOCK = 16  # rows of a row block


MAX_WHOLE_PAGES = 2  # up to which a reduction or a scan is one piece, however few there are
MAX_WHOLE_POSITION_PAGES = 4  # up to which positions of extremes are found in one piece


MIN_INDEPENDENT = 16  # results that are independent and so already fill the machine


def row_blocked(b: Builder, op: Any, x: Node, run: tuple[int, ...], conditions: SizeConditions) -> tuple[Node, tuple[int, ...]]:
    """The partial results of blocks of rows, and the axis left to reduce, where many long rows become one: not the canonical reduction order.

    Memory is then read along rows, many at once, as it lies; down a block of columns it gives half of its bandwidth.
    """
    first, last = run[0], run[-1]
    n, width = prod(x.shape[first : last + 1]), prod(x.shape[last + 1 :])
    if x.dtype.is_float and op.name in ("reduce_sum", "reduce_prod"):
        conditions.require(x.size, most=UNCACHED_BYTES // x.dtype.itemsize - 1)  # here, and where a nest is chosen
    if not isinstance(n, int) or not isinstance(width, int) or sum(size != 1 for i, size in enumerate(x.shape) if i not in run) != 1:
        return x, run  # several results' axes may be rows and columns of a product, whose terms are far more than its factors
    if prod(x.shape[:first]) != 1:
        return x, run
    if n % ROW_BLOCK or n == ROW_BLOCK or width * x.dtype.itemsize < MIN_ROW_BLOCKED_BYTES or n * width * x.dtype.itemsize < UNCACHED_BYTES:
        return x, run
    most = max(1, n // (ROW_BLOCK * ROW_BLOCK_PIECES))
    rows = ROW_BLOCK * next(k for k in range(most, 0, -1) if n % (ROW_BLOCK * k) == 0)
    blocked = b.reshape(x, (*x.shape[:first], n // rows, rows, *x.shape[last + 1 :]))
    return b(op, (blocked,), ((first + 1,),)), (first,)


def row_blocked_for_device(b: Builder, op: Any, x: Node, run: tuple[int, ...]) -> tuple[Node, tuple[int, ...]]:
    """The partial results of blocks of rows, as many as keep a device busy, and the axis left to reduce: not the canonical reduction order."""
    first, last = run[0], run[-1]
    n, rows, columns = prod(x.shape[first : last + 1]), prod(x.shape[:first]), x.shape[last + 1 :]
    groups = rows * floordiv(prod(columns) + (COLUMNS - 1), COLUMNS)
    if not columns or not isinstance(n, int) or not isinstance(groups, int) or groups >= MIN_DEVICE_BLOCKS:
        return x, run
    blocks = next((k for k in range(min(n // MIN_ROW_BLOCK, MIN_DEVICE_BLOCKS // max(1, groups)), 1, -1) if n % k == 0), 1)
    if blocks == 1:
        return x, run
    blocked = b.reshape(x, (*x.shape[:first], blocks, n // blocks, *columns))
    return b(op, (blocked,), ((first + 1,),)), (first,)


def reduce_run(b: Builder, op: Any, x: Node, run: tuple[int, ...], cut: bool = False) -> Node:
    """Reduces one run of axes; ``cut``: it already holds the partial results of pages."""
    first, last = run[0], run[-1]
    rows, columns, n = x.shape[:first], x.shape[last + 1 :], prod(x.shape[first : last + 1])
    if columns and isinstance(n, int) and n <= max_unrolled_terms(x):
        return unroll_reduction(b, op.monoid, x, run)
    if is_short_horizontal(x, run):
        return unroll_horizontal_reduction(b, op.monoid, x, run)
    if not _needs_cut(rows, columns, n, cut):
        return b(op, (x,), (run,))
    x = b.reshape(x, (*rows, n, *columns))
    pages = split_in_pages(b, x, first, n, op.identity(x.dtype))
    partial = b(op, (pages,), ((first + 1,),))
    return reduce_run(b, op, partial, (first,), True)


def reduce_position(b: Builder, op: Any, x: Node, axis: int) -> Node:
    """argmax or argmin; of a long vector first within each page, then among the pages' extremes."""
    n = x.size
    if x.ndim != 1 or not isinstance(n, int) or n <= MAX_WHOLE_POSITION_PAGES * PAGE:
        return b(op, (x,), (axis,))
    extreme = TABLE["reduce_max" if op.name == "argmax" else "reduce_min"]
    pages = split_in_pages(b, x, 0, n, extreme.identity(x.dtype))
    inside = b(op, (pages,), (1,))
    page = b(op, (b(extreme, (pages,), ((1,),)),), (0,))
    at = b.elements(inside, page)
    return b(TABLE["add"], (b(TABLE["mul"], (page, b.const(PAGE, dtypes.int64))), at))


def _needs_cut(rows: Shape, columns: Shape, n: Int, cut: bool) -> bool:
    """Whether pages become results of their own. Where n is a symbol, it may be long, or so short that a page of padding costs more than it: it is
    cut, once, only where that happens few times."""
    independent = prod(rows) * (floordiv(prod(columns) + (COLUMNS - 1), COLUMNS) if columns else 1)
    few = isinstance(independent, int) and independent < MIN_INDEPENDENT
    if not isinstance(n, int):
        return few and not cut
    return n > MAX_KERNEL_TERMS or (few and n > MAX_WHOLE_PAGES * PAGE)


def split_in_pages(b: Builder, x: Node, axis: int, n: Int, identity: Any, size: int = PAGE) -> Node:
    """Axis ``axis`` of extent n becomes (pages, size), filled up with the identity."""
    pages = floordiv(n + (size - 1), size)
    missing = pages * size - n
    if missing != 0:
        zero = (0,) * x.ndim
        x = b(TABLE["pad"], (x, b.const(identity, x.dtype)), (zero, (*zero[:axis], missing, *zero[axis + 1 :])))
    return b.reshape(x, (*x.shape[:axis], pages, size, *x.shape[axis + 1 :]))
