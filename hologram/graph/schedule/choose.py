"""Loop nest selection: how the axes of an iteration space become a parallel loop and an inner loop of lanes.

Neighbouring axes that every access walks as one (the stride of the outer is the stride of the inner times its extent) are merged
first. Then

- *map* (no reduced axes): rows times lanes, lanes along the last merged axis, cut in pages;
- *horizontal* (the last axis is reduced): one row per parallel iteration, lanes along it;
- *vertical*: blocks of neighbouring columns per parallel iteration, lanes across them, a serial loop down. Where some reads are the same for all rows
  (the second factor of a matrix product), a parallel iteration takes several rows at once and shares them: see
  :mod:`hologram.graph.schedule.tiles`.
"""

from __future__ import annotations

from collections.abc import Sequence

from hologram.graph.kernel.ir import Loop
from hologram.graph.memory.arena import LINE_BYTES
from hologram.graph.schedule.nest import NARROW, UNBOUNDED, Block, Nest, merge, name_of, size_of
from hologram.graph.schedule.streamed import MIN_ROW_BLOCKED_ARRAY_BYTES
from hologram.graph.schedule.tiles import (
    MAX_ROW_WORK_RATIO,
    CpuTileConfig,
    ExtentRange,
    GpuTileConfig,
    TileConfig,
    TiledSpace,
    is_in_range,
    least_cost,
    limit_of,
    page_ranges,
    panel_width,
    panelled_columns,
    rows_share,
    tiled_columns,
)
from hologram.ir.op import Shape
from hologram.ir.symbolic import Int, counter, floordiv, mod, split_linear
from hologram.primitives.reductions import PAGE

COLUMNS = 128  # columns of a parallel iteration in vertical reductions: half a kilobyte of float32 a row
STREAMED_BYTES = 1024  # of a row in a parallel iteration, where rows come from memory: it reads a quarter faster than half of that
SQUARE = 64  # rows and columns of a parallel iteration where elements are read down and written across
MIN_ROW_BLOCKED_BYTES = 512  # of rows that are read one after the other
MAX_ROW_BLOCKED_RESULT_BYTES = 2**16  # of results that rows are added to
MIN_PART_ROWS = 4  # of a part of an axis whose rows are reduced together: of fewer, those that two parts have are a large share


