"""Products of 16-bit floats on matrix units: CUDA's ``mma.sync``, 16 rows by 8 columns by 16 terms a warp, sums in float32.

Panels lie row by row in shared memory, terms next to each other, so that a register holds two. Which of them an item holds, and of which elements it
has the sums, is fixed by the instruction (PTX ISA, matrix fragments for ``mma.m16n8k16``). The order of a sum's terms is the hardware's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hologram import dtypes
from hologram.backends.c.panels import ITEMS, PanelWriter, Product, Side
from hologram.dtypes import DType
from hologram.graph.kernel_ir import Accumulate, Ins
from hologram.primitives.op import TABLE

if TYPE_CHECKING:
    from hologram.backends.c.walk import KernelWriter

ROWS, COLUMNS, TERMS = 16, 8, 16  # of an instruction
DEPTH = 16  # terms of a panel
PAD = 8  # terms between rows of a panel, so that the eight rows of a fragment lie in different banks
WARPS = ITEMS // 32
NAMES = {dtypes.bfloat16: "bf16", dtypes.float16: "f16"}
_MMA = """\
static __device__ __forceinline__ void hg_mma_{kind}(f32 &c0, f32 &c1, f32 &c2, f32 &c3, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {{
  asm("mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32 {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}}
"""


def on_matrix_units(p: Product) -> Product | None:
    """The product with panels of its 16-bit factors, if all it sums is products of two such that were made float32."""
    accumulates = [s for s in p.down.body if isinstance(s, Accumulate)]
    rows, columns = p.rows.staged, p.columns.staged
    if len(accumulates) != 1 or len(p.core) != 1 or len(rows) != 1 or len(columns) != 1 or _warps(p.rows.size, p.columns.size) is None:
        return None
    (sum_of,), row = accumulates[0].args, accumulates[0].acc.row
    if sum_of is not p.core[0] or p.core[0].op is not TABLE["mul"] or row.monoid is not TABLE["add"] or set(p.core[0].args) != {rows[0], columns[0]}:
        return None
    factors = [_widened(v) for v in (rows[0], columns[0])]
    if factors[0] is None or factors[1] is None or factors[0].dtype is not factors[1].dtype:
        return None
    down, across = _warps(p.rows.size, p.columns.size) or (1, 1)
    sides = p.rows.size // down // 8, p.columns.size // across // COLUMNS * 2
    return p._replace(
        rows=p.rows._replace(own=sides[0], staged=[factors[0]]), columns=p.columns._replace(own=sides[1], staged=[factors[1]]), depth=DEPTH
    )


def _widened(v: Ins) -> Ins | None:
    """The 16-bit value that ``v`` is the float32 of."""
    from_half = v.opname == "cast" and v.dtype is dtypes.float32 and v.args[0].dtype in NAMES
    return v.args[0] if from_half else None


def _warps(rows: int, columns: int) -> tuple[int, int] | None:
    """How the warps of a group share a block; None where it is too small for them."""
    down = 4 if rows >= 4 * ROWS else 2
    across = WARPS // down
    return (down, across) if rows % (down * ROWS) == 0 and columns % (across * COLUMNS) == 0 else None


class MatrixWriter(PanelWriter):
    """Writes one product. An item's rows come in pairs 8 apart, its columns in pairs of neighbours."""

    def __init__(self, writer: KernelWriter, p: Product) -> None:
        super().__init__(writer, p)
        self.kind = NAMES[self._dtype]
        writer.scalars.functions.setdefault(f"hg_mma_{self.kind}", _MMA.format(kind=self.kind))

    @property
    def _dtype(self) -> DType:
        return self.p.rows.staged[0].dtype

    def _declare_items(self) -> None:
        down, across = _warps(self.p.rows.size, self.p.columns.size) or (1, 1)
        high, wide = self.p.rows.size // down, self.p.columns.size // across
        self.f.do("const int hg_warp = (int)hg_item / 32, hg_lane = (int)hg_item % 32;")
        self.f.do(f"const int hg_top = hg_warp / {across} * {high}, hg_left = hg_warp % {across} * {wide};")
        self.f.do("const int hg_row = hg_top + hg_lane / 4, hg_across = hg_left + hg_lane % 4 * 2;")

    def _own_place(self, side: Side, item: str, k: str) -> str:
        return f"{item} + {k} / 2 * {ROWS} + {k} % 2 * 8" if side is self.p.rows else f"{item} + {k} / 2 * {COLUMNS} + {k} % 2"

    def _panel_index(self, side: Side, which: str, k: str, i: str) -> str:
        return f"({which} * {side.size} + {i}) * {DEPTH + PAD} + {k}"

    def _panel_elements(self, side: Side) -> int:
        return 2 * side.size * (DEPTH + PAD)

    def _beyond_the_end(self, value: str) -> str:
        return f"hg_next + hg_k < {self.p.terms} ? {value} : 0" if self.p.terms % DEPTH else value

    def _add_terms(self) -> None:
        f, p = self.f, self.p
        self._unrolled("hg_step", DEPTH // TERMS)
        f.do(f"const int hg_k = hg_step * {TERMS} + hg_lane % 4 * 2;")
        self._fragments(p.rows, "hg_row0_panel0", "hg_a", ROWS, "hg_row", ["0, 0", "0, 8", "8, 0", "8, 8"])
        self._fragments(p.columns, "hg_column0_panel0", "hg_b", COLUMNS, "hg_left + hg_lane / 4", ["0, 0", "8, 0"])
        self._unrolled("hg_m", p.rows.own // 2)
        self._unrolled("hg_n", p.columns.own // 2)
        name = self.sums[self.monoids[0]]
        sums = ", ".join(f"{name}[hg_m * 2 + {i}][hg_n * 2 + {j}]" for i in (0, 1) for j in (0, 1))
        parts = ", ".join([*(f"hg_a[hg_m][{i}]" for i in range(4)), *(f"hg_b[hg_n][{i}]" for i in range(2))])
        f.do(f"hg_mma_{self.kind}({sums}, {parts});")
        for _ in range(3):
            f.close()
        if self.paged:
            self._end_page()

    def _fragments(self, side: Side, panel: str, name: str, size: int, first: str, parts: list[str]) -> None:
        """Registers of two terms each; ``parts`` are terms and rows, or columns, from the item's first."""
        count = side.own // 2
        self.f.do(f"u32 {name}[{count}][{len(parts)}];")
        self._unrolled("hg_f", count)
        for i, (term, row) in enumerate(p.split(", ") for p in parts):
            at = self._panel_index(side, "hg_now", f"hg_k + {term}", f"{first} + hg_f * {size} + {row}")
            self.f.do(f"{name}[hg_f][{i}] = *(const u32 *)({panel} + {at});")
        self.f.close()
