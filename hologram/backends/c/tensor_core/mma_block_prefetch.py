"""Products of a serial loop over blocks, whose factors are prefetched a block ahead (:mod:`..analysis.block_prefetch`).

A turn of the loop waits for its walked tiles, meets at the one barrier that it has, issues the copies of the next block's, and then computes: all
that it reads is in shared memory, whole, and what is under way has the time of a block, some 1,300 cycles or more, where memory takes 600 to 800.
Fragments of kept tiles are read by ``ldmatrix`` too: in registers they would save a ninth of these, but two groups have none to spare.

What bounds a block of 64 keys or queries for a group of 128 rows of 64 elements, in cycles of a unit of an H200: matrix units, ``mma.sync`` at 0.62
of their peak; shared memory, 4 for an ``ldmatrix`` of a warp and 1 for 128 bytes copied; and issue, an instruction a cycle in each of four parts.
Two groups of 8 warps, with 128 registers an item, hide one's latencies behind the other's work. On an H200, for 8 x 16 heads of 1024 x 64 in
bfloat16, the kernel of attention takes 159 us (by panels 315), those of the gradients by queries and keys 194 and 226 (440 and 471).

============================  ============  =============  =====================  ===================
kernel                        matrix units  shared memory  issue (instructions)   by panels, measured
============================  ============  =============  =====================  ===================
attention                     830           1,280          950 (473)              3,300
gradients by queries, keys    1,250         1,920          1,100 (549)            6,400
============================  ============  =============  =====================  ===================
"""

from __future__ import annotations

from hologram.backends.c.analysis.block_prefetch import BANKS, MAX_COLUMNS, PIECE, BlockPrefetch, Tile
from hologram.backends.c.analysis.gemm import ITEMS, Product, Side
from hologram.backends.c.analysis.matrix_units import F16_DEPTH, SHARES
from hologram.backends.c.analysis.vectors import ACCESS_BYTES, divides
from hologram.backends.c.emitter import Emitter
from hologram.backends.c.scalars import memory_name
from hologram.backends.c.tensor_core.mma import MmaNestWriter
from hologram.backends.c.tensor_core.mma_async_copy import AsyncCopyMmaWriter
from hologram.graph.kernel.ir import Loop


