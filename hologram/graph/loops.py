"""The loops of a kernel: how the axes of an iteration space become a parallel loop and an inner loop of lanes.

Neighbouring axes that every access walks as one (the stride of the outer is the stride of the inner times its extent) are merged
first. Then

- *map* (no reduced axes): rows times lanes, lanes along the last merged axis, cut in pages;
- *row form* (the last axis is reduced): a row a chunk, lanes along it;
- *column form*: blocks of neighbouring columns a chunk, lanes across them, a serial loop down. Where some reads are the same for all rows
  (the second factor of a matrix product), a chunk takes several rows at once and shares them: a :class:`Tile`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from hologram.graph.access import variables
from hologram.graph.kernel_ir import Loop
from hologram.graph.unrolling import steps_at_once
from hologram.primitives.op import Shape
from hologram.primitives.reductions import PAGE
from hologram.symbolic import Expr, Int, atoms, floordiv, mod, prod, split_linear, substitute, var

COLUMNS = 128  # columns of a chunk in column form: half a kilobyte of float32 a row
NARROW = 8  # a last axis shorter than this is no loop of its own
SQUARE = 64  # rows and columns of a chunk where elements are read down and written across
MANY = 1 << 40  # elements: too many to be kept in scratch
FEW_ROWS = 48  # so many rows at least pay for packing what they share
FAR_BYTES = 2048  # steps from which what rows share is better packed: they touch a page, or a cache set, each
SHARED_COST = 0.25  # of reading what the rows of a chunk share, in rows
PACK_BYTES = 64 * 12288
BAND = 8  # rows that are read at one time where all of them are too large for the caches
LONG_ROW_BYTES = 4096  # of rows that are read in bands
BANDED_BYTES = 2**16  # of results that bands are added to
UNCACHED_BYTES = 24 * 2**20  # from which what is read is far beyond the caches
IDLE = 1.08  # work on a row of one axis, in rows, from which rows are better counted along all axes that share
FEWER = 0.95  # of all lanes, from which narrower blocks pay


class Tile(NamedTuple):
    """Rows and bytes of a row that a chunk's accumulators cover when rows share reads: what the registers hold. ``pairs``: whether the machine
    multiplies and adds pairs of bfloat16; ``vector``: bytes of a register."""

    rows: int
    nbytes: int
    pairs: bool = False
    vector: int = 64


class Panels(NamedTuple):
    """Rows and columns that a chunk covers on devices whose items share memory, where rows share reads: a loop of lanes in another. ``halves``: those
    of sums of products of 16-bit floats, if the device has units for them. ``scores``: rows and keys of a block of attention. ``shared_bytes``: of
    memory that items share."""

    rows: int
    columns: int
    halves: tuple[int, int] | None = None
    scores: tuple[int, int] = (64, 64)
    shared_bytes: int = 32 * 1024


class Block:
    """Neighbouring axes merged into one, of extent ``size``; ``var`` stands for its position."""

    __slots__ = ("axes", "size", "var", "names", "last")

    def __init__(self, axes: list[int], shape: Shape) -> None:
        self.axes = axes
        self.size: Int = prod(shape[a] for a in axes)
        names = [_name(v) for v in (variables(shape)[a] for a in axes)]
        self.names, self.last = names, names[-1]
        self.var = var(f"m{axes[0]}", 0, self.size - 1 if isinstance(self.size, int) else None)

    def rewrite(self, e: Int) -> Int:
        if len(self.names) == 1:
            return substitute(e, {self.last: self.var})
        linear = split_linear(e, self.last)
        assert linear is not None
        return substitute(linear[1], dict.fromkeys(self.names[:-1], 0)) + linear[0] * self.var


def _name(v: Int) -> str:
    assert isinstance(v, Expr)
    ((m, _),) = v.terms.items()
    return m[0].name


def merge(axes: Sequence[int], shape: Shape, expressions: list[Int]) -> list[Block]:
    """Blocks of ``axes`` (those of extent 1 left out) that every expression walks as one."""
    blocks: list[list[int]] = []
    names = variables(shape)
    for a in axes:
        if shape[a] == 1:
            continue
        if blocks and _walked_as_one(_name(names[blocks[-1][-1]]), _name(names[a]), shape[a], expressions):
            blocks[-1].append(a)
        else:
            blocks.append([a])
    return [Block(b, shape) for b in blocks]


def _walked_as_one(outer: str, inner: str, extent: Int, expressions: list[Int]) -> bool:
    for e in expressions:
        if not isinstance(e, Expr):
            continue
        a, b = split_linear(e, outer), split_linear(e, inner)
        if a is None or b is None or a[0] != b[0] * extent:
            return False
    return True


class Nest:
    """Loops, and the substitution of loop variables for axes. Levels: 1 in the parallel loop, 2 and 3 inside it."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.values: dict[str, Int] = {}
        self.lane: dict[str, Int] = {}  # the position in a block of columns by its name, while indices simplify
        self.chunks: Int = 1
        self.level_of: dict[str, int] = {"p": 1}
        self.element_level = 2
        self.row_elements: Int = 0
        self.scratch_index: Int = 0
        self.scratch_size: Int = 0
        self.steps = 1  # of the innermost loop that are written out
        self.shared = 1  # chunks that follow each other and share a panel
        self.packs = False  # whether a chunk copies what its rows share to scratch
        self.rows_at_once = 1  # rows of a chunk, numbered from the value of ``row``
        self.row: Int = 0
        self.row_var: Int = 0  # stands for it, at most :attr:`last_row`
        self.last_row = 0
        self.row_starts: Sequence[int] = ()  # of rows that share nothing: the first of each part; a chunk takes one of each
        self.column: Int = 0  # the position within a block of columns, of chunks of several rows
        self.block: Int = 0  # columns of a chunk
        self.by_bands = False  # whether a chunk adds bands of rows to results in scratch
        self.flat: Block | None = None  # all blocks seen as one, for accesses that walk them so
        self._outer: list[tuple[int, Loop]] = []
        self._inner: tuple[str, str, Int, Int, Int | None] | None = None

    def rewrite(self, e: Int) -> Int:
        for b in self.blocks:
            e = b.rewrite(e)
        if self.flat is not None:
            strides = self._flat_stride(e)
            if strides is not None:
                return strides
        return substitute(substitute(e, self.values), self.lane)

    def _flat_stride(self, e: Int) -> Int | None:
        """``c*i + rest`` where an expression walks all blocks as one."""
        rest: Int = e
        below: Int = 1
        unit: Int | None = None
        for b in reversed(self.blocks):
            split = split_linear(rest, _name(b.var))
            if split is None:
                return None
            c, rest = split
            unit = c if unit is None else unit
            if c != unit * below:
                return None
            below = below * b.size
        assert unit is not None and self.flat is not None
        return rest + unit * self.flat.var

    def outer_loops(self) -> list[tuple[int, Loop]]:
        return self._outer

    def element_loops(self) -> tuple[list[Loop], Loop]:
        """A fresh innermost loop, and the statement list that holds it."""
        assert self._inner is not None
        loop = Loop(*self._inner)
        return [loop], loop

    def lanes(self) -> Loop:
        """The loop across a block of columns."""
        return next(loop for _, loop in self._outer if loop.kind == "lanes")

    def pack_loops(self) -> tuple[Loop, Loop]:
        """Fresh loops down the columns and across them, the second not yet in the first."""
        assert self._inner is not None
        down = Loop(*self._inner)
        down.shared = self.shared
        return down, self.column_loop()

    def column_loop(self) -> Loop:
        """A fresh loop across a block of columns."""
        lanes = self.lanes()
        return Loop("lanes", "t", lanes.start, self.block, lanes.limit)

    def at_row(self, x: Any, row: int) -> Any:
        """An index expression in a row of a chunk; anything else as it is."""
        at = self.row + self.row_starts[row] if self.row_starts else self.row_var + row
        return substitute(x, {"row": at}) if isinstance(x, Expr) else x

    @property
    def repeats(self) -> bool:
        """Whether some rows are run by two chunks."""
        if self.row_starts:
            return self.chunks * self.rows_at_once != self.last_row + 1
        return self.last_row % self.rows_at_once != 0

    # --- construction --------------------------------------------------------------------------------------------------

    def rows(self, blocks: list[Block], row: Int) -> None:
        """``row`` counts the elements of ``blocks`` in C order."""
        at = row
        for k, b in enumerate(reversed(blocks)):
            self.values[_name(b.var)] = at if k == len(blocks) - 1 else mod(at, b.size)
            at = floordiv(at, b.size)

    def across(self, columns: Block, start: Int, block: int, t: Int) -> None:
        """``t``, from ``start`` on, counts the ``columns`` of a block: indices are simplified by what is known of a position within it."""
        lane = _counter("l", block)
        self.values[_name(columns.var)], self.lane[_name(lane)] = start + lane, t - start

    def inner(self, kind: str, name: str, start: Int, extent: Int, limit: Int | None = None) -> None:
        self._inner = (kind, name, start, extent, limit)
        self.level_of[name] = self.element_level


