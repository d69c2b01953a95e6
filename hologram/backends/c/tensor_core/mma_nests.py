"""Kernels of tiles (:mod:`.tiles`) whose products matrix units multiply: each warp has 16 rows, all columns of them.

So the four items of a row reduce it, and what is made of the sums of one product, element by element, can be a factor of the next as it stands: the
layout of a fragment of sums, of two instructions side by side, is that of a fragment of 16-bit rows by terms (PTX ISA, ``mma.m16n8k16``).
"""

from __future__ import annotations

from hologram.backends.c.gemm_analysis import Product
from hologram.backends.c.tensor_core.mma import ROWS, WARPS, by_warps, on_matrix_units
from hologram.backends.c.tensor_core.mma_async_copy import DEPTH, is_fragment, shared_bytes, takes
from hologram.backends.c.tiles import Nest, Tiles, held_in, nests_of
from hologram.graph.kernel.ir import Kernel, Loop

SHARES = (WARPS, 1)
MAX_ITEM_REGISTERS = 224  # registers, of 4 bytes, that an item has for what it holds and for sums


def unit_tiles_of(kernel: Kernel) -> Tiles | None:
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
        if found is None or not takes(found) or (is_fragment(found.rows) and found.terms % DEPTH):
            return None
        nests[loop] = found
    products = [p for p in nests.values() if isinstance(p, Product)]
    loads = [p.rows.staged[0] for p in products if is_fragment(p.rows)]
    held = held_in(kernel, nests, loads)
    if not products or len(held) != len(kernel.scratch):
        return None
    dynamic = max(map(shared_bytes, products))
    tiles = Tiles(nests, held, 0, dynamic, frozenset(s.attrs[0] for s in loads), dynamic)
    return tiles if tiles.registers <= MAX_ITEM_REGISTERS else None
