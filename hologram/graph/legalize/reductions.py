"""Legalization of reductions: long ones are cut in pages or blocks of rows, so that threads can share them; short ones are unrolled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hologram import dtypes
from hologram.graph.legalize.convolutions import max_unrolled_terms, unroll_reduction
from hologram.graph.legalize.short_reductions import is_short_horizontal, unroll_horizontal_reduction
from hologram.graph.legalize.variation import Variation
from hologram.graph.schedule.choose import COLUMNS, MAX_ROW_BLOCKED_RESULT_BYTES, MIN_ROW_BLOCKED_BYTES
from hologram.graph.schedule.layout import memory_offsets, stride_along
from hologram.graph.schedule.streamed import MIN_ROW_BLOCKED_ARRAY_BYTES
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE, Shape
from hologram.ir.symbolic import Int, floordiv, prod
from hologram.primitives.reductions import PAGE

MAX_KERNEL_TERMS = 256 * PAGE  # a longer reduction is always cut, lest a parallel iteration take long
ROW_BLOCK_PIECES = 32  # pieces of row blocks that keep threads busy, where rows are as many
MIN_PIECE_BYTES = 2**19  # of a piece: the results of pieces are small beside what they are made of
MIN_ROW_BLOCK_PIECES = 8  # of which a kernel is made


MIN_DEVICE_BLOCKS = 1024  # blocks of columns that keep a device busy
MIN_ROW_BLOCK = 16  # rows of a row block


MAX_WHOLE_PAGES = 2  # up to which a reduction or a scan is one piece, however few there are
MAX_WHOLE_POSITION_PAGES = 4  # up to which positions of extremes are found in one piece


MIN_INDEPENDENT = 16  # results that are independent and so already fill the machine


def row_blocked(b: Builder, op: Any, x: Node, run: tuple[int, ...], varies: Variation) -> tuple[Node, tuple[int, ...]]:
    """The partial results of blocks of rows, and the axis left to reduce, where many long rows become one: not the canonical reduction order.

    Memory is then read along rows, one after the other, as it lies; down a block of columns it gives half of its bandwidth.
    """
    first, last = run[0], run[-1]
    n, width = prod(x.shape[first : last + 1]), prod(size for i, size in enumerate(x.shape) if i not in run)
    row = width * x.dtype.itemsize
    if isinstance(row, int) and not MIN_ROW_BLOCKED_BYTES <= row <= MAX_ROW_BLOCKED_RESULT_BYTES:
        return x, run
    if x.dtype.is_float and op.name in ("reduce_sum", "reduce_prod"):
        varies.conditions.require(x.size, most=MIN_ROW_BLOCKED_ARRAY_BYTES // x.dtype.itemsize - 1)  # here, and where a nest is chosen
    if not isinstance(n, int) or not isinstance(row, int) or n * row < MIN_ROW_BLOCKED_ARRAY_BYTES:
        return x, run
    columns = _columns_in_memory(x, run, varies)
    pieces = _pieces(n, row) if columns else 1
    if pieces == 1:
        return x, run
    before, after = x.shape[:first], x.shape[last + 1 :]
    if columns == sorted(columns) and prod(before) == 1:
        blocked = b.reshape(x, (*before, pieces, n // pieces, *after))
        return b(op, (blocked,), ((first + 1,),)), (first,)
    blocked = b.reshape(b.transpose(x, (*run, *columns)), (pieces, n // pieces, *(x.shape[a] for a in columns)))
    axes = [first, *columns]  # of the partial results; those that are reduced are one
    kept = [*range(first), first, *range(last + 1, x.ndim)]
    return b.transpose(b(op, (blocked,), ((1,),)), tuple([axes.index(a) for a in kept])), (first,)


def _columns_in_memory(x: Node, run: tuple[int, ...], varies: Variation) -> list[int]:
    """The axes of rows in the order of memory, where each of ``x``'s elements has a place of its own in one array, in which a row is of one piece.
    None of rows and columns of a product, whose terms are far more than its factors."""
    columns = [a for a in range(x.ndim) if a not in run]
    long = {a for a in range(x.ndim) if x.shape[a] != 1}
    matrix = x if x.op.name != "mul" else next((f for f in x.inputs if varies.of(f) >= long), None)
    if matrix is None:
        return []
    if sum(x.shape[a] != 1 for a in columns) == 1 and prod(x.shape[: run[0]]) == 1:
        return columns
    for offset in memory_offsets(matrix):
        steps = {a: step for a in (*run, *columns) if isinstance(step := stride_along(offset, a), int)}
        found = sorted(columns, key=lambda a: -steps.get(a, 0))
        if _is_of_one_piece([*run, *found], steps, x.shape):
            return found
    return []


def _is_of_one_piece(axes: Sequence[int], steps: Mapping[int, int], shape: Shape) -> bool:
    """Whether ``axes``, whose elements are ``steps`` apart, are in C order, without gaps."""
    step: Int = 1
    for a in reversed(axes):
        if shape[a] != 1 and steps.get(a) != step:
            return False
        step = step * shape[a]
    return True


def _pieces(n: int, row: int) -> int:
    """How many blocks of whole rows there are, of ``n`` rows of ``row`` bytes: enough for threads, few beside what they are made of; 1 where no
    number is right."""
    about = min(ROW_BLOCK_PIECES, max(MIN_ROW_BLOCK_PIECES, n * row // MIN_PIECE_BYTES))
    return next((k for k in range(about, min(4 * about, n // MIN_ROW_BLOCK) + 1) if n % k == 0), 1)


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
    if not needs_cut(rows, columns, n, cut):
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


def needs_cut(rows: Shape, columns: Shape, n: Int, cut: bool) -> bool:
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