def choose_nest(
    shape: Shape,
    axes: tuple[int, ...] | None,
    expressions: list[Int],
    loads: Sequence[Int] = (),
    tile: Sharing | None = None,
    itemsize: int = 4,
    starts: Sequence[int] = (),
    by_bands: bool = False,
) -> Nest:
    """The loops of a space. ``loads``: where elements are read; ``tile``: what may be shared among rows of elements of ``itemsize`` bytes;
    ``starts``: first rows of parts whose rows are reduced together, in row form; ``by_bands``: whether long columns may be reduced band by band."""
    if axes is None:
        return _map(merge(range(len(shape)), shape, expressions), loads)
    before = merge(range(axes[0]), shape, expressions)
    reduced = merge(axes, shape, expressions)
    after = merge(range(axes[-1] + 1, len(shape)), shape, expressions)
    if axes[-1] == len(shape) - 1:
        return _row(before, reduced, starts)
    rows = before + after[:-1]
    sharing = [r for r in reversed(rows) if _rows_share(r, reduced, after[-1:], loads)] if tile is not None else []
    if isinstance(tile, Panels) and sharing:
        return _panelled_column([*[r for r in rows if r is not sharing[0]], sharing[0]], reduced, after[-1], tile, itemsize)
    if isinstance(tile, Tile) and sharing:
        best = min(([r] for r in sharing), key=lambda rows: _least_cost(rows, tile))
        if _least_cost(best, tile) > IDLE:
            best = [r for r in rows if r in sharing]
        return _tiled_column([r for r in rows if r not in best], best, reduced, after[-1], loads, tile, itemsize)
    if by_bands and _is_banded(before, reduced, after, itemsize):
        return _banded_column(before, reduced, after[0])
    width = after[-1].size if after else 1
    if isinstance(tile, Tile) and isinstance(width, int) and any(split_linear(e, after[-1].last) is None for e in loads if after):
        return _column(before, reduced, after, panel_width(width, itemsize, tile))
    return _column(before, reduced, after, COLUMNS)