class BlockPrefetchWriter:
    """Writes the loop. ``hg_walked`` is the address of the walked tiles in use."""

    def __init__(self, writer: Emitter, prefetch: BlockPrefetch) -> None:
        self.w, self.f, self.prefetch = writer, writer.f, prefetch

    def write(self, name: str) -> None:
        p, f, w = self.prefetch, self.f, self.w
        stop = w.integer(p.loop.extent)
        f.do("const u32 hg_shared_at = hg_shared_address(hg_shared);")
        w.barrier()  # others may still read what the iteration before had there
        f.open("")
        for t in p.kept:
            self._bring(t, "hg_shared_at")
        self._bring_block("0")
        f.close()
        self._read_rows()
        f.open(f"for (i64 {name} = 0; {name} < {stop}; ++{name})")
        f.do("hg_await_all();")
        w.barrier()  # what all have brought is there, and the other buffer is read no more
        f.open(f"if ({name} + 1 < {stop})")
        self._bring_block(f"({name} + 1)")
        f.close()
        f.do(f"const u32 hg_buffer = {self._buffer(name)}, hg_walked = hg_shared_at + hg_buffer;")
        for access, t in p.of_columns.items():
            kind = memory_name(t.buffer.dtype)
            at = f"(const u8 *)hg_shared + hg_buffer + {p.offsets[t.key]}u + (u32)hg_c * {t.buffer.dtype.itemsize}u"
            w.ahead[access] = f"*(const {kind} *)({at})"
        w.block(p.loop.body)
        f.close()
        w.dirty, w.ahead = False, {}

    def _buffer(self, block: str) -> str:
        """Bytes from the first tile to a block's walked tiles."""
        return f"{self.prefetch.kept_bytes}u + (u32)({block} % 2) * {self.prefetch.block_bytes}u"

    def _read_rows(self) -> None:
        """What nests read of rows."""
        for (buffer, index), p in self.prefetch.of_rows.items():
            name = self.w.fresh("hg_of_rows")
            self.f.do(f"{memory_name(buffer.dtype)} {name}[{p.rows.own}];")
            MmaNestWriter(self.w, p).read_rows(buffer, index, name)
            self.w.ahead[buffer, index] = f"{name}[hg_m]"

    def _bring_block(self, block: str) -> None:
        """The walked tiles of a block, and what was brought before."""
        w = self.w
        env, known = dict(w.env), dict(w.integers)
        self.f.do(f"const u32 hg_next = hg_shared_at + {self._buffer(block)};")
        w.integers[self.prefetch.loop.var] = block
        for s in self.prefetch.placing:
            w.instruction(s)
        for t in self.prefetch.walked:
            self._bring(t, "hg_next")
        self.f.do("hg_brought();")
        w.env, w.integers = env, known

    def _bring(self, t: Tile, at: str) -> None:
        """A tile, which begins at its offset from an address: neighbouring items copy neighbouring pieces."""
        w, f, total = self.w, self.f, t.lines * t.pieces
        w.unroll()
        f.open(f"for (u32 hg_s = 0; hg_s < {-(-total // ITEMS)}; ++hg_s)")
        if ITEMS % t.pieces == 0:  # the item has the same piece of several lines
            f.do(f"const u32 hg_l = (u32)hg_item / {t.pieces} + hg_s * {ITEMS // t.pieces}, hg_p = (u32)hg_item % {t.pieces};")
        else:
            f.do(f"const u32 hg_e = (u32)hg_item + hg_s * {ITEMS}, hg_l = hg_e / {t.pieces}, hg_p = hg_e % {t.pieces};")
        f.open(f"if (hg_l < {t.lines})" if total % ITEMS else "")
        source, nbytes = f"{w.integer(t.start)} + ({w.integer(t.step)}) * (i64)hg_l + (i64)hg_p * {t.piece}", self._bytes_there(t)
        if nbytes != str(ACCESS_BYTES):
            f.do(f"const int hg_nbytes = {nbytes};")
            source, nbytes = f"(hg_nbytes ? {source} : 0)", "hg_nbytes"
        f.do(f"hg_bring({at} + {self.prefetch.offsets[t.key]}u + {piece_at(t, 'hg_l', 'hg_p')}, {t.buffer.name} + {source}, {nbytes});")
        f.close()
        f.close()

    def _bytes_there(self, t: Tile) -> str:
        """Of the piece ``hg_p`` of the line ``hg_l``."""
        nbytes, inside, end = str(ACCESS_BYTES), [], self.w.integer(t.end)
        if not (isinstance(t.there, int) and t.there >= t.lines):
            inside.append(f"(i64)hg_l < {self.w.integer(t.there)}")
        if not (isinstance(t.end, int) and t.end >= t.pieces * t.piece):
            inside.append(f"(i64)hg_p * {t.piece} < {end}")
            if not divides(t.piece, t.end):
                left = f"({end} - (i64)hg_p * {t.piece})"
                nbytes = f"(int)({left} < {t.piece} ? {left} * {t.buffer.dtype.itemsize} : {ACCESS_BYTES})"
        return f"{' && '.join(inside)} ? {nbytes} : 0" if inside else nbytes


def piece_at(t: Tile, line: str, piece: str) -> str:
    """Bytes from a tile's start: the pieces of a line are permuted, so that those of eight neighbouring lines, and of one line, lie in different
    banks."""
    turn = f"({line}) & {BANKS - 1}" if t.stride >= BANKS else f"({line}) / {BANKS // t.stride} & {t.stride - 1}"
    return f"(u32)(({line}) * {t.stride * ACCESS_BYTES} + (({piece}) ^ ({turn})) * {ACCESS_BYTES})"


def write_prefetched(writer: Emitter, prefetch: BlockPrefetch, loop: Loop) -> None:
    """A nest of a kernel with such a loop, or the run that begins with it."""
    assert writer.mapping.tiles is not None
    nests = [writer.mapping.tiles.nests[each] for each in prefetch.runs.get(loop, [loop])]
    columns = nests[0].columns.own if nests else 0
    together = MAX_COLUMNS if len(nests) > 1 and columns % MAX_COLUMNS == 0 else columns
    for first in range(0, columns, max(1, together)):
        for p in nests:
            one = PrefetchedMmaWriter(writer, p) if isinstance(p, Product) else MmaNestWriter(writer, p)
            one.own_columns = (first, first + together)
            one.write()


