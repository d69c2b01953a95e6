"""Which factors of a kernel's products are prefetched a block ahead: kernels of tiles on matrix units (:mod:`.matrix_units`) with a serial loop over
blocks.

A factor is a *tile*: lines of neighbours in memory, whole pieces of 16 bytes. What does not depend on the loop is *kept*: brought once, before it.
What does is *walked*: there are two buffers, one in use while the other is filled with the next block's. Products that read the same elements, be it
down or across, have one tile. What element-wise nests read of the block's columns is walked too, and what they read of rows is read before the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hologram.backends.c.analysis.gemm import MAX_SUM_REGISTERS, Product, Side, integers_in
from hologram.backends.c.analysis.matrix_units import F16_DEPTH, is_f16, is_fragment
from hologram.backends.c.analysis.tiles import Nest, Tiles
from hologram.backends.c.analysis.vectors import ACCESS_BYTES, Access, divides
from hologram.graph.kernel.ir import Buffer, Kernel, Loop
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Expr, Int, atoms, split_linear

PIECE = ACCESS_BYTES // 2  # elements of 16 bits
BANKS = 8  # pieces in different banks
MAX_COLUMNS = 8  # of an item, that a run of nests has at a time
MAX_BYTES = 99 * 1024  # of all tiles: what each device from sm_80 on can supply


class Tile(NamedTuple):
    """``lines`` of ``pieces`` of 16 bytes, ``step`` elements apart, from element ``start`` of a buffer on; zeros stand for lines from ``there`` on,
    and for elements of a line from ``end`` on."""

    buffer: Buffer
    start: Int
    step: Int
    there: Int
    end: Int
    lines: int
    pieces: int

    @property
    def key(self) -> tuple[object, ...]:
        """Tiles of one key have the same elements, as far as both have them."""
        return self[:5]

    @property
    def piece(self) -> int:
        """Elements of a piece."""
        return ACCESS_BYTES // self.buffer.dtype.itemsize

    @property
    def stride(self) -> int:
        """Pieces from line to line: as many as can be permuted so that eight lines lie in different banks."""
        return next((n for n in (1, 2, 4) if self.pieces <= n), -(-self.pieces // BANKS) * BANKS)

    @property
    def nbytes(self) -> int:
        return -(-self.lines * self.stride // BANKS) * BANKS * ACCESS_BYTES


class BlockPrefetch(NamedTuple):
    """``placing`` are the instructions of the loop's body that say where tiles are. ``offsets``: bytes from the first tile, or, of walked tiles, from
    the first of the buffer in use. ``of_rows`` are loads that the loop does not change, of what nests read of rows, ``of_columns`` the tiles of
    what they read of columns. ``runs``: nests that are written a few columns at a time, one after the other; those but the first have none.
    ``resident``: groups of a unit that their items' registers allow."""

    loop: Loop
    placing: list[Ins]
    kept: list[Tile]
    walked: list[Tile]
    offsets: dict[tuple[object, ...], int]
    runs: dict[Loop, list[Loop]]
    of_rows: dict[Access, Nest]
    of_columns: dict[Access, Tile]
    resident: int

    @property
    def kept_bytes(self) -> int:
        return sum(t.nbytes for t in self.kept)

    @property
    def block_bytes(self) -> int:
        """Of one buffer of walked tiles."""
        return sum(t.nbytes for t in self.walked)

    @property
    def nbytes(self) -> int:
        return self.kept_bytes + 2 * self.block_bytes

    def of(self, p: Product, side: Side) -> tuple[Tile, bool]:
        """A factor's tile, and whether it is walked."""
        own = factor_tile(p, side)
        assert own is not None
        return next((t, tiles is self.walked) for tiles in (self.kept, self.walked) for t in tiles if t.key == own.key)