def choose_nest(
    shape: Shape,
    axes: tuple[int, ...] | None,
    expressions: list[Int],
    loads: Sequence[Int] = (),
    tile: TileConfig | None = None,
    itemsize: int = 4,
    together: int = 1,
    row_blocked: bool = False,
    streamed: int = UNBOUNDED,
) -> list[Nest]:
    """The loops of a space: a nest, or several of which a call runs one, by its sizes.

    ``loads``: where elements are read; ``tile``: what may be shared among rows of elements of ``itemsize`` bytes; ``together``: rows far apart that
    are reduced together, in horizontal reductions; ``row_blocked``: whether long columns may be reduced row after row; ``streamed``: bytes from
    which on an array is read from memory.
    """
    if axes is None:
        return _maps(merge(range(len(shape)), shape, expressions), loads)
    before = merge(range(axes[0]), shape, expressions)
    reduced = merge(axes, shape, expressions)
    after = merge(range(axes[-1] + 1, len(shape)), shape, expressions)
    if axes[-1] == len(shape) - 1:
        return _rows(_in_memory_order(before, reduced, loads), reduced, together)
    rows = before + after[:-1]
    sharing = [r for r in reversed(rows) if rows_share(r, reduced, after[-1:], loads)] if tile is not None else []
    if isinstance(tile, GpuTileConfig) and sharing:
        return _panels(rows, sharing, before, reduced, after, tile, itemsize)
    if isinstance(tile, CpuTileConfig) and sharing:
        best = min(([r] for r in sharing), key=lambda rows: least_cost(rows, tile))
        if least_cost(best, tile) > MAX_ROW_WORK_RATIO:
            best = [r for r in rows if r in sharing]
        others = [r for r in rows if r not in best]
        return tiled_columns(TiledSpace(others, best, reduced, after[-1], loads, tile, itemsize))
    if row_blocked and _is_row_blocked(before, reduced, after, itemsize):
        return [_row_blocked_column(before, reduced, after)]
    width = after[-1].size if after else 1
    if not isinstance(tile, CpuTileConfig):
        return [_column(before, reduced, after, COLUMNS)]
    if isinstance(width, int) and any(split_linear(e, after[-1].last) is None for e in loads if after):
        return [_column(before, reduced, after, panel_width(width, itemsize, tile))]
    if not _is_streamed(reduced, loads, streamed // itemsize):
        return [_column(before, reduced, after, _even_columns(width, itemsize))]
    columns = max(1, STREAMED_BYTES // itemsize)
    neighbours = _neighbours(rows, reduced[-1], after, loads, columns)
    if neighbours > 1:
        return [_neighbouring_columns(rows, reduced, after[-1], neighbours)]
    is_wide = isinstance(width, int) and width >= 2 * columns  # enough for two threads
    return [_column(before, reduced, after, _even_columns(width, itemsize, columns if is_wide else COLUMNS))]


def _even_columns(width: Int, itemsize: int, about: int = COLUMNS) -> int:
    """Columns of a parallel iteration: ``about`` so many, whole lines of the cache. A number that goes into ``width`` is taken, if there is one:
    iterations are then as long, and none ends in vectors whose mask is known in a run alone."""
    if not isinstance(width, int) or width <= about:
        return about
    line = max(1, LINE_BYTES // itemsize)
    lines = range(max(1, about // 2 // line) * line, 2 * about + 1, line)
    even = [n for n in lines if n >= about // 2 and width % n == 0]
    return min(even, key=lambda n: max(n, about) / min(n, about), default=about)


def _panels(
    rows: list[Block], sharing: list[Block], before: list[Block], reduced: list[Block], after: list[Block], tile: GpuTileConfig, itemsize: int
) -> list[Nest]:
    """The nests of a product on a device: those of panels, and one for more terms than these take."""
    row = next((r for r in sharing if isinstance(r.size, int)), sharing[0])
    nests = panelled_columns([*[r for r in rows if r is not row], row], reduced, after[-1], tile, itemsize)
    n = size_of(reduced)
    if not isinstance(n, int):
        nests.append(_column(before, reduced, after, COLUMNS, is_in_range(n, ExtentRange(PAGE**2 + 1, None))))
    return nests


def _maps(blocks: list[Block], loads: Sequence[Int]) -> list[Nest]:
    """The nests of a map: one for each range of a symbolic last axis, for rows of a page need no division."""
    if len(blocks) < 2 or isinstance(blocks[-1].size, int) or _transposed_axis(blocks, loads) is not None:
        return [_map(blocks, loads)]
    return [_map(blocks, loads, of) for of in page_ranges()]


def _map(blocks: list[Block], loads: Sequence[Int], of: ExtentRange | None = None) -> Nest:
    """``of``: the range that the last axis is in."""
    nest = Nest()
    nest.blocks = blocks
    if not blocks:
        return nest
    if len(blocks) > 1 and isinstance(blocks[-1].size, int) and blocks[-1].size < NARROW:
        return _narrow_map(nest, blocks)
    transposed = _transposed_axis(blocks, loads)
    if transposed is not None:
        return _square_map(nest, blocks, transposed)
    last = blocks[-1]
    rows, n = size_of(blocks[:-1]), last.size
    i = counter("i", n)
    nest.values[name_of(last.var)] = i
    _pages(nest, rows, n, blocks[:-1], of)
    return nest


def _pages(nest: Nest, rows: Int, n: Int, outer: list[Block], of: ExtentRange | None = None) -> None:
    """Parallel iterations of a page of a row each; lanes along the row."""
    holds: Int = 1 if of is None else is_in_range(n, of)
    if of is not None and of.most is not None:
        nest.iterations = rows * holds
        nest.rows(outer, counter("p", rows))
        nest.inner("lanes", "i", 0, of.most, n)
        return
    if isinstance(n, int) and n <= (PAGE if not outer else 2 * PAGE):
        nest.iterations = rows
        nest.rows(outer, counter("p", rows))
        nest.inner("lanes", "i", 0, n)
        return
    pages = floordiv(n + (PAGE - 1), PAGE)
    nest.iterations = rows * pages * holds
    p = counter("p", nest.iterations)
    nest.rows(outer, floordiv(p, pages) if outer else 0)
    page = mod(p, pages) if outer else p
    nest.inner("lanes", "i", page * PAGE, PAGE, None if isinstance(n, int) and n % PAGE == 0 else n)


def _transposed_axis(blocks: list[Block], loads: Sequence[Int]) -> int | None:
    """The first axis, if any, along which elements are read next to each other that lie far apart along the last."""
    last = blocks[-1]
    for k, b in enumerate(blocks[:-1]):
        if any(isinstance(n, int) and n < SQUARE // 4 for n in (b.size, last.size)):
            continue
        for e in loads:
            down, across = (split_linear(x.rewrite(e), name_of(x.var)) for x in (b, last))
            if down is not None and across is not None and down[0] == 1 and (not isinstance(across[0], int) or abs(across[0]) > NARROW):
                return k
    return None


def _square_map(nest: Nest, blocks: list[Block], transposed: int) -> Nest:
    """Squares of the last axis and of that along which reads are neighbours, so that whole cache lines are read and written."""
    nest.blocks = blocks
    down, last = blocks[transposed], blocks[-1]
    outer = [b for b in blocks if b is not down and b is not last]
    high, wide = (floordiv(b.size + (SQUARE - 1), SQUARE) for b in (down, last))
    nest.iterations = size_of(outer) * high * wide
    p = counter("p", nest.iterations)
    nest.rows(outer, floordiv(p, high * wide))
    q, t = counter("q", down.size), counter("t", last.size)
    nest.values[name_of(down.var)], nest.values[name_of(last.var)] = q, t
    starts = mod(floordiv(p, wide), high) * SQUARE, mod(p, wide) * SQUARE
    limits = [limit_of(b.size, SQUARE) for b in (down, last)]
    nest.outer(Loop("serial", "q", starts[0], SQUARE, limits[0]))
    nest.element_level = 3
    nest.level_of["q"] = 2
    nest.inner("lanes", "t", starts[1], SQUARE, limits[1])
    return nest


def _narrow_map(nest: Nest, blocks: list[Block]) -> Nest:
    """The last axis is too short for lanes: one loop over all elements, axes found by division where need be."""
    total = size_of(blocks)
    i = counter("i", total)
    nest.rows(blocks, i)
    flat = Block.__new__(Block)
    flat.var = i
    nest.flat = flat
    _pages(nest, 1, total, [])
    return nest


def _in_memory_order(rows: list[Block], reduced: list[Block], loads: Sequence[Int]) -> list[Block]:
    """Blocks of rows in the order in which the inputs that are read whole lie in memory, where those agree: results are few beside what they are made
    of."""
    orders = set()
    for e in loads:
        steps = [_step(b, e) for b in rows]
        if all(steps) and all(_step(b, e) for b in reduced):
            orders.add(tuple(sorted(range(len(rows)), key=lambda k: -abs(steps[k]))))
    if len(orders) != 1:
        return rows
    (order,) = orders
    return [rows[k] for k in order]


def _step(block: Block, e: Int) -> int:
    """How far apart the elements of a load at ``e`` are along ``block``; 0 where they are one, or not equally far."""
    linear = split_linear(block.rewrite(e), name_of(block.var))
    return linear[0] if linear is not None and isinstance(linear[0], int) else 0


def _rows(rows: list[Block], reduced: list[Block], together: int) -> list[Nest]:
    """The nests of a horizontal reduction: one for each range of a symbolic length, for a page has no partial results, and fits in scratch."""
    n = size_of(reduced)
    if isinstance(n, int):
        return [_row(rows, reduced, starts, n, None, holds) for starts, holds in _parts(rows, together)]
    short, long = page_ranges()
    nests = [_row(rows, reduced, starts, PAGE, n, is_in_range(n, short) * holds) for starts, holds in _parts(rows, together)]
    return [*nests, _row(rows, reduced, _flat_parts(rows, together), n, None, is_in_range(n, long))]


def _parts(rows: list[Block], together: int) -> list[tuple[list[Int], Int]]:
    """The first rows of parts of all rows, and 1 where they are taken, 0 elsewhere.

    Where sizes are symbolic, parts of the first axis leave all others as they are, so that one division tells where all rows of a parallel iteration
    are. Of a short axis they would overlap too much.
    """
    if together == 1 or len(rows) < 2 or isinstance(size_of(rows), int):
        return [(_flat_parts(rows, together), 1)]
    first, inner = rows[0].size, size_of(rows[1:])
    long = ExtentRange(MIN_PART_ROWS * together, None)
    if isinstance(first, int) and first < long.least:
        return [(_flat_parts(rows, together), 1)]
    of_first, holds = [s * inner for s in part_starts(first, together)], is_in_range(first, long)
    return [(of_first, 1)] if holds == 1 else [(of_first, holds), (_flat_parts(rows, together), 1 - holds)]


def _flat_parts(rows: list[Block], together: int) -> list[Int]:
    """The first rows of parts of all rows, counted in C order; none where rows are taken one by one."""
    return part_starts(size_of(rows), together) if together > 1 else []


def part_starts(rows: Int, together: int) -> list[Int]:
    """The first row of each of ``together`` parts of equal length that cover ``rows``; where they do not divide them, parts overlap."""
    length = floordiv(rows + (together - 1), together)
    if isinstance(rows, int) and isinstance(length, int):
        return [min(k * length, rows - length) for k in range(together)]
    last = together - 1
    return [*(floordiv(k * (rows - length), last) for k in range(last)), rows - length]


def _row(rows: list[Block], reduced: list[Block], starts: Sequence[Int], n: Int, limit: Int | None, holds: Int) -> Nest:
    """Rows of ``n`` elements, or ``limit`` if they are fewer, where ``holds`` is 1; none where it is 0.

    ``starts``: first rows of parts, a row of each of which makes a parallel iteration.
    """
    nest = Nest()
    nest.blocks = rows + reduced
    q = counter("i", n)
    nest.rows(reduced, q)
    count = size_of(rows)
    nest.iterations = count * holds
    if starts:
        nest.rows_at_once, nest.row_starts, nest.last_row = len(starts), starts, count - 1
        nest.iterations = (count - starts[-1]) * holds
        nest.row = counter("p", count - starts[-1])
        nest.level_of["row"] = 1
    nest.rows(rows, counter("row" if starts else "p", count))
    nest.inner("lanes", "i", 0, n, limit)
    nest.row_elements = nest.scratch_size = n
    nest.scratch_index = q
    return nest


def _column(before: list[Block], reduced: list[Block], after: list[Block], columns: int, holds: Int = 1) -> Nest:
    """Parallel iterations of a row by up to ``columns`` columns; none where ``holds`` is 0."""
    nest = Nest()
    nest.blocks = before + reduced + after
    nest.element_level = 3
    n = size_of(reduced)
    rows, last = before + after[:-1], after[-1:]
    width: Int = last[0].size if last else 1
    block = width if isinstance(width, int) and width <= columns else columns
    blocks = floordiv(width + (block - 1), block)
    count = size_of(rows)
    nest.iterations = count * blocks * holds
    p = counter("p", nest.iterations)
    nest.rows(rows, floordiv(p, blocks))
    start = mod(p, blocks) * block
    t = counter("t", width) if width != 1 else 0
    if last:
        nest.across(last[0], start, block, t)
    ragged = not (isinstance(width, int) and width % block == 0)
    nest.outer(Loop("lanes" if width != 1 else "serial", "t", start, block, width if ragged else None))
    nest.level_of["t"] = 2
    q = counter("q", n)
    nest.rows(reduced, q)
    nest.inner("serial", "q", 0, n)
    nest.scratch_index = q * block + (t - start)
    nest.row_elements = nest.scratch_size = n * block
    return nest


def _is_streamed(reduced: list[Block], loads: Sequence[Int], streamed: int) -> bool:
    """Whether rows come from an array of so many elements or more."""
    n = size_of(reduced)
    return bool(reduced) and isinstance(n, int) and any(abs(_step(reduced[-1], e)) * n >= streamed for e in loads)


def _neighbours(rows: list[Block], reduced: Block, after: list[Block], loads: Sequence[Int], columns: int) -> int:
    """How many rows, of ``columns`` at most, a parallel iteration takes together, since they are neighbours in an array, as those of heads are; 1
    where there are none such."""
    if not rows or not after:
        return 1
    row, width = rows[-1].size, after[-1].size
    if not isinstance(row, int) or not isinstance(width, int):
        return 1
    for e in loads:
        if (_step(rows[-1], e), _step(after[-1], e)) == (width, 1) and _step(reduced, e) >= row * width:
            together = [k for k in range(1, row // 2 + 1) if row % k == 0 and k * width <= columns]
            return max(together, default=1)
    return 1


def _neighbouring_columns(rows: list[Block], reduced: list[Block], columns: Block, count: int) -> Nest:
    """Parallel iterations of ``count`` neighbouring rows of columns, one after the other."""
    nest = Nest()
    nest.blocks = [*rows, *reduced, columns]
    nest.element_level = 4
    (*others, row), n, width = rows, size_of(reduced), columns.size
    groups = floordiv(row.size, count)
    nest.iterations = size_of(others) * groups
    p, h, t, q = counter("p", nest.iterations), counter("h", count), counter("t", width), counter("q", n)
    nest.rows(others, floordiv(p, groups))
    nest.rows([row], mod(p, groups) * count + h)
    assert isinstance(width, int)
    nest.across(columns, 0, width, t)
    nest.rows(reduced, q)
    nest.outer(Loop("serial", "h", 0, count), Loop("lanes", "t", 0, width))
    nest.level_of.update(h=2, t=3)
    nest.inner("serial", "q", 0, n)
    nest.scratch_index = q * width + t
    nest.row_elements = nest.scratch_size = n * width
    return nest


def _is_row_blocked(before: list[Block], reduced: list[Block], after: list[Block], itemsize: int) -> bool:
    """Whether rows are wide, columns long, parallel iterations of all columns enough for every thread, and all of it large."""
    count, n, width = size_of(before), size_of(reduced), size_of(after)
    if not isinstance(count, int) or not isinstance(n, int) or not isinstance(width, int) or not after:
        return False
    row = width * itemsize
    is_large = count * n * row >= MIN_ROW_BLOCKED_ARRAY_BYTES and min(n, count) >= NARROW
    return is_large and MIN_ROW_BLOCKED_BYTES <= row <= MAX_ROW_BLOCKED_RESULT_BYTES


def _row_blocked_column(before: list[Block], reduced: list[Block], columns: list[Block]) -> Nest:
    """A parallel iteration of all columns: row after row, lanes along it."""
    nest = Nest()
    nest.row_blocked = True
    nest.blocks = [*before, *reduced, *columns]
    nest.iterations = size_of(before)
    nest.rows(before, counter("p", nest.iterations))
    *outer, last = columns
    n, count, width = size_of(reduced), size_of(outer), last.size
    assert isinstance(width, int)
    nest.rows(reduced, counter("g", n))
    nest.rows(outer, counter("h", count))
    t = counter("t", width)
    nest.across(last, 0, width, t)
    nest.column, nest.block = (counter("h", count) * width if outer else 0) + t, count * width
    nest.outer(Loop("serial", "g", 0, n), *([Loop("serial", "h", 0, count)] if outer else []))
    nest.element_level = 2 + len(nest.outer_loops())
    nest.level_of.update(g=2, h=3)
    nest.inner("lanes", "t", 0, width)
    nest.row_elements = UNBOUNDED
    return nest
