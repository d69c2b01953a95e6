"""The running values of GROUPs of 16 elements, and what stands before each group, where items exchange values in registers."""

from __future__ import annotations

from math import gcd

from hologram.backends.c.accumulators import Monoid
from hologram.backends.c.analysis.scans import Turns
from hologram.backends.c.analysis.vectors import ACCESS_BYTES
from hologram.backends.c.emitter import ITEM, Emitter
from hologram.backends.c.scalars import memory_name, type_name
from hologram.ir.instruction import Ins
from hologram.primitives.reductions import GROUP, LANES

CHAIN_BYTES = 64  # of groups' totals that are read before the carry goes through them


class GroupScans:
    """The scans of one loop. ``used``: instructions whose values something needs; ``running``: the registers of groups' running values, of each turn,
    of each neighbour; ``before``: the arrays of what stands before each group, in shared memory."""

    def __init__(self, w: Emitter, turns: Turns, used: set[Ins]) -> None:
        self.w, self.f, self.used = w, w.f, used
        self.neighbours, self.count, self.step = turns.neighbours, turns.turns, w.mapping.width * turns.neighbours
        self.groups = self.step * self.count // GROUP
        self.running: dict[Ins, str] = {}
        self.before: dict[Ins, str] = {}

    def declare(self, s: Ins) -> None:
        self.running[s] = self.w.fresh("group")
        self.f.do(f"{type_name(s.dtype)} {self.running[s]}[{self.count}][{self.neighbours}];")

    def start(self, s: Ins) -> None:
        """What is not there is the identity."""
        (acc,) = s.attrs
        x, identity = self.w.env[s.args[0]], Monoid(acc, self.w.scalars).identity[0]
        self.f.do(f"{self.running[s]}[hg_turn][hg_near] = {f'{self.w.live} ? {x} : {identity}' if self.w.live else x};")

    def exchange(self, scans: list[Ins]) -> None:
        """The running values of all groups, and what stands before each of them."""
        if not scans:
            return
        totals = {s: self._shared(s, "lasts", k, self.groups) for k, s in enumerate(scans)}
        self.before.update({s: self._shared(s, "before", k, self.groups + 1) for k, s in enumerate(scans)})
        items = GROUP // self.neighbours
        self._unrolled("hg_turn", self.count)
        for s in scans:
            self._scan_group(s)
            total = f"{totals[s]}[{self._group()}] = {self.running[s]}[hg_turn][{self.neighbours - 1}];"
            self.f.do(f"if ({ITEM} % {items} == {items - 1}) {total}")
        self.f.close()
        self.w.barrier()
        for k, s in enumerate(scans):
            self._chain(s, totals[s], k * LANES % self.w.mapping.width)
        self.w.barrier()
        for s in scans:
            self.f.do(f"{self.w.state[s.attrs[0]][0]} = {self.before[s]}[{self.groups}];")

    def _shared(self, s: Ins, what: str, k: int, size: int) -> str:
        kind = memory_name(s.attrs[0].value_dtype)
        name = f"hg_{what}{k}_{kind}x{self.groups}"
        if name not in self.w.shared_arrays:
            self.w.aligned_array(kind, name, size * s.attrs[0].value_dtype.itemsize)
        return name

    def _group(self) -> str:
        """The number of the group that the item's neighbours of a turn are in."""
        return f"hg_turn * {self.step // GROUP} + {ITEM} / {GROUP // self.neighbours}"

    def _scan_group(self, s: Ins) -> None:
        """z[i] = z[i-h] o z[i] for h = 1, 2, 4, 8; where nobody uses running values, for those that the last of them needs."""
        n, steps = self.neighbours, [1 << k for k in range(GROUP.bit_length() - 1)]
        needed = set(range(n)) if s in self.used else {n - 1}
        due = []
        for h in reversed(steps):
            due.append((h, sorted(needed, reverse=True)))
            needed = needed | {(r - h) % n for r in needed}
        for h, rows in reversed(due):
            self._scan_step(s, h, rows)

    def _scan_step(self, s: Ins, h: int, rows: list[int]) -> None:
        """One of them, for the neighbours ``rows``, the last first: each needs others as they were."""
        n, monoid = self.neighbours, Monoid(s.attrs[0], self.w.scalars)
        z, items = f"{self.running[s]}[hg_turn]", GROUP // n
        away = {r: -((r - h) // n) for r in rows}  # items
        others = {r: self.w.fresh("before") for r in rows if away[r]}
        for r, name in others.items():
            self.f.do(f"const {type_name(s.dtype)} {name} = hg_up({z}[{(r - h) % n}], {away[r]});")
        for r in rows:
            combined = monoid.combine([f"{z}[{r}]"], [others.get(r, f"{z}[{r - h}]")], [f"{z}[{r}]"])
            self.f.do(f"if ({ITEM} % {items} >= {away[r]}) {{ {combined} }}" if away[r] else combined)

    def _chain(self, s: Ins, totals: str, item: int) -> None:
        """One item takes the carry through all groups, in their order. It reads many totals, and writes what stands before them, at one time."""
        w, f, (acc,) = self.w, self.f, s.attrs
        monoid, carry = Monoid(acc, w.scalars), w.state[acc]
        block = gcd(self.groups, CHAIN_BYTES // acc.value_dtype.itemsize)
        n = min(block, ACCESS_BYTES // acc.value_dtype.itemsize)
        kind, space, before = w.scalars.vector(acc.value_dtype, n), w.dialect.local_pointer, self.before[s]
        f.open(f"if ({ITEM} == {item})")
        w.unroll(1)
        f.open(f"for (int hg_at = 0; hg_at < {self.groups}; hg_at += {block})")
        f.do(f"{kind} hg_some[{block // n}];")
        self._unrolled("hg_k", block // n)
        f.do(f"hg_some[hg_k] = *({space}const {kind} *)({totals} + hg_at + hg_k * {n});")
        f.close()
        self._unrolled("hg_k", block // n)
        self._unrolled("hg_j", n)
        self._take_carry(monoid, carry, s in self.used)
        f.close()
        if s in self.used:
            f.do(f"*({space}{kind} *)({before} + hg_at + hg_k * {n}) = hg_some[hg_k];")
        f.close()
        f.close()
        f.do(f"{before}[{self.groups}] = {carry[0]};")
        f.close()

    def _take_carry(self, monoid: Monoid, carry: list[str], kept: bool) -> None:
        """Through one group, whose total gives way to what stands before it, if that is kept."""
        total = "hg_some[hg_k].v[hg_j]"
        self.f.do(f"const {type_name(monoid.acc.value_dtype)} hg_last = {total};")
        if kept:
            self.f.do(f"{total} = {carry[0]};")
        self.f.do(monoid.combine(carry, carry, ["hg_last"]))

    def _unrolled(self, name: str, count: int) -> None:
        self.w.unroll()
        self.f.open(f"for (int {name} = 0; {name} < {count}; ++{name})")

    def read_before(self, scans: list[Ins]) -> None:
        """What stands before the group of the item's neighbours of a turn."""
        for s in scans:
            name = self.w.fresh("before")
            self.f.do(f"const {type_name(s.dtype)} {name} = {self.before[s]}[{self._group()}];")
            self.w.env[s] = name

    def combine(self, s: Ins) -> str:
        """The running value of the row, in a variable of this name."""
        monoid, name = Monoid(s.attrs[0], self.w.scalars), s.name or self.w.fresh("v")
        self.f.do(f"{type_name(s.dtype)} {name};")
        self.f.do(monoid.combine([name], [self.w.env[s]], [f"{self.running[s]}[hg_turn][hg_near]"]))
        return name