def block_prefetch_of(kernel: Kernel, tiles: Tiles) -> BlockPrefetch | None:
    """The prefetch of a kernel; None where it has no such loop, factors do not lie in whole pieces, or shared memory has no room for them."""
    loops = [s for s in kernel.walk() if isinstance(s, Loop) and any(inner in tiles.nests for inner in s.body) and s.kind == "serial"]
    products = [p for p in tiles.nests.values() if isinstance(p, Product)]
    if len(loops) != 1 or not tiles.dynamic or any(p.shares is None or not is_f16(p) or p.rows.loop not in loops[0].body for p in products):
        return None
    found = _Finder(loops[0], tiles)
    factors = found.factors(products)
    if factors is None or loops[0].start != 0 or loops[0].limit is not None or loops[0].accs:
        return None
    of_rows, of_columns = found.loads()
    vectors = list({t.key: t for t in of_columns.values()}.values())
    out = found.placed(factors, of_rows, of_columns, vectors)
    if out.nbytes > MAX_BYTES:
        out = found.placed(factors, of_rows, {}, [])
    return out if out.walked and out.nbytes <= MAX_BYTES else None


class _Finder:
    """What is found of one loop. ``placing``: the instructions of its body that say where walked tiles are."""

    def __init__(self, loop: Loop, tiles: Tiles) -> None:
        self.loop, self.tiles = loop, tiles
        self.own = {s for s in loop.body if isinstance(s, Ins)}
        self.named = {s.name: s for s in self.own if s.name}
        self.placing: set[Ins] = set()

    def factors(self, products: list[Product]) -> list[Tile] | None:
        """The tiles of all factors; None where one has none."""
        found: dict[tuple[object, ...], Tile] = {}
        for p in products:
            for side in (s for s in (p.rows, p.columns) if not is_fragment(s)):
                own = factor_tile(p, side)
                if own is None or self._needed(own) is None:
                    return None
                other = found.get(own.key, own)
                found[own.key] = own._replace(lines=max(own.lines, other.lines), pieces=max(own.pieces, other.pieces))
        return list(found.values())

    def loads(self) -> tuple[dict[Access, Nest], dict[Access, Tile]]:
        """What element-wise nests read of rows, which is the same for each block, and of columns."""
        of_rows: dict[Access, Nest] = {}
        of_columns: dict[Access, Tile] = {}
        for s in self.loop.body:
            p = self.tiles.nests.get(s) if isinstance(s, Loop) else None
            if not isinstance(p, Nest):
                continue
            inner = {i.name for i in p.order if i.name}
            for load in (i for i in p.order if i.op == "load" and not i.args and i.attrs[0].role == "in"):
                buffer, at = load.attrs
                names = _names([at])
                if names & inner:
                    continue
                if load in p.rows.loop.body and not self._is_walked([at]):
                    of_rows[buffer, at] = p
                tile = _vector(p, buffer, at) if p.rows.loop.var not in names and p.columns.loop.start == 0 else None
                if tile is not None and self._is_walked([at]) and self._needed(tile) is not None:
                    of_columns[buffer, at] = tile
        return of_rows, of_columns

    def placed(self, factors: list[Tile], of_rows: dict[Access, Nest], of_columns: dict[Access, Tile], vectors: list[Tile]) -> BlockPrefetch:
        tiles = [*factors, *vectors]
        kept = [t for t in tiles if not self._is_walked(t[1:5])]
        walked = [t for t in tiles if t not in kept]
        offsets: dict[tuple[object, ...], int] = {}
        for group in (kept, walked):
            at = 0
            for t in group:
                offsets[t.key] = at
                at += t.nbytes
        order = [s for s in self.loop.body if isinstance(s, Ins) and s in self.placing]
        ahead = {**of_rows, **of_columns}
        return BlockPrefetch(self.loop, order, kept, walked, offsets, _runs(self.loop, self.tiles), of_rows, of_columns, self._resident(set(ahead)))

    def _resident(self, ahead: set[Access]) -> int:
        """Two groups, which 128 registers of an item make possible, where ptxas spills little: no conditions, and no masks where much is held."""
        nests = [self.tiles.nests[s] for s in self.loop.body if isinstance(s, Loop) and s in self.tiles.nests]
        own = [s for p in nests for s in p.order if not (isinstance(p, Product) and s in (*p.rows.staged, *p.columns.staged))]
        plain = [s for s in own if s.op not in ("index", "inside") and (s.op != "load" or s.attrs[0].role == "scratch" or s.attrs[:2] in ahead)]
        limits = [side.loop.limit for p in nests for side in (p.rows, p.columns)]
        much = self.tiles.registers > MAX_SUM_REGISTERS or sum(isinstance(p, Product) and not is_fragment(p.rows) for p in nests) > 1
        return 1 if any(n is not None for n in limits) or (much and len(plain) < len(own)) else 2

    def _is_walked(self, integers: Sequence[Int]) -> bool:
        """Whether some of them depend on the loop."""
        return bool(_names(integers) & {self.loop.var, *self.named})

    def _needed(self, t: Tile) -> set[Ins] | None:
        """The instructions of the loop's body from which it is computed where a tile is; None where memory is read for that."""
        wanted, seen = [self.named[n] for n in _names(t[1:5]) if n in self.named], set[Ins]()
        while wanted:
            s = wanted.pop()
            if s in seen:
                continue
            if s.op == "load":
                return None
            seen.add(s)
            wanted += [a for a in s.args if isinstance(a, Ins) and a in self.own]
            wanted += [self.named[n] for n in integers_in(s) if n in self.named]
        self.placing |= seen
        return seen


