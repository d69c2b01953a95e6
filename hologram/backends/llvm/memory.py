"""Memory accesses and index expressions in LLVM IR: neighbours as vectors, elements a small step apart by shuffles, all else by gathers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hologram.backends.llvm.bounds_checks import BoundsChecks
from hologram.backends.llvm.scalars import ScalarCode
from hologram.backends.llvm.strided_access import interleave, largest_step, pick, spread, vector_starts
from hologram.backends.llvm.text import FunctionText, Reg, alignment, lane_numbers, memory_type, narrowed, suffix, vector, widened
from hologram.dtypes import DType
from hologram.graph.kernel.ir import Buffer, Prefetch, Stmt, Store
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Atom, Expr, Int, atoms, bounds, counter, mod, split_linear, substitute

CACHE_LINE = 64
STACK_SLOT_BYTES = 256  # an array of at most this many bytes may have a stack slot in the graph function, which LLVM promotes to registers
NONTEMPORAL_BYTES = 24 * 2**20  # results from this size on are written past the caches


class Lane:
    """The lanes loop being written: its variable and start, the register of lane 0, width, and the mask of live lanes (None: all), of which the
    first ``live`` are where their number is known. ``extent``: of the loop, but for its limit."""

    __slots__ = ("var", "start", "base", "width", "mask", "live", "extent")

    def __init__(self, var: str, start: Int, base: Reg, width: int, mask: Reg | None, live: int | None = None, extent: Int = 0) -> None:
        self.var, self.start, self.base, self.width, self.mask, self.live, self.extent = var, start, base, width, mask, live, extent


class Integers:
    """Index expressions as registers: uniform, or a vector where they depend on the lane. ``keeps``: what is computed is kept for the rest of the
    block."""

    def __init__(self, f: FunctionText, keeps: bool = True) -> None:
        self.f, self.keeps = f, keeps
        self.vars: dict[str, Reg] = {}
        self.exprs: dict[Expr | Atom, Reg] = {}  # and quotients in them
        self.lane: Lane | None = None

    def named(self, name: str) -> Reg:
        return self.vars[name]

    def integer(self, e: Int) -> Reg:
        """The value of an index expression: uniform, or a vector where it depends on the lane."""
        if not isinstance(e, Expr):
            return Reg(str(e), "i64", 1)
        got = self.exprs.get(e)
        if got is not None:
            return got
        total: Reg | None = None
        for m, c in e.terms.items():
            term: Reg | None = None
            for a in m:
                r = self.atom(a)
                term = r if term is None else self.f.int_op("mul", term, r)
            if term is None:
                term = Reg(str(c), "i64", 1)
            elif c != 1:
                term = self.f.int_op("mul", term, Reg(str(c), "i64", 1))
            total = term if total is None else self.f.int_op("add", total, term)
        assert total is not None
        if self.keeps:
            self.exprs[e] = total
        return total

    def atom(self, a: Atom) -> Reg:
        if not a.args:
            return self._variable(a.name)
        got = self.exprs.get(a)
        if got is None:
            got = self._quotient(a)
            if self.keeps:
                self.exprs[a] = got
        return got

    def _variable(self, name: str) -> Reg:
        if self.lane is None or name != self.lane.var:
            return self.named(name)
        if self.lane.width == 1:
            return self.lane.base
        return self.f.int_op("add", self.lane.base, lane_numbers(self.lane.width))

    def _quotient(self, a: Atom) -> Reg:
        x, y = (self.integer(v) for v in a.args)
        if x.width > 1 and bounds(a.args[0])[1] is not None and (bounds(a.args[0])[1] or 0) < 2**31 and isinstance(a.args[1], int):
            return self._narrow_division("udiv" if a.key[0] == "floordiv" else "urem", x, a.args[1])
        if (bounds(a.args[1])[0] or 0) < 1:  # an extent that may be 0: then nothing is read at this index, but the division must not trap
            y = self.f.emit(f"call i64 @llvm.smax.i64({y.typed}, i64 1)", "i64", 1)
        return self.f.int_op("udiv" if a.key[0] == "floordiv" else "urem", x, y)

    def _narrow_division(self, op: str, x: Reg, divisor: int) -> Reg:
        """Vector division by a constant in 32 bits, where there is a vector multiply-high."""
        narrow = self.f.emit(f"trunc {x.typed} to {vector('i32', x.width)}", "i32", x.width)
        r = self.f.int_op(op, narrow, Reg(str(divisor), "i32", 1))
        return self.f.emit(f"zext {r.typed} to {vector('i64', x.width)}", "i64", x.width)


class MemoryWriter(Integers):
    """Writes the loads and stores of one kernel. ``env`` holds the registers of its values."""

    def __init__(self, code: ScalarCode, target: Any) -> None:
        super().__init__(code.f)
        self.code, self.target = code, target
        self.env: dict[Any, Reg] = {}
        self.values: dict[str, Ins] = {}  # values that index expressions name
        self.pointers: dict[Any, str] = {}
        self.unaligned: frozenset[Buffer] = frozenset()  # results that need not start at a line of the cache
        self.blocks: dict[Any, list[Reg]] = {}  # neighbouring vectors that were loaded
        self.large: dict[Buffer, Reg] = {}  # of results whose sizes are known in a call: whether they are written past the caches
        self.streamed: frozenset[Store] | None = None  # those of the loop being written that do; None where each store has to find out
        self.checks: BoundsChecks | None = None
        self.statement: Any = None  # the load or store being written

    def named(self, name: str) -> Reg:
        return self.vars[name] if name in self.vars else self.code.operand(self.values[name], self.env, 1)

    # --- memory --------------------------------------------------------------------------------------------------------

    def checked(self, p: Reg, buffer: Buffer, first: Reg, count: int = 1, step: int = 1, live: Reg | None = None, offset: Int = 0) -> Reg:
        """``p``, the place of the element ``first + offset``. Where indices are checked it is another unless all elements of the access are in the
        buffer: see :meth:`BoundsChecks.guard`."""
        if self.checks is None:
            return p
        if offset != 0:
            first = self.f.int_op("add", first, self.integer(offset))
        return self.checks.guard(p, self.statement, buffer, first, count, step, live)

    def address(self, buffer: Any, index: Int) -> tuple[str, Reg, int, Reg]:
        """``(kind, pointer or vector of pointers, stride, index)``: kind is uniform, strided (those of lane 0) or scattered."""
        t = memory_type(buffer.dtype)
        base = self.pointers[buffer]
        lane = self.lane
        if lane is not None and lane.width > 1:
            linear = None if self._depends_on_vector(index) else split_linear(index, lane.var)
            if linear is None or not isinstance(linear[0], int) or linear[0] not in (0, 1, -1):
                x = self.integer(index)
                if x.width > 1:
                    ptrs = self.f.emit(f"getelementptr {t}, ptr {base}, {x.typed}", "ptr", x.width)
                    return "scattered", ptrs, 0, x
                return "uniform", self.f.emit(f"getelementptr {t}, ptr {base}, {x.typed}", "ptr", 1), 0, x
            c, rest = linear
            first = self.integer(rest)
            if c:
                first = self.f.int_op("add" if c == 1 else "sub", first, lane.base)
            return ("strided" if c else "uniform"), self.f.emit(f"getelementptr {t}, ptr {base}, i64 {first.text}", "ptr", 1), int(c), first
        x = self.integer(index)
        return "uniform", self.f.emit(f"getelementptr {t}, ptr {base}, {x.typed}", "ptr", 1), 0, x

    def narrow(self, e: Int, size: Int) -> tuple[Reg, Reg] | None:
        """``e``, along the lanes, and ``size`` in 32 bits, of which a register holds twice as many; None where they may need more."""
        low, high = bounds(e)
        lane = self.lane
        if lane is None or lane.width == 1 or not isinstance(size, int) or low is None or high is None or max(-low, high, size) >= 2**31:
            return None
        linear = split_linear(e, lane.var)
        if linear is None or not isinstance(linear[0], int) or linear[0] == 0 or self._depends_on_vector(linear[1]):
            return None
        step, rest = linear
        first = self.f.int_op("add", self.integer(rest), self.f.int_op("mul", lane.base, Reg(str(step), "i64", 1)))
        start = self.f.emit(f"trunc {first.typed} to i32", "i32", 1)
        offsets = Reg("<" + ", ".join(f"i32 {step * k}" for k in range(lane.width)) + ">", "i32", lane.width)
        return self.f.int_op("add", start, offsets), Reg(str(size), "i32", 1)

    def _depends_on_vector(self, index: Int) -> bool:
        """Whether an index goes through a value (a gather) that differs between lanes."""
        return bool(self.values) and any(a.name in self.values and self.env[self.values[a.name]].width > 1 for a in atoms(index))

    def load(self, ins: Ins, width: int) -> Reg:
        buffer, index = ins.attrs
        f, t = self.f, memory_type(buffer.dtype)
        mask = self.env[ins.args[0]] if ins.args else None
        self.statement = ins
        apart = self._load_apart(buffer, index, mask)
        if apart is not None:
            return self._from_memory(apart, buffer.dtype)
        kind, p, stride, first = self.address(buffer, index)
        if kind == "uniform" and (mask is None or mask.width == 1):
            return self._uniform_load(self.checked(p, buffer, first, live=mask), t, buffer.dtype, mask)
        live = None if mask is None and self._has_room(buffer, index) else self._mask(mask, width)
        if kind == "uniform" and live is not None:
            wanted = self._any(live)
            one = self._uniform_load(self.checked(p, buffer, first, live=wanted), t, buffer.dtype, wanted)
            return f.emit(f"select {live.typed}, {f.splat(one, width).typed}, {vector(one.type, width)} zeroinitializer", one.type, width)
        p = self.checked(p, buffer, first, width, stride, live)
        align = alignment(buffer.dtype)
        vt = vector(t, width)
        if kind == "scattered":
            r = self._gather(buffer, p, live, align)
        elif stride == -1:
            r = self._reversed_load(p, t, width, align, live, lambda low: self._mapped(low, mask, buffer))
        elif live is None:
            r = f.emit(f"load {vt}, ptr {p.text}, align {align}", t, width)
        elif mask is None and (count := self._live_lanes(buffer)):
            r = widened(f, f.emit(f"load {vector(t, count)}, ptr {p.text}, align {align}", t, count), width)
        else:
            r = self._masked_load(self._mapped(p, mask, buffer), t, width, align, live)
        return self._from_memory(r, buffer.dtype)

    def _gather(self, buffer: Buffer, places: Reg, live: Reg | None, align: int) -> Reg:
        """The elements at ``places``; zero where a lane is not ``live``. Of narrow elements, for which there is no instruction and LLVM loads one by
        one, lanes that are not live take the first: a branch for each lane would take long to compile, and to run."""
        f, width, t = self.f, places.width, memory_type(buffer.dtype)
        if live is None or buffer.dtype.itemsize >= 4 or not isinstance(buffer.size, int) or buffer.size == 0:
            return self._gathered(places, t, align, self._all(width) if live is None else live.text)
        first = f.splat(Reg(self.pointers[buffer], "ptr", 1), width)
        places = f.emit(f"select {live.typed}, {places.typed}, {first.typed}", "ptr", width)
        r = self._gathered(places, t, align, self._all(width))
        return f.emit(f"select {live.typed}, {r.typed}, {vector(t, width)} zeroinitializer", t, width)

    def _gathered(self, places: Reg, t: str, align: int, mask: str) -> Reg:
        width, vt = places.width, vector(t, places.width)
        operands = f"<{width} x ptr> {places.text}, i32 {align}, <{width} x i1> {mask}, {vt} zeroinitializer"
        return self.f.emit(f"call {vt} @llvm.masked.gather.{suffix(t, width)}.v{width}p0({operands})", t, width)

    def _has_room(self, buffer: Buffer, index: Int) -> bool:
        """Whether scratch has elements for the lanes behind the limit of a loop, too: nobody sees what they read, and a mask costs a register."""
        lane, size = self.lane, buffer.size
        if lane is None or lane.mask is None or buffer.role != "scratch" or not buffer.dtype.is_float or not isinstance(size, int):
            return False
        if not isinstance(lane.extent, int) or lane.extent == 0 or lane.extent % lane.width:
            return False
        low, high = bounds(substitute(index, {lane.var: lane.start + counter("l", lane.extent)}))
        return low is not None and high is not None and 0 <= low and high < size

    def _live_lanes(self, buffer: Buffer) -> int | None:
        """How many lanes of a masked vector are live, where that is known and the buffer may be in registers, which vectors of that many elements
        can be taken from and masked ones cannot."""
        size, lane = buffer.size, self.lane
        is_small = self.code.is_inlined and isinstance(size, int) and size * buffer.dtype.itemsize <= STACK_SLOT_BYTES
        return lane.live if is_small and lane is not None else None

    def _mapped(self, p: Reg, mask: Reg | None, buffer: Buffer) -> Reg:
        """``p`` where some lane of an access's own mask is set, else the buffer itself: a vector access that is masked as a whole touches nothing
        wherever it points, but takes processors a thousand times as long where no memory is mapped."""
        if mask is None:
            return p
        wanted = mask if mask.width == 1 else self._any(mask)
        return self.f.emit(f"select i1 {wanted.text}, {p.typed}, ptr {self.pointers[buffer]}", "ptr", 1)

    def _load_apart(self, buffer: Buffer, index: Int, mask: Reg | None) -> Reg | None:
        """Elements a small step apart, by :mod:`hologram.backends.llvm.strided_access`; None for any others."""
        found = self._apart(buffer, index)
        if found is None or buffer.role != "in":
            return None
        lane, stride, rest, unit = found
        step, size = abs(stride), buffer.size
        if mask is not None or lane.mask is not None:
            return self._masked_apart(buffer, rest, stride, unit, mask) if self._masks(buffer) else None
        offset = (rest.terms.get((), 0) if isinstance(rest, Expr) else rest) % step
        low, high = bounds(index)
        whole = isinstance(size, int) and low is not None and high is not None and low >= offset and high - offset + step <= size
        offset = offset if whole else 0
        first = rest - offset + min(0, stride) * (lane.width - 1)  # of the lowest element, but for the lane's base
        starts = vector_starts(step, lane.width, unit, whole)
        wanted = [offset + step * k for k in range(lane.width)]
        return pick(self.f, self._block(buffer, first, stride, starts, unit), starts, wanted if stride > 0 else wanted[::-1])

    def _masks(self, buffer: Buffer) -> bool:
        """Whether vectors of the buffer's elements are loaded under a mask by one instruction."""
        return self.target.has("avx512bw") and buffer.dtype.itemsize <= 8

    def _masked_apart(self, buffer: Buffer, rest: Int, stride: int, unit: int, mask: Reg | None) -> Reg:
        """Those of the elements ``rest + stride*lane`` whose lanes are live, of vectors in which nothing else is read."""
        lane = self.lane
        assert lane is not None
        live = self._mask(mask, lane.width)
        assert live is not None
        step, last = abs(stride), lane.width - 1
        wanted = [step * (k if stride > 0 else last - k) for k in range(lane.width)]
        starts = vector_starts(step, lane.width, unit, True)
        within = spread(self.f, live, starts, wanted, unit)
        vectors = self._block(buffer, rest + min(0, stride) * last, stride, starts, unit, within, mask)
        return pick(self.f, vectors, starts, wanted)

    def _apart(self, buffer: Buffer, index: Int) -> tuple[Lane, int, Int, int] | None:
        """Of an index ``stride*lane + rest`` with a small stride: the lane, ``stride``, ``rest``, a register's lanes."""
        lane = self.lane
        if lane is None or lane.width == 1 or self._depends_on_vector(index):
            return None
        linear = split_linear(index, lane.var)
        unit = min(lane.width, self.target.vector_bytes // buffer.dtype.itemsize)
        if linear is None or not isinstance(linear[0], int) or not 2 <= abs(linear[0]) <= largest_step(unit):
            return None
        return lane, linear[0], linear[1], unit

    def _block(
        self, buffer: Buffer, first: Int, stride: int, starts: list[int], unit: int, within: Sequence[Reg] = (), guard: Reg | None = None
    ) -> list[Reg]:
        """Vectors that begin ``starts`` elements after ``first + stride*base``; only the lanes ``within`` are read, if given, none where ``guard``
        is not set."""
        f, t, lane = self.f, memory_type(buffer.dtype), self.lane
        assert lane is not None
        key = (buffer, first, stride, *starts, *(m.text for m in within))
        got = self.blocks.get(key)
        if got is None:
            base = f.int_op("add", self.integer(first), f.int_op("mul", lane.base, Reg(str(stride), "i64", 1)))
            p = f.emit(f"getelementptr {t}, ptr {self.pointers[buffer]}, {base.typed}", "ptr", 1)
            p = self._mapped(p, guard, buffer)
            align = alignment(buffer.dtype)
            got = self.blocks[key] = []
            for i, at in enumerate(starts):
                q = f.emit(f"getelementptr {t}, ptr {p.text}, i64 {at}", "ptr", 1)
                q = self.checked(q, buffer, base, unit, live=within[i] if within else None, offset=at)
                if within:
                    got.append(self._masked_load(q, t, unit, align, within[i]))
                else:
                    got.append(f.emit(f"load {vector(t, unit)}, ptr {q.text}, align {align}", t, unit))
        return got

    def _uniform_load(self, p: Reg, t: str, d: DType, mask: Reg | None) -> Reg:
        f = self.f
        if mask is None:
            return self._from_memory(f.emit(f"load {t}, ptr {p.text}, align {alignment(d)}", t, 1), d)
        zero = {"half": "0xH0000", "float": "0.0", "double": "0.0"}.get(t, "0")
        return self._from_memory(
            f.branch_around(mask, lambda: f.emit(f"load {t}, ptr {p.text}, align {alignment(d)}", t, 1), Reg(zero, t, 1), likely=True), d
        )

    def _reversed_load(self, p: Reg, t: str, width: int, align: int, live: Reg | None, mapped: Callable[[Reg], Reg]) -> Reg:
        f, vt = self.f, vector(t, width)
        low = f.emit(f"getelementptr {t}, ptr {p.text}, i64 {1 - width}", "ptr", 1)
        if live is None:
            r = f.emit(f"load {vt}, ptr {low.text}, align {align}", t, width)
        else:
            r = self._masked_load(mapped(low), t, width, align, self._reverse(live))
        return self._reverse(r)

    def _masked_load(self, p: Reg, t: str, width: int, align: int, live: Reg) -> Reg:
        """Zero where ``live`` is not. Masks are for elements of 8 bytes at most, so larger ones are loaded in halves."""
        f, vt = self.f, vector(t, width)
        if t == "i128":
            halves = self._masked_load(p, "double", 2 * width, align, self._twice(live))
            return f.emit(f"bitcast {halves.typed} to {vt}", t, width)
        call = f"call {vt} @llvm.masked.load.{suffix(t, width)}.p0(ptr {p.text}, i32 {align}, <{width} x i1> {live.text}, {vt} zeroinitializer)"
        return f.emit(call, t, width)

    def _masked_store(self, v: Reg, p: Reg, align: int, live: Reg) -> None:
        if v.type == "i128":
            halves = self.f.emit(f"bitcast {v.typed} to {vector('double', 2 * v.width)}", "double", 2 * v.width)
            self._masked_store(halves, p, align, self._twice(live))
            return
        mask = f"<{v.width} x i1> {live.text}"
        self.f.do(f"call void @llvm.masked.store.{suffix(v.type, v.width)}.p0({v.typed}, ptr {p.text}, i32 {align}, {mask})")

    def _twice(self, live: Reg) -> Reg:
        """A mask with every lane twice."""
        order = ", ".join(f"i32 {i // 2}" for i in range(2 * live.width))
        return self.f.emit(f"shufflevector {live.typed}, {vector('i1', live.width)} poison, <{2 * live.width} x i32> <{order}>", "i1", 2 * live.width)

    def _reverse(self, r: Reg) -> Reg:
        order = ", ".join(f"i32 {i}" for i in reversed(range(r.width)))
        return self.f.emit(f"shufflevector {r.typed}, {vector(r.type, r.width)} poison, <{r.width} x i32> <{order}>", r.type, r.width)

    def _from_memory(self, r: Reg, d: DType) -> Reg:
        if d.kind != "b":
            return r
        return self.f.emit(f"icmp ne {r.typed}, {'zeroinitializer' if r.width > 1 else '0'}", "i1", r.width)

    def _all(self, width: int) -> str:
        return "splat (i1 true)"

    def _any(self, live: Reg) -> Reg:
        """Whether some lane is live."""
        bits = self.f.emit(f"bitcast {live.typed} to i{live.width}", f"i{live.width}", 1)
        return self.f.emit(f"icmp ne {bits.typed}, 0", "i1", 1)

    def _mask(self, mask: Reg | None, width: int) -> Reg | None:
        """The loop's mask and the access's own."""
        live = self.lane.mask if self.lane else None
        if mask is None:
            return live
        mask = self.f.splat(mask, width)
        return mask if live is None else self.f.int_op("and", live, mask)

    def store(self, s: Store) -> None:
        f, d = self.f, s.buffer.dtype
        width = self.lane.width if self.lane else 1
        self.statement = s
        kind, p, stride, first = self.address(s.buffer, s.index)
        if kind == "uniform":
            width = 1
        v = self.code.operand(s.value, self.env, width)
        if v.width > width:  # one address, so a loop of one iteration
            v = f.emit(f"extractelement {v.typed}, i64 0", v.type, 1)
        if d.kind == "b":
            v = f.emit(f"zext {v.typed} to {vector('i8', width)}", "i8", width)
        mask = self.env[s.mask] if s.mask is not None else None
        if width == 1 and mask is not None:
            self._store_if(mask, v, self.checked(p, s.buffer, first, live=mask), alignment(d))
            return
        if width > 1 and mask is not None and mask.width == 1:  # all lanes or none
            f.only_if(mask, lambda: self._store_lanes(s, v, kind, p, stride, first, None))
        else:
            self._store_lanes(s, v, kind, p, stride, first, mask)

    def _store_lanes(self, s: Store, v: Reg, kind: str, p: Reg, stride: int, first: Reg, mask: Reg | None) -> None:
        """Writes ``v`` at the address that :meth:`address` gave, in the loop's live lanes whose ``mask`` is set."""
        f, width = self.f, v.width
        t, align = memory_type(s.buffer.dtype), alignment(s.buffer.dtype)
        live = self._mask(mask, width) if width > 1 else None
        p = self.checked(p, s.buffer, first, width, stride or 1, live)
        if kind == "uniform":
            f.do(f"store {v.typed}, ptr {p.text}, align {align}")
        elif kind == "scattered":
            m = live.text if live else self._all(width)
            f.do(
                f"call void @llvm.masked.scatter.{suffix(t, width)}.v{width}p0({v.typed}, <{width} x ptr> {p.text}, i32 {align}, <{width} x i1> {m})"
            )
        else:
            if stride == -1:
                v = self._reverse(v)
                p = f.emit(f"getelementptr {t}, ptr {p.text}, i64 {1 - width}", "ptr", 1)
                live = self._reverse(live) if live else None
            if live is not None and mask is None and stride == 1 and (count := self._live_lanes(s.buffer)):
                v = narrowed(f, v, count)
                f.do(f"store {v.typed}, ptr {p.text}, align {align}")
            elif live is None and stride == 1 and self.streamed is None and self.may_be_nontemporal(s, width):
                wanted = f.int_op("and", self.starts_line(p), self.large[s.buffer])
                f.either(wanted, lambda: self._store_vector(v, p, 64, True), lambda: self._store_vector(v, p, align, False))
            elif live is None:
                whole_lines = stride == 1 and self._is_nontemporal(s)
                self._store_vector(v, p, 64 if whole_lines else align, whole_lines)
            else:
                self._masked_store(v, self._mapped(p, mask, s.buffer), align, live)

    def _store_vector(self, v: Reg, p: Reg, align: int, nontemporal: bool) -> None:
        self.f.do(f"store {v.typed}, ptr {p.text}, align {align}{', !nontemporal !2' if nontemporal else ''}")

    def starts_line(self, p: Reg) -> Reg:
        """Whether ``p`` is the start of a line of the cache."""
        address = self.f.emit(f"ptrtoint ptr {p.text} to i64", "i64", 1)
        place = self.f.int_op("and", address, Reg(str(CACHE_LINE - 1), "i64", 1))
        return self.f.emit(f"icmp eq i64 {place.text}, 0", "i1", 1)

    def find_large(self, results: Iterable[Buffer]) -> None:
        """Finds out which of the results are large whose sizes are known in a call."""
        for b in results:
            if not isinstance(b.size, int) and b.role == "out" and b not in self.unaligned:
                size = self.integer(b.size)
                self.large[b] = self.f.emit(f"icmp sge i64 {size.text}, {NONTEMPORAL_BYTES // b.dtype.itemsize}", "i1", 1)

    def may_be_nontemporal(self, s: Store, width: int) -> bool:
        """Whether vectors of so many lanes should pass the caches by where a call finds the result large and their place at the start of a line."""
        return s.buffer in self.large and s.mask is None and width % (CACHE_LINE // s.buffer.dtype.itemsize) == 0

    def _interleaved_store(self, s: Store, body: list[Stmt]) -> list[Store]:
        """Writes ``s`` together with the stores of a block that fill the gaps between its elements; gives them, none where there are gaps left."""
        f, d = self.f, s.buffer.dtype
        found = self._apart(s.buffer, s.index)
        if found is None or found[0].mask is not None or found[1] < 0 or s.mask is not None:
            return []
        lane, step, rest, unit = found
        at: dict[Int, Store] = {}
        for t in itertools.takewhile(lambda t: isinstance(t, Store), body[body.index(s) :]):
            if isinstance(t, Store) and t.buffer is s.buffer and t.mask is None:
                at[t.index] = t
        group = [at[s.index + k] for k in range(step) if s.index + k in at]
        if len(group) < step:
            return []
        columns = [f.splat(self.code.operand(t.value, self.env, lane.width), lane.width) for t in group]
        if d.kind == "b":
            columns = [f.emit(f"zext {c.typed} to {vector('i8', lane.width)}", "i8", lane.width) for c in columns]
        base = f.int_op("add", self.integer(rest), f.int_op("mul", lane.base, Reg(str(step), "i64", 1)))
        how = "align 64, !nontemporal !2" if self._is_nontemporal(s) else f"align {alignment(d)}"
        self.statement = s
        p = f.emit(f"getelementptr {memory_type(d)}, ptr {self.pointers[s.buffer]}, {base.typed}", "ptr", 1)
        for k, v in enumerate(interleave(f, columns, unit)):
            q = f.emit(f"getelementptr {memory_type(d)}, ptr {p.text}, i64 {k * unit}", "ptr", 1)
            q = self.checked(q, s.buffer, base, unit, offset=k * unit)
            f.do(f"store {v.typed}, ptr {q.text}, {how}")
        return group

    def prefetch(self, s: Prefetch) -> None:
        """One hint a cache line, to the second-level cache; a tail's lines are left to the hardware."""
        lane = self.lane
        if lane is None or lane.width == 1 or lane.mask is not None:
            return
        kind, p, stride, _ = self.address(s.buffer, s.index)
        if kind != "strided" or stride != 1:
            return
        for offset in range(0, lane.width * s.buffer.dtype.itemsize, CACHE_LINE):
            at = self.f.emit(f"getelementptr i8, ptr {p.text}, i64 {offset}", "ptr", 1)
            self.f.do(f"call void @llvm.prefetch.p0(ptr {at.text}, i32 0, i32 2, i32 1)")

    def _store_if(self, mask: Reg, v: Reg, p: Reg, align: int) -> None:
        f = self.f
        if mask.width > 1:
            mask = f.emit(f"extractelement {mask.typed}, i64 0", "i1", 1)
        f.only_if(mask, lambda: f.do(f"store {v.typed}, ptr {p.text}, align {align}"))

    def _is_nontemporal(self, s: Store) -> bool:
        """Whether a store should pass the caches by: a result too large to be found there later, at a place certain to be aligned."""
        b, lane = s.buffer, self.lane
        if self.streamed is not None and s in self.streamed:
            return True
        if b.role != "out" or b in self.unaligned or lane is None or not isinstance(b.size, int) or b.size * b.dtype.itemsize < NONTEMPORAL_BYTES:
            return False
        step = CACHE_LINE // b.dtype.itemsize
        first = substitute(s.index, {lane.var: lane.start})
        return lane.width % step == 0 and mod(first, step) == 0
