"""Legalization of sorts: keys of unsigned integers, with each row contiguous, and the elements that sorted keys stand for.

Between these stands a ``native`` node, which :mod:`hologram.graph.lower.native_sort` lowers, or, for long rows on devices, the passes of
:mod:`hologram.graph.legalize.radix_plan`."""

from __future__ import annotations

from typing import NamedTuple

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.legalize.radix_plan import RunningSum, is_worth, radix_sorted
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE
from hologram.ir.symbolic import prod
from hologram.primitives.sorting import Finish, argsort, order_keys, sort_key, sort_keys, unsigned_of

MIN_SPLIT_KEY_ROW = 65_536  # elements of a row whose 64-bit keys the CPU sorts by halves, rather than read through indices in each pass
INDEX_BITS = 32  # rows of unknown length have fewer elements than these count


class LongSorts(NamedTuple):
    """What long rows are sorted with on a device: bytes of memory that a group shares, and the running sum along the last axis."""

    shared_bytes: int
    running_sum: RunningSum


def legalize_sort(b: Builder, node: Node, x: Node, long: LongSorts | None) -> Node:
    axis, descending = node.attrs
    n = x.shape[axis]
    moved = [*[a for a in range(x.ndim) if a != axis], axis]
    lines = b.transpose(x, tuple(moved))
    rows = b.reshape(lines, (prod(lines.shape[:-1]), n))
    out = (_order if node.op is argsort else _sorted)(b, rows, descending, long)
    return b.transpose(b.reshape(out, lines.shape), tuple(moved.index(a) for a in range(x.ndim)))


def _keys(b: Builder, rows: Node, descending: bool) -> Node:
    if rows.dtype.kind == "b":
        keys = b.cast(rows, dtypes.uint8)
    else:
        keys = b(sort_key, (b.bitcast(rows, unsigned_of(rows.dtype.bits)),), (rows.dtype.name,))
    return b(TABLE["not"], (keys,)) if descending else keys


def _values(d: DType, descending: bool) -> Finish:
    """What makes elements of keys."""
    back: Finish = (("not", (), None),) if descending else ()
    if d.kind == "b":
        return (*back, ("cast", (d.name,), None))
    return (*back, ("sort_value", (d.name,), None), ("bitcast", (d.name,), None))


def _sorted(b: Builder, rows: Node, descending: bool, long: LongSorts | None) -> Node:
    return sorted_by(b, _keys(b, rows, descending), 0, _values(rows.dtype, descending), long)


def sorted_by(b: Builder, items: Node, low: int, finish: Finish, long: LongSorts | None) -> Node:
    """Rows sorted stably by the bits from ``low`` on, and what ``finish`` makes of them."""
    rows, n = items.shape
    if long is not None and is_worth(n, rows, items.dtype, low, long.shared_bytes):
        return radix_sorted(b, items, low, finish, *long)
    out = _first(b, b(sort_keys, (items,), (low,)))
    for name, attrs, constant in finish:
        out = b(TABLE[name], (out,) if constant is None else (out, b.const(constant, out.dtype)), attrs)
    return out


def _order(b: Builder, rows: Node, descending: bool, long: LongSorts | None) -> Node:
    """Where there is room for it, the index is carried below the key in one number."""
    if rows.dtype.is_float:
        zero = b.const(0.0, rows.dtype)
        rows = b(TABLE["select"], (b(TABLE["eq"], (rows, zero)), zero, rows))
    keys, n = _keys(b, rows, descending), rows.shape[1]
    carried = INDEX_BITS if not isinstance(n, int) else max(0, n - 1).bit_length()
    wide = next((d for d in (dtypes.uint32, dtypes.uint64) if keys.dtype.bits + carried <= d.bits), None)
    if wide is not None:
        return sorted_by(b, _pairs(b, keys, None, wide), *_below(wide, keys.dtype), long)
    if carried <= INDEX_BITS and (
        isinstance(n, int) and n >= MIN_SPLIT_KEY_ROW if long is None else is_worth(n, rows.shape[0], keys.dtype, 0, long.shared_bytes)
    ):
        return _by_words(b, keys, long)
    return _first(b, b(order_keys, (b.cast(keys, dtypes.uint64),)))


def _pairs(b: Builder, keys: Node, indices: Node | None, wide: DType) -> Node:
    """Keys in the highest bits, and indices, by default the keys' own, in the lowest."""
    indices = indices or b(TABLE["iota"], (), (keys.shape, 1, wide.name))
    high = b(TABLE["shl_low"], (b.cast(keys, wide), b.const(wide.bits - keys.dtype.bits, wide)))
    return b(TABLE["or"], (high, indices))


def _below(wide: DType, key: DType) -> tuple[int, Finish]:
    """Where keys begin in pairs, and what makes indices of these."""
    low = wide.bits - key.bits
    return low, (("and", (), (1 << low) - 1), ("cast", ("int64",), None))


def _by_words(b: Builder, keys: Node, long: LongSorts | None) -> Node:
    """The order by the lower halves of keys, and then that of the upper halves, in the order by the lower."""
    half, wide = dtypes.uint32, keys.dtype
    low, finish = _below(wide, half)
    lower = sorted_by(b, _pairs(b, b.cast(keys, half), None, wide), low, finish[:1], long)
    rows, n = keys.shape
    position, column = b.reshape(b(TABLE["iota"], (), ((rows * n,), 0, wide.name)), keys.shape), b(TABLE["iota"], (), (keys.shape, 1, wide.name))
    positions = b.cast(b(TABLE["add"], (b(TABLE["sub"], (position, column)), lower)), dtypes.int64)
    upper = b(TABLE["shr_low"], (keys, b.const(half.bits, wide)))
    gathered = b.elements(b.reshape(b.cast(upper, half), (rows * n,)), positions)
    return sorted_by(b, _pairs(b, gathered, lower, wide), low, finish, long)


def _first(b: Builder, halves: Node) -> Node:
    """(rows, 2, n) at [:, 0]."""
    rows, _, n = halves.shape
    return b.reshape(b(TABLE["slice"], (halves,), ((0, 0, 0), (rows, 1, n), (1, 1, 1))), (rows, n))