Sharing: TypeAlias = "Tile | Panels"


def _counter(name: str, size: Int) -> Expr:
    return var(name, 0, size - 1 if isinstance(size, int) else None)


def _map(blocks: list[Block], loads: Sequence[Int]) -> Nest:
    nest = Nest()
    nest.blocks = blocks
    if not blocks:
        return nest
    if len(blocks) > 1 and isinstance(blocks[-1].size, int) and blocks[-1].size < NARROW:
        return _narrow_map(nest, blocks)
    turned = _turned(blocks, loads)
    if turned is not None:
        return _square_map(nest, blocks, turned)
    last = blocks[-1]
    rows, n = _size(blocks[:-1]), last.size
    i = _counter("i", n)
    nest.values[_name(last.var)] = i
    _pages(nest, rows, n, blocks[:-1])
    return nest


def _size(blocks: list[Block]) -> Int:
    return prod(b.size for b in blocks)


def _pages(nest: Nest, rows: Int, n: Int, outer: list[Block]) -> None:
    """Chunks of a page of a row each; lanes along the row."""
    if isinstance(n, int) and n <= (PAGE if not outer else 2 * PAGE):
        nest.chunks = rows
        nest.rows(outer, _counter("p", rows))
        nest.inner("lanes", "i", 0, n)
        return
    pages = floordiv(n + (PAGE - 1), PAGE)
    nest.chunks = rows * pages
    p = _counter("p", nest.chunks)
    nest.rows(outer, floordiv(p, pages) if outer else 0)
    page = mod(p, pages) if outer else p
    nest.inner("lanes", "i", page * PAGE, PAGE, None if isinstance(n, int) and n % PAGE == 0 else n)


