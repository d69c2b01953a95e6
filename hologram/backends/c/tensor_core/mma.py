"""Products on matrix units: CUDA's ``mma.sync``, 16 rows by 8 columns a warp, with sums in float32.

Here are products of TF32, whose panels come through registers, and nests beside products; :mod:`.mma_async_copy` has products of 16-bit floats.
Which terms an item holds, and of which elements it has the sums, is fixed by the instruction (PTX ISA, matrix fragments for ``mma.m16n8k16`` and
``mma.m16n8k8``). The order of a sum's terms is the hardware's.
"""

from __future__ import annotations

from hologram import dtypes
from hologram.backends.c.analysis.gemm import Product, Side
from hologram.backends.c.analysis.matrix_units import APART, COLUMNS, KINDS, ROWS, TF32_DEPTH, tf32_panel_bytes
from hologram.backends.c.analysis.tiles import Nest
from hologram.backends.c.emitter import Emitter
from hologram.backends.c.nests import ElementWriter, NestWriter
from hologram.backends.c.shared_memory_gemm import SharedMemoryGemmWriter
from hologram.dtypes import DType
from hologram.graph.kernel.ir import Buffer
from hologram.ir.instruction import Ins
from hologram.ir.op import TABLE
from hologram.ir.symbolic import Int

_MMA = """\
static __device__ __forceinline__ void hg_mma_{kind}(f32 &c0, f32 &c1, f32 &c2, f32 &c3, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {{
  asm("mma.sync.aligned.m16n8k{terms}.row.col.f32.{kind}.{kind}.f32 {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}}
"""
_SHORT_EXP = """\
static __device__ __forceinline__ f32 hg_short_exp(const f32 x) {
  f32 r;
  const f32 y = x * 1.44269504f;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(y));
  return r;
}
"""
_ROUND = """\
static __device__ __forceinline__ f32 hg_tf32(const f32 x) { /* to 10 bits of fraction, ties away from 0 */
  return x != x ? x : hg_f32((hg_bits_f32(x) + 0x1000u) & 0xFFFFE000u);
}
"""


class ByWarps(NestWriter):
    """Deals rows and columns out as fragments have them: an item's rows come in pairs 8 apart, its columns in pairs of neighbours."""

    distances = (2, 1)
    first = "hg_lane % 4 == 0"

    def _declare_items(self) -> None:
        down, across = self.nest.shares or (1, 1)
        high, wide = self.nest.rows.size // down, self.nest.columns.size // across
        self.f.do("const int hg_warp = (int)hg_item / 32, hg_lane = (int)hg_item % 32;")
        self.f.do(f"const int hg_top = hg_warp / {across} * {high}, hg_left = hg_warp % {across} * {wide};")
        self.f.do("const int hg_row = hg_top + hg_lane / 4, hg_across = hg_left + hg_lane % 4 * 2;")

    def _own_place(self, side: Side, item: str, k: str) -> str:
        return f"{item} + {k} / 2 * {ROWS} + {k} % 2 * 8" if side is self.nest.rows else f"{item} + {k} / 2 * {COLUMNS} + {k} % 2"


class MmaNestWriter(ByWarps, ElementWriter):
    """Writes a nest without a product, beside products on matrix units. Exponentials of which nothing is wanted but 16-bit floats, factors of these,
    and sums of rows, are the hardware's: in error by 2^-22 of ``exp(x)``, and 2^-24 for each unit of x."""

    def __init__(self, writer: Emitter, p: Nest) -> None:
        super().__init__(writer, p)
        rough = self._rough()
        self.short = {s for s in p.order if s.opname == "exp" and s in rough}
        if self.short:
            writer.scalars.functions.setdefault("hg_short_exp", _SHORT_EXP)

    def read_rows(self, buffer: Buffer, index: Int, name: str) -> None:
        """An element of each of the item's rows, to registers."""
        self.f.open("")
        self._declare_items()
        self._start(self.p.rows, "hg_row0")
        self._unrolled("hg_m", self.p.rows.own)
        with self._scope(row="hg_r"):
            self._place_row()
            self.f.do(f"{name}[hg_m] = {buffer.name}[{self.w.integer(index)}];")
        self.f.close()
        self.f.close()

    def _rough(self) -> set[Ins]:
        """float32 of which all that is wanted is sums of rows, or 16-bit floats, after sums and products."""
        users: dict[object, list[Ins | None]] = {}
        for s in self.p.order:
            for a in s.args:
                users.setdefault(a, []).append(s)
        for store in self._stores():
            users.setdefault(store.value, []).append(None)
        summed = {a for s in self.p.accumulates if s.acc.op.monoid is TABLE["add"] for a in s.args}
        other = {a for s in self.p.accumulates if s.acc.op.monoid is not TABLE["add"] for a in s.args}
        out: set[Ins] = set()
        for s in reversed(self.p.order):
            used = users.get(s, [])
            is_plain = s.dtype is dtypes.float32 and s.opname in ("exp", "mul", "fused_mul", "add", "sub", "mad", "neg", "select")
            if is_plain and s not in other and (used or s in summed) and all(u is not None and (u in out or _rounds(u)) for u in used):
                out.add(s)
        return out

    def _instruction(self, s: Ins) -> None:
        if s not in self.short:
            super()._instruction(s)
            return
        name = self.w.env[s] = self.w.fresh("v")
        self.f.do(f"const f32 {name} = hg_short_exp({self.w.env[s.args[0]]});")


