"""Which factors of a kernel's products are prefetched a block ahead: kernels of tiles on matrix units (:mod:`.matrix_units`) with a serial loop over
blocks.

A factor is a *tile*: lines of neighbours in memory, whole pieces of 16 bytes. What does not depend on the loop is *kept*: brought once, before it.
What does is *walked*: there are two buffers, one in use while the other is filled with the next block's. Products that read the same elements, be it
down or across, have one tile.
"""

from __future__ import annotations

from typing import NamedTuple

from hologram.backends.c.analysis.gemm import Product, Side, integers_in
from hologram.backends.c.analysis.matrix_units import F16_DEPTH, is_f16, is_fragment
from hologram.backends.c.analysis.tiles import Tiles
from hologram.backends.c.analysis.vectors import ACCESS_BYTES, divides
from hologram.graph.kernel.ir import Buffer, Kernel, Loop
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Expr, Int, atoms, split_linear

PIECE = ACCESS_BYTES // 2  # elements of 16 bits
BANKS = 8  # pieces in different banks
MAX_BYTES = 96 * 1024  # of all tiles: what each device from sm_80 on can supply


class Tile(NamedTuple):
    """``lines`` of ``pieces``, ``step`` elements apart, from element ``start`` of a buffer on; zeros stand for lines from ``there`` on, and for
    elements of a line from ``end`` on."""

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
    def stride(self) -> int:
        """Pieces from line to line: as many as can be permuted so that eight lines lie in different banks."""
        return next((n for n in (1, 2, 4) if self.pieces <= n), -(-self.pieces // BANKS) * BANKS)

    @property
    def nbytes(self) -> int:
        return -(-self.lines * self.stride // BANKS) * BANKS * ACCESS_BYTES


class BlockPrefetch(NamedTuple):
    """``index`` are the instructions of the loop's body that say where tiles are. ``offsets``: bytes from the first tile, or, of walked tiles, from
    the first of the buffer in use."""

    loop: Loop
    index: list[Ins]
    kept: list[Tile]
    walked: list[Tile]
    offsets: dict[tuple[object, ...], int]

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
    (loop,) = loops
    found: dict[tuple[object, ...], Tile] = {}
    for p in products:
        for side in (s for s in (p.rows, p.columns) if not is_fragment(s)):
            own = factor_tile(p, side)
            if own is None:
                return None
            other = found.get(own.key, own)
            found[own.key] = own._replace(lines=max(own.lines, other.lines), pieces=max(own.pieces, other.pieces))
    return _placed(loop, list(found.values()))


def factor_tile(p: Product, side: Side) -> Tile | None:
    """The tile of one side of a product; None where it does not lie in whole pieces."""
    (v,) = side.staged
    if v.op != "load" or v.args or side.loop.start != 0:
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


def _placed(loop: Loop, tiles: list[Tile]) -> BlockPrefetch | None:
    kept: list[Tile] = []
    walked: list[Tile] = []
    index: dict[Ins, None] = {}
    named = {s.name: s for s in loop.body if isinstance(s, Ins) and s.name}
    for t in tiles:
        names = {a.name for e in (t.start, t.step, t.there, t.end) if isinstance(e, Expr) for a in atoms(e)}
        needed = _needed([named[n] for n in names if n in named], named, loop)
        if needed is None:
            return None
        index.update(dict.fromkeys(needed))
        (walked if needed or loop.var in names else kept).append(t)
    offsets: dict[tuple[object, ...], int] = {}
    for group in (kept, walked):
        at = 0
        for t in group:
            offsets[t.key] = at
            at += t.nbytes
    order = [s for s in loop.body if isinstance(s, Ins) and s in index]
    out = BlockPrefetch(loop, order, kept, walked, offsets)
    plain = loop.start == 0 and loop.limit is None and not loop.accs
    return out if walked and plain and out.nbytes <= MAX_BYTES else None


def _needed(wanted: list[Ins], named: dict[str, Ins], loop: Loop) -> set[Ins] | None:
    """The instructions of a loop's body from which integers are computed; None where memory is read for that."""
    own, seen = {s for s in loop.body if isinstance(s, Ins)}, set[Ins]()
    while wanted:
        s = wanted.pop()
        if s in seen:
            continue
        if s.op == "load":
            return None
        seen.add(s)
        wanted += [a for a in s.args if a in own]
        wanted += [named[n] for n in integers_in(s) if n in named]
    return seen
