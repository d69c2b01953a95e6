"""Radix sort plans, for long sorts on devices: least significant digit radix sorts (Knuth, The Art of Computer Programming, vol. 3, 5.2.5).

Every pass sorts stably by one digit, in three steps: tiles of items are counted by digit, a running sum of the counts says where the items of each
digit go, and they are brought there (:mod:`hologram.graph.library.sort.radix`). No step waits for what another group does at the same time, so any
device makes progress, and the result does not depend on timing. The first pass makes its items of the elements as it reads them, the last gives what
is wanted of them, so a pass costs three times an item's bytes, and beside array and result there are two arrays of items.

What a pass takes depends on the number of items alone: so rows may be of unknown length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from hologram.dtypes import DType
from hologram.graph.library.sort.merge import merging_of
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE
from hologram.ir.symbolic import Int, floordiv
from hologram.primitives.sorting import Finish, digit_counts, digit_move

DIGIT_BITS = 8  # bits, at most
MAX_ITEMS = 2**32  # of a row: positions are numbers of 32 bits
MAX_COUNTED = 255  # items that one work-item counts in a byte
COUNTING_ITEMS = 64  # work-items that count a tile
MAX_READ_AHEAD = 8
COUNTER_ROWS = 8  # of counters that move a tile: for digits of 4 bits, two in a word
BLOCK_TILES, MAX_UNBLOCKED_TILES = 8, 2048  # tiles that are summed before the running sum, and up to how many are not worth that
COUNTED_BITS, MAX_SUMMED_TILES = DIGIT_BITS, 128  # of indices that are only counted, and tiles whose counts are summed one after the other
MAX_TILE_BYTES = 16 * 1024  # an SM should have room for several groups

# What a large GPU takes, in nanoseconds, by instructions and bytes (docs/gpu_kernels.md): to choose by.
LAUNCH_NS = 3000.0
STEP_NS, MERGE_NS = 0.0002, 0.005  # of an element: a step of a search in its tile, and a pass of merging
PASS_NS, BYTE_NS = 0.004, 0.0005  # of an item in a pass by digits, and of each of its bytes
PASS_LAUNCHES = 4

RunningSum: TypeAlias = Callable[[Node], Node]  # along the last axis


class Layout(NamedTuple):
    """``items`` of a group move a tile, ``own`` elements each: an odd number, so that neighbours' elements lie in different banks."""

    items: int
    own: int

    @property
    def tile(self) -> int:
        return self.items * self.own

    @property
    def pitch(self) -> int:
        """Words from one row of counters to the next: there is a gap of one after every 32, and rows begin in the same bank."""
        return -(-(self.items + self.items // 32) // 32) * 32

    @property
    def at_once(self) -> int:
        """Elements that an item which counts reads before it counts the first."""
        return max(k for k in range(1, MAX_READ_AHEAD + 1) if self.tile // COUNTING_ITEMS % k == 0)


def layout(itemsize: int, shared_bytes: int) -> Layout:
    """For items of so many bytes, in so much memory that a group shares: two tiles, counters, and a word for each digit."""
    items = 256 if shared_bytes >= 48 * 1024 else 128
    counters = 4 * (COUNTER_ROWS * Layout(items, 1).pitch + 3 * items + (1 << DIGIT_BITS) + 64)
    most = min(MAX_TILE_BYTES, (shared_bytes - counters) // 2) // (itemsize * items)
    some = [Layout(items, own) for own in range(1, min(most, MAX_COUNTED * COUNTING_ITEMS // items) + 1, 2)]
    return next(x for x in reversed(some) if x.at_once >= MAX_READ_AHEAD // 2)


def is_worth(n: Int, rows: Int, items: DType, low: int, shared_bytes: int) -> bool:
    """Whether passes by the bits from ``low`` on take less time than merging, by the work of a whole device. Rows fill tiles of their own."""
    if not isinstance(n, int):
        return True
    if n >= MAX_ITEMS or n <= 1:
        return False
    rows = rows if isinstance(rows, int) else 1
    rounds, merges = merging_of(n, items)
    by_merging = (1 + merges) * LAUNCH_NS + rows * n * (STEP_NS * rounds * (rounds + 1) / 2 + MERGE_NS * merges)
    passes, tile = len(digits(low, items.bits)), layout(items.itemsize, shared_bytes).tile
    filled = rows * -(-n // tile) * tile
    return passes * (PASS_LAUNCHES * LAUNCH_NS + filled * (PASS_NS + BYTE_NS * items.itemsize)) < by_merging


def digits(low: int, high: int) -> list[tuple[int, int]]:
    """The lowest bit and the bits of each pass by the bits from ``low`` up to ``high``: as few as can be, of about one size."""
    passes = -(-(high - low) // DIGIT_BITS)
    ends = [low + (high - low) * k // passes for k in range(passes + 1)]
    return [(a, b - a) for a, b in zip(ends, ends[1:], strict=False)]


def counted(b: Builder, keys: Node, bits: int, to: DType, shared_bytes: int) -> Node:
    """How often each number of so many bits, no more than COUNTED_BITS, is in rows of bytes (rows, n): integers of type ``to``, (rows, numbers), of
    which the last has no meaning."""
    rows, n = keys.shape
    tile = layout(1, shared_bytes).tile
    block = 1 if isinstance(n, int) and n <= MAX_SUMMED_TILES * tile else MAX_SUMMED_TILES
    counts = b(digit_counts, (keys,), (0, bits, tile, block))
    _, tiles, buckets = counts.shape
    wide = b(TABLE["cast"], (counts,), (to.name,))
    parts = b(TABLE["reshape"], (wide,), ((rows, floordiv(tiles, block), block, buckets),))
    return b(TABLE["reduce_sum"], (b(TABLE["reduce_sum"], (parts,), ((2,),)),), ((1,),))


def radix_sorted(b: Builder, items: Node, low: int, finish: Finish, shared_bytes: int, running_sum: RunningSum) -> Node:
    """Rows of unsigned numbers (rows, n), sorted stably by the bits from ``low`` on, and what ``finish`` makes of them."""
    rows, n = items.shape
    tile = layout(items.dtype.itemsize, shared_bytes).tile
    block = 1 if isinstance(n, int) and n <= MAX_UNBLOCKED_TILES * tile else BLOCK_TILES
    parts = digits(low, items.dtype.bits)
    for k, (first, bits) in enumerate(parts):
        attrs = (first, bits, tile, block)
        counts = b(digit_counts, (items,), attrs)
        upto = _upto(b, counts, block, running_sum)
        items = b(digit_move, (items, counts, upto), (*attrs, finish if k + 1 == len(parts) else ()))
    return items


def _upto(b: Builder, counts: Node, block: int, running_sum: RunningSum) -> Node:
    """Where each block's items of each digit end: (rows, digits, blocks)."""
    rows, tiles, buckets = counts.shape
    blocks = floordiv(tiles, block)
    if block > 1:
        parts = b(TABLE["reshape"], (counts,), ((rows, blocks, block, buckets),))
        counts = b(TABLE["reduce_sum"], (parts,), ((2,),))
    by_digit = b(TABLE["transpose"], (counts,), ((0, 2, 1),))
    flat = b(TABLE["reshape"], (by_digit,), ((rows, buckets * blocks),))
    return b(TABLE["reshape"], (running_sum(flat),), ((rows, buckets, blocks),))