def _rounds(s: Ins) -> bool:
    """Whether it is a cast to narrow floats."""
    return s.opname == "cast" and s.dtype.is_narrow_float


class MmaWriter(ByWarps, SharedMemoryGemmWriter):
    """Writes one product."""

    def __init__(self, writer: Emitter, p: Product) -> None:
        super().__init__(writer, p)
        self.dtype: DType = p.rows.staged[0].dtype
        self.kind, self.terms = KINDS[self.dtype]
        self.paged = False
        functions = writer.scalars.functions
        functions.setdefault(f"hg_mma_{self.kind}", _MMA.format(kind=self.kind, terms=self.terms))
        if self.dtype is dtypes.float32:
            functions.setdefault("hg_tf32", _ROUND)

    def _panel_index(self, side: Side, which: str, k: str, i: str) -> str:
        return f"({which} * {side.size} + {i}) * {TF32_DEPTH + APART} + {k}"

    def _panel_elements(self, side: Side) -> int:
        return tf32_panel_bytes(side) // side.staged[0].dtype.itemsize

    def _kept(self, value: str, near: bool) -> str:
        value = f"hg_tf32({value})"
        return f"hg_next + hg_k{' + hg_near' * near} < {self.there} ? {value} : 0" if self.ragged else value

    def _add_terms(self) -> None:
        f, p, half = self.f, self.p, self.terms // 2
        self._unrolled("hg_step", TF32_DEPTH // self.terms)
        f.do(f"const int hg_k = hg_step * {self.terms} + hg_lane % 4;")
        self._fragments(p.rows, "hg_row0_panel0", "hg_a", ROWS, "hg_row", [(0, 0), (0, 8), (half, 0), (half, 8)])
        self._fragments(p.columns, "hg_column0_panel0", "hg_b", COLUMNS, "hg_left + hg_lane / 4", [(0, 0), (half, 0)])
        self._multiply()
        f.close()

    def _multiply(self) -> None:
        """The instructions of a step, on the registers ``hg_a`` and ``hg_b``."""
        self._unrolled("hg_m", self.p.rows.own // 2)
        self._each_column(2)
        name = self.sums[self.monoids[0]]
        sums = ", ".join(f"{name}[hg_m * 2 + {i}][hg_n * 2 + {j}]" for i in (0, 1) for j in (0, 1))
        parts = ", ".join([*(f"hg_a[hg_m][{i}]" for i in range(4)), *(f"hg_b[hg_n][{i}]" for i in range(2))])
        self.f.do(f"hg_mma_{self.kind}({sums}, {parts});")
        self.f.close()
        self.f.close()

    def _fragments(self, side: Side, panel: str, name: str, size: int, first: str, parts: list[tuple[int, int]]) -> None:
        """Registers; ``parts`` are terms and rows, or columns, from the item's first."""
        count = side.own // 2
        self.f.do(f"u32 {name}[{count}][{len(parts)}];")
        self._unrolled("hg_f", count)
        for i, (term, row) in enumerate(parts):
            at = self._panel_index(side, "hg_now", f"hg_k + {term}", f"{first} + hg_f * {size} + {row}")
            self.f.do(f"{name}[hg_f][{i}] = *(const u32 *)({panel} + {at});")
        self.f.close()
