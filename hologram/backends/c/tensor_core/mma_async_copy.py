"""Products of 16-bit floats on matrix units: panels go from memory to shared memory past the registers, several ahead of the one in use.

A *panel* has ``F16_DEPTH`` terms of a block's rows, or columns, in *lines*: of terms where these are neighbours in memory, else of rows or columns.
Lines consist of *pieces* of 16 bytes, which are what items copy and what ``ldmatrix`` takes eight of, from eight neighbouring lines; the pieces of a
line are permuted (an exclusive or with the line's number) so that these eight lie in different banks, and so do those of one line. ``ldmatrix`` turns
what lies in lines of rows or columns.

A factor that does not lie in whole pieces of memory comes through registers: read before the terms at hand are multiplied, written after.
"""

from __future__ import annotations

from collections.abc import Callable

from hologram.backends.c.analysis.gemm import ITEMS, Product, Side
from hologram.backends.c.analysis.matrix_units import COLUMNS, F16_DEPTH, ROWS, STAGES, f16_panel_bytes, is_fragment
from hologram.backends.c.analysis.vectors import ACCESS_BYTES, divides
from hologram.backends.c.emitter import Emitter
from hologram.backends.c.tensor_core.mma import MmaWriter
from hologram.dtypes import uint64
from hologram.ir.symbolic import split_linear

PIECE = ACCESS_BYTES // 2  # elements
BANKS = 8  # pieces in different banks
_FUNCTIONS = {
    "hg_shared_address": """\
static __device__ __forceinline__ u32 hg_shared_address(const void *at) {
  return (u32)__cvta_generic_to_shared(at);
}
""",
    "hg_bring": """\
static __device__ __forceinline__ void hg_bring(const u32 to, const void *from, const int nbytes) { /* 16 bytes; from nbytes on they are 0 */
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" : : "r"(to), "l"(from), "r"(nbytes) : "memory");
}
""",
    "hg_brought": """\
static __device__ __forceinline__ void hg_brought() { /* what was brought since the last call is a panel */
  asm volatile("cp.async.commit_group;" : : : "memory");
}
""",
    "hg_await": f"""\
static __device__ __forceinline__ void hg_await() {{ /* all panels but the last {STAGES - 2} */
  asm volatile("cp.async.wait_group {STAGES - 2};" : : : "memory");
}}
""",
    "hg_await_all": """\
static __device__ __forceinline__ void hg_await_all() {
  asm volatile("cp.async.wait_group 0;" : : : "memory");
}
""",
    **{
        f"hg_matrices{suffix}": f"""\
static __device__ __forceinline__ void hg_matrices{suffix}(u32 &r0, u32 &r1, u32 &r2, u32 &r3, const u32 at) {{
  asm volatile("ldmatrix.sync.aligned.m8n8.x4{suffix and ".trans"}.shared.b16 {{%0, %1, %2, %3}}, [%4];"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory");
}}
"""
        for suffix in ("", "_turned")
    },
    **{
        f"hg_pair{suffix}": f"""\
static __device__ __forceinline__ void hg_pair{suffix}(u32 &r0, u32 &r1, const u32 at) {{
  asm volatile("ldmatrix.sync.aligned.m8n8.x2{suffix and ".trans"}.shared.b16 {{%0, %1}}, [%2];" : "=r"(r0), "=r"(r1) : "r"(at) : "memory");
}}
"""
        for suffix in ("", "_turned")
    },
}