class PrefetchedMmaWriter(AsyncCopyMmaWriter):
    """Writes one product, whose factors are there. A lane has one address of each factor: matrices of other lines are a constant further, and those
    of other pieces an exclusive or with a constant, since tiles begin at multiples of 128 bytes."""

    def __init__(self, writer: Emitter, p: Product) -> None:
        super().__init__(writer, p)
        assert writer.mapping.prefetch is not None and p.shares == SHARES and p.columns.own % 4 == 0
        self.prefetch = writer.mapping.prefetch
        self.tiles = {side.loop.var: self.prefetch.of(self.p, side) for side, _ in self.brought}

    def write(self) -> None:
        """Where items have the rows, a few columns at a time: sums that are finished need no registers."""
        (first, last), few = self.own_columns, MAX_COLUMNS
        if len(self.brought) > 1 or (last - first) % few:
            super().write()
            return
        self._begin()
        for self.own_columns in [(at, at + few) for at in range(first, last, few)]:
            self.f.open("")
            self._sums(self.monoids[0], "")
            self._panels()
            self._finish("")
            self.f.close()
        self.w.near = {}
        self.f.close()

    def _declare(self, side: Side, name: str) -> None:
        pass

    def _panels(self) -> None:
        p, per_panel = self.p, F16_DEPTH // self.terms
        for side, _ in self.brought:
            self._first_address(side)
        self.f.do("const int hg_at = 0;")
        self._unrolled("hg_step", -(-p.terms // F16_DEPTH) * per_panel)
        # of panels without terms nothing is added
        self.f.open(f"if (hg_step / {per_panel} * {F16_DEPTH} < {self.there})" if p.down.limit is not None else "")
        self._row_fragments() if len(self.brought) > 1 else self._row_registers()
        self._column_fragments()
        self._multiply()
        self.f.close()
        self.f.close()

    def _first_address(self, side: Side) -> None:
        """Of the line that the lane names for the first matrices; of walked tiles, in the first of these: all of one form have the same."""
        (tile, walked), by_terms = self.tiles[side.loop.var], self.by_terms[side.loop.var]
        near, far = "hg_lane % 16", "hg_lane / 16"  # matrices one below the other first
        if (side is self.p.rows) != by_terms:
            near, far = "hg_lane / 16 * 8 + hg_lane % 8", "hg_lane / 8 % 2"
        if side is self.p.rows:
            near, far = (f"hg_top + {near}", far) if by_terms else (near, f"hg_top / {PIECE} + {far}")
        start = "hg_walked" if walked else f"hg_shared_at + {self.prefetch.offsets[tile.key]}u"
        self.f.do(f"const u32 {self._at(side)} = {start} + {piece_at(tile, near, far)};")

    def _at(self, side: Side) -> str:
        return "hg_rows_at" if side is self.p.rows else "hg_columns_at"

    def _further(self, side: Side, line: str, piece: str) -> str:
        """The address of a matrix that is so many lines and pieces from the first."""
        tile, walked = self.tiles[side.loop.var]
        within = min(BANKS, tile.stride)
        beyond = f" + (u32)({piece} / {within} * {within * ACCESS_BYTES})" if tile.stride > BANKS else ""
        constant = f"{self.prefetch.offsets[tile.key] if walked else 0}u + (u32)({line}) * {tile.stride * ACCESS_BYTES}u{beyond}"
        return f"({self._at(side)} ^ (u32)({piece} % {within} * {ACCESS_BYTES})) + ({constant})"

    def _suffix(self, side: Side) -> str:
        return "" if self.by_terms[side.loop.var] else "_turned"

    def _row_fragments(self) -> None:
        side = self.p.rows
        self.f.do("u32 hg_a[1][4];")
        line, piece = ("0", "(hg_step * 2)") if self.by_terms[side.loop.var] else ("hg_step * 16", "0")
        registers = ", ".join(f"hg_a[0][{i}]" for i in range(4))
        self.f.do(f"hg_matrices{self._suffix(side)}({registers}, {self._further(side, line, piece)});")

    def _column_fragments(self) -> None:
        side = self.p.columns
        self.f.do(f"u32 hg_b[{side.own // 2}][2];")
        first, last = (n // 4 for n in self.own_columns)
        self.w.unroll()
        self.f.open(f"for (int hg_f = {first}; hg_f < {last}; ++hg_f)")
        line, piece = ("hg_f * 16", "(hg_step * 2)") if self.by_terms[side.loop.var] else ("hg_step * 16", "(hg_f * 2)")
        registers = ", ".join(f"hg_b[hg_f * 2 + {j}][{i}]" for j in (0, 1) for i in (0, 1))
        self.f.do(f"hg_matrices{self._suffix(side)}({registers}, {self._further(side, line, piece)});")
        self.f.close()
