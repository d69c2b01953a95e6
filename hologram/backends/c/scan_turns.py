"""Scans in lanes, all elements of a page at one time, where items exchange values in registers.

An item has a few neighbours of each turn, and all of them are read before the first is used. GROUPs of 16 scan themselves by exchanges in a subgroup;
one item takes the carry through all of them; then each item adds what stands before its own. So a page has two barriers, however many turns it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hologram.backends.c.analysis.scans import FREE, Turns, named_values, uses
from hologram.backends.c.analysis.vectors import divides
from hologram.backends.c.emitter import ITEM, Emitter
from hologram.backends.c.scalars import type_name
from hologram.backends.c.scan_groups import GroupScans
from hologram.graph.kernel.ir import Buffer, Loop, Stmt, Store
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Int, split_linear


class TurnsWriter:
    """Writes one loop. ``vectors``: loads and stores of all neighbours at one time; ``registers``: the arrays of what the item keeps."""

    def __init__(self, w: Emitter, loop: Loop, name: str, start: str, stop: str, turns: Turns) -> None:
        self.w, self.f, self.loop, self.name, self.start, self.stop, self.turns = w, w.f, loop, name, start, stop, turns
        self.step = w.mapping.width * turns.neighbours
        self.filled = loop.limit is None and divides(self.step * turns.turns, loop.extent)
        self.named = named_values(loop)
        self.vectors = {s for i, s in enumerate(loop.body) if i in turns.vectors}
        self.registers: dict[Ins, str] = {}
        self.scans = GroupScans(w, turns, {v for s in loop.body for v in uses(s, self.named)})

    def write(self) -> None:
        w, f = self.w, self.f
        base = self.base = w.fresh("turn")
        f.open(f"for (i64 {base} = {self.start}; {base} < {self.stop}; {base} += {self.step * self.turns.turns})")
        for s in self.loop.body:
            if isinstance(s, Ins):
                self._declare(s)
        for phase in range(max(self.turns.phases) + 1):
            self._phase(phase)
            self.scans.exchange(self._scans(phase + 1))
        w.live = None
        f.close()

    def _statements(self, phase: int) -> list[Stmt]:
        return [s for s, p in zip(self.loop.body, self.turns.phases, strict=True) if p == phase]

    def _declare(self, s: Ins) -> None:
        """Registers of what an item keeps: of each turn, of each neighbour."""
        t = self.turns
        if s in self.vectors:
            self.registers[s] = self.w.fresh("w")
            self.f.do(f"{self._kind(s.attrs[0])} {self.registers[s]}[{t.turns}];")
        elif s in t.kept:
            self.registers[s] = self.w.fresh("v")
            self.f.do(f"{type_name(s.dtype)} {self.registers[s]}[{t.turns}][{t.neighbours}];")
        if s.op == "scan":
            self.scans.declare(s)

    def _kind(self, buffer: Buffer) -> str:
        """The type of an item's neighbours in memory."""
        return self.w.scalars.vector(buffer.dtype, self.turns.neighbours)

    # --- phases --------------------------------------------------------------------------------------------------------

    def _phase(self, phase: int) -> None:
        """All loads of vectors, and then the rest, a turn after the other."""
        w, known = self.w, (dict(self.w.env), dict(self.w.integers))
        for s, register in self.registers.items():
            self._set(s, f"{register}[hg_turn].v[hg_near]" if s in self.vectors else f"{register}[hg_turn][hg_near]")
        body = self._needed(phase)
        loads = [s for s in body if isinstance(s, Ins) and s in self.vectors]
        if loads:
            with self._each_turn():
                for s in loads:
                    self._load(s)
        rest = [s for s in body if s not in loads]
        following = self._scans(phase + 1)
        if rest or following:
            with self._each_turn():
                self._turn(rest, following)
        w.env, w.integers = known

    def _turn(self, body: list[Stmt], following: list[Ins]) -> None:
        """The statements for the neighbours of a turn, and what starts the scans that follow."""
        stores = {s: self.w.fresh("w") for s in body if isinstance(s, Store) and s in self.vectors}
        for store, vector in stores.items():
            self.f.do(f"{self._kind(store.buffer)} {vector};")
        self.scans.read_before([s for s in body if isinstance(s, Ins) and s.op == "scan"])
        with self._each_neighbour():
            for s in body:
                if s not in self.vectors:
                    self._statement(s)
            for store, vector in stores.items():
                self.f.do(f"{vector}.v[hg_near] = {self.w.env[store.value]};")
            for scan in following:
                self.scans.start(scan)
        for store, vector in stores.items():
            self._store(store, vector)

    def _scans(self, phase: int) -> list[Ins]:
        return [s for s in self._statements(phase) if isinstance(s, Ins) and s.op == "scan"]

    def _needed(self, phase: int) -> list[Stmt]:
        """The statements of a phase and what is free to be computed again for them, in order; a scan whose running values nobody uses is none."""
        wanted: set[Stmt] = {v for s in self._scans(phase + 1) for v in uses(s, self.named)}
        out: list[Stmt] = []
        for s, p in reversed(list(zip(self.loop.body, self.turns.phases, strict=True))):
            is_free = isinstance(s, Ins) and s.op in FREE
            if not (s in wanted if is_free else p == phase) or (isinstance(s, Ins) and s.op == "scan" and s not in self.scans.used):
                continue
            out.append(s)
            wanted.update(uses(s, self.named))
        return out[::-1]

    def _set(self, s: Ins, text: str) -> None:
        is_bool_memory = s.op == "load" and s.dtype.kind == "b" and text.endswith(".v[hg_near]")
        self.w.env[s] = f"({text} != 0)" if is_bool_memory else text
        if s.name:
            self.w.integers[s.name] = self.w.env[s]

    def _statement(self, s: Stmt) -> None:
        if isinstance(s, Ins) and s.op == "scan":
            self._set(s, self.scans.combine(s))
        else:
            self.w.block([s])
        if isinstance(s, Ins) and s in self.registers:
            self.f.do(f"{self.registers[s]}[hg_turn][hg_near] = {self.w.env[s]};")

    @contextmanager
    def _each_turn(self) -> Iterator[None]:
        """For each of the turns at one time: ``hg_first`` is the first of the item's neighbours."""
        self.w.unroll()
        self.f.open(f"for (int hg_turn = 0; hg_turn < {self.turns.turns}; ++hg_turn)")
        own = ITEM if self.turns.neighbours == 1 else f"{ITEM} * {self.turns.neighbours}"
        self.f.do(f"const i64 hg_first = {self.base} + hg_turn * {self.step} + {own};")
        yield
        self.f.close()

    @contextmanager
    def _each_neighbour(self) -> Iterator[None]:
        """For each neighbour of a turn; those beyond the end of the row only keep step."""
        self.w.unroll()
        self.f.open(f"for (int hg_near = 0; hg_near < {self.turns.neighbours}; ++hg_near)")
        self.f.do(f"const i64 {self.name} = hg_first + hg_near;")
        self.w.live = None
        if not self.filled:
            self.w.live = self.w.fresh("live")
            self.f.do(f"const bool {self.w.live} = {self.name} < {self.stop};")
        self.w.integers[self.loop.var] = self.name
        yield
        self.w.live = None
        self.f.close()

    # --- vectors -------------------------------------------------------------------------------------------------------

    def _load(self, s: Ins) -> None:
        buffer, index = s.attrs
        vector, there = f"{self.registers[s]}[hg_turn]", self._there(buffer, index)
        mask = s.args[0] if s.args else None

        def one(here: str) -> str:
            return f"{vector}.v[hg_near] = {here} ? {buffer.name}[{self.w.integer(index)}] : 0;"

        self._guarded(mask, f"{vector} = *({self.w.space(buffer)}const {there};", one)

    def _store(self, s: Store, vector: str) -> None:
        def one(here: str) -> str:
            return f"if ({here}) {s.buffer.name}[{self.w.integer(s.index)}] = {vector}.v[hg_near];"

        self._guarded(s.mask if isinstance(s.mask, Ins) else None, f"*({self.w.space(s.buffer)}{self._there(s.buffer, s.index)} = {vector};", one)

    def _there(self, buffer: Buffer, index: Int) -> str:
        """Where an item's neighbours are in memory: the end of a pointer's type, and the pointer."""
        self.w.integers[self.loop.var] = "hg_first"
        return f"{self._kind(buffer)} *)({buffer.name} + {self.w.integer(index)})"

    def _guarded(self, mask: Ins | None, whole: str, one: Callable[[str], str]) -> None:
        """An access of all neighbours at one time; where some of them are not there, one by one, each by what ``one`` says of the condition."""
        condition = self._all_inside(mask)
        if condition is None:
            self.f.do(whole)
            return
        self.f.do(f"if ({condition}) {whole}")
        self.f.open("else")
        with self._each_neighbour():
            here = self._inside(mask, self.name)
            self.f.do(one(here))
        self.f.close()

    def _all_inside(self, mask: Ins | None) -> str | None:
        """The condition that all neighbours are there, None if they are: a range of elements is, if its ends are."""
        n = self.turns.neighbours
        conditions = [] if self.filled else [f"hg_first + {n} <= {self.stop}"]
        if mask is not None and mask not in self.loop.body:
            conditions.append(self.w.env[mask])
        elif mask is not None:
            split = split_linear(mask.attrs[0], self.loop.var)
            ends = ["hg_first", f"(hg_first + {n - 1})"] if split is not None and split[0] != 0 else ["hg_first"]
            conditions += [self._at(mask, place) for place in ends]
        return " && ".join(conditions) or None

    def _inside(self, mask: Ins | None, place: str) -> str:
        """The condition that a neighbour is there."""
        conditions = [self.w.live] if self.w.live else []
        if mask is not None:
            conditions.append(self.w.env[mask] if mask not in self.loop.body else self._at(mask, place))
        return " && ".join(conditions)

    def _at(self, mask: Ins, place: str) -> str:
        """A mask of the loop as it is at one of its elements."""
        self.w.integers[self.loop.var] = place
        return self.w.value(mask)
