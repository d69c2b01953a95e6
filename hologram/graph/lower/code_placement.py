"""Code placement: instructions are placed in the loops of a nest, pass by pass (the third step of :mod:`hologram.graph.lower.group`)."""

from __future__ import annotations

from typing import Any

from hologram import dtypes
from hologram.graph.fusion.groups import Group
from hologram.graph.kernel.ir import Acc, Accumulate, Buffer, Kernel, Loop, Store, Value, integers_of, is_fused_product
from hologram.graph.lower.lowered import Lowered, in_place_pairs
from hologram.graph.lower.masked_ranges import narrow_range
from hologram.graph.lower.masked_rows import skip_masked_rows
from hologram.graph.lower.page_ends import trim_page
from hologram.graph.lower.prefetch import prefetch_down, prefetch_next_row
from hologram.graph.lower.row_copies import RowCopies
from hologram.graph.lower.row_panels import RowPanels
from hologram.graph.lower.scalarize import PendingStore, ScalarProgram
from hologram.graph.schedule import epilogue
from hologram.graph.schedule.epilogue import Epilogue
from hologram.graph.schedule.nest import Nest
from hologram.graph.schedule.row_blocked_reduce import RowBlockedReduce
from hologram.graph.schedule.tiles import PACK_BYTES
from hologram.graph.schedule.unroll import unroll
from hologram.ir.instruction import Ins
from hologram.ir.op import TABLE
from hologram.ir.symbolic import Expr, Int, atoms, is_static, prod, substitute, var
from hologram.ir.traversal import reachable
from hologram.primitives.reductions import PAGE

KEEP_COST = 8  # an instruction this expensive is kept in scratch rather than computed in two passes
MAX_KEPT_BYTES = 24 * 12288  # of scratch, for values that a later pass reads: 24 pages, which stay in the first caches
TOP = 0  # level of what no loop variable touches


def is_guard(v: Value) -> bool:
    """Whether a value says where indices are inside of an array. It is computed wherever it is needed: from scratch it would prove nothing."""
    return isinstance(v, Ins) and (v.op == "inside" or v.dtype.kind == "b" and bool(v.args) and all(map(is_guard, v.args)))


