"""Kernels of tiles: which nests of two loops of lanes a kernel has, and what an item keeps of them in registers.

A nest's rows and columns are dealt out to 16 x 16 items, the same ones in every nest of the kernel. So scratch that nests alone access, each element
at its own row and column, or each at its own row, need not be shared: it is *register scratch*, in registers of the item that has the element. Values
of rows are kept by all sixteen items of a row.

A nest is a product (:class:`~.products.Product`), or element-wise (:class:`Nest`) with at most one reduction of each row, which its items combine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from hologram.backends.c.analysis.gemm import DEPTHS, SIDE, Product, Side, product
from hologram.graph.kernel.ir import Acc, Accumulate, Buffer, Kernel, Loop, Stmt, Store
from hologram.graph.schedule.tiles import MAX_ITEM_REGISTERS
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Int, split_linear


class Nest(NamedTuple):
    """Lanes in lanes. ``order`` is all instructions; ``accs`` reduce the columns of a row, and ``row_stores`` follow them. ``shares``: as products
    have it."""

    rows: Side
    columns: Side
    order: list[Ins]
    accs: list[Acc]
    accumulates: list[Accumulate]
    stores: list[Store]
    row_stores: list[Store]
    shares: tuple[int, int] | None = None


class Tiles(NamedTuple):
    """``nests`` by their loop of rows. ``register_scratch``: the registers of each buffer, of own rows, or of own rows and own columns; of these,
    ``fragments`` are factors of products on matrix units. ``panels``: bytes of those of products, which reuse it. ``local``: bytes of all
    shared memory, ``dynamic``: of what the launch has to supply."""

    nests: dict[Loop, Product | Nest]
    register_scratch: dict[Buffer, tuple[int, ...]]
    panels: int
    local: int
    fragments: frozenset[Buffer] = frozenset()
    dynamic: int = 0

    @property
    def registers(self) -> int:
        """Of an item, of 4 bytes, for what it holds and for the sums of the largest product."""
        own = sum(-(-math.prod(shape) * b.dtype.itemsize // 4) for b, shape in self.register_scratch.items())
        return own + max((p.registers if p.shares is None else p.sums for p in self.nests.values() if isinstance(p, Product)), default=0)


def nests_of(kernel: Kernel) -> dict[Loop, Product | Nest] | None:
    """The nests of a kernel that has scratch; None where one of them is something else."""
    nests: dict[Loop, Product | Nest] = {}
    for loop in [s for s in kernel.walk() if isinstance(s, Loop) and inner_lanes(s) is not None] if kernel.scratch else ():
        found = product(loop) or _nest(loop)
        if found is None or not all(side.size % SIDE == 0 for side in (found.rows, found.columns)):
            return None
        nests[loop] = found
    return nests


def tiles_of(kernel: Kernel, local_bytes: int, by_subgroups: bool) -> Tiles | None:
    """What 16 x 16 items make of a kernel's nests; None where it has none, or some that items cannot share so. ``by_subgroups``: rows are reduced by
    exchanges in subgroups."""
    nests = nests_of(kernel)
    if not nests:
        return None
    in_registers = register_scratch_of(kernel, nests)
    rows = [SIDE * p.rows.size * a.value_dtype.itemsize for p in nests.values() if isinstance(p, Nest) for a in p.accs]
    taken = sum(shared_bytes(b) for b in kernel.scratch if b not in in_registers) + (0 if by_subgroups else max(rows, default=0))
    for loop, p in nests.items():
        if isinstance(p, Product):
            depth = next((d for d in DEPTHS if taken + p.panel_bytes(d) <= local_bytes), None)
            if depth is None:
                return None
            nests[loop] = p._replace(depth=depth)
    panels = max((p.local for p in nests.values() if isinstance(p, Product)), default=0)
    tiles = Tiles(nests, in_registers, panels, taken + panels)
    return tiles if tiles.local <= local_bytes and tiles.registers <= MAX_ITEM_REGISTERS else None


def shared_bytes(b: Buffer) -> int:
    """Of scratch, as far as what follows it is aligned."""
    return -(-int(b.size) * b.dtype.itemsize // 64) * 64


def inner_lanes(loop: Loop) -> Loop | None:
    """The loop of lanes in a loop of lanes."""
    inner = [s for s in loop.body if isinstance(s, Loop)] if loop.kind == "lanes" else []
    return inner[0] if len(inner) == 1 and inner[0].kind == "lanes" else None


def _nest(rows: Loop) -> Nest | None:
    columns = inner_lanes(rows)
    assert columns is not None
    plain = all(a.op.kind == "reduce" and a.op.monoid is not None for a in columns.accs)
    if not plain or any(isinstance(s, Loop) or (isinstance(s, Ins) and s.op == "scan") for s in columns.body):
        return None
    sides = []
    for loop in (rows, columns):
        if not isinstance(loop.extent, int):
            return None
        sides.append(Side(loop, loop.extent, loop.extent // SIDE))
    order = [s for loop in (rows, columns) for s in loop.body if isinstance(s, Ins)]
    accumulates = [s for s in columns.body if isinstance(s, Accumulate)]
    stores, row_stores = ([s for s in loop.body if isinstance(s, Store)] for loop in (columns, rows))
    return Nest(sides[0], sides[1], order, columns.accs, accumulates, stores, row_stores)


def _accesses(body: list[Stmt], b: Buffer) -> list[Int]:
    """The indices of a buffer in statements of a list, but for those that are masked."""
    stores = [s.index for s in body if isinstance(s, Store) and s.buffer is b]
    return stores + [s.attrs[1] for s in body if isinstance(s, Ins) and s.op == "load" and not s.args and s.attrs[0] is b]


def register_scratch_of(kernel: Kernel, nests: dict[Loop, Product | Nest], fragments: Sequence[Ins] = ()) -> dict[Buffer, tuple[int, ...]]:
    """Scratch whose every access is in a nest, at the item's own place there. ``fragments``: loads by other items that have a way of their own, if
    they are of the same elements."""
    everything = list(kernel.walk())
    out: dict[Buffer, tuple[int, ...]] = {}
    for b in kernel.scratch:
        found = [
            (p, wide, e) for p in nests.values() for loop, wide in ((p.rows.loop, False), (p.columns.loop, True)) for e in _accesses(loop.body, b)
        ]
        touched = sum((isinstance(s, Store) and s.buffer is b) or (isinstance(s, Ins) and s.op == "load" and s.attrs[0] is b) for s in everything)
        apart = [s.attrs[1] for s in fragments if s.attrs[0] is b]
        shapes = {_own(e, p, wide) for p, wide, e in found}
        if len(found) + len(apart) == touched and len(shapes) == 1 and None not in shapes and all(e == at for *_, e in found for at in apart):
            ((shape, _),) = shapes  # type: ignore[misc]
            out[b] = shape
    return out


def _own(index: Int, p: Product | Nest, wide: bool) -> tuple[tuple[int, ...], Int] | None:
    """The registers for elements of which this is the index, and the distance of rows; None unless it is one of a row, or of a row and a column."""
    row = split_linear(index, p.rows.loop.var)
    if row == (1, 0):
        return (p.rows.own,), 1
    column = split_linear(row[1], p.columns.loop.var) if row is not None and wide else None
    if row is None or column is None or column[1] != 0 or not (isinstance(row[0], int) and isinstance(column[0], int)):
        return None
    apart = (row[0] >= p.columns.size and column[0] == 1) or (column[0] >= p.rows.size and row[0] == 1)
    return ((p.rows.own, p.columns.own), row[0]) if apart else None
