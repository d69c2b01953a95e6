"""Kernel IR to LLVM IR.

A ``lanes`` loop becomes a loop over vectors and one masked (or scalar) tail; values that do not depend on the lane stay
scalars. A kernel is ``void kernel(ptr args, i64 begin, i64 end, ptr scratch)``: it runs iterations [begin, end) of its parallel
loop; ``args`` holds one 8-byte slot a parameter, then a symbol.
"""

from __future__ import annotations

from typing import Any

from hologram.backends.cpu.accumulate import Monoid, PartialLanes, combine_all, reduce_lanes, scan_group
from hologram.backends.cpu.llvm_text import FunctionText, Reg, lane_numbers, memory_type, suffix, vector
from hologram.backends.cpu.scalar_code import FLAGS, Functions, ScalarCode
from hologram.dtypes import DType, int64
from hologram.graph.kernel_ir import Acc, Accumulate, Ins, Kernel, Loop, Prefetch, Stmt, Store
from hologram.primitives.reductions import GROUP, LANES, PAGE
from hologram.symbolic import Atom, Expr, Int, atoms, bounds, mod, split_linear, substitute

CACHE_LINE = 64
WIDEST = 128  # lanes
STREAM_BYTES = 24 * 2**20  # results from this size on are written past the caches


class Lane:
    """The lanes loop being written: its variable and start, the register of lane 0, width, and the mask of live lanes (None: all)."""

    __slots__ = ("var", "start", "base", "width", "mask")

    def __init__(self, var: str, start: Int, base: Reg, width: int, mask: Reg | None) -> None:
        self.var, self.start, self.base, self.width, self.mask = var, start, base, width, mask


class Integers:
    """Index expressions as registers: uniform, or a vector where they depend on the lane."""

    def __init__(self, f: FunctionText) -> None:
        self.f = f
        self.vars: dict[str, Reg] = {}
        self.exprs: dict[Expr, Reg] = {}
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
        self.exprs[e] = total
        return total

    def atom(self, a: Atom) -> Reg:
        if a.args:
            x, y = (self.integer(v) for v in a.args)
            if x.width > 1 and bounds(a.args[0])[1] is not None and (bounds(a.args[0])[1] or 0) < 2**31 and isinstance(a.args[1], int):
                return self._narrow_division("udiv" if a.key[0] == "floordiv" else "urem", x, a.args[1])
            if (bounds(a.args[1])[0] or 0) < 1:  # an extent that may be 0: then nothing is read at this index, but the division must not trap
                y = self.f.emit(f"call i64 @llvm.smax.i64({y.typed}, i64 1)", "i64", 1)
            return self.f.int_op("udiv" if a.key[0] == "floordiv" else "urem", x, y)
        if self.lane is not None and a.name == self.lane.var:
            if self.lane.width == 1:
                return self.lane.base
            return self.f.int_op("add", self.lane.base, lane_numbers(self.lane.width))
        return self.named(a.name)

    def _narrow_division(self, op: str, x: Reg, divisor: int) -> Reg:
        """Vector division by a constant in 32 bits, where there is a vector multiply-high."""
        narrow = self.f.emit(f"trunc {x.typed} to {vector('i32', x.width)}", "i32", x.width)
        r = self.f.int_op(op, narrow, Reg(str(divisor), "i32", 1))
        return self.f.emit(f"zext {r.typed} to {vector('i64', x.width)}", "i64", x.width)


