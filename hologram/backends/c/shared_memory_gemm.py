"""Products by panels: a loop of lanes down the rows and one across the columns of a parallel iteration, with a serial loop inside.

What only rows and the serial loop determine (one factor, with all that is computed from it before the product), and what only columns and the serial
loop determine, is brought to shared memory a panel of ``depth`` terms at a time, while the panel before it is used: two buffers, one barrier. An item
keeps the sums of its own rows and columns in registers, adds terms in the canonical order, and finishes its elements (the epilogue) when all are
there.
"""

from __future__ import annotations

from hologram.backends.c.accumulators import Monoid
from hologram.backends.c.analysis.gemm import ITEMS, PAD, SIDE, VECTOR, Product, Side
from hologram.backends.c.analysis.vectors import divides
from hologram.backends.c.emitter import Emitter
from hologram.backends.c.nests import NestWriter
from hologram.backends.c.scalars import memory_name, type_name
from hologram.graph.kernel.ir import Accumulate
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Int, atoms, split_linear
from hologram.primitives.reductions import PAGE


class SharedMemoryGemmWriter(NestWriter):
    """Writes one product. ``there``: the text of how many terms there are; ``ragged``: whether the last panel may have fewer than others."""

    def __init__(self, writer: Emitter, p: Product) -> None:
        super().__init__(writer, p)
        self.p = p
        self.there = str(p.terms) if p.down.limit is None else "hg_there"
        self.ragged = p.down.limit is not None or p.terms % (p.depth or 1) != 0
        self.placed = 0  # bytes of panels that have a place in the memory that products share
        self.monoids = [Monoid(a, writer.scalars) for a in p.down.accs]
        self.sums = {m: f"hg_sum{i}" for i, m in enumerate(self.monoids)}
        self.paged = p.terms > PAGE

    def write(self) -> None:
        self._begin()
        for m in self.monoids:
            self._sums(m, "")
            if self.paged:
                self._sums(m, "_all")
        self._panels()
        self._finish("_all" if self.paged else "")
        self.w.near = {}
        self.f.close()

    def _begin(self) -> None:
        p, f = self.p, self.f
        f.open("")
        self._declare_items()
        if p.down.limit is not None:
            limit = self.w.integer(p.down.limit)
            f.do(f"const i64 hg_there = {limit} < {p.terms} ? {limit} : {p.terms};")
        for side, name in ((p.rows, "hg_row0"), (p.columns, "hg_column0")):
            self._start(side, name)
            self._declare(side, name)

    def _loops(self) -> dict[str, str]:
        return {**super()._loops(), "down": self.p.down.var}

    def _panel_index(self, side: Side, which: str, k: str, i: str) -> str:
        """Where term ``k`` of row or column ``i`` is in a panel, the first or the second."""
        return f"({which} * {self.p.depth} + {k}) * {side.size + PAD} + {i}"

    def _kept(self, value: str, near: bool) -> str:
        """What a panel has of a value, which may be beyond the last term; ``near``: it is ``hg_near`` terms from the first of a run."""
        return value

    # --- declarations --------------------------------------------------------------------------------------------------

    def _declare(self, side: Side, name: str) -> None:
        """Shared memory of a side's values, two panels each, and the registers in which they wait for it."""
        for i, v in enumerate(side.staged):
            kind, nbytes = memory_name(v.dtype), self._panel_elements(side) * v.dtype.itemsize
            if self.w.mapping.tiles is None:
                self.w.aligned_array(kind, f"{name}_panel{i}", nbytes)
            else:
                pointer = f"{self.w.dialect.local_pointer}{kind} *"
                self.f.do(f"{pointer}{name}_panel{i} = ({pointer})(hg_panels + {self.placed});")
                self.placed += nbytes
            self.f.do(f"{kind} {name}_next{i}[{self._per_item(side)}];")

    def _panel_elements(self, side: Side) -> int:
        """Of two panels, with what lies between rows."""
        return 2 * self.p.depth * (side.size + PAD)

    def _per_item(self, side: Side) -> int:
        """Elements of a panel that an item brings."""
        return max(1, side.size * self.p.depth // ITEMS)

    def _sums(self, m: Monoid, which: str) -> None:
        name, (kind,) = self.sums[m] + which, m.types
        self.f.do(f"{type_name(kind)} {name}[{self.p.rows.own}][{self.p.columns.own}];")
        with self._elements():
            self.f.do(f"{name}[hg_m][hg_n] = {m.identity[0]};")

    # --- panels --------------------------------------------------------------------------------------------------------

    def _panels(self) -> None:
        p, f, n = self.p, self.f, self.there
        more = f"hg_next < {n}"
        f.do("int hg_now = 0;")
        f.open(f"for (i64 hg_at = -{p.depth}; hg_at < {n}; hg_at += {p.depth})")
        f.do(f"const i64 hg_next = hg_at + {p.depth};")
        f.open(f"if ({more})")
        for side, name in ((p.rows, "hg_row0"), (p.columns, "hg_column0")):
            self._bring(side, name)
        f.close()
        f.open("if (hg_at >= 0)")
        self._add_terms()
        f.close()
        f.open(f"if ({more})")
        for side, name in ((p.rows, "hg_row0"), (p.columns, "hg_column0")):
            self._keep(side, name)
        f.close()
        self.w.barrier()
        f.do("hg_now ^= 1;")
        f.close()

    def _place_in_panel(self, side: Side, run: int) -> None:
        """The item's ``run`` elements, the first ``hg_k`` down and ``hg_i`` along the panel: neighbours in memory are neighbouring items'."""
        total = side.size * self.p.depth // run
        self.f.do(f"const int hg_e = (int)hg_item + {ITEMS} * hg_s{f' - (hg_item >= {total} ? {total} : 0)' if total < ITEMS else ''};")
        by_terms = self._is_down_first(side)
        across = (self.p.depth if by_terms else side.size) // run
        first, second = (f"hg_e % {across}{f' * {run}' if run > 1 else ''}", f"hg_e / {across}")
        k, i = (first, second) if by_terms else (second, first)
        self.f.do(f"const int hg_k = {k}, hg_i = {i};")

    def _run(self, side: Side) -> int:
        """Neighbours in memory that an item brings at a time: several where all that it reads of them lies so, whole and aligned."""
        by_terms = self._is_down_first(side)
        loop, count = (self.p.down, self.p.terms) if by_terms else (side.loop, side.size)
        whole = divides(VECTOR, count if loop.limit is None else loop.limit) and self._per_item(side) % VECTOR == 0
        return VECTOR if whole and all(self._lies(x, loop.var) for x in self._loads(side)) else 1

    def _lies(self, load: Ins, along: str) -> bool:
        """Whether neighbours along a loop are neighbours in memory, from a multiple of :data:`VECTOR` on, or one element."""
        split = split_linear(load.attrs[1], along) if not load.args else None
        return split is not None and (split[0] == 0 or (split[0] == 1 and divides(VECTOR, split[1])))

    def _loads(self, side: Side) -> list[Ins]:
        """What a side's values are made of, in memory."""
        needed = self._needed(side.staged)
        return [v for v in self.p.order if v in needed and v.op == "load"]

    def _is_down_first(self, side: Side) -> bool:
        """Whether elements next to each other in memory are terms, not rows or columns."""
        loads = [s for s in self.p.order if s.op == "load" and {a.name for a in atoms(s.attrs[1])} >= {side.loop.var, self.p.down.var}]
        steps = [split_linear(s.attrs[1], self.p.down.var) for s in loads]
        return any(step is not None and step[0] == 1 for step in steps)

    def _bring(self, side: Side, name: str) -> None:
        """Values of the next panel, into registers. Beyond the ends they are those at the ends, and not used."""
        run = self._run(side)
        self.w.unroll()
        self.f.open(f"for (int hg_s = 0; hg_s < {self._per_item(side) // run}; ++hg_s)")
        self._place_in_panel(side, run)
        by_terms = self._is_down_first(side)
        place = self._clamped(f"{name} + hg_i", side.loop.limit, 1 if by_terms else run)
        down = self._clamped("hg_next + hg_k", self.there if self.ragged else None, run if by_terms else 1)
        self.f.do(f"const i64 hg_place = {place}, hg_term = {down};")
        names = {"row" if side is self.p.rows else "column": "hg_place", "down": "hg_term"}
        if run > 1:
            self._read_runs(side, names)
            names[("row" if side is self.p.rows else "column") if not by_terms else "down"] = "hg_each"
            self._unrolled("hg_near", run)
            self.f.do(f"const i64 hg_each = {'hg_term' if by_terms else 'hg_place'} + hg_near;")
        with self._scope(**names):
            self._emit(side.staged)
            for i, v in enumerate(side.staged):
                self.f.do(f"{name}_next{i}[{f'hg_s * {run} + hg_near' if run > 1 else 'hg_s'}] = {self._kept(self.w.env[v], by_terms and run > 1)};")
        if run > 1:
            self.f.close()
            self.w.near = {}
        self.f.close()

    def _read_runs(self, side: Side, names: dict[str, str]) -> None:
        """Vectors of what lies in runs, and where the walk finds their elements."""
        along = self.p.down.var if self._is_down_first(side) else side.loop.var
        with self._scope(**names):
            for x in self._loads(side):
                buffer, index = x.attrs
                split = split_linear(index, along)
                if split is not None and split[0] == 1 and (buffer, index) not in self.w.near:
                    kind, v = self.w.scalars.vector(buffer.dtype, VECTOR), self.w.fresh("w")
                    self.f.do(f"const {kind} {v} = *({self.w.dialect.memory}const {kind} *)({buffer.name} + {self.w.integer(index)});")
                    self.w.near[buffer, index] = f"{v}.v[hg_near]"

    def _clamped(self, text: str, limit: Int | str | None, run: int) -> str:
        if limit is None:
            return text
        end = limit if isinstance(limit, str) else self.w.integer(limit)
        return f"{text} < {end} ? {text} : {end} - {run}"

    def _keep(self, side: Side, name: str) -> None:
        """The next panel, from registers into the shared memory that is free."""
        run = self._run(side)
        self.w.unroll()
        self.f.open(f"for (int hg_s = 0; hg_s < {self._per_item(side) // run}; ++hg_s)")
        self._place_in_panel(side, run)
        by_terms = self._is_down_first(side)
        self._unrolled("hg_near", run)
        k, i = ("hg_k + hg_near", "hg_i") if by_terms else ("hg_k", "hg_i + hg_near")
        for j in range(len(side.staged)):
            at = self._panel_index(side, "(hg_now ^ 1)", f"({k})", f"({i})")
            self.f.do(f"{name}_panel{j}[{at}] = {name}_next{j}[hg_s * {run} + hg_near];")
        self.f.close()
        self.f.close()

    def _add_terms(self) -> None:
        p, f, n = self.p, self.f, self.there
        end = str(p.depth)
        if self.ragged:
            f.do(f"const int hg_terms = {n} - hg_at < {p.depth} ? (int)({n} - hg_at) : {p.depth};")
            end = "hg_terms"
        self.w.unroll()
        f.open(f"for (int hg_k = 0; hg_k < {end}; ++hg_k)")
        f.do("const i64 hg_term = hg_at + hg_k;")
        self._read(p.rows, "hg_row0", "hg_row")
        self._read(p.columns, "hg_column0", "hg_across")
        with self._scope(**self._coordinates("hg_term")), self._elements():
            self._place()
            for side, name in ((p.rows, "hg_row0_own{}[hg_m]"), (p.columns, "hg_column0_own{}[hg_n]")):
                own = {v: name.format(i) for i, v in enumerate((*side.staged, *side.direct))}
                self.w.env.update({v: f"({text} != 0)" if v.dtype.kind == "b" else text for v, text in own.items()})
            accumulates = [s for s in p.down.body if isinstance(s, Accumulate)]
            self._emit([*p.core, *(a for s in accumulates for a in s.args if isinstance(a, Ins))])
            self.w.state.update({m.acc: [f"{self.sums[m]}[hg_m][hg_n]"] for m in self.monoids})
            for s in accumulates:
                self.w.accumulate(s)
        f.close()
        if self.paged:
            self._end_page()

    def _end_page(self) -> None:
        """After a page of terms its sums join those of the pages before."""
        self.f.open(f"if (hg_next % {PAGE} == 0 || hg_next >= {self.there})")
        with self._elements():
            for m in self.monoids:
                whole, part = (f"{self.sums[m]}{which}[hg_m][hg_n]" for which in ("_all", ""))
                self.f.do(m.combine([whole], [whole], [part]))
                self.f.do(f"{part} = {m.identity[0]};")
        self.f.close()

    def _read(self, side: Side, name: str, item: str) -> None:
        """What an item needs of the panel's row ``hg_k``, into registers, neighbours at one time."""
        d = self.w.dialect
        for i, v in enumerate((*side.staged, *side.direct)):
            kind = memory_name(v.dtype)
            at = f"{name}_panel{i} + (hg_now * {self.p.depth} + hg_k) * {side.size + PAD} + {item} * {side.run}"
            if v in side.direct:
                with self._scope(down="hg_term", **{"row" if side is self.p.rows else "column": f"({name} + {item} * {side.run})"}):
                    at = f"{v.attrs[0].name} + {self.w.integer(v.attrs[1])}"
            self.f.do(f"{kind} {name}_own{i}[{side.own}];")
            if side.run == 1:
                self.f.do(f"{name}_own{i}[0] = *({at});")
                continue
            vector = self.w.scalars.vector(v.dtype, side.run)
            self._unrolled("hg_v", side.own // side.run)
            self.f.do(f"const {vector} hg_own = *({d.local_pointer}const {vector} *)({at} + hg_v * {SIDE * side.run});")
            self._unrolled("hg_j", side.run)
            self.f.do(f"{name}_own{i}[hg_v * {side.run} + hg_j] = hg_own.v[hg_j];")
            self.f.close()
            self.f.close()

    # --- elements ------------------------------------------------------------------------------------------------------

    def _coordinates(self, down: str) -> dict[str, str]:
        return {"row": "hg_r", "column": "hg_c", "down": down}

    def _place(self) -> None:
        """The row and the column of an item's element."""
        row, column = self._own_place(self.p.rows, "hg_row", "hg_m"), self._own_place(self.p.columns, "hg_across", "hg_n")
        self.f.do(f"const i64 hg_r = hg_row0 + {row}, hg_c = hg_column0 + {column};")

    def _finish(self, which: str) -> None:
        p, f = self.p, self.f
        with self._scope(**self._coordinates("0")), self._elements():
            self._place()
            self._find_register_scratch()
            inside = [*self._within("hg_r", p.rows), *self._within("hg_c", p.columns)]
            f.open(f"if ({' && '.join(inside)})" if inside else "")
            self.w.env.update({m.acc: f"{self.sums[m]}{which}[hg_m][hg_n]" for m in self.monoids})
            self._write(p.stores)
            f.close()
