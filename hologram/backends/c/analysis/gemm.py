"""Which kernels are products, for :mod:`hologram.backends.c.shared_memory_gemm`.

A product is a loop of lanes down the rows and one across the columns of a parallel iteration, with a serial loop inside. Some of what it computes
only rows and terms determine (one factor, with all that is computed from it before the product), and some only columns and terms.
"""

from __future__ import annotations

from typing import NamedTuple

from hologram.backends.c.analysis.vectors import divides
from hologram.graph.kernel.ir import Acc, Accumulate, Kernel, Loop, Store
from hologram.graph.schedule.tiles import PAD, SIDE, GpuTileConfig
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Expr, atoms, split_linear
from hologram.primitives.reductions import PAGE

ITEMS = SIDE * SIDE
GPU_TILE = GpuTileConfig(128, 128)  # of float32: what registers hold of sums
MATRIX_UNIT_TILE = GpuTileConfig(128, 128, (128, 256), (128, 64), 48 * 1024)  # matrix units multiply 16-bit floats, whose factors need no registers
DEPTHS = (16, 8, 4)  # terms of a panel: as many as shared memory holds
MAX_SUM_REGISTERS = 128  # registers, of 4 bytes, that an item keeps sums in
VECTOR = 4  # neighbouring rows or columns that an item reads from shared memory at one time


class Side(NamedTuple):
    """Rows or columns: their loop, how many a parallel iteration and an item has, the values of a panel, and those that stand in shared memory as in
    one."""

    loop: Loop
    size: int
    own: int
    staged: list[Ins] = []  # noqa: RUF012  # never changed
    direct: list[Ins] = []  # noqa: RUF012

    @property
    def run(self) -> int:
        """Neighbours that an item has at a time."""
        return min(VECTOR, self.own)

    def nbytes(self, depth: int) -> int:
        """Of two panels."""
        return 2 * sum(v.dtype.itemsize * depth * (self.size + PAD) for v in self.staged)

    def place(self, item: str, k: str) -> str:
        """The ``k``-th of an item's rows or columns."""
        if self.own == self.run:
            return f"{item} * {self.run} + {k}"
        return f"{k} / {self.run} * {SIDE * self.run} + {item} * {self.run} + {k} % {self.run}"


class Product(NamedTuple):
    """What the loops of a product hold: ``order`` is all instructions, ``core`` those that every term needs; a panel has ``depth`` terms. ``shares``:
    how warps share the block, down and across, on matrix units."""

    rows: Side
    columns: Side
    down: Loop
    terms: int
    order: list[Ins]
    core: list[Ins]
    stores: list[Store]
    depth: int = 0
    shares: tuple[int, int] | None = None

    @property
    def sums(self) -> int:
        """Registers of 4 bytes in which an item keeps the sums of a page."""
        return self.rows.size * self.columns.size // ITEMS * sum(-(-a.value_dtype.itemsize // 4) for a in self.down.accs)

    @property
    def registers(self) -> int:
        """In which an item keeps sums: those of a page, and those of the pages before."""
        return self.sums * (2 if self.terms > PAGE else 1)

    def panel_bytes(self, depth: int) -> int:
        """Of shared memory, for panels of so many terms."""
        return self.rows.nbytes(depth) + self.columns.nbytes(depth)

    @property
    def local(self) -> int:
        """Bytes of shared memory."""
        return self.panel_bytes(self.depth)


def product_of(kernel: Kernel) -> Product | None:
    """The one product that the kernel is, or None; whether a group can have it by panels, :func:`in_shared_memory` says."""
    loops = [s for s in kernel.body if isinstance(s, Loop)]
    nested = [s for s in loops[0].body if isinstance(s, Loop)] if len(loops) == 1 else []
    if len(nested) != 1 or kernel.scratch or any(isinstance(s, Store) for s in loops[0].body):
        return None
    return product(nested[0])


def product(rows: Loop) -> Product | None:
    """The product that a loop of lanes is, if that is what it holds."""
    columns = _only_loop(rows)
    down = _only_loop(columns) if columns is not None and rows.kind == columns.kind == "lanes" else None
    if columns is None or down is None or down.kind != "serial" or not down.accs or any(isinstance(s, Store) for s in (*rows.body, *down.body)):
        return None
    order = [s for loop in (rows, columns, down) for s in loop.body if isinstance(s, Ins)]
    plain = all(a.op.kind == "reduce" and a.op.monoid is not None for a in down.accs) and not any(s.op == "scan" for s in order)
    if not plain or down.start != 0 or not isinstance(down.extent, int) or down.extent > PAGE**2:
        return None
    depends = _dependences(order, down.accs, (rows.var, columns.var, down.var))
    terms = [s for s in down.body if isinstance(s, Ins)]
    core = [s for s in terms if {rows.var, columns.var} <= depends[s]]
    users: list[Ins | Accumulate] = [*core, *(s for s in down.body if isinstance(s, Accumulate))]
    wanted = [a for s in users for a in s.args]
    sides = [_side(loop, other, wanted, depends, terms) for loop, other in ((rows, columns), (columns, rows))]
    if not all(side.staged or side.direct for side in sides):
        return None
    stores = [s for s in columns.body if isinstance(s, Store)]
    return Product(sides[0], sides[1], down, down.extent, order, core, stores)


def in_shared_memory(p: Product, local_bytes: int) -> Product | None:
    """With as many terms a panel as a group may share memory for, if an item has registers for its sums."""
    depth = next((d for d in DEPTHS if p.panel_bytes(d) <= local_bytes), None)
    return p._replace(depth=depth) if depth is not None and p.registers <= MAX_SUM_REGISTERS else None


def resident(registers: int) -> int:
    """Groups of a unit whose items keep sums in so many: two, where there are enough, so that one computes while the other waits."""
    return 2 if registers <= MAX_SUM_REGISTERS // 2 else 1


def _only_loop(loop: Loop) -> Loop | None:
    inner = [s for s in loop.body if isinstance(s, Loop)]
    return inner[0] if len(inner) == 1 else None


def _side(loop: Loop, other: Loop, wanted: list[Ins | Acc], depends: dict[Ins | Acc, set[str]], terms: list[Ins]) -> Side:
    size = loop.extent
    assert isinstance(size, int)
    found = [v for v in dict.fromkeys(wanted) if v in terms and loop.var in depends[v] and other.var not in depends[v]]
    direct = [v for v in found if isinstance(v, Ins) and _stands(v, loop)]
    return Side(loop, size, size // SIDE, [v for v in found if v not in direct], direct)


def _stands(v: Ins, loop: Loop) -> bool:
    """Whether a value stands in scratch, contiguous along the loop and aligned."""
    if v.op != "load" or v.args or v.attrs[0].role != "scratch":
        return False
    split = split_linear(v.attrs[1], loop.var)
    return split is not None and split[0] == 1 and divides(VECTOR, split[1])


def _dependences(order: list[Ins], accs: list[Acc], names: tuple[str, ...]) -> dict[Ins | Acc, set[str]]:
    """Which of the loop variables ``names`` each instruction needs."""
    out: dict[Ins | Acc, set[str]] = {a: set(names) for a in accs}
    named = {s.name: s for s in order if s.name}
    for s in order:
        own = integers_in(s)
        through = [named[n] for n in own if n in named]
        out[s] = (own & set(names)).union(*(out.get(a, set()) for a in (*s.args, *through)))
    return out


def integers_in(s: Ins) -> set[str]:
    """The names of the integers in an instruction's index expressions."""
    return {a.name for e in s.attrs if isinstance(e, Expr) for a in atoms(e)}
