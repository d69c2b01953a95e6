"""Tiling of matrix products, and of other sums whose rows share reads: register tiles on CPUs, shared-memory panels on GPUs."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from hologram.graph.kernel.ir import Loop
from hologram.graph.schedule.nest import NARROW, UNBOUNDED, Block, Nest, RowPanel, depends, name_of, size_of, step_along
from hologram.graph.schedule.unroll import steps_at_once
from hologram.ir.symbolic import Expr, Int, at_least, bounds, counter, floordiv, mod, substitute
from hologram.primitives.reductions import PAGE

SIDE = 16  # items along each side of a group of 256 that rows and columns are dealt out to
PAD = 4  # elements between rows in shared memory, so that neighbours down a panel lie in different banks
MAX_ITEM_REGISTERS = 160  # registers, of 4 bytes, that such an item has for what it holds and for the sums of a product
MIN_PACKED_ROWS = 48  # so many rows at least pay for packing what they share, ...
MIN_PACKED_ROWS_OF_LARGE = 16  # ... fewer if it is large: each block of rows then reads it from beyond the second cache, line by line
LARGE_SHARED_BYTES = 1 << 21
FAR_BYTES = 1024  # steps from which what rows share is better packed: they touch a page, or a cache set, each
SHARED_COST = 1.0  # of reading what the rows of a parallel iteration share, in rows: it often comes from the second cache
PACK_BYTES = 64 * 12288
MIN_PANEL_TERMS = 256  # from which rows far apart are packed: the lines of fewer stay in the first cache from tile to tile
MAX_PANEL_TILES = 8  # of rows that are packed together, ...
MIN_PANEL_ITERATIONS = 24  # ... fewer where that leaves too few parallel iterations
MAX_ROW_WORK_RATIO = 1.21  # work on a row of one axis, in rows, from which rows are better counted along all axes that share
MAX_NARROWED_LANES_RATIO = 0.95  # of all lanes, from which narrower blocks pay


class CpuTileConfig(NamedTuple):
    """Rows and bytes of a row that a parallel iteration's accumulators cover when rows share reads: what the registers hold. ``pairs``: whether the
    machine multiplies and adds pairs of bfloat16; ``vector``: bytes of a register."""

    rows: int
    nbytes: int
    pairs: bool = False
    vector: int = 64


class GpuTileConfig(NamedTuple):
    """Rows and columns that a parallel iteration covers on devices whose items share memory, where rows share reads: a loop of lanes in another.
    ``tile_16_bit``: those of sums of products of 16-bit floats, if the device has units for them. ``scores``: rows and keys of a block of attention.
    ``shared_bytes``: of memory that items share. ``library_flops``: of matrix products that a library computes, at least."""

    rows: int
    columns: int
    tile_16_bit: tuple[int, int] | None = None
    scores: tuple[int, int] = (64, 64)
    shared_bytes: int = 32 * 1024
    library_flops: float = math.inf


TileConfig: TypeAlias = "CpuTileConfig | GpuTileConfig"


def _rows_at_once(n: int, tile: CpuTileConfig) -> int:
    """Rows of a parallel iteration: as many as a tile has, or fewer if then so many fewer are run twice that it pays. One shares nothing, and is no
    tile."""
    return min(range(min(n, tile.rows), 1, -1), key=lambda rows: _row_cost(n, rows))


def least_cost(rows: list[Block], tile: CpuTileConfig) -> float:
    """The least work on a row, where those numbered by ``rows`` share. A symbolic number of rows, which may be few, is taken only where all that are
    known leave work over."""
    n = size_of(rows)
    if not isinstance(n, int):
        return MAX_ROW_WORK_RATIO
    return _row_cost(n, _rows_at_once(n, tile)) / n


class ExtentRange(NamedTuple):
    """Values of a symbolic extent, from ``least`` up to ``most`` (None: without end), that have a nest of their own."""

    least: int
    most: int | None


class RowRange(NamedTuple):
    """How rows whose number is in a range are tiled: ``at_once``, whether what they share is worth packing, and of sums of how many ``terms``."""

    at_once: int
    of: ExtentRange
    packs: bool
    terms: ExtentRange = ExtentRange(0, None)


def row_ranges(rows: list[Block], tile: CpuTileConfig, least_packed: int | None) -> list[RowRange]:
    """The ranges that a number of rows may be in, each of which has a nest of its own: one for a number that is known. ``least_packed``: how many
    rows at least pack what they share; None: no number does."""
    n = size_of(rows)
    if isinstance(n, int):
        return [RowRange(_rows_at_once(n, tile), ExtentRange(n, n), least_packed is not None and n >= least_packed)]
    low, _ = bounds(n)
    least, few = max(low or 0, 0), [r for r in (tile.rows // 2, 2) if r > 1]
    found = [] if least_packed is None else [RowRange(tile.rows, ExtentRange(max(least_packed, tile.rows), None), True)]
    for at_once in dict.fromkeys([tile.rows, *few, 1]):
        most = found[-1].of.least - 1 if found else None
        if most is None or most >= least:
            found.append(RowRange(at_once, ExtentRange(max(least, at_once), most), False))
    return found


def page_ranges() -> list[ExtentRange]:
    """The ranges of an extent that fits in a page, and of longer ones."""
    return [ExtentRange(0, PAGE), ExtentRange(PAGE + 1, None)]


def is_in_range(n: Int, of: ExtentRange) -> Int:
    """1 where ``n`` is in the range, 0 elsewhere."""
    if isinstance(n, int) or of == ExtentRange(0, None):
        return 1
    return at_least(n, of.least) - (0 if of.most is None else at_least(n, of.most + 1))


def _row_cost(n: int, rows: int) -> float:
    """The work on ``n`` rows, in rows, by parallel iterations of ``rows``: the last may be run twice, and each parallel iteration reads what its rows
    share."""
    return -(-n // rows) * (rows + SHARED_COST)


def rows_share(row: Block, reduced: list[Block], after: list[Block], loads: Sequence[Int]) -> bool:
    """Whether the rows numbered by ``row`` read the same elements across the columns, and others each for itself."""
    if len(after) != 1 or not reduced:
        return False
    n, width = size_of(reduced), after[0].size
    extents = (row.size, 2), (n, NARROW), (width, 2)
    if any(isinstance(n, int) and n < least for n, least in extents):
        return False
    shared = [e for e in loads if depends(e, reduced) and depends(e, after) and not depends(e, [row])]
    own = [e for e in loads if depends(e, reduced) and depends(e, [row])]
    return bool(shared) and bool(own) and not any(depends(e, after) for e in own)


def panel_width(columns: Int, itemsize: int, tile: CpuTileConfig) -> int:
    """Columns of a tile, for elements of ``itemsize`` bytes: what a panel of the factor that its rows share is wide."""
    most = tile.nbytes // itemsize
    return block_width(columns, most, max(1, tile.vector // 2 // itemsize)) if isinstance(columns, int) else most


def block_width(columns: int, most: int, unit: int) -> int:
    """Columns of a block, at most ``most``: that many, or an equal part of all of them where clearly fewer lanes are then idle (72 are three
    times 24, not 64 and 8). ``unit``: lanes of half a register, the least that computes by itself."""
    if columns <= most:
        return columns
    least = -(-columns // most)
    equal = [columns // parts for parts in range(least, 2 * least) if columns % parts == 0]
    best = min(equal, key=lambda width: lanes(columns, width, unit), default=most)
    return best if lanes(columns, best, unit) <= MAX_NARROWED_LANES_RATIO * lanes(columns, most, unit) else most


def lanes(columns: int, width: int, unit: int) -> int:
    """Lanes that compute ``columns`` in blocks of ``width``: a last block of fewer columns takes as many as the others."""
    return -(-columns // width) * (-(-width // unit) * unit)


def _is_far(e: Int, reduced: list[Block], lane: Expr, itemsize: int) -> bool:
    """Whether reads along the reduced axes are far apart, or those across a block of columns are not next to each other."""
    steps = [step_along(b.rewrite(e), b.var) for b in reduced]
    down = steps[-1]
    across = step_along(e, lane)
    if across != 1 or not isinstance(down, int):
        return True
    if down == 1:
        return False  # windows that slide along the columns: the same elements again and again
    as_one = all(d is not None and c == d * b.size for c, d, b in zip(steps, steps[1:], reduced[1:], strict=False))
    return not as_one or down * itemsize >= FAR_BYTES


def _together(panels: Int, row: Int, rows: int) -> int:
    """How many row blocks a packing parallel iteration takes.

    A panel that is packed for R rows adds a part 4.5 / R to its work (0.076 ns an element, beside 0.017 ns for each row), and parallel iterations of
    R rows leave threads idle at the end for about R / (all rows of all panels) each: the sum is least near the root. One that runs to the end of the
    rows wastes no parallel iteration.
    """
    if not isinstance(row, int):
        return max(1, MIN_PACKED_ROWS // rows)
    down = -(-row // rows)
    if not isinstance(panels, int):
        return down
    most = max(MIN_PACKED_ROWS, math.isqrt(2 * panels * row)) // rows
    return -(-down // -(-down // most)) if most else down


class TiledSpace(NamedTuple):
    """An iteration space whose rows, numbered by ``sharing``, read the same elements of ``itemsize`` bytes across the columns. ``loads``: where
    elements are read."""

    before: list[Block]
    sharing: list[Block]
    reduced: list[Block]
    columns: Block
    loads: Sequence[Int]
    tile: CpuTileConfig
    itemsize: int


def tiled_columns(space: TiledSpace) -> list[Nest]:
    """The nests of rows that share reads, one for each range of a symbolic number of rows, and of one of terms: a panel of more terms than the
    second-level cache holds is not packed."""
    ranges = row_ranges(space.sharing, space.tile, _least_packed_rows(space))
    if len(ranges) > 1 and not _tiled_column(space, ranges[0]).packs:
        ranges = row_ranges(space.sharing, space.tile, None)
    nests: list[Nest] = []
    for of in ranges:
        nests.append(nest := _tiled_column(space, of))
        _pack_rows(nest, space)
        if nest.packs and nest.most_terms is not None:
            nests.append(_tiled_column(space, of._replace(terms=ExtentRange(nest.most_terms + 1, None))))
    return nests


def _least_packed_rows(space: TiledSpace) -> int:
    """How many rows at least pay for packing what they share."""
    nbytes = size_of(space.reduced) * space.columns.size * space.itemsize
    return MIN_PACKED_ROWS_OF_LARGE if isinstance(nbytes, int) and nbytes >= LARGE_SHARED_BYTES else MIN_PACKED_ROWS


def _tiled_column(space: TiledSpace, of: RowRange) -> Nest:
    """Parallel iterations of several rows, numbered by ``sharing``, by a block of columns; parallel iterations that share columns follow each
    other. The last rows may be run twice. There are none where the number of rows is not in the range ``of``.

    Where what rows share is far apart in memory, a parallel iteration has many such rows and packs it first.
    """
    before, sharing, reduced, columns, loads, tile, itemsize = space
    nest = Nest()
    nest.blocks = [*before, *sharing, *reduced, columns]
    count, n, width = size_of(sharing), size_of(reduced), columns.size
    rows = nest.rows_at_once = of.at_once
    block = panel_width(width, itemsize, tile)
    across, down = floordiv(width + (block - 1), block), floordiv(count + (rows - 1), rows)
    lane, in_block = counter("l", block), counter("block", across) * block
    shared = [e for e in loads if depends(e, reduced) and depends(e, [columns]) and not depends(e, sharing)]
    shared = [substitute(columns.rewrite(e), {name_of(columns.var): in_block + lane}) for e in shared]  # so that panels are seen for what they are
    far = any(_is_far(e, reduced, lane, itemsize) for e in shared)
    transposed = any(step_along(e, lane) != 1 for e in shared)  # packed, it is read by squares and not element by element: that pays for any rows
    most = PACK_BYTES // (len(shared) * block * itemsize)  # terms of a panel
    nest.packs = far and (transposed or of.packs) and of.terms.least <= most and (not isinstance(n, int) or n <= most)
    terms = of.terms
    if nest.packs and not isinstance(n, int):
        nest.most_terms = most
        terms = ExtentRange(of.terms.least, most)
    together = _together(size_of(before) * across, count, rows) if nest.packs else 1
    groups = floordiv(down + (together - 1), together)
    nest.iterations = size_of(before) * across * groups * is_in_range(count, of.of) * is_in_range(n, terms)
    p = counter("p", nest.iterations)
    nest.rows(before, floordiv(p, across * groups))
    start = mod(floordiv(p, groups), across) * block
    nest.last_row = count - rows
    nest.row_var = counter("row", nest.last_row + 1)
    t, q = counter("t", width), counter("q", n)
    nest.across(columns, start, block, t)
    nest.rows(reduced, q)
    lanes = Loop("lanes", "t", start, block, limit_of(width, block))
    if nest.packs:
        first, nest.shared = mod(p, groups) * together, groups
        nest.row = counter("r", down) * rows
        nest.outer(Loop("serial", "r", first, together, limit_of(down, together)), lanes)
    else:
        nest.row = (p if size_of(before) * across == 1 else mod(p, down)) * rows
        nest.outer(lanes)
    nest.rows(sharing, counter("row", count) if rows > 1 else nest.row)
    nest.element_level = len(nest.outer_loops()) + 2
    nest.level_of.update(r=2, row=nest.element_level - 2, t=nest.element_level - 1, e=nest.element_level - 1)
    nest.inner("serial", "q", 0, *((n, None) if nest.most_terms is None else (nest.most_terms, n)))
    sizes = [b.size for b in reduced if isinstance(b.size, int)]
    nest.steps = steps_at_once(sizes) if len(sizes) == len(reduced) else 1
    nest.column, nest.block = t - start, block
    nest.scratch_index, nest.scratch_size = q * block + nest.column, (n if nest.most_terms is None else nest.most_terms) * block
    nest.row_elements = UNBOUNDED
    return nest


def _pack_rows(nest: Nest, space: TiledSpace) -> None:
    """Gives the parallel iterations of ``nest`` several tiles of rows each and all columns, where rows lie next to each other and the terms of a sum
    far apart: each packs its rows first."""
    before, sharing, reduced, columns, loads, tile, itemsize = space
    count, n, width, rows = size_of(sharing), size_of(reduced), columns.size, nest.rows_at_once
    if nest.packs or rows == 1 or not (isinstance(count, int) and isinstance(n, int) and isinstance(width, int)) or n < MIN_PANEL_TERMS:
        return
    own = [e for e in loads if depends(e, reduced) and depends(e, sharing)]
    if len(reduced) != 1 or len(sharing) != 1 or not all(_is_column(e, sharing[0], reduced[0], itemsize) for e in own):
        return
    down, block = -(-count // rows), panel_width(width, itemsize, tile)
    tiles = min(MAX_PANEL_TILES, down // MIN_PANEL_ITERATIONS, PACK_BYTES // (n * rows * itemsize))
    if tiles < 2:
        return
    groups, across = -(-down // tiles), -(-width // block)
    nest.iterations = size_of(before) * groups
    p = counter("p", nest.iterations)
    nest.rows(before, floordiv(p, groups))
    first, number = mod(p, groups) * tiles, counter("g", tiles)
    nest.row = (first + number) * rows
    start, t = counter("c", across) * block, counter("t", width)
    nest.across(columns, start, block, t)
    lanes = Loop("lanes", "t", start, block, limit_of(width, block))
    of_tiles = Loop("serial", "g", 0, tiles, None if down % tiles == 0 else down - first)
    nest.outer(Loop("serial", "c", 0, across), of_tiles, lanes)
    nest.element_level = 5
    nest.level_of.update(c=2, g=3, row=3, t=4, e=4, q=5, i=5)
    nest.column = t - start
    nest.row_panel = RowPanel(tiles * n * rows, n, number)


def _is_column(e: Int, row: Block, term: Block, itemsize: int) -> bool:
    """Whether rows read neighbouring elements, and terms elements far apart."""
    down = step_along(term.rewrite(e), term.var)
    return step_along(row.rewrite(e), row.var) == 1 and isinstance(down, int) and down * itemsize >= FAR_BYTES


def limit_of(n: Int, part: int) -> Int | None:
    """Where the last part of ``n`` ends, if it may be shorter than the others."""
    return None if isinstance(n, int) and n % part == 0 else n


MIN_DEVICE_PANELS = 128  # so many parallel iterations keep a large device busy
MIN_PANEL = 32
SMALL_PANELS = 64, MIN_PANEL  # rows and columns of smaller panels, where the number of the largest is known in a call alone


def _panel_sizes(rows: int, columns: int, others: Int, tile: GpuTileConfig, itemsize: int) -> tuple[int, int]:
    """The largest panel, or a smaller one where there are few parallel iterations."""
    sizes = list(_largest_panel(rows, columns, tile, itemsize))
    while isinstance(others, int) and others * -(-rows // sizes[0]) * -(-columns // sizes[1]) < MIN_DEVICE_PANELS and max(sizes) > MIN_PANEL:
        sizes[sizes.index(max(sizes))] //= 2
    return sizes[0], sizes[1]


def panelled_columns(before: list[Block], reduced: list[Block], columns: Block, tile: GpuTileConfig, itemsize: int) -> list[Nest]:
    """Panels of the rows before the reduced axes by the columns, for up to a page of pages of terms: nests of which a call runs one, the one with the
    largest panels of which there are many."""
    row, others = before[-1], size_of(before[:-1])
    if isinstance(row.size, int) and isinstance(columns.size, int):
        sizes = [_panel_sizes(row.size, columns.size, others, tile, itemsize)]
    else:
        most = _largest_panel(row.size, columns.size, tile, itemsize)
        sizes = list(dict.fromkeys([most, *[(min(most[0], n), min(most[1], n)) for n in SMALL_PANELS]]))
    many = [at_least(others * parts(row.size, high) * parts(columns.size, wide), MIN_DEVICE_PANELS) for high, wide in sizes[:-1]]
    no_larger = itertools.accumulate((1 - holds for holds in many), operator.mul, initial=1)
    chosen = [holds * alone for holds, alone in zip([*many, 1], no_larger, strict=True)]
    n = size_of(reduced)
    fits = is_in_range(n, ExtentRange(0, PAGE**2)) if not isinstance(n, int) else 1
    return [_panelled_column(before, reduced, columns, *of, holds * fits) for of, holds in zip(sizes, chosen, strict=True)]


def parts(n: Int, size: int) -> Int:
    """In how many parts of a size, of which the last may be smaller, ``n`` goes."""
    return floordiv(n + (size - 1), size)


def _largest_panel(rows: Int, columns: Int, tile: GpuTileConfig, itemsize: int) -> tuple[int, int]:
    """Powers of two, no larger than need be."""
    most = tile.rows * 4 // max(4, itemsize), tile.columns * 4 // max(4, itemsize)
    high, wide = (min(m, 1 << max(4, (n - 1).bit_length())) if isinstance(n, int) else m for m, n in zip(most, (rows, columns), strict=True))
    return high, wide


def _panelled_column(before: list[Block], reduced: list[Block], columns: Block, high: int, wide: int, holds: Int) -> Nest:
    """A block of ``high`` rows by a block of ``wide`` columns per parallel iteration, both as lanes; a serial loop down inside. There are none where
    ``holds`` is 0."""
    nest = Nest()
    nest.blocks = [*before, *reduced, columns]
    row, n = before[-1], size_of(reduced)
    others, down, across = size_of(before[:-1]), parts(row.size, high), parts(columns.size, wide)
    nest.iterations = others * down * across * holds
    p = counter("p", nest.iterations)
    nest.rows(before[:-1], floordiv(p, down * across))
    r, t, q = counter("r", row.size), counter("t", columns.size), counter("q", n)
    nest.values[name_of(row.var)], nest.values[name_of(columns.var)] = r, t
    nest.rows(reduced, q)
    starts = mod(floordiv(p, across), down) * high, mod(p, across) * wide
    limits = [limit_of(size, part) for size, part in ((row.size, high), (columns.size, wide))]
    nest.outer(Loop("lanes", "r", starts[0], high, limits[0]), Loop("lanes", "t", starts[1], wide, limits[1]))
    nest.element_level = 4
    nest.level_of.update(r=2, t=3)
    nest.inner("serial", "q", 0, *((n, None) if isinstance(n, int) else (PAGE**2, n)))
    nest.scratch_size = nest.row_elements = UNBOUNDED
    return nest
