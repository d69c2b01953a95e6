"""Tiling of matrix products, and of other sums whose rows share reads: register tiles on CPUs, shared-memory panels on GPUs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from hologram.graph.kernel.ir import Loop
from hologram.graph.schedule.nest import NARROW, UNBOUNDED, Block, Nest, depends, name_of, size_of, step_along
from hologram.graph.schedule.unroll import steps_at_once
from hologram.ir.symbolic import Expr, Int, at_least, bounds, counter, floordiv, mod, substitute

SIDE = 16  # items along each side of a group of 256 that rows and columns are dealt out to
PAD = 4  # elements between rows in shared memory, so that neighbours down a panel lie in different banks
MAX_ITEM_REGISTERS = 160  # registers, of 4 bytes, that such an item has for what it holds and for the sums of a product
MIN_PACKED_ROWS = 48  # so many rows at least pay for packing what they share
FEW_ROWS = (4, 2, 1)  # of tiles for a symbolic number of rows that is too small for a whole one
UNKNOWN_PACKED_ROWS = 192  # that share what is packed, where their number is symbolic
FAR_BYTES = 2048  # steps from which what rows share is better packed: they touch a page, or a cache set, each
SHARED_COST = 0.25  # of reading what the rows of a parallel iteration share, in rows
PACK_BYTES = 64 * 12288
MAX_ROW_WORK_RATIO = 1.08  # work on a row of one axis, in rows, from which rows are better counted along all axes that share
MAX_NARROWED_LANES_RATIO = 0.95  # of all lanes, from which narrower blocks pay


class CpuTileConfig(NamedTuple):
    """Rows and bytes of a row that a parallel iteration's accumulators cover when rows share reads: what the registers hold. ``pairs``: whether the
    machine multiplies and adds pairs of bfloat16; ``vector``: bytes of a register; ``below``: the number of rows, where it is symbolic, from which
    on another kernel computes them (0: none does)."""

    rows: int
    nbytes: int
    pairs: bool = False
    vector: int = 64
    below: int = 0


class GpuTileConfig(NamedTuple):
    """Rows and columns that a parallel iteration covers on devices whose items share memory, where rows share reads: a loop of lanes in another.
    ``tile_16_bit``: those of sums of products of 16-bit floats, if the device has units for them. ``scores``: rows and keys of a block of attention.
    ``shared_bytes``: of memory that items share."""

    rows: int
    columns: int
    tile_16_bit: tuple[int, int] | None = None
    scores: tuple[int, int] = (64, 64)
    shared_bytes: int = 32 * 1024


TileConfig: TypeAlias = "CpuTileConfig | GpuTileConfig"


def _rows_at_once(n: Int, tile: CpuTileConfig) -> int:
    """Rows of a parallel iteration: as many as a tile has, or fewer if then so many fewer are run twice that it pays. One shares nothing, and is no
    tile."""
    if not isinstance(n, int):
        return tile.rows
    return min(range(min(n, tile.rows), 1, -1), key=lambda rows: _row_cost(n, rows))


def smaller_tiles(count: Int, tile: CpuTileConfig) -> list[CpuTileConfig]:
    """The tiles for fewer rows than ``tile`` has, of which a symbolic number may be: each begins where the next larger ends. The last is for one
    row, which is no tile."""
    least, _ = bounds(count)
    if least is not None and least >= tile.rows:
        return []
    rows = [n for n in FEW_ROWS if n < tile.rows and (least is None or least < n)]
    rows += [n for n in FEW_ROWS if n < tile.rows and least is not None and least >= n][:1]
    return [tile._replace(rows=n, below=below) for n, below in zip(rows, [tile.rows, *rows], strict=False)]


def least_cost(rows: list[Block], tile: CpuTileConfig) -> float:
    """The least work on a row, where those numbered by ``rows`` share."""
    n = size_of(rows)
    assert isinstance(n, int)
    return _row_cost(n, _rows_at_once(n, tile)) / n


def _row_cost(n: int, rows: int) -> float:
    """The work on ``n`` rows, in rows, by parallel iterations of ``rows``: the last may be run twice, and each parallel iteration reads what its rows
    share."""
    return -(-n // rows) * (rows + SHARED_COST)


def rows_share(row: Block, reduced: list[Block], after: list[Block], loads: Sequence[Int]) -> bool:
    """Whether the rows numbered by ``row`` read the same elements across the columns, and others each for itself."""
    if len(after) != 1 or not reduced:
        return False
    n, width = size_of(reduced), after[0].size
    if not isinstance(n, int) or not isinstance(width, int) or n < NARROW or width < 2 or row.size in (0, 1):
        return False
    shared = [e for e in loads if depends(e, reduced) and depends(e, after) and not depends(e, [row])]
    own = [e for e in loads if depends(e, reduced) and depends(e, [row])]
    return bool(shared) and bool(own) and not any(depends(e, after) for e in own)


def panel_width(columns: int, itemsize: int, tile: CpuTileConfig) -> int:
    """Columns of a tile, for elements of ``itemsize`` bytes: what a panel of the factor that its rows share is wide."""
    return block_width(columns, tile.nbytes // itemsize, max(1, tile.vector // 2 // itemsize))


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
        return max(1, UNKNOWN_PACKED_ROWS // rows)
    down = -(-row // rows)
    if not isinstance(panels, int):
        return down
    most = max(MIN_PACKED_ROWS, math.isqrt(2 * panels * row)) // rows
    return -(-down // -(-down // most)) if most else down


def tiled_column(
    before: list[Block], sharing: list[Block], reduced: list[Block], columns: Block, loads: Sequence[Int], tile: CpuTileConfig, itemsize: int
) -> Nest:
    """Parallel iterations of ``tile.rows`` rows, numbered by ``sharing``, by a block of columns; parallel iterations that share columns follow each
    other. The last rows may be run twice.

    Where what rows share is far apart in memory, a parallel iteration has many such rows and packs it first.
    """
    nest = Nest()
    nest.blocks = [*before, *sharing, *reduced, columns]
    count, n, width = size_of(sharing), size_of(reduced), columns.size
    assert isinstance(width, int) and isinstance(n, int)
    rows = nest.rows_at_once = _rows_at_once(count, tile)
    block = panel_width(width, itemsize, tile)
    across, down = -(-width // block), floordiv(count + (rows - 1), rows)
    lane, in_block = counter("l", block), counter("block", across) * block
    shared = [e for e in loads if depends(e, reduced) and depends(e, [columns]) and not depends(e, sharing)]
    shared = [substitute(columns.rewrite(e), {name_of(columns.var): in_block + lane}) for e in shared]  # so that panels are seen for what they are
    far = any(_is_far(e, reduced, lane, itemsize) for e in shared)
    transposed = any(step_along(e, lane) != 1 for e in shared)  # packed, it is read by squares and not element by element: that pays for any rows
    many = rows > max(FEW_ROWS) if isinstance(count, Expr) else count >= MIN_PACKED_ROWS
    nest.packs = far and (transposed or many) and len(shared) * n * block * itemsize <= PACK_BYTES
    together = _together(size_of(before) * across, count, rows) if nest.packs else 1
    groups = floordiv(down + (together - 1), together)
    nest.iterations = size_of(before) * across * groups
    if isinstance(count, Expr):
        nest.symbolic_rows = count
        nest.iterations = nest.iterations * (at_least(count, rows) - (at_least(count, tile.below) if tile.below else 0))
    p = counter("p", nest.iterations)
    nest.rows(before, floordiv(p, across * groups))
    start = mod(floordiv(p, groups), across) * block
    nest.last_row = count - rows
    nest.row_var = counter("row", nest.last_row + 1)
    nest.rows(sharing, counter("row", count))
    t, q = counter("t", width), counter("q", n)
    nest.across(columns, start, block, t)
    nest.rows(reduced, q)
    lanes = Loop("lanes", "t", start, block, width if width % block else None)
    if nest.packs:
        first, nest.shared = mod(p, groups) * together, groups
        nest.row = counter("r", down) * rows
        nest.outer(Loop("serial", "r", first, together, None if isinstance(down, int) and down % together == 0 else down), lanes)
    else:
        nest.row = mod(p, down) * rows
        nest.outer(lanes)
    nest.element_level = len(nest.outer_loops()) + 2
    nest.level_of.update(r=2, row=nest.element_level - 2, t=nest.element_level - 1, e=nest.element_level - 1)
    nest.inner("serial", "q", 0, n)
    nest.steps = steps_at_once([b.size for b in reduced])  # type: ignore[misc]
    nest.column, nest.block = t - start, block
    nest.scratch_index, nest.scratch_size = q * block + nest.column, n * block
    nest.row_elements = UNBOUNDED
    return nest


MIN_DEVICE_PANELS = 128  # so many parallel iterations keep a large device busy
MIN_PANEL = 32


def _panel_sizes(rows: int, columns: int, others: Int, tile: GpuTileConfig, itemsize: int) -> tuple[int, int]:
    """Powers of two: no larger than need be, and smaller where there are few parallel iterations."""
    most = tile.rows * 4 // max(4, itemsize), tile.columns * 4 // max(4, itemsize)
    sizes = [min(m, 1 << max(4, (n - 1).bit_length())) for m, n in zip(most, (rows, columns), strict=True)]
    while isinstance(others, int) and others * -(-rows // sizes[0]) * -(-columns // sizes[1]) < MIN_DEVICE_PANELS and max(sizes) > MIN_PANEL:
        sizes[sizes.index(max(sizes))] //= 2
    return sizes[0], sizes[1]


def panelled_column(before: list[Block], reduced: list[Block], columns: Block, tile: GpuTileConfig, itemsize: int) -> Nest:
    """A block of rows by a block of columns per parallel iteration, both as lanes; a serial loop down inside."""
    nest = Nest()
    nest.blocks = [*before, *reduced, columns]
    row, n = before[-1], size_of(reduced)
    assert isinstance(row.size, int) and isinstance(columns.size, int)
    others = size_of(before[:-1])
    high, wide = _panel_sizes(row.size, columns.size, others, tile, itemsize)
    down, across = -(-row.size // high), -(-columns.size // wide)
    nest.iterations = others * down * across
    p = counter("p", nest.iterations)
    nest.rows(before[:-1], floordiv(p, down * across))
    r, t, q = counter("r", row.size), counter("t", columns.size), counter("q", n)
    nest.values[name_of(row.var)], nest.values[name_of(columns.var)] = r, t
    nest.rows(reduced, q)
    starts = mod(floordiv(p, across), down) * high, mod(p, across) * wide
    limits = [size if size % part else None for size, part in ((row.size, high), (columns.size, wide))]
    nest.outer(Loop("lanes", "r", starts[0], high, limits[0]), Loop("lanes", "t", starts[1], wide, limits[1]))
    nest.element_level = 4
    nest.level_of.update(r=2, t=3)
    nest.inner("serial", "q", 0, n)
    nest.scratch_size = nest.row_elements = UNBOUNDED
    return nest
