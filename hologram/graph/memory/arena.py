"""Arena allocation: addresses for the intermediates of a call, ahead of time, from their lifetimes.

The arena of a call is one allocation. Its first :data:`POOL_PAGES` pages of :data:`PAGE_BYTES` are the pool: a buffer there starts on a page,
owns whole pages and is named by the class index of its first one. Every other buffer is linear: an offset at a cache line, anywhere in the
arena, so also in pages that nobody owns while it lives.

**Decision.** Whole pages waste the rest of their last page. An allocation may spend 1/20 over the lower bound: buffers that waste most leave the
pages for linear offsets, step by step, until it keeps that, and at the last step no buffer has pages.

**Method.** Offline packing of rectangles (lifetime × size), greedy by several orders, the smallest peak kept. The order by size is Pisarchyk and
Lee, *Efficient Memory Management for Deep Neural Net Inference*, 2020 (arXiv:2001.03288).

Sizes are counted in whole cache lines, in the peak and in the lower bound alike.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

PAGE_BYTES = 12288
POOL_PAGES = 96
LINE_BYTES = 64
MAX_PAGES = 24  # a larger buffer would push the others out of the cache that the pool is meant to stay in
SLACK = 0.05
_WASTE_STEPS = (1.0, 0.25, 0.125, SLACK, 0.01, None)  # share of the pages; None: no pages
_REPAIRS = 40
_MANY_OVERLAPS = 100_000  # above this only one order is tried, so that allocation stays a small part of compiling

Id = Hashable


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A buffer to place: ``nbytes`` from kernel ``first``, which writes it, to kernel ``last``, the last that reads it, both inclusive.

    ``may_alias`` names inputs of kernel ``first``: the buffer may take over the address of one of them that dies there and has the same
    ``nbytes``. The caller vouches that the kernel reads each element of these before it writes the element at that place.
    """

    id: Id
    nbytes: int
    first: int
    last: int
    may_alias: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a buffer lives: ``offset`` bytes into the arena; ``class_index`` is its first page where ``kind`` is ``"page"``, else None."""

    id: Id
    kind: Literal["page", "linear"]
    class_index: int | None
    offset: int
    nbytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ArenaAllocation:
    """Placements by id, the bytes of the arena that holds them, and the largest sum of bytes alive at one time."""

    buffers: Mapping[Id, Placement]
    arena_bytes: int
    lower_bound: int

    @property
    def peak(self) -> int:
        """The highest address that any buffer reaches, which is what the arena must hold."""
        return self.arena_bytes

    def __str__(self) -> str:
        if not self.buffers:
            return "no buffers of intermediates"
        rows = [("buffer", "place", "offset", "bytes", "first", "last")]
        rows += [(str(p.id), _place_name(p), f"{p.offset:,}", f"{p.nbytes:,}", str(p.first), str(p.last)) for p in self.buffers.values()]
        widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(r, widths, strict=True))) for r in rows]
        ratio = self.peak / self.lower_bound if self.lower_bound else 1.0
        lines.append(f"peak {self.peak:,} bytes, lower bound {self.lower_bound:,}, ratio {ratio:.3f}")
        return "\n".join(lines)


def class_index(h2: int, d: int, l: int) -> int:  # noqa: E741
    """The page named by its three coordinates, h2 in 0..3, d in 0..2, l in 0..7."""
    if not (0 <= h2 < 4 and 0 <= d < 3 and 0 <= l < 8):
        raise ValueError(f"no page has the coordinates h2={h2}, d={d}, l={l}; they are below 4, 3 and 8")
    return 24 * h2 + 8 * d + l


def class_coordinates(index: int) -> tuple[int, int, int]:
    """``(h2, d, l)`` of a page: the inverse of :func:`class_index`."""
    if not 0 <= index < POOL_PAGES:
        raise ValueError(f"page {index} is not among the {POOL_PAGES} of the pool")
    return index // 24, index // 8 % 3, index % 8


def allocate(lifetimes: Sequence[Lifetime]) -> ArenaAllocation:
    """Places every buffer; buffers alive at one time never overlap, except where one takes over another's address. Deterministic.

    Raises ``ValueError`` for an id given twice, a negative size, or a buffer that dies before it is written.
    """
    _check(lifetimes)
    blocks = _blocks(lifetimes)
    bound = _most_alive(blocks, [b.lines for b in blocks])
    packing = _best(blocks, bound)
    return ArenaAllocation(_placements(lifetimes, blocks, packing), packing.peak, bound)


def _check(lifetimes: Sequence[Lifetime]) -> None:
    if len({b.id for b in lifetimes}) != len(lifetimes):
        raise ValueError("two buffers have one id")
    for b in lifetimes:
        if b.nbytes < 0 or b.last < b.first:
            raise ValueError(f"buffer {b.id} has {b.nbytes} bytes from kernel {b.first} to kernel {b.last}")


# Blocks: what is placed. A block is one buffer, or several that take over one another's address.


@dataclass(slots=True)
class _Block:
    index: int
    members: list[Id]
    nbytes: int
    first: int
    last: int

    @property
    def lines(self) -> int:
        return _round_up(self.nbytes, LINE_BYTES)

    @property
    def pages(self) -> int:
        return -(-self.nbytes // PAGE_BYTES)

    @property
    def waste(self) -> float:
        """The share of its whole pages that the block leaves empty."""
        return 1 - self.lines / (self.pages * PAGE_BYTES)


def _blocks(lifetimes: Sequence[Lifetime]) -> list[_Block]:
    by_id = {b.id: b for b in lifetimes}
    owner: dict[Id, _Block] = {}
    blocks: list[_Block] = []
    for b in sorted(lifetimes, key=lambda b: b.first):
        if not b.nbytes:
            continue
        heir_of = next((a for a in b.may_alias if a in owner and owner[a].members[-1] == a and _same_place(by_id[a], b)), None)  # one heir each
        if heir_of is None:
            block = _Block(len(blocks), [], b.nbytes, b.first, b.last)
            blocks.append(block)
        else:
            block = owner[heir_of]
        block.members.append(b.id)
        block.last = b.last
        owner[b.id] = block
    return blocks


def _same_place(old: Lifetime, new: Lifetime) -> bool:
    """Whether ``new`` starts where ``old`` dies. A buffer that lives in one kernel only has no moment at which it could be handed over."""
    return old.last == new.first and old.first < new.first and old.nbytes == new.nbytes


def _most_alive(blocks: Sequence[_Block], sizes: Sequence[int]) -> int:
    """The largest sum of sizes of blocks that are alive at one time: no packing has a smaller peak."""
    change: dict[int, int] = {}
    for b, size in zip(blocks, sizes, strict=True):
        change[b.first] = change.get(b.first, 0) + size
        change[b.last + 1] = change.get(b.last + 1, 0) - size
    return max(itertools.accumulate((change[moment] for moment in sorted(change)), initial=0))


def _overlaps(blocks: Sequence[_Block]) -> list[list[int]]:
    """For each block the others that are alive at some moment of its life, by a sweep over time."""
    neighbours: list[list[int]] = [[] for _ in blocks]
    alive: list[_Block] = []
    for b in sorted(blocks, key=lambda b: b.first):
        alive = [a for a in alive if a.last >= b.first]
        for a in alive:
            neighbours[a.index].append(b.index)
            neighbours[b.index].append(a.index)
        alive.append(b)
    return neighbours


# Packing: one greedy pass puts blocks, in a given order, into the gaps between those already placed that live at the same time.


@dataclass(slots=True)
class _Packing:
    spans: list[tuple[int, int]]  # by block: start and end, in bytes
    paged: list[bool]
    peak: int


_ORDERS: tuple[Callable[[_Block], int], ...] = (
    lambda b: -b.nbytes,
    lambda b: -b.nbytes * (b.last - b.first + 1),
    lambda b: b.first,
    lambda b: b.first - b.last,
    lambda b: -b.last,
)


def _best(blocks: Sequence[_Block], bound: int) -> _Packing:
    """The packing with the most pages that keeps the slack; where none does, the one with the smallest peak."""
    neighbours = _overlaps(blocks)
    enough = int(bound * (1 + SLACK))
    best: _Packing | None = None
    for paged in _in_pages(blocks, enough):
        for packing in _attempts(blocks, neighbours, paged, enough):
            if best is None or packing.peak < best.peak:
                best = packing
            if best.peak == bound:
                return best
        if best is not None and best.peak <= enough:
            return best
    assert best is not None  # the last step always packs
    return best


def _in_pages(blocks: Sequence[_Block], enough: int) -> list[tuple[bool, ...]]:
    """Which blocks have pages, step by step. Steps that cannot keep ``enough`` come last: there nothing is left but the smallest peak."""
    wastes = [b.waste if b.pages <= MAX_PAGES else None for b in blocks]
    steps = dict.fromkeys(tuple(w is not None and step is not None and w <= step for w in wastes) for step in _WASTE_STEPS)
    return sorted(steps, key=lambda paged: _is_too_large(blocks, paged, enough))


def _is_too_large(blocks: Sequence[_Block], paged: Sequence[bool], enough: int) -> bool:
    """Whether these pages need more than ``enough`` in any packing: all together, or because a block that finds no page in the pool, so that it is
    linear, has only found it full."""
    sizes = [b.pages * PAGE_BYTES if in_pages else b.lines for b, in_pages in zip(blocks, paged, strict=True)]
    return _most_alive(blocks, sizes) > enough and enough < (POOL_PAGES - MAX_PAGES) * PAGE_BYTES


def _attempts(blocks: Sequence[_Block], neighbours: list[list[int]], paged: Sequence[bool], enough: int) -> Iterator[_Packing]:
    """Every order with both ways to choose a gap; where none keeps ``enough``, the best again with the block that sets the peak moved forward."""
    few = sum(map(len, neighbours)) <= 2 * _MANY_OVERLAPS
    starts = []
    for order in _ORDERS if few else _ORDERS[:1]:
        sequence = sorted(blocks, key=lambda b: (not paged[b.index], order(b), b.index))
        for fit in (_best_gap, _lowest_gap):
            packing = _pack(sequence, neighbours, paged, fit)
            yield packing
            starts.append((packing, sequence, fit))
    packing, sequence, fit = min(starts, key=lambda start: start[0].peak)
    for _ in range(_REPAIRS if few else 0):
        if packing.peak <= enough:
            return
        blamed = next(b for b in sequence if packing.spans[b.index][1] == packing.peak)
        sequence = sorted(sequence, key=lambda b: (not paged[b.index], b is not blamed))
        packing = _pack(sequence, neighbours, paged, fit)
        yield packing


_Gaps = Iterator[tuple[int, int | None]]
_Fit = Callable[[_Gaps, int], int]


def _pack(sequence: Sequence[_Block], neighbours: list[list[int]], paged: Sequence[bool], fit: _Fit) -> _Packing:
    out = _Packing([(-1, -1)] * len(sequence), list(paged), 0)
    for b in sequence:
        taken = sorted(out.spans[n] for n in neighbours[b.index] if out.spans[n][0] >= 0)
        start, size = 0, b.lines
        if paged[b.index]:
            start, size = _lowest_gap(_gaps(taken, PAGE_BYTES), b.pages * PAGE_BYTES), b.pages * PAGE_BYTES
            out.paged[b.index] = start + size <= POOL_PAGES * PAGE_BYTES
        if not out.paged[b.index]:
            size = b.lines
            start = fit(_gaps(taken, LINE_BYTES), size)
        out.spans[b.index] = (start, start + size)
        out.peak = max(out.peak, start + size)
    return out


def _gaps(taken: Sequence[tuple[int, int]], alignment: int) -> _Gaps:
    """The free stretches between sorted, perhaps overlapping spans: an aligned start, and an end that is None for the last."""
    start = 0
    for low, high in taken:
        if low > start:
            yield start, low
        start = max(start, _round_up(high, alignment))
    yield start, None


def _lowest_gap(gaps: _Gaps, size: int) -> int:
    return next(start for start, end in gaps if end is None or end - start >= size)


def _best_gap(gaps: _Gaps, size: int) -> int:
    """The start of the smallest gap that is large enough; the open end only where no other is."""
    best, best_room = 0, -1
    for start, end in gaps:
        if end is None:
            return best if best_room >= 0 else start
        if end - start >= size and (best_room < 0 or end - start < best_room):
            best, best_room = start, end - start
    raise AssertionError("the last gap is open")


def _placements(lifetimes: Sequence[Lifetime], blocks: Sequence[_Block], packing: _Packing) -> dict[Id, Placement]:
    block_of = {m: b.index for b in blocks for m in b.members}
    out: dict[Id, Placement] = {}
    for b in lifetimes:
        index = block_of.get(b.id)
        if index is None:  # no bytes, no place
            out[b.id] = Placement(b.id, "linear", None, 0, 0, b.first, b.last)
            continue
        offset, paged = packing.spans[index][0], packing.paged[index]
        page = offset // PAGE_BYTES if paged else None
        out[b.id] = Placement(b.id, "page" if paged else "linear", page, offset, b.nbytes, b.first, b.last)
    return out


def _place_name(p: Placement) -> str:
    if p.class_index is None:
        return "linear"
    pages = -(-p.nbytes // PAGE_BYTES)
    return f"page {p.class_index}" if pages == 1 else f"pages {p.class_index}..{p.class_index + pages - 1}"


def _round_up(n: int, unit: int) -> int:
    return -(-n // unit) * unit
