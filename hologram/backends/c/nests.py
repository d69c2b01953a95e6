"""Nests of two loops of lanes as items write them: each has rows and columns of its own (:mod:`.analysis.tiles`).

Reductions of rows: an item reduces its own columns, and the sixteen items of a row then combine what they have, by exchanging registers where
subgroups can, else through shared memory. All of them end with the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hologram.backends.c.accumulators import Monoid
from hologram.backends.c.analysis.gemm import SIDE, Product, Side, integers_in
from hologram.backends.c.analysis.tiles import Nest
from hologram.backends.c.emitter import Emitter
from hologram.backends.c.scalars import memory_name, type_name
from hologram.graph.bounded import Worklist
from hologram.graph.kernel.ir import Store, Value
from hologram.ir.instruction import Ins


class NestWriter:
    """What the writers of nests and of products have in common. ``distances``: between items of a row that exchange what they have; ``first``:
    which of them writes what is the row's."""

    distances: tuple[int, ...] = (8, 4, 2, 1)
    first = "hg_across == 0"

    def __init__(self, writer: Emitter, p: Nest | Product) -> None:
        self.w, self.f = writer, writer.f
        self.nest = p
        self.own_columns = (0, p.columns.own)  # those of the item that are written: all, or some at a time

    def _declare_items(self) -> None:
        """Where the item's rows and columns are in the block."""
        self.f.do(f"const int hg_row = (int)hg_item / {SIDE}, hg_across = (int)hg_item % {SIDE};")

    def _start(self, side: Side, name: str) -> None:
        """The first row, or column, of the block."""
        self.f.do(f"const i64 {name} = {self.w.integer(side.loop.start)};")

    def _own_place(self, side: Side, item: str, k: str) -> str:
        """The ``k``-th of an item's rows or columns in the block."""
        return side.place(item, k)

    def _unrolled(self, name: str, count: int) -> None:
        self.w.unroll()
        self.f.open(f"for (int {name} = 0; {name} < {count}; ++{name})")

    def _each_column(self, together: int = 1) -> None:
        """For each of the item's columns, so many at a time."""
        first, last = (n // together for n in self.own_columns)
        self.w.unroll()
        self.f.open(f"for (int hg_n = {first}; hg_n < {last}; ++hg_n)")

    @contextmanager
    def _elements(self) -> Iterator[None]:
        """For each of the item's elements."""
        self._unrolled("hg_m", self.nest.rows.own)
        self._each_column()
        yield
        self.f.close()
        self.f.close()

    def _place_row(self) -> None:
        """Of rows that are not there ``hg_r`` is the last that is: what a row needs is read outside of conditions, which compare ``hg_row_at``."""
        own = f"hg_row0 + {self._own_place(self.nest.rows, 'hg_row', 'hg_m')}"
        limit = self.nest.rows.loop.limit
        if limit is None:
            self.f.do(f"const i64 hg_r = {own};")
            return
        last = self.w.integer(limit - 1)
        self.f.do(f"const i64 hg_row_at = {own}, hg_r = hg_row_at < {last} ? hg_row_at : {last};")

    def _place_column(self) -> None:
        self.f.do(f"const i64 hg_c = hg_column0 + {self._own_place(self.nest.columns, 'hg_across', 'hg_n')};")

    def _within(self, text: str, side: Side) -> list[str]:
        """The condition that a row or column is there, if some are not."""
        return [f"{text} < {self.w.integer(side.loop.limit)}"] if side.loop.limit is not None else []

    # --- instructions --------------------------------------------------------------------------------------------------

    def _loops(self) -> dict[str, str]:
        """The variables of the loops."""
        return {"row": self.nest.rows.loop.var, "column": self.nest.columns.loop.var}

    @contextmanager
    def _scope(self, **integers: str) -> Iterator[None]:
        """Loop variables have these texts, and what is computed is forgotten after it."""
        w, names = self.w, self._loops()
        env, known = dict(w.env), dict(w.integers)
        w.integers.update({names[k]: text for k, text in integers.items()})
        yield
        w.env, w.integers = env, known

    def _emit(self, wanted: list[Ins]) -> None:
        """Writes the instructions that ``wanted`` need, and they themselves, unless they have been."""
        needed = self._needed(wanted)
        for s in self.nest.order:
            if s in needed:
                self._instruction(s)

    def _instruction(self, s: Ins) -> None:
        self.w.instruction(s)

    def _needed(self, wanted: list[Ins]) -> set[Ins]:
        """``wanted`` and what they are computed from, but for what has been written."""
        local = set(self.nest.order) - self.w.env.keys()
        named = {s.name: s for s in self.nest.order if s.name}
        needed = Worklist[Ins]("nests", local.intersection(wanted))
        for v in needed:
            needed.add(local.intersection((*v.args, *(named[n] for n in integers_in(v) if n in named))))
        return needed.seen

    def _find_register_scratch(self) -> None:
        """Where the walk finds what the item holds, from now on in this scope."""
        in_registers = self.w.mapping.register_scratch
        loads = [s.attrs for s in self.nest.order if s.op == "load"]
        for buffer, index in [*loads, *((s.buffer, s.index) for s in self._stores())]:
            if buffer in in_registers:
                self.w.near[buffer, index] = buffer.name + ("[hg_m]" if len(in_registers[buffer]) == 1 else "[hg_m][hg_n]")

    def _stores(self) -> list[Store]:
        return self.nest.stores

    def _write(self, stores: list[Store]) -> None:
        """What is stored, and what it is computed from."""
        self._emit([v for s in stores for v in (s.value, s.mask) if isinstance(v, Ins)])
        for s in stores:
            self.w.store(s)


class ElementWriter(NestWriter):
    """Writes a nest without a product."""

    def __init__(self, writer: Emitter, p: Nest) -> None:
        super().__init__(writer, p)
        self.p = p
        self.monoids = [Monoid(a, writer.scalars) for a in p.accs]

    def _stores(self) -> list[Store]:
        return [*self.p.stores, *self.p.row_stores]

    def write(self) -> None:
        self.f.open("")
        self._declare_items()
        self._start(self.p.rows, "hg_row0")
        self._start(self.p.columns, "hg_column0")
        sums = {m: self.w.fresh("rows") for m in self.monoids}
        for m, name in sums.items():
            (kind,) = m.types
            self.f.do(f"{type_name(kind)} {name}[{self.p.rows.own}];")
        self._unrolled("hg_m", self.p.rows.own)
        with self._scope(row="hg_r"):
            self._place_row()
            self._find_register_scratch()
            for m, name in sums.items():
                self.f.do(f"{name}[hg_m] = {m.identity[0]};")
            self._columns(sums)
            if not sums:
                self._finish_row()
        self.f.close()
        if sums:
            self._combine(sums)
            self._unrolled("hg_m", self.p.rows.own)
            with self._scope(row="hg_r"):
                self._place_row()
                self._find_register_scratch()
                self.w.env.update({m.acc: f"{name}[hg_m]" for m, name in sums.items()})
                self._finish_row()
            self.f.close()
        self.w.near = {}
        self.f.close()

    def _columns(self, sums: dict[Monoid, str]) -> None:
        """The columns of a row."""
        p = self.p
        self._emit([s for s in p.rows.loop.body if isinstance(s, Ins) and not self._follows(s)])
        self._each_column()
        with self._scope(column="hg_c"):
            self._place_column()
            inside = [*self._within("hg_c", p.columns), *self._within("hg_row_at", p.rows)]
            for s in p.stores:
                if inside and s.buffer in self.w.mapping.fragments:  # what is not there counts as terms all the same
                    self.f.do(f"{self.w.near[s.buffer, s.index]} = 0;")
            self.f.open(f"if ({' && '.join(inside)})" if inside else "")
            self._emit([s for s in p.columns.loop.body if isinstance(s, Ins)])
            self.w.state.update({m.acc: [f"{name}[hg_m]"] for m, name in sums.items()})
            for a in p.accumulates:
                self.w.accumulate(a)
            self._write(p.stores)
            self.f.close()
        self.f.close()

    def _follows(self, s: Ins) -> bool:
        """Whether an instruction needs what reduces the row."""
        needed = Worklist[Value]("nests", [s])
        for v in needed:
            if v in self.p.accs:
                return True
            needed.add(v.args if isinstance(v, Ins) else ())
        return False

    def _finish_row(self) -> None:
        """What is stored of a row: by all its items what they hold, by one what is in memory."""
        stores = self.p.row_stores
        self._emit([v for s in stores for v in (s.value, s.mask) if isinstance(v, Ins)])
        for s in stores:
            if (s.buffer, s.index) in self.w.near:
                self.w.store(s)
                continue
            self.f.open(f"if ({' && '.join([self.first, *self._within('hg_row_at', self.p.rows)])})")
            self.w.store(s)
            self.f.close()

    # --- reductions ----------------------------------------------------------------------------------------------------

    def _combine(self, sums: dict[Monoid, str]) -> None:
        """What the items of a row have, together."""
        for m, name in sums.items():
            (by_subgroups if self.w.dialect.subgroup_barrier is not None else by_memory)(self, m, name)


def by_subgroups(writer: ElementWriter, m: Monoid, name: str) -> None:
    """By exchanges between neighbours, then between pairs of them, and so on: both partners combine the same two values."""
    (kind,) = m.types
    for distance in writer.distances:
        writer._unrolled("hg_m", writer.p.rows.own)
        writer.f.do(f"const {type_name(kind)} hg_other = hg_swap({name}[hg_m], {distance});")
        writer.f.do(m.combine([f"{name}[hg_m]"], [f"{name}[hg_m]"], ["hg_other"]))
        writer.f.close()


def by_memory(writer: ElementWriter, m: Monoid, name: str) -> None:
    """Through shared memory, in the order of the items."""
    (kind,), rows, f = m.types, writer.p.rows, writer.f
    shared = writer.w.shared_array(memory_name(kind), "rows", SIDE * rows.size)
    writer.w.barrier()
    writer._unrolled("hg_m", rows.own)
    f.do(f"{shared}[hg_across * {rows.size} + {writer._own_place(rows, 'hg_row', 'hg_m')}] = {name}[hg_m];")
    f.close()
    writer.w.barrier()
    writer._unrolled("hg_m", rows.own)
    f.do(f"{name}[hg_m] = {m.identity[0]};")
    f.open(f"for (int hg_i = 0; hg_i < {SIDE}; ++hg_i)")
    f.do(m.combine([f"{name}[hg_m]"], [f"{name}[hg_m]"], [f"{shared}[hg_i * {rows.size} + {writer._own_place(rows, 'hg_row', 'hg_m')}]"]))
    f.close()
    f.close()