class KernelWriter(Integers):
    """Writes one kernel function."""

    def __init__(self, kernel: Kernel, functions: Functions, precision: str, target: Any) -> None:
        super().__init__(FunctionText())
        self.kernel, self.target = kernel, target
        self.code = ScalarCode(self.f, functions, FLAGS[precision])
        self.env: dict[Any, Reg] = {}
        self.values: dict[str, Ins] = {}  # values that index expressions name
        self.pointers: dict[Any, str] = {}
        self.state: dict[Acc, list[Reg]] = {}
        self.begin, self.end = Reg("%begin", "i64", 1), Reg("%end", "i64", 1)
        self.passed: Int = 0  # chunks of the parallel loops before the present one
        sizes = {b.dtype.itemsize for b in kernel.params + kernel.scratch}
        self.masked = target.has("avx512bw") or (target.has("avx2") and sizes <= {4, 8})

    def render(self, name: str) -> str:
        f, n = self.f, 0
        for b in self.kernel.params:
            slot = f.emit(f"getelementptr i64, ptr %args, i64 {n}")
            self.pointers[b] = f.emit(f"load ptr, ptr {slot.text}, align 8, !invariant.load !1").text
            n += 1
        for s in self.kernel.symbols:
            slot = f.emit(f"getelementptr i64, ptr %args, i64 {n}")
            self.vars[s] = f.emit(f"load i64, ptr {slot.text}, align 8, !invariant.load !1", "i64", 1)
            n += 1
        self._body()
        return f.text(f"define void @{name}(ptr noalias readonly %args, i64 %begin, i64 %end, ptr noalias %scratch) #0")

    def render_direct(self, name: str, inline: bool) -> str:
        """As :meth:`render`, but all chunks at once, and the parameters, buffers then symbols, as arguments of their own before ``scratch``."""
        arguments = []
        for i, b in enumerate(self.kernel.params):
            self.pointers[b] = f"%p{i}"
            arguments.append(f"ptr %p{i}")
        for i, s in enumerate(self.kernel.symbols):
            self.vars[s] = Reg(f"%s{i}", "i64", 1)
            arguments.append(f"i64 %s{i}")
        stop = self.integer(self.kernel.chunks)
        self.begin, self.end = Reg("0", "i64", 1), stop
        self._body()
        return self.f.text(f"define internal void @{name}({', '.join([*arguments, 'ptr %scratch'])}) #{1 if inline else 0}")

    def _body(self) -> None:
        f, offset = self.f, 0
        for b in self.kernel.scratch:
            self.pointers[b] = f.emit(f"getelementptr i8, ptr %scratch, i64 {offset}").text
            assert isinstance(b.size, int)
            offset += -(-b.size * b.dtype.itemsize // 64) * 64
        self.block(self.kernel.body)
        f.do("ret void")

    def named(self, name: str) -> Reg:
        return self.vars[name] if name in self.vars else self.code.operand(self.values[name], self.env, 1)

    # --- statements ----------------------------------------------------------------------------------------------------

    def block(self, body: list[Stmt]) -> None:
        for s in body:
            if isinstance(s, Loop):
                self.loop(s)
            elif isinstance(s, Store):
                self.store(s)
            elif isinstance(s, Accumulate):
                self.accumulate(s)
            elif isinstance(s, Prefetch):
                self.prefetch(s)
            else:
                self.env[s] = self.instruction(s)
                if s.name:
                    self.values[s.name] = s

    def scoped(self, body: Any) -> Any:
        """Runs ``body()``; what it defines is forgotten after it, since its block need not dominate what follows."""
        saved = dict(self.env), dict(self.exprs), dict(self.vars)
        out = body()
        self.env, self.exprs, self.vars = saved
        return out

    def instruction(self, ins: Ins) -> Reg:
        width = self.lane.width if self.lane else 1
        match ins.op:
            case "const":
                return self.code.operand(ins, self.env, 1)
            case "load":
                return self.load(ins, width)
            case "index":
                (e,) = ins.attrs
                return self.code.cast(self.integer(e), int64, ins.dtype)
            case "inside":
                e, size = ins.attrs
                x, n = self.integer(e), self.integer(size)
                x, n = self.f.splat(x, max(x.width, n.width)), self.f.splat(n, max(x.width, n.width))
                return self.f.emit(f"icmp ult {x.typed}, {n.text}", "i1", x.width)
            case "scan":
                return self.scan(ins)
        return self.code.row(ins, self.env, width)

    # --- memory --------------------------------------------------------------------------------------------------------

    def address(self, buffer: Any, index: Int) -> tuple[str, Reg | None, int]:
        """``(kind, pointer or vector of pointers, stride)``: kind is uniform, strided (pointer of lane 0) or scattered."""
        t = memory_type(buffer.dtype)
        base = self.pointers[buffer]
        lane = self.lane
        if lane is not None and lane.width > 1:
            linear = None if self._depends_on_vector(index) else split_linear(index, lane.var)
            if linear is None or not isinstance(linear[0], int) or linear[0] not in (0, 1, -1):
                x = self.integer(index)
                if x.width > 1:
                    ptrs = self.f.emit(f"getelementptr {t}, ptr {base}, {x.typed}", "ptr", x.width)
                    return "scattered", ptrs, 0
                return "uniform", self.f.emit(f"getelementptr {t}, ptr {base}, {x.typed}", "ptr", 1), 0
            c, rest = linear
            first = self.integer(rest)
            if c:
                first = self.f.int_op("add" if c == 1 else "sub", first, lane.base)
            return ("strided" if c else "uniform"), self.f.emit(f"getelementptr {t}, ptr {base}, i64 {first.text}", "ptr", 1), int(c)
        x = self.integer(index)
        return "uniform", self.f.emit(f"getelementptr {t}, ptr {base}, {x.typed}", "ptr", 1), 0

    def _depends_on_vector(self, index: Int) -> bool:
        """Whether an index goes through a value (a gather) that differs between lanes."""
        return bool(self.values) and any(a.name in self.values and self.env[self.values[a.name]].width > 1 for a in atoms(index))

    def load(self, ins: Ins, width: int) -> Reg:
        buffer, index = ins.attrs
        f, t = self.f, memory_type(buffer.dtype)
        kind, p, stride = self.address(buffer, index)
        assert p is not None
        mask = self.env[ins.args[0]] if ins.args else None
        if kind == "uniform" and (mask is None or mask.width == 1):
            return self._uniform_load(p, t, buffer.dtype, mask)
        live = self._mask(mask, width)
        if kind == "uniform":  # one address, some lanes: a gather from it
            p = f.splat(p, width)
            kind = "scattered"
        align = buffer.dtype.itemsize
        vt, s = vector(t, width), suffix(t, width)
        if kind == "scattered":
            m = live.text if live else self._all(width)
            r = f.emit(
                f"call {vt} @llvm.masked.gather.{s}.v{width}p0(<{width} x ptr> {p.text}, i32 {align}, <{width} x i1> {m}, {vt} zeroinitializer)",
                t,
                width,
            )
        elif stride == -1:
            r = self._reversed_load(p, t, width, align, live)
        elif live is None:
            r = f.emit(f"load {vt}, ptr {p.text}, align {align}", t, width)
        else:
            r = f.emit(f"call {vt} @llvm.masked.load.{s}.p0(ptr {p.text}, i32 {align}, <{width} x i1> {live.text}, {vt} zeroinitializer)", t, width)
        return self._from_memory(r, buffer.dtype)

    def _uniform_load(self, p: Reg, t: str, d: DType, mask: Reg | None) -> Reg:
        f = self.f
        if mask is None:
            return self._from_memory(f.emit(f"load {t}, ptr {p.text}, align {d.itemsize}", t, 1), d)
        zero = {"half": "0xH0000", "float": "0.0", "double": "0.0"}.get(t, "0")
        return self._from_memory(f.branch_around(mask, lambda: f.emit(f"load {t}, ptr {p.text}, align {d.itemsize}", t, 1), Reg(zero, t, 1), likely=True), d)

    def _reversed_load(self, p: Reg, t: str, width: int, align: int, live: Reg | None) -> Reg:
        f, vt = self.f, vector(t, width)
        low = f.emit(f"getelementptr {t}, ptr {p.text}, i64 {1 - width}", "ptr", 1)
        if live is None:
            r = f.emit(f"load {vt}, ptr {low.text}, align {align}", t, width)
        else:
            m = self._reverse(live)
            r = f.emit(
                f"call {vt} @llvm.masked.load.{suffix(t, width)}.p0(ptr {low.text}, i32 {align}, <{width} x i1> {m.text}, {vt} zeroinitializer)",
                t,
                width,
            )
        return self._reverse(r)

    def _reverse(self, r: Reg) -> Reg:
        order = ", ".join(f"i32 {i}" for i in reversed(range(r.width)))
        return self.f.emit(f"shufflevector {r.typed}, {vector(r.type, r.width)} poison, <{r.width} x i32> <{order}>", r.type, r.width)

    def _from_memory(self, r: Reg, d: DType) -> Reg:
        if d.kind != "b":
            return r
        return self.f.emit(f"icmp ne {r.typed}, {'zeroinitializer' if r.width > 1 else '0'}", "i1", r.width)

    def _all(self, width: int) -> str:
        return "splat (i1 true)"

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
        kind, p, stride = self.address(s.buffer, s.index)
        assert p is not None
        t, align = memory_type(d), d.itemsize
        if kind == "uniform":
            width = 1
        v = self.code.operand(s.value, self.env, width)
        if v.width > width:  # one address, so a loop of one iteration
            v = f.emit(f"extractelement {v.typed}, i64 0", v.type, 1)
        if d.kind == "b":
            v = f.emit(f"zext {v.typed} to {vector('i8', width)}", "i8", width)
        mask = self.env[s.mask] if s.mask is not None else None
        if width == 1 and mask is not None:
            self._store_if(mask, v, p, align)
            return
        live = self._mask(mask, width) if width > 1 else None
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
            if live is None:
                how = "align 64, !nontemporal !2" if stride == 1 and self._streams(s) else f"align {align}"
                f.do(f"store {v.typed}, ptr {p.text}, {how}")
            else:
                f.do(f"call void @llvm.masked.store.{suffix(t, width)}.p0({v.typed}, ptr {p.text}, i32 {align}, <{width} x i1> {live.text})")

    def prefetch(self, s: Prefetch) -> None:
        """One hint a cache line, to the second-level cache; a tail's lines are left to the hardware."""
        lane = self.lane
        if lane is None or lane.width == 1 or lane.mask is not None:
            return
        kind, p, stride = self.address(s.buffer, s.index)
        if kind != "strided" or stride != 1 or p is None:
            return
        for offset in range(0, lane.width * s.buffer.dtype.itemsize, CACHE_LINE):
            at = self.f.emit(f"getelementptr i8, ptr {p.text}, i64 {offset}", "ptr", 1)
            self.f.do(f"call void @llvm.prefetch.p0(ptr {at.text}, i32 0, i32 2, i32 1)")

    def _store_if(self, mask: Reg, v: Reg, p: Reg, align: int) -> None:
        f = self.f
        if mask.width > 1:
            mask = f.emit(f"extractelement {mask.typed}, i64 0", "i1", 1)
        then, done = f.fresh_label("then"), f.fresh_label("endif")
        f.do(f"br i1 {mask.text}, label %{then}, label %{done}")
        f.start(then)
        f.do(f"store {v.typed}, ptr {p.text}, align {align}")
        f.do(f"br label %{done}")
        f.start(done)

    def _streams(self, s: Store) -> bool:
        """Whether a store should pass the caches by: a result too large to be found there later, at a place certain to be aligned."""
        b, lane = s.buffer, self.lane
        if b.role != "out" or lane is None or not isinstance(b.size, int) or b.size * b.dtype.itemsize < STREAM_BYTES:
            return False
        step = CACHE_LINE // b.dtype.itemsize
        first = substitute(s.index, {lane.var: lane.start})
        return lane.width % step == 0 and mod(first, step) == 0

    # --- loops ---------------------------------------------------------------------------------------------------------

    def loop(self, loop: Loop) -> None:
        if loop.kind == "parallel":
            self.scoped(lambda: self._parallel(loop))
            self.passed = self.passed + loop.extent
        elif loop.kind == "lanes":
            self._lanes(loop)
        else:
            self._serial(loop)

    def _parallel(self, loop: Loop) -> None:
        def body(i: Reg, _: list[Reg]) -> list[Reg]:
            self.vars[loop.var] = i
            self.scoped(lambda: self.block(loop.body))
            return []

        first, last = self.begin, self.end
        if loop.extent != self.kernel.chunks:
            first, last = (self._clipped(r, loop.extent) for r in (first, last))
        self.f.counted(first, last, 1, [], body)

    def _clipped(self, chunk: Reg, extent: Int) -> Reg:
        """A chunk's number as one of the present parallel loop, or the nearer end of it."""
        f = self.f
        at = chunk if self.passed == 0 else f.emit(f"sub nsw i64 {chunk.text}, {self.integer(self.passed).text}", "i64", 1)
        at = f.emit(f"call i64 @llvm.smax.i64({at.typed}, i64 0)", "i64", 1)
        return f.emit(f"call i64 @llvm.smin.i64({at.typed}, {self.integer(extent).typed})", "i64", 1)

    def _range(self, loop: Loop) -> tuple[Reg, Reg]:
        start = self.integer(loop.start)
        stop = self.integer(loop.start + loop.extent)
        if loop.limit is not None:
            limit = self.integer(loop.limit)
            stop = self.f.emit(f"call i64 @llvm.smin.i64({stop.typed}, {limit.typed})", "i64", 1)
        return start, stop

    def _monoids(self, loop: Loop) -> list[Monoid]:
        return [Monoid(a, self.code) for a in loop.accs]

    def _serial(self, loop: Loop) -> None:
        """Column form: each lane of the enclosing loop accumulates left to right, a partial result every PAGE iterations."""
        width = self.lane.width if self.lane else 1
        start, stop = self._range(loop)
        monoids = self._monoids(loop)
        first = [r for m in monoids for r in m.identity(width)]

        def run(units: list[int], lo: Reg, hi: Reg) -> list[Reg]:
            def body(i: Reg, carried: list[Reg]) -> list[Reg]:
                def inner() -> list[Reg]:
                    self.vars[loop.var] = i
                    self._set(monoids, carried)
                    self.block(loop.body)
                    return self._get(monoids)

                return self.scoped(inner)

            def piece(i: Reg, carried: list[Reg]) -> list[Reg]:
                part = self.scoped(lambda: run(units[1:], i, self._end(i, units[0], hi)))
                return combine_all(monoids, carried, part)

            return self.f.counted(lo, hi, units[0], first, piece) if units else self.f.counted(lo, hi, 1, first, body)

        self._finish(monoids, run([] if self._scans(loop) or not monoids else _pieces(loop.extent), start, stop))

    def _end(self, start: Reg, size: int, stop: Reg) -> Reg:
        """The end of a piece of ``size`` iterations."""
        end = self.f.emit(f"add nsw i64 {start.text}, {size}", "i64", 1)
        return self.f.emit(f"call i64 @llvm.smin.i64(i64 {end.text}, {stop.typed})", "i64", 1)

    def _scans(self, loop: Loop) -> bool:
        return any(isinstance(s, Ins) and s.op == "scan" for s in loop.body)

    def _set(self, monoids: list[Monoid], regs: list[Reg]) -> None:
        at = 0
        for m in monoids:
            self.state[m.acc] = list(regs[at : at + m.components])
            at += m.components

    def _get(self, monoids: list[Monoid]) -> list[Reg]:
        return [r for m in monoids for r in self.state[m.acc]]

    def _finish(self, monoids: list[Monoid], regs: list[Reg]) -> None:
        self._set(monoids, regs)
        for m in monoids:
            self.env[m.acc] = m.result(self.state[m.acc])

    def _width(self, loop: Loop) -> int:
        """Lanes of a loop without accumulators: two native vectors of 32-bit elements. Across a serial loop as many as its accumulators have
        registers for, so that each step reads whole stretches of memory. Narrow enough for the loop's extent."""
        width = max(4, self.target.vector_bytes // 2)
        accs = [a for s in loop.body if isinstance(s, Loop) for a in s.accs]
        if accs:
            room = self.target.registers * 3 // 4 * self.target.vector_bytes // max(a.value_dtype.itemsize for a in accs)
            while width * 2 * len(accs) <= room and width < WIDEST:
                width *= 2
        if isinstance(loop.extent, int):
            while width > 4 and width // 2 >= loop.extent:
                width //= 2
        return width

    def _lanes(self, loop: Loop) -> None:
        monoids = self._monoids(loop)
        start, stop = self._range(loop)
        if self._scans(loop):
            self._finish(monoids, self._vectors(loop, monoids, start, stop, GROUP))
        elif not monoids:
            self._vectors(loop, monoids, start, stop, self._width(loop))
        else:
            self._finish(monoids, self._paged_lanes(loop, monoids, _pieces(loop.extent), start, stop))

    def _paged_lanes(self, loop: Loop, monoids: list[Monoid], units: list[int], start: Reg, stop: Reg) -> list[Reg]:
        """Row form: beyond a page a partial result a page, and the same order again over the partial results."""
        if not units:
            return reduce_lanes(monoids, self._vectors(loop, monoids, start, stop, LANES))
        partial = PartialLanes(self.f, monoids)

        def piece(i: Reg, carried: list[Reg]) -> list[Reg]:
            part = self.scoped(lambda: self._paged_lanes(loop, monoids, units[1:], i, self._end(i, units[0], stop)))
            partial.take(part, carried[0])
            return [self.f.emit(f"add nsw i64 {carried[0].text}, 1", "i64", 1)]

        self.f.counted(start, stop, units[0], [Reg("0", "i64", 1)], piece)
        return partial.result()

    def _vectors(self, loop: Loop, monoids: list[Monoid], start: Reg, stop: Reg, width: int) -> list[Reg]:
        """The loop over whole vectors, then its tail; gives the lanes of the accumulators."""
        f = self.f
        scans = self._scans(loop)
        lanes_carried = [r for m in monoids for r in m.identity(1 if scans else width)]
        static = isinstance(loop.extent, int) and loop.limit is None and not monoids_paged(loop)
        whole = loop.extent // width * width if static and isinstance(loop.extent, int) else None
        if whole is None:
            count = f.emit(f"sub nsw i64 {stop.text}, {start.text}", "i64", 1)
            rest = f.emit(f"srem i64 {count.text}, {width}", "i64", 1)
            main_stop = f.emit(f"sub nsw i64 {stop.text}, {rest.text}", "i64", 1)
        else:
            main_stop = self.integer(loop.start + whole)
            rest = Reg(str(loop.extent - whole), "i64", 1)
        state = lanes_carried
        if whole != 0:
            state = f.counted(
                start, main_stop, width, state, lambda i, c: self._vector_body(loop, monoids, i, width, None, c), at_least_once=bool(whole)
            )
        if whole is not None and whole == loop.extent:
            return state
        if not self.masked and not scans:
            return f.counted(main_stop, stop, 1, state, lambda i, c: self._scalar_tail(loop, monoids, i, main_stop, width, c))
        return self._masked_tail(loop, monoids, main_stop, rest, width, state, always=whole is not None)

    def _vector_body(self, loop: Loop, monoids: list[Monoid], i: Reg, width: int, mask: Reg | None, carried: list[Reg]) -> list[Reg]:
        def inner() -> list[Reg]:
            outer, self.lane = self.lane, Lane(loop.var, loop.start, i, width, mask)
            self._set(monoids, carried)
            self.block(loop.body)
            self.lane = outer
            return self._get(monoids)

        return self.scoped(inner)

    def _masked_tail(self, loop: Loop, monoids: list[Monoid], at: Reg, rest: Reg, width: int, state: list[Reg], always: bool) -> list[Reg]:
        f = self.f

        def tail(first: Reg, carried: list[Reg]) -> list[Reg]:
            t = "i64" if width <= 8 else "i32" if width <= 32 else "i8"
            n = rest if t == "i64" else f.emit(f"trunc i64 {rest.text} to {t}", t, 1) if rest.text.startswith("%") else Reg(rest.text, t, 1)
            n = f.splat(n, width)
            mask = f.emit(f"icmp ult {vector(t, width)} {lane_numbers(width, t).text}, {n.text}", "i1", width)
            return self._vector_body(loop, monoids, first, width, mask, carried)

        if always:
            return tail(at, state)
        stop = f.emit(f"add nsw i64 {at.text}, {rest.text}", "i64", 1)
        return f.counted(at, stop, width, state, tail)

    def _scalar_tail(self, loop: Loop, monoids: list[Monoid], i: Reg, first: Reg, width: int, carried: list[Reg]) -> list[Reg]:
        """One element at a time; a reduction's element goes to the lane that the written order gives it."""
        f = self.f
        lane = f.emit(f"sub nsw i64 {i.text}, {first.text}", "i64", 1)
        one = [f.emit(f"extractelement {r.typed}, i64 {lane.text}", r.type, 1) for r in carried]
        new = self._vector_body(loop, monoids, i, 1, None, one)
        return [f.emit(f"insertelement {r.typed}, {n.typed}, i64 {lane.text}", r.type, r.width) for r, n in zip(carried, new, strict=True)]

    # --- accumulators --------------------------------------------------------------------------------------------------

    def accumulate(self, s: Accumulate) -> None:
        old = self.state[s.acc]
        width = old[0].width
        monoid = Monoid(s.acc, self.code)
        new = monoid.combine(old, monoid.lift([self.code.operand(a, self.env, width) for a in s.args]))
        mask = self.lane.mask if self.lane and width > 1 and self.lane.width == width else None
        if mask is not None:
            new = [self.f.emit(f"select {mask.typed}, {n.typed}, {o.typed}", n.type, width) for n, o in zip(new, old, strict=True)]
        self.state[s.acc] = new

    def scan(self, ins: Ins) -> Reg:
        """The running value: in a serial loop the accumulator itself; in a lanes loop a group of 16 at a time."""
        (acc,) = ins.attrs
        monoid = Monoid(acc, self.code)
        (carry,) = self.state[acc]
        in_lanes = self.lane is not None and self.lane.width > 1 and carry.width == 1
        x = self.code.operand(ins.args[0], self.env, self.lane.width if in_lanes and self.lane else carry.width)
        if not in_lanes:
            (out,) = monoid.combine([carry], [x])
            self.state[acc] = [out]
            return out
        assert self.lane is not None
        out, last = scan_group(monoid, carry, x, self.lane.mask)
        self.state[acc] = [last]
        return out


def monoids_paged(loop: Loop) -> bool:
    """Whether the loop is cut in pages by its accumulators, so that its extent is not that of one run."""
    return bool(loop.accs) and bool(_pieces(loop.extent))


def _pieces(extent: Int) -> list[int]:
    """Lengths of the pieces of which partial results are combined, the longest first: pages, pages of pages where there may be that many."""
    return [n for n in (PAGE**2, PAGE) if not isinstance(extent, int) or extent > n]