def _names(integers: Sequence[Int]) -> set[str]:
    return {a.name for e in integers if isinstance(e, Expr) for a in atoms(e)}


def _vector(p: Nest, buffer: Buffer, at: Int) -> Tile | None:
    """The tile of what a nest reads of its columns, one line; None where it does not lie in whole pieces but for its end."""
    along, piece = split_linear(at, p.columns.loop.var), ACCESS_BYTES // buffer.dtype.itemsize
    if along is None or along[0] != 1 or not divides(piece, along[1]) or p.columns.size % piece:
        return None
    end = p.columns.size if p.columns.loop.limit is None else p.columns.loop.limit
    return Tile(buffer, along[1], 0, 1, end, 1, p.columns.size // piece)


def _runs(loop: Loop, tiles: Tiles) -> dict[Loop, list[Loop]]:
    """Products of which an element-wise nest needs its own elements, and that nest: of a few columns at a time less is in registers than of all. And
    products whose rows items have."""
    out: dict[Loop, list[Loop]] = {}
    run: list[Loop] = []
    for s in loop.body:
        p = tiles.nests.get(s) if isinstance(s, Loop) else None
        if p is None or (run and tiles.nests[run[0]].columns.size != p.columns.size):
            run = []
        if p is None:
            continue
        assert isinstance(s, Loop)
        out[s] = [s]
        if isinstance(p, Product):
            run = [] if is_fragment(p.rows) else [*run, s]
            continue
        if run and not p.accs and not p.row_stores:
            out.update({each: [] for each in (*run, s)})
            out[run[0]] = [*run, s]
        run = []
    return out


def factor_tile(p: Product, side: Side) -> Tile | None:
    """The tile of one side of a product; None where it does not lie in whole pieces."""
    (v,) = side.staged
    if v.op != "load" or v.args or v.attrs[0].role != "in" or side.loop.start != 0:
        return None
    for by_terms in (True, False):
        near, far = (p.down.var, side.loop.var) if by_terms else (side.loop.var, p.down.var)
        along = split_linear(v.attrs[1], near)
        apart = split_linear(along[1], far) if along is not None and along[0] == 1 else None
        if apart is not None:
            break
    else:
        return None
    padded = -(-p.terms // F16_DEPTH) * F16_DEPTH
    terms, own = (p.down.limit, p.terms, padded), (side.loop.limit, side.size, side.size)
    (there, lines, of_lines), (end, _, elements) = (own, terms) if by_terms else (terms, own)
    end = (p.terms if by_terms else side.size) if end is None else end
    step, start = apart
    if not all(divides(PIECE, x) for x in (start, step, end)) or (p.down.limit is not None and p.terms != padded):
        return None
    return Tile(v.attrs[0], start, step, lines if there is None else there, end, of_lines, elements // PIECE)