class Renamed(dict[Value, Value]):
    """What values have become in a pass that computes them again. ``names``: of those that index expressions go through, the old and the new."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, str] = {}

    def index(self, x: Any) -> Any:
        """An index expression with the names that values have in this pass; any other attribute as it is."""
        if not isinstance(x, Expr) or not self.names:
            return x
        return substitute(x, {a.name: var(self.names[a.name], a.low, a.high) for a in atoms(x) if a.name in self.names})

    def changes(self, v: Ins) -> bool:
        """Whether an instruction reads what has become something else."""
        return any(self.get(a, a) is not a for a in v.args) or any(self.index(x) != x for x in v.attrs)


class CodePlacement:
    """Places instructions in loops, pass by pass."""

    def __init__(self, group: Group, values: ScalarProgram, stores: list[PendingStore], nest: Nest, precision: str, prefetched: int) -> None:
        self.group, self.values, self.nest, self.precision, self.prefetched = group, values, nest, precision, prefetched
        self.kernel = Kernel()
        self.stores = [PendingStore(w.buffer, nest.rewrite(w.index), w.value, w.mask) for w in stores]
        self.order = values.order
        for v in self.order:
            if isinstance(v, Ins):
                self._rewrite(v)
        self.element_level = nest.element_level
        self.row_level = nest.element_level - 1
        self.row_start: list[Ins] = []
        self.of_row: set[Value] = set()
        self.packed: set[Value] = set()
        self.row_panels: RowPanels | None = None
        self.epilogue: Epilogue | None = None
        if nest.rows_at_once > 1:
            if not nest.row_starts:
                self._tile()
            copies = self._copy_rows()
        self.row_blocked: RowBlockedReduce | None = None
        if nest.row_blocked:
            self.row_blocked = RowBlockedReduce(values.accumulates, self.stores, nest)
            self.order = [*(v for v in self.order if isinstance(v, Ins)), *self.row_blocked.order]
            self.stores = self.row_blocked.writes
        for v in self.order:
            self._annotate(v)
        if nest.packs:
            self.packed = self._shared_by_rows()
        if nest.row_panel is not None:
            self.row_panels = RowPanels(self.order, values, nest, copies)

    def _tile(self) -> None:
        """Several rows per parallel iteration that share reads: they start at a value of its own."""
        nest = self.nest
        first = Ins.index(nest.row)
        last = Ins.const(nest.last_row, dtypes.int64) if isinstance(nest.last_row, int) else Ins.index(nest.last_row)
        start = Ins(TABLE["min"], (first, last), (), dtypes.int64)
        start.name, start.extent = "row", nest.last_row + 1
        self.row_start = [first, last, start]
        self.epilogue = epilogue.find_epilogue(self.order, self.stores, nest)
        if self.epilogue is not None:
            self.order = [v for v in self.order if v in self._of_sums()]

    def _copy_rows(self) -> RowCopies:
        """Several rows per parallel iteration: what depends on the row is there once for each, the rest once."""
        copies = RowCopies(self.values, self.nest)
        self.order, self.of_row = copies.repeat(self.order), copies.of_row
        self.stores = copies.stores(self.stores) if self.epilogue is None else self.epilogue.keep(copies.copies)
        return copies

    def _of_sums(self) -> set[Value]:
        """What a tile's sums are made of, and they themselves."""
        accs = self.values.accumulates
        return {*accs, *epilogue.dependencies([a for args in accs.values() for a in args])}

    def _shared_by_rows(self) -> set[Value]:
        """What rows share and read again and again: kept in scratch for the rows of a parallel iteration, if the kernel makes one pass."""
        if any(isinstance(v, Acc) and v.stage > 1 for v in self.order):
            return set()
        users = [a for v in self.order if isinstance(v, Ins) and v in self.of_row for a in v.args]
        users += [f for args in self.values.accumulates.values() for a in args for f in (a.args if is_fused_product(a) else (a,))]
        inner = [v for v in dict.fromkeys(users) if isinstance(v, Ins) and v.level == self.element_level and v not in self.of_row]
        shared = [v for v in inner if not is_guard(v)]
        nbytes = sum(v.dtype.itemsize for v in shared) * self.nest.scratch_size
        return set(shared) if isinstance(nbytes, int) and nbytes <= PACK_BYTES else set()

    def _pack(self) -> list[Any]:
        """The loops that fill scratch with what the rows share."""
        down, across = self.nest.pack_loops()
        needed = {v for v in reachable(self.packed, lambda v: v.args if isinstance(v, Ins) and v.level > 1 else ()) if v.level > 1}
        renamed = Renamed()
        for v in self.order:
            if v in needed and isinstance(v, Ins):
                copy = renamed[v] = self._copy(v, renamed)
                across.body.append(copy)
                if v in self.packed:
                    across.body.append(Store(self._scratch(v), self.nest.scratch_index, copy))
        down.body.append(across)
        return [down]

    def _rewrite(self, ins: Ins) -> None:
        if ins.op == "load":
            ins.attrs = (ins.attrs[0], self.nest.rewrite(ins.attrs[1]))
        elif ins.op == "index":
            ins.attrs = (self.nest.rewrite(ins.attrs[0]),)
        elif ins.op == "inside":
            ins.attrs = (self.nest.rewrite(ins.attrs[0]), ins.attrs[1])

    def _annotate(self, v: Value) -> None:
        """``level``: the loop whose variables it needs; ``stage``: the pass after which its inputs are complete."""
        if isinstance(v, Acc):
            args = self.values.accumulates[v]
            v.level = self.row_level
            v.stage = 1 + max(a.stage for a in args)
            return
        level = stage = 0
        for a in v.args:
            level, stage = max(level, a.level), max(stage, a.stage)
        if v.op in ("load", "index", "inside"):
            e = v.attrs[1] if v.op == "load" else v.attrs[0]
            for atom in atoms(e):
                known = self.nest.level_of.get(atom.name)
                if known is None:
                    named = next((o for o in self.order if isinstance(o, Ins) and o.name == atom.name), None)
                    if named is not None:
                        level, stage = max(level, named.level), max(stage, named.stage)
                else:
                    level = max(level, known)
        if v.op == "scan":
            level = self.element_level
        v.level, v.stage = level, stage

    def lowered(self) -> Lowered:
        k, nest = self.kernel, self.nest
        k.body += [v for v in self._needed_outside() if v.level == TOP]
        if self.epilogue is not None:
            k.body += [v for v in self.epilogue.constants() if v not in k.body]
            k.scratch += self.epilogue.sums.values()
        if self.row_panels is not None:
            k.scratch += self.row_panels.panels.values()
        if self.row_blocked is not None:
            k.body += self.row_blocked.identities.values()
            k.scratch += self.row_blocked.results.values()
        parallel = Loop("parallel", "p", 0, nest.iterations)
        parallel.repeats = nest.repeats
        k.body.append(parallel)
        body = parallel.body
        for level, loop in nest.outer_loops():
            body += self.row_start if loop.kind == "lanes" else []
            body += self._at(level)
            body += self._pack() if self.packed and level == 1 else []
            body += self.row_panels.loops() if self.row_panels is not None and level == 1 else []
            around = self.row_blocked if level == 1 else None
            body += [loop] if around is None else [around.before(), loop, around.after()]
            if self.epilogue is not None and loop.kind == "lanes":
                body.append(self.epilogue.loop())
            body = loop.body
        self._passes(body)
        self._finish(nest.iterations)
        out = Lowered(k, [n for n, b in self.values.buffers.items()], self.group)
        if not nest.repeats or (
            self.epilogue is not None and self.epilogue.repeats_nothing
        ):  # rows that are run twice would read what they have written
            out.in_place = in_place_pairs(k)
        return out

    def _needed_outside(self) -> list[Ins]:
        """Instructions outside the element loop that anything wants, in order."""
        if not hasattr(self, "_outside"):
            written = [v for w in self.stores for v in _needs(w)]
            reduced = [a for args in self.values.accumulates.values() for a in args]
            wanted = set(reachable([*written, *reduced], self._operands))
            self._outside = [v for v in self.order if v in wanted and isinstance(v, Ins) and v.level < self.element_level]
        return self._outside

    def _operands(self, v: Value) -> list[Value]:
        """What an instruction reads: its operands, and the values that its index goes through."""
        return [*v.args, *self._named_in(v)] if isinstance(v, Ins) else []

    def _named_in(self, v: Ins) -> list[Ins]:
        """The values that an instruction's index goes through."""
        if v.op not in ("load", "index", "inside") or not self.values.taken:
            return []
        e = v.attrs[1] if v.op == "load" else v.attrs[0]
        names = {a.name for a in atoms(e)}
        return [o for o in self.order if isinstance(o, Ins) and o.name and o.name in names]

    def _at(self, level: int) -> list[Ins]:
        return [v for v in self._needed_outside() if v.level == level and v.stage == 0]

    def _passes(self, body: list[Any]) -> None:
        """Row-level work and one element loop for each stage, in turn."""
        row = [v for v in self._needed_outside() if v.level == self.row_level]
        element_stores = [w for w in self.stores if self._store_level(w) == self.element_level]
        accs = [v for v in self.order if isinstance(v, Acc)]
        last = max([a.stage for a in accs] + [w.value.stage + 1 for w in element_stores] + [0])
        plans = self._plan_passes(accs, element_stores, last)
        for stage in range(last):
            body += [v for v in row if v.stage == stage]
            targets, kept, loop_accs = plans[stage]
            now = [w for w in element_stores if w.value.stage == stage]
            if targets or loop_accs or now:
                body += self._element_loops(stage, targets, kept, loop_accs, now)
        body += [v for v in row if v.stage >= last]
        body += [Store(w.buffer, w.index, w.value, w.mask) for w in self.stores if self._store_level(w) != self.element_level]

    def _store_level(self, w: PendingStore) -> int:
        level = max([w.value.level] + [self.nest.level_of.get(a.name, 0) for a in atoms(w.index)])
        return level if level == self.element_level else min(level, self.row_level)

    def _plan_passes(self, accs: list[Acc], stores: list[PendingStore], last: int) -> list[Any]:
        """For each pass: the instructions to run, those to keep for later passes, the accumulators."""
        kept: dict[Ins, int] = {}
        wants: list[set[Ins]] = []
        for stage in range(last):
            loop_accs = [a for a in accs if a.stage == stage + 1]
            wanted: list[Value] = [x for a in loop_accs for x in self.values.accumulates[a]]
            wanted += [v for w in stores if w.value.stage == stage for v in _needs(w)]
            wants.append(self._closure(wanted, stage, kept))
        done: set[Ins] = set()
        while len(done) < len(kept):  # what is kept is made in its own pass, and may need what is kept by an earlier one
            ins = next(i for i in kept if i not in done)
            done.add(ins)
            wants[kept[ins]] |= self._closure([ins], kept[ins], kept)
        plans = []
        for stage in range(last):
            run = [v for v in self.order if isinstance(v, Ins) and v in wants[stage]]
            plans.append((run, kept, [a for a in accs if a.stage == stage + 1]))
        return plans

    def _closure(self, wanted: list[Value], stage: int, kept: dict[Ins, int]) -> set[Ins]:
        """Element-level instructions that ``wanted`` need in this pass; expensive ones of earlier passes are kept, not repeated."""

        def read(v: Value) -> list[Value]:
            if not self._is_element(v) or self._is_packed(v):
                return []
            assert isinstance(v, Ins)
            if v.stage < stage and (v in kept or self._worth_keeping(v, kept)):
                kept[v] = v.stage
                return []
            return self._operands(v)

        return {v for v in reachable(wanted, read) if isinstance(v, Ins) and self._is_element(v)}

    def _is_packed(self, v: Value) -> bool:
        return v in self.packed or (self.row_panels is not None and v in self.row_panels.place_of)

    def _is_element(self, v: Value) -> bool:
        return isinstance(v, Ins) and v.level == self.element_level

    def _worth_keeping(self, v: Ins, kept: dict[Ins, int]) -> bool:
        """Whether ``v`` is expensive, and there is room for it beside ``kept``."""
        if isinstance(v.op, str):
            return v.op == "scan"
        count = self.nest.row_elements
        if v.op.cost < KEEP_COST or not isinstance(count, int) or is_guard(v):
            return False
        return sum(count * k.dtype.itemsize for k in [*kept, v]) <= MAX_KEPT_BYTES

    def _element_loops(self, stage: int, run: list[Ins], kept: dict[Ins, int], accs: list[Acc], stores: list[PendingStore]) -> list[Any]:
        outer, inner = self.nest.element_loops()
        inner.accs = accs
        renamed = Renamed()
        body = inner.body
        for v in run:
            if self._is_packed(v) or (v in kept and kept[v] < stage):
                load = self._kept(v)
                self._name_copy(v, load, renamed)
                renamed[v] = load
                body.append(load)
                continue
            copy = v if stage == v.stage and not renamed.changes(v) else self._copy(v, renamed)
            renamed[v] = copy
            body.append(copy)
            if v in kept:
                body.append(Store(self._scratch(v), self.nest.scratch_index, copy))
        for a in accs:
            args = self.values.accumulates[a]
            if not (isinstance(args[0], Ins) and args[0].op == "scan"):  # a scan accumulates by itself
                body.append(Accumulate(a, tuple(renamed.get(x, x) for x in args)))
        if inner.kind == "serial" and stage == 0 and not self.row_start:
            body += prefetch_down(self._first_loads(), inner, self.prefetched)
        if stage == 1:
            body += prefetch_next_row(self._first_loads(), self.nest.row_elements, self.prefetched)
        body += [
            Store(w.buffer, renamed.index(w.index), renamed.get(w.value, w.value), renamed.get(w.mask, w.mask) if w.mask else None) for w in stores
        ]
        if (steps := self._steps_of(inner)) > 1:
            return [*unroll(inner, steps), *outer]
        if not kept:
            trim_page(inner, self._is_uniform_name)
        return [*self._narrowed(inner, stage), *outer] if accs and self.nest.rows_at_once == 1 else outer

    def _kept(self, v: Ins) -> Ins:
        """A value of an earlier loop, from scratch."""
        if self.row_panels is not None and v in self.row_panels.place_of:
            return self.row_panels.load(v)
        return Ins.load(self._scratch(v), self.nest.scratch_index)

    def _narrowed(self, loop: Loop, stage: int) -> list[Ins]:
        """What finds the elements that count in a loop of masked reductions."""

        def is_invariant(v: Value) -> bool:
            return v.level < self.element_level and v.stage <= stage

        def is_uniform(v: Value) -> bool:
            return v.level < self._lanes_level and v.stage <= stage

        skipped = skip_masked_rows(loop, is_uniform, self.values.fresh_name)
        return skipped or narrow_range(loop, is_invariant, is_uniform, lambda name: self._is_uniform_name(name, stage), self.values.fresh_name)

    @property
    def _lanes_level(self) -> int:
        """The level from which on values may differ between the vector lanes around the innermost loop, or between its iterations."""
        return min((level + 1 for level, loop in self.nest.outer_loops() if loop.kind == "lanes"), default=self.element_level)

    def _is_uniform_name(self, name: str, stage: int = 0) -> bool:
        """Whether what index expressions call so is the same in all vector lanes, and there before the innermost loop of a pass."""
        level = self.nest.level_of.get(name)
        if level is not None:
            return level < self._lanes_level
        named = next((v for v in self.order if isinstance(v, Ins) and v.name == name), None)
        return named is None or (named.level < self._lanes_level and named.stage <= stage)

    def _first_loads(self) -> list[Ins]:
        """The loads of the first pass that differ between elements."""
        return [v for v in self.order if isinstance(v, Ins) and v.op == "load" and v.stage == 0 and v.level == self.element_level]

    def _steps_of(self, loop: Loop) -> int:
        """How many iterations are unrolled; in ``exact`` only one where the canonical reduction order cuts their sums in pages."""
        is_page = isinstance(loop.extent, int) and loop.extent <= PAGE
        return self.nest.steps if is_page or self.precision != "exact" else 1

    def _copy(self, v: Ins, renamed: Renamed) -> Ins:
        """The instruction again, on what its operands have become in this pass."""
        out = v.copy(renamed, renamed.index)
        out.level, out.stage = v.level, v.stage
        self._name_copy(v, out, renamed)
        return out

    def _name_copy(self, v: Ins, copy: Ins, renamed: Renamed) -> None:
        """Where index expressions go through ``v``, those of this pass go through its copy, by a name of its own."""
        if v.name:
            copy.name = renamed.names[v.name] = self.values.fresh_name()
            copy.extent = v.extent

    def _scratch(self, v: Ins) -> Buffer:
        for b in self.kernel.scratch:
            if b.name == f"s{self.order.index(v)}":
                return b
        b = Buffer(f"s{self.order.index(v)}", v.dtype, "scratch", self.nest.scratch_size)
        self.kernel.scratch.append(b)
        return b

    def _finish(self, iterations: Int) -> None:
        k = self.kernel
        k.params = list(self.values.buffers.values())
        k.iterations = iterations
        names = sorted({a.name for e in integers_of(k) for a in atoms(e) if a.name not in self.nest.level_of and not a.name.startswith("taken")})
        k.symbols = names
        everything = [*self.order, *(self.epilogue.order if self.epilogue is not None else ())]
        k.ops = sum(1 for v in everything if isinstance(v, Ins) and not isinstance(v.op, str))
        per_element = sum(v.op.cost if not isinstance(v.op, str) else 1 for v in self.order if isinstance(v, Ins) and v.level == self.element_level)
        elements = prod(self.values.shape) * len(self.values.boxes)
        if is_static(elements) and isinstance(iterations, int) and isinstance(elements, int):
            k.cost = 3.0 + elements / max(1, iterations) * (0.02 * per_element + 0.03)
        else:
            k.cost = 3.0 + 3000 * 0.05 * per_element
            k.work = 3000 * iterations + elements * (20 * per_element + 30)


def _needs(w: PendingStore) -> list[Value]:
    return [w.value] if w.mask is None else [w.value, w.mask]