def _turned(blocks: list[Block], loads: Sequence[Int]) -> int | None:
    """The first axis, if any, along which elements are read next to each other that lie far apart along the last."""
    last = blocks[-1]
    for k, b in enumerate(blocks[:-1]):
        if not all(isinstance(n, int) and n >= SQUARE // 4 for n in (b.size, last.size)):
            continue
        for e in loads:
            down, across = (split_linear(x.rewrite(e), _name(x.var)) for x in (b, last))
            if down is not None and across is not None and down[0] == 1 and isinstance(across[0], int) and abs(across[0]) > NARROW:
                return k
    return None


def _square_map(nest: Nest, blocks: list[Block], turned: int) -> Nest:
    """Squares of the last axis and of that along which reads are neighbours, so that whole cache lines are read and written."""
    nest.blocks = blocks
    down, last = blocks[turned], blocks[-1]
    outer = [b for b in blocks if b is not down and b is not last]
    high, wide = (floordiv(b.size + (SQUARE - 1), SQUARE) for b in (down, last))
    nest.chunks = _size(outer) * high * wide
    p = _counter("p", nest.chunks)
    nest.rows(outer, floordiv(p, high * wide))
    q, t = _counter("q", down.size), _counter("t", last.size)
    nest.values[_name(down.var)], nest.values[_name(last.var)] = q, t
    starts = mod(floordiv(p, wide), high) * SQUARE, mod(p, wide) * SQUARE
    limits = [None if b.size % SQUARE == 0 else b.size for b in (down, last)]
    nest._outer = [(1, Loop("serial", "q", starts[0], SQUARE, limits[0]))]
    nest.element_level = 3
    nest.level_of["q"] = 2
    nest.inner("lanes", "t", starts[1], SQUARE, limits[1])
    return nest


def _narrow_map(nest: Nest, blocks: list[Block]) -> Nest:
    """The last axis is too short for lanes: one loop over all elements, axes found by division where need be."""
    total = _size(blocks)
    i = _counter("i", total)
    nest.rows(blocks, i)
    flat = Block.__new__(Block)
    flat.var = i
    nest.flat = flat
    _pages(nest, 1, total, [])
    return nest


def _row(rows: list[Block], reduced: list[Block], starts: Sequence[int]) -> Nest:
    nest = Nest()
    nest.blocks = rows + reduced
    n = _size(reduced)
    q = _counter("i", n)
    nest.rows(reduced, q)
    nest.chunks = count = _size(rows)
    if starts:
        assert isinstance(count, int)
        nest.rows_at_once, nest.row_starts, nest.last_row = len(starts), starts, count - 1
        nest.chunks = count - starts[-1]
        nest.row = _counter("p", nest.chunks)
        nest.level_of["row"] = 1
    nest.rows(rows, _counter("row" if starts else "p", count))
    nest.inner("lanes", "i", 0, n)
    nest.row_elements = nest.scratch_size = n
    nest.scratch_index = q
    return nest


def _column(before: list[Block], reduced: list[Block], after: list[Block], columns: int) -> Nest:
    """Chunks of a row by up to ``columns`` columns."""
    nest = Nest()
    nest.blocks = before + reduced + after
    nest.element_level = 3
    n = _size(reduced)
    rows, last = before + after[:-1], after[-1:]
    width: Int = last[0].size if last else 1
    block = width if isinstance(width, int) and width <= columns else columns
    blocks = floordiv(width + (block - 1), block)
    count = _size(rows)
    nest.chunks = count * blocks
    p = _counter("p", nest.chunks)
    nest.rows(rows, floordiv(p, blocks))
    start = mod(p, blocks) * block
    t = _counter("t", width) if width != 1 else 0
    if last:
        nest.across(last[0], start, block, t)
    ragged = not (isinstance(width, int) and width % block == 0)
    nest._outer = [(1, Loop("lanes" if width != 1 else "serial", "t", start, block, width if ragged else None))]
    nest.level_of["t"] = 2
    q = _counter("q", n)
    nest.rows(reduced, q)
    nest.inner("serial", "q", 0, n)
    nest.scratch_index = q * block + (t - start)
    nest.row_elements = nest.scratch_size = n * block
    return nest


def _is_banded(before: list[Block], reduced: list[Block], after: list[Block], itemsize: int) -> bool:
    """Whether rows are wide, columns long, chunks of all columns enough for every thread, and all of it far beyond the caches."""
    count, n = _size(before), _size(reduced)
    if len(after) != 1 or not all(isinstance(x, int) for x in (count, n, after[0].size)):
        return False
    row = after[0].size * itemsize
    return n % BAND == 0 and n > BAND and count >= NARROW and LONG_ROW_BYTES <= row <= BANDED_BYTES and count * n * row >= UNCACHED_BYTES  # type: ignore[operator]


def _banded_column(before: list[Block], reduced: list[Block], columns: Block) -> Nest:
    """A chunk of all columns: bands of rows in turn, lanes along them, and a short loop down each."""
    nest = Nest()
    nest.by_bands = True
    nest.blocks = [*before, *reduced, columns]
    nest.chunks = _size(before)
    nest.rows(before, _counter("p", nest.chunks))
    width, bands = columns.size, floordiv(_size(reduced), BAND)
    assert isinstance(width, int)
    t, q = _counter("t", width), _counter("q", BAND)
    nest.across(columns, 0, width, t)
    nest.column, nest.block = t, width
    nest.rows(reduced, _counter("g", bands) * BAND + q)
    nest._outer = [(1, Loop("serial", "g", 0, bands)), (2, Loop("lanes", "t", 0, width))]
    nest.element_level = 4
    nest.level_of.update(g=2, t=3)
    nest.inner("serial", "q", 0, BAND)
    nest.row_elements = MANY
    return nest


def _depends(e: Int, blocks: Iterable[Block]) -> bool:
    names = {n for b in blocks for n in b.names}
    return any(a.name in names for a in atoms(e))


def _rows_at_once(n: int, tile: Tile) -> int:
    """Rows of a chunk: as many as a tile has, or fewer if then so many fewer are run twice that it pays."""
    return min(range(min(n, tile.rows), 0, -1), key=lambda rows: _row_cost(n, rows))


def _least_cost(rows: list[Block], tile: Tile) -> float:
    """The least work on a row, where those numbered by ``rows`` share."""
    n = _size(rows)
    assert isinstance(n, int)
    return _row_cost(n, _rows_at_once(n, tile)) / n


def _row_cost(n: int, rows: int) -> float:
    """The work on ``n`` rows, in rows, by chunks of ``rows``: the last may be run twice, and each chunk reads what its rows share."""
    return -(-n // rows) * (rows + SHARED_COST)


def _rows_share(row: Block, reduced: list[Block], after: list[Block], loads: Sequence[Int]) -> bool:
    """Whether the rows numbered by ``row`` read the same elements across the columns, and others each for itself."""
    if len(after) != 1 or not reduced:
        return False
    n, width = _size(reduced), after[0].size
    if not all(isinstance(x, int) for x in (row.size, n, width)) or row.size < 2 or n < NARROW or width < 2:  # type: ignore[operator]
        return False
    shared = [e for e in loads if _depends(e, reduced) and _depends(e, after) and not _depends(e, [row])]
    own = [e for e in loads if _depends(e, reduced) and _depends(e, [row])]
    return bool(shared) and bool(own) and not any(_depends(e, after) for e in own)


def panel_width(columns: int, itemsize: int, tile: Tile) -> int:
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
    return best if lanes(columns, best, unit) <= FEWER * lanes(columns, most, unit) else most


def lanes(columns: int, width: int, unit: int) -> int:
    """Lanes that compute ``columns`` in blocks of ``width``: a last block of fewer columns takes as many as the others."""
    return -(-columns // width) * (-(-width // unit) * unit)


def _is_far(e: Int, reduced: list[Block], lane: Expr, itemsize: int) -> bool:
    """Whether reads along the reduced axes are far apart, or those across a block of columns are not next to each other."""
    steps = [_step(b.rewrite(e), b.var) for b in reduced]
    down = steps[-1]
    across = _step(e, lane)
    if across != 1 or not isinstance(down, int):
        return True
    if down == 1:
        return False  # windows that slide along the columns: the same elements again and again
    as_one = all(d is not None and c == d * b.size for c, d, b in zip(steps, steps[1:], reduced[1:], strict=False))
    return not as_one or down * itemsize >= FAR_BYTES


def _step(e: Int, v: Expr) -> Int | None:
    """How far apart neighbours along a variable are, None if that differs."""
    split = split_linear(e, _name(v))
    return None if split is None else split[0]


def _together(panels: Int, row: Int, rows: int) -> int:
    """How many row blocks a packing chunk takes.

    A panel that is packed for R rows adds a part 4.5 / R to its work (0.076 ns an element, beside 0.017 ns for each row), and chunks of R rows
    leave threads idle at the end for about R / (all rows of all panels) each: the sum is least near the root. One that runs to the end of the
    rows is no chunk too few.
    """
    assert isinstance(row, int)
    down = -(-row // rows)
    if not isinstance(panels, int):
        return down
    most = max(FEW_ROWS, math.isqrt(2 * panels * row)) // rows
    return -(-down // -(-down // most)) if most else down


def _tiled_column(
    before: list[Block], sharing: list[Block], reduced: list[Block], columns: Block, loads: Sequence[Int], tile: Tile, itemsize: int
) -> Nest:
    """Chunks of ``tile.rows`` rows, numbered by ``sharing``, by a block of columns; chunks that share columns follow each other. The last rows may be
    run twice.

    Where what rows share is far apart in memory, a chunk has many such rows and packs it first.
    """
    nest = Nest()
    nest.blocks = [*before, *sharing, *reduced, columns]
    count, n, width = _size(sharing), _size(reduced), columns.size
    assert isinstance(count, int) and isinstance(width, int) and isinstance(n, int)
    rows = nest.rows_at_once = _rows_at_once(count, tile)
    block = panel_width(width, itemsize, tile)
    across, down = -(-width // block), -(-count // rows)
    lane, in_block = _counter("l", block), _counter("block", across) * block
    shared = [e for e in loads if _depends(e, reduced) and _depends(e, [columns]) and not _depends(e, sharing)]
    shared = [substitute(columns.rewrite(e), {_name(columns.var): in_block + lane}) for e in shared]  # so that panels are seen for what they are
    far = any(_is_far(e, reduced, lane, itemsize) for e in shared)
    turned = any(_step(e, lane) != 1 for e in shared)  # packed, it is read by squares and not element by element: that pays for any rows
    nest.packs = far and (turned or count >= FEW_ROWS) and len(shared) * n * block * itemsize <= PACK_BYTES
    together = _together(_size(before) * across, count, rows) if nest.packs else 1
    groups = -(-down // together)
    nest.chunks = _size(before) * across * groups
    p = _counter("p", nest.chunks)
    nest.rows(before, floordiv(p, across * groups))
    start = mod(floordiv(p, groups), across) * block
    nest.last_row = count - rows
    nest.row_var = _counter("row", nest.last_row + 1)
    nest.rows(sharing, _counter("row", count))
    t, q = _counter("t", width), _counter("q", n)
    nest.across(columns, start, block, t)
    nest.rows(reduced, q)
    lanes = Loop("lanes", "t", start, block, width if width % block else None)
    if nest.packs:
        first, nest.shared = mod(p, groups) * together, groups
        nest.row = _counter("r", down) * rows
        nest._outer = [(1, Loop("serial", "r", first, together, down if down % together else None)), (2, lanes)]
    else:
        nest.row = mod(p, down) * rows
        nest._outer = [(1, lanes)]
    nest.element_level = len(nest._outer) + 2
    nest.level_of.update(r=2, row=nest.element_level - 2, t=nest.element_level - 1, e=nest.element_level - 1)
    nest.inner("serial", "q", 0, n)
    nest.steps = steps_at_once([b.size for b in reduced])  # type: ignore[misc]
    nest.column, nest.block = t - start, block
    nest.scratch_index, nest.scratch_size = q * block + nest.column, n * block
    nest.row_elements = MANY
    return nest


MANY_PANELS = 128  # so many chunks keep a large device busy
LEAST_PANEL = 32


def _panel_sizes(rows: int, columns: int, others: Int, panels: Panels, itemsize: int) -> tuple[int, int]:
    """Powers of two: no larger than need be, and smaller where there are few chunks."""
    most = panels.rows * 4 // max(4, itemsize), panels.columns * 4 // max(4, itemsize)
    sizes = [min(m, 1 << max(4, (n - 1).bit_length())) for m, n in zip(most, (rows, columns), strict=True)]
    while isinstance(others, int) and others * -(-rows // sizes[0]) * -(-columns // sizes[1]) < MANY_PANELS and max(sizes) > LEAST_PANEL:
        sizes[sizes.index(max(sizes))] //= 2
    return sizes[0], sizes[1]


def _panelled_column(before: list[Block], reduced: list[Block], columns: Block, panels: Panels, itemsize: int) -> Nest:
    """A block of rows by a block of columns a chunk, both as lanes; a serial loop down inside."""
    nest = Nest()
    nest.blocks = [*before, *reduced, columns]
    row, n = before[-1], _size(reduced)
    assert isinstance(row.size, int) and isinstance(columns.size, int)
    others = _size(before[:-1])
    high, wide = _panel_sizes(row.size, columns.size, others, panels, itemsize)
    down, across = -(-row.size // high), -(-columns.size // wide)
    nest.chunks = others * down * across
    p = _counter("p", nest.chunks)
    nest.rows(before[:-1], floordiv(p, down * across))
    r, t, q = _counter("r", row.size), _counter("t", columns.size), _counter("q", n)
    nest.values[_name(row.var)], nest.values[_name(columns.var)] = r, t
    nest.rows(reduced, q)
    starts = mod(floordiv(p, across), down) * high, mod(p, across) * wide
    limits = [size if size % part else None for size, part in ((row.size, high), (columns.size, wide))]
    nest._outer = [(1, Loop("lanes", "r", starts[0], high, limits[0])), (2, Loop("lanes", "t", starts[1], wide, limits[1]))]
    nest.element_level = 4
    nest.level_of.update(r=2, t=3)
    nest.inner("serial", "q", 0, n)
    nest.scratch_size = nest.row_elements = MANY
    return nest