class AsyncCopyMmaWriter(MmaWriter):
    """Writes one product. ``hg_stage`` is the panel in use, ``hg_slot`` where the one that is brought goes."""

    def __init__(self, writer: Emitter, p: Product) -> None:
        super().__init__(writer, p._replace(depth=F16_DEPTH))
        names = [(p.rows, "hg_row0"), (p.columns, "hg_column0")]
        self.brought = [(side, name) for side, name in names if not is_fragment(side)]
        self.by_terms = {side.loop.var: self._is_down_first(side) for side, _ in self.brought}
        self.copied = {side.loop.var: self._is_copied(side) for side, _ in self.brought}
        shared = f"extern __shared__ {writer.scalars.vector(uint64, ACCESS_BYTES // 8)} hg_shared[]; /* what a launch supplies */\n"
        for name, text in {"hg_shared": shared, **_FUNCTIONS}.items():
            writer.scalars.functions.setdefault(name, text)

    # --- where pieces are ----------------------------------------------------------------------------------------------

    def _line(self, side: Side) -> int:
        """Elements of a line."""
        return F16_DEPTH if self.by_terms[side.loop.var] else side.size

    def _panel_start(self, side: Side, stage: str) -> str:
        """Bytes from the first panel: of a stage the rows' comes first."""
        first = 0 if side is self.brought[0][0] else self.p.rows.size * F16_DEPTH * 2
        return f"{stage} * {f16_panel_bytes(self.p) // STAGES}u{f' + {first}u' if first else ''}"

    def _piece_at(self, side: Side, line: str, piece: str) -> str:
        """Bytes from a panel's start."""
        size = self._line(side)
        pieces = size // PIECE
        turn = f"({line}) & {BANKS - 1}" if pieces >= BANKS else f"({line}) / {BANKS // pieces} & {pieces - 1}"
        return f"(u32)(({line}) * {size * 2} + (({piece}) ^ ({turn})) * {ACCESS_BYTES})"

    # --- bringing panels -----------------------------------------------------------------------------------------------

    def _is_copied(self, side: Side) -> bool:
        """Whether a side's values are whole pieces of memory."""
        (v,), by_terms = side.staged, self._is_down_first(side)
        split = split_linear(v.attrs[1], self.p.down.var if by_terms else side.loop.var) if v.op == "load" and not v.args else None
        loop, count = (self.p.down, self.p.terms) if by_terms else (side.loop, side.size)
        end = count if loop.limit is None else loop.limit
        return split is not None and split[0] == 1 and divides(PIECE, split[1]) and divides(PIECE, end)

    def _declare(self, side: Side, name: str) -> None:
        """The registers in which what is not copied waits."""
        if not self.copied.get(side.loop.var, True):
            self.f.do(f"{self.w.scalars.vector(side.staged[0].dtype, PIECE)} {name}_next[{self._per_item(side)}];")

    def _per_item(self, side: Side) -> int:
        """Pieces of a panel that an item brings."""
        return max(1, side.size * F16_DEPTH // PIECE // ITEMS)

    def _panels(self) -> None:
        p, f, several = self.p, self.f, len(self.brought) > 1
        f.do("const u32 hg_shared_at = hg_shared_address(hg_shared);")
        f.do("u32 hg_stage = 0, hg_slot = 0;")
        f.open(f"for (i64 hg_next = 0; hg_next < {(STAGES - 1) * F16_DEPTH}; hg_next += {F16_DEPTH})")
        self._each([self._bring, self._keep])
        f.do("hg_brought();")
        f.do("++hg_slot;")
        f.close()
        if not several:  # registers have no index
            self.w.unroll()
        f.open(f"for ({'i64' if several else 'int'} hg_at = 0; hg_at < {self.there if several else p.terms}; hg_at += {F16_DEPTH})")
        f.do(f"const i64 hg_next = hg_at + {(STAGES - 1) * F16_DEPTH};")
        f.do("hg_await();")
        self.w.barrier()
        self._each([self._bring])
        f.do("hg_brought();")
        # of panels that were not brought shared memory has anything, which times 0 may be NaN
        f.open(f"if (hg_at < {self.there})" if not several and p.down.limit is not None else "")
        self._add_terms()
        f.close()
        if not all(self.copied.values()):
            self._each([self._keep])
        f.do(f"hg_stage = (hg_stage + 1) % {STAGES};")
        f.do(f"hg_slot = (hg_slot + 1) % {STAGES};")
        f.close()
        self.w.barrier()

    def _each(self, writes: list[Callable[[Side, str], None]]) -> None:
        """For the panels of both sides, if there is a next one."""
        self.f.open(f"if (hg_next < {self.there})")
        for write in writes:
            for side, name in self.brought:
                write(side, name)
        self.f.close()

    def _piece_of(self, side: Side) -> None:
        """The item's piece ``hg_p`` of the line ``hg_l``: neighbours in memory are neighbouring items'."""
        pieces = self._line(side) // PIECE
        total = side.size * F16_DEPTH // PIECE
        self.f.do(f"const int hg_e = ((int)hg_item + {ITEMS} * hg_s){f' % {total}' if total < ITEMS else ''};")
        self.f.do(f"const int hg_l = hg_e / {pieces}, hg_p = hg_e % {pieces};")

    def _bring(self, side: Side, name: str) -> None:
        self._unrolled("hg_s", self._per_item(side))
        self._piece_of(side)
        if self.copied[side.loop.var]:
            self._copy(side, name)
        else:
            self._compute(side, name)
        self.f.close()

    def _copy(self, side: Side, name: str) -> None:
        """A piece from memory to shared memory. Beyond the last row or column it is another's, beyond the last term it is zeros."""
        (v,) = side.staged
        self._clamp(side, name, PIECE)
        with self._scope(**self._names(side)):
            source = f"{v.attrs[0].name} + {self.w.integer(v.attrs[1])}"
        target = f"hg_shared_at + {self._panel_start(side, 'hg_slot')} + {self._piece_at(side, 'hg_l', 'hg_p')}"
        self.f.do(f"hg_bring({target}, {source}, {self._there(str(ACCESS_BYTES), '0')});")

    def _clamp(self, side: Side, name: str, together: int, near: str = "") -> None:
        """``hg_place`` and ``hg_term`` are where ``together`` neighbours are read, which are there; ``hg_wanted`` is the term that was wanted."""
        piece = f"hg_p * {PIECE}{near}"
        term, place = (piece, "hg_l") if self.by_terms[side.loop.var] else ("hg_l", piece)
        limit, before = side.loop.limit, together if self.by_terms[side.loop.var] else 1
        last = str(self.p.terms - before) if self.p.down.limit is None else f"{self.there} - {before}"
        self.f.do(f"const i64 hg_wanted = hg_next + {term};")
        self.f.do(f"const i64 hg_term = {self._there('hg_wanted', last)};")
        at = f"{name} + {place}"
        if limit is not None:
            ends = limit - (1 if self.by_terms[side.loop.var] else together)
            at = f"{at} < {self.w.integer(limit)} ? {at} : {self.w.integer(ends)}"
        self.f.do(f"const i64 hg_place = {at};")

    def _there(self, value: str, otherwise: str) -> str:
        """``value``, or ``otherwise`` where ``hg_wanted`` is beyond the last term, if it can be."""
        return f"hg_wanted < {self.there} ? {value} : {otherwise}" if self.ragged else value

    def _compute(self, side: Side, name: str) -> None:
        """A piece to registers, element by element."""
        (v,) = side.staged
        self._unrolled("hg_near", PIECE)
        self._clamp(side, name, 1, " + hg_near")
        with self._scope(**self._names(side)):
            self._emit(side.staged)
            self.f.do(f"{name}_next[hg_s].v[hg_near] = {self._there(self.w.env[v], '0')};")
        self.f.close()

    def _names(self, side: Side) -> dict[str, str]:
        return {"row" if side is self.p.rows else "column": "hg_place", "down": "hg_term"}

    def _keep(self, side: Side, name: str) -> None:
        """What waits in registers, to shared memory."""
        if self.copied[side.loop.var]:
            return
        kind = self.w.scalars.vector(side.staged[0].dtype, PIECE)
        self._unrolled("hg_s", self._per_item(side))
        self._piece_of(side)
        at = f"{self._panel_start(side, 'hg_slot')} + {self._piece_at(side, 'hg_l', 'hg_p')}"
        self.f.do(f"*({kind} *)((u8 *)hg_shared + {at}) = {name}_next[hg_s];")
        self.f.close()

    # --- using them ----------------------------------------------------------------------------------------------------

    def _add_terms(self) -> None:
        p, f = self.p, self.f
        for side, _ in self.brought:
            name = "hg_rows_at" if side is p.rows else "hg_columns_at"
            f.do(f"const u32 {name} = hg_shared_at + {self._panel_start(side, 'hg_stage')};")
        self._unrolled("hg_step", F16_DEPTH // self.terms)
        self._row_fragments() if len(self.brought) > 1 else self._row_registers()
        self._column_fragments()
        self._multiply()
        f.close()

    def _row_fragments(self) -> None:
        """Matrices of 8 rows by 8 terms: upper and lower, and the same of the next terms."""
        side, f = self.p.rows, self.f
        f.do(f"u32 hg_a[{side.own // 2}][4];")
        self._unrolled("hg_f", side.own // 2)
        line, piece, suffix = f"hg_top + hg_f * {ROWS} + hg_lane % 16", "hg_step * 2 + hg_lane / 16", ""
        if not self.by_terms[side.loop.var]:
            line, piece, suffix = "hg_step * 16 + hg_lane / 16 * 8 + hg_lane % 8", f"(hg_top + hg_f * {ROWS}) / 8 + hg_lane / 8 % 2", "_turned"
        registers = ", ".join(f"hg_a[hg_f][{i}]" for i in range(4))
        f.do(f"hg_matrices{suffix}({registers}, hg_rows_at + {self._piece_at(side, line, piece)});")
        f.close()

    def _row_registers(self) -> None:
        """The same of what items have: elements of 8 columns are those of 8 terms."""
        side, f = self.p.rows, self.f
        name = side.staged[0].attrs[0].name
        f.do(f"u32 hg_a[{side.own // 2}][4];")
        self._unrolled("hg_f", side.own // 2)
        self._unrolled("hg_i", 4)
        row, first = "hg_f * 2 + hg_i % 2", "(hg_at / 8 + hg_step * 2 + hg_i / 2) * 2"
        f.do(f"hg_a[hg_f][hg_i] = (u32){name}[{row}][{first}] | (u32){name}[{row}][{first} + 1] << 16;")
        f.close()
        f.close()

    def _column_fragments(self) -> None:
        """Matrices of 8 columns by 8 terms: these and the next terms, of two instructions at a time where there are as many."""
        side, f = self.p.columns, self.f
        count = side.own // 2
        together = 2 if count % 2 == 0 else 1
        f.do(f"u32 hg_b[{count}][2];")
        self._unrolled("hg_f", count // together)
        left = f"hg_left + hg_f * {COLUMNS * together}"
        line, piece, suffix = f"{left} + hg_lane / 16 * 8 + hg_lane % 8", "hg_step * 2 + hg_lane / 8 % 2", ""
        if not self.by_terms[side.loop.var]:
            line, piece, suffix = "hg_step * 16 + hg_lane % 16", f"({left}) / 8 + hg_lane / 16", "_turned"
        if together == 1:
            line, piece = (x.replace("hg_lane / 16", "0") for x in (line, piece))
        registers = ", ".join(f"hg_b[hg_f * {together} + {j}][{i}]" for j in range(together) for i in (0, 1))
        f.do(f"hg_{'matrices' if together == 2 else 'pair'}{suffix}({registers}, hg_columns_at + {self._piece_at(side, line, piece)});")
        f.close()
