"""Which products matrix units (CUDA's ``mma.sync``) multiply, and how warps share a block of them.

Also kernels of tiles (:mod:`.tiles`) whose products are such: each warp has 16 rows, all columns of them. So the four items of a row reduce it, and
an elementwise function of the sums of one product can be a factor of the next as it stands: the fragments of sums of two neighbouring instructions
have the layout of one fragment of 16-bit rows by terms (PTX ISA, ``mma.m16n8k16``).
"""

from __future__ import annotations

from hologram import dtypes
from hologram.backends.c.analysis.gemm import ITEMS, Product, Side, in_shared_memory, product
from hologram.backends.c.analysis.tiles import Nest, Tiles, inner_lanes, nests_of, register_scratch_of
from hologram.graph.kernel.ir import Accumulate, Kernel, Loop, float16_factors
from hologram.ir.op import TABLE
from hologram.primitives.scalar.elementwise import PRODUCTS

ROWS, COLUMNS = 16, 8  # of an instruction
WARPS = ITEMS // 32
KINDS = {dtypes.bfloat16: ("bf16", 16), dtypes.float16: ("f16", 16), dtypes.float32: ("tf32", 8)}  # the instruction's name of a type, and its terms
TF32_DEPTH = 16  # terms of a panel of TF32
APART = 4  # between rows of such a panel, so that the eight rows of a fragment lie in different banks
F16_DEPTH = 32  # terms of a panel of 16-bit floats
STAGES = 4  # panels of 16-bit floats under way and in use
SHARES = (WARPS, 1)
MAX_REGISTERS = 224  # registers, of 4 bytes, that an item has for what it holds and for sums


def on_matrix_units(p: Product, tf32: bool, shares: tuple[int, int] | None = None) -> Product | None:
    """The product with panels of its 16-bit factors, if all it sums is products of two such that were made float32; or of float32, if ``tf32``.
    ``shares``: how warps share a block, if that is decided."""
    accumulates = [s for s in p.down.body if isinstance(s, Accumulate)]
    rows, columns, shares = p.rows.staged, p.columns.staged, shares or warps(p.rows.size, p.columns.size)
    if len(accumulates) != 1 or len(p.core) != 1 or len(rows) != 1 or len(columns) != 1 or shares is None:
        return None
    (sum_of,), row = accumulates[0].args, accumulates[0].acc.op
    if sum_of is not p.core[0] or p.core[0].op not in PRODUCTS or row.monoid is not TABLE["add"]:
        return None
    if set(p.core[0].args) != {rows[0], columns[0]}:
        return None
    factors = [rows[0], columns[0]]
    narrow = float16_factors(p.core[0])
    if narrow is not None:
        factors = [f.args[0] for f in factors]
    elif not (tf32 and p.core[0].dtype is dtypes.float32):
        return None
    sides = [s._replace(staged=[f]) for s, f in zip(by_warps(p.rows, p.columns, shares), factors, strict=True)]
    return p._replace(rows=sides[0], columns=sides[1], depth=TF32_DEPTH, shares=shares)


def by_warps(rows: Side, columns: Side, shares: tuple[int, int]) -> tuple[Side, Side]:
    """How many an item has of them."""
    return rows._replace(own=rows.size // shares[0] // 8), columns._replace(own=columns.size // shares[1] // COLUMNS * 2)


def warps(rows: int, columns: int) -> tuple[int, int] | None:
    """How the warps of a group share a block, down and across, with as few terms to read for each as can be; None where it is too small for them."""
    shares = [(down, WARPS // down) for down in (1, 2, 4, 8)]
    whole = [(d, a) for d, a in shares if rows % (d * ROWS) == 0 and columns % (a * COLUMNS) == 0]
    return min(whole, key=lambda s: rows // s[0] + columns // s[1], default=None)


def is_f16(p: Product) -> bool:
    """Whether a product on matrix units is of 16-bit floats."""
    return p.rows.staged[0].dtype.is_16bit_float


def f16_panel_bytes(p: Product) -> int:
    """Of all panels of a group."""
    return STAGES * F16_DEPTH * sum(side.size for side in (p.rows, p.columns) if not is_fragment(side)) * 2


def tf32_panel_bytes(side: Side) -> int:
    """Of two panels of TF32."""
    return 2 * side.size * (TF32_DEPTH + APART) * side.staged[0].dtype.itemsize


def products_of(kernel: Kernel, local_bytes: int, units: bool, tf32: bool) -> Tiles | None:
    """Of a kernel of several nests, of which a call runs one by its sizes: the products among them, each with panels of its own in the same shared
    memory, on matrix ``units`` where these multiply it. None where there are none, or one of them has no panels."""
    loops = [s for s in kernel.walk() if isinstance(s, Loop) and inner_lanes(s) is not None]
    if not loops or kernel.scratch:
        return None
    nests: dict[Loop, Product | Nest] = {}
    panels = dynamic = 0
    for loop in loops:
        p = product(loop)
        found = p and ((on_matrix_units(p, tf32) if units else None) or in_shared_memory(p, local_bytes))
        if not found:
            return None
        nests[loop] = found
        if found.shares is not None and is_f16(found):
            dynamic = max(dynamic, f16_panel_bytes(found))
        else:
            own = found.local if found.shares is None else sum(map(tf32_panel_bytes, (found.rows, found.columns)))
            panels = max(panels, own)
    return Tiles(nests, {}, panels, panels + dynamic, frozenset(), dynamic)


def is_fragment(side: Side) -> bool:
    """Whether items have a side's values in registers, as sums of another product are."""
    (v,) = side.staged
    return v.op == "load" and v.attrs[0].role == "scratch"


def mma_tiles_of(kernel: Kernel) -> Tiles | None:
    """What warps make of a kernel's nests; None where it has none, or matrix units cannot multiply all of its products."""
    nests: dict[Loop, Product | Nest] = {}
    for loop, p in (nests_of(kernel) or {}).items():
        if p.rows.size != WARPS * ROWS:
            return None
        if isinstance(p, Nest):
            rows, columns = by_warps(p.rows, p.columns, SHARES)
            nests[loop] = p._replace(rows=rows, columns=columns, shares=SHARES)
            continue
        found = on_matrix_units(p, False, SHARES)
        if found is None or not is_f16(found) or (is_fragment(found.rows) and found.terms % F16_DEPTH):
            return None
        nests[loop] = found
    products = [p for p in nests.values() if isinstance(p, Product)]
    loads = [p.rows.staged[0] for p in products if is_fragment(p.rows)]
    in_registers = register_scratch_of(kernel, nests, loads)
    if not products or len(in_registers) != len(kernel.scratch):
        return None
    dynamic = max(map(f16_panel_bytes, products))
    tiles = Tiles(nests, in_registers, 0, dynamic, frozenset(s.attrs[0] for s in loads), dynamic)
    return tiles if tiles.registers <= MAX_REGISTERS else None
