"""Kernel IR to LLVM IR.

A ``lanes`` loop becomes a loop over vectors and one masked (or scalar) tail; values that do not depend on the lane stay
scalars. A kernel is ``void kernel(ptr args, i64 begin, i64 end, ptr scratch)``: it runs iterations [begin, end) of its parallel
loop; ``args`` holds one 8-byte slot a parameter, then a symbol. Checked ones (:mod:`bounds_checks`) take the call's context and sizes of parameters
besides.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from hologram.backends.llvm.accumulators import combine_all, scan_group
from hologram.backends.llvm.bfloat16_pairs import add_pairs
from hologram.backends.llvm.bounds_checks import BoundsChecks, symbolic_sizes
from hologram.backends.llvm.lanes import reduced_pieces
from hologram.backends.llvm.memory import Lane
from hologram.backends.llvm.register_transpose import every, find_transposed, row_of, transpose
from hologram.backends.llvm.row_blocks import RowBlocksWriter
from hologram.backends.llvm.scalars import Functions
from hologram.backends.llvm.text import Reg, memory_type, vector
from hologram.dtypes import int64
from hologram.graph.kernel.ir import Acc, Accumulate, Kernel, Loop, Prefetch, Stmt, Store, integers_in, is_fused_product, summed_terms
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Atom, Expr, Int, split_linear

MAX_BLOCK_STATEMENTS = 16  # of a loop whose iterations across a block that is transposed in registers are written one after the other
KEPT_ROLLED = "!4"  # metadata of the module: vector loops have long bodies, of which copies would only take time to compile


class KernelWriter(RowBlocksWriter):
    """Writes one kernel function, ``checked`` or not. The parameters numbered ``unaligned`` need not start at a line of the cache."""

    def __init__(
        self, kernel: Kernel, functions: Functions, precision: str, target: Any, checked: bool = False, unaligned: Collection[int] = ()
    ) -> None:
        super().__init__(kernel, functions, precision, target)
        self.unaligned = frozenset(kernel.params[i] for i in unaligned)
        self.kernel = kernel
        self.f.kept_rolled = KEPT_ROLLED
        self.checks = BoundsChecks(self.f, kernel) if checked else None
        self.of_columns: set[Acc] = set()  # accumulators of which each lane is a result of its own: what a dead lane holds is never stored
        self.in_sums = self.pair_dots | summed_terms(kernel, "fused_mul")  # computed where they are added
        self.begin, self.end = Reg("%begin", "i64", 1), Reg("%end", "i64", 1)
        self.chunk = self.begin, self.begin  # the present chunk, and the first that is run
        self.passed: Int = 0  # chunks of the parallel loops before the present one

    def render(self, name: str) -> str:
        f, n = self.f, itertools.count()

        def argument(t: str) -> Reg:
            slot = f.emit(f"getelementptr i64, ptr %args, i64 {next(n)}")
            return f.emit(f"load {t}, ptr {slot.text}, align 8, !invariant.load !1", t, 1)

        for b in self.kernel.params:
            self.pointers[b] = argument("ptr").text
        for s in self.kernel.symbols:
            self.vars[s] = argument("i64")
        if self.checks is not None:
            context = argument("ptr")
            self.checks.begin(name, context, [argument("i64") for _ in symbolic_sizes(self.kernel)])
        self._body()
        return self._text(f"define void @{name}(ptr noalias readonly %args, i64 %begin, i64 %end, ptr noalias %scratch) #0")

    def render_direct(self, name: str, inline: bool, aliased: Collection[int] = (), in_part: bool = False) -> str:
        """As :meth:`render`, but the parameters, buffers then symbols, are arguments of their own before ``scratch``. Those numbered ``aliased`` may
        be in memory that another one is in. It runs all chunks at once, unless ``in_part``: then it takes ``begin`` and ``end`` before
        ``scratch``."""
        arguments = []
        self.code.is_inlined = inline
        for i, b in enumerate(self.kernel.params):
            self.pointers[b] = f"%p{i}"
            arguments.append(f"ptr %p{i}" if i in aliased else f"ptr noalias %p{i}")
        for i, s in enumerate(self.kernel.symbols):
            self.vars[s] = Reg(f"%s{i}", "i64", 1)
            arguments.append(f"i64 %s{i}")
        if self.checks is not None:
            sizes = [Reg(f"%z{i}", "i64", 1) for i, _ in enumerate(symbolic_sizes(self.kernel))]
            self.checks.begin(name, Reg("%ctx", "ptr", 1), sizes)
            arguments += ["ptr %ctx", *(z.typed for z in sizes)]
        if in_part:
            arguments += ["i64 %begin", "i64 %end"]
        else:
            self.begin, self.end = Reg("0", "i64", 1), self.integer(self.kernel.iterations)
        self._body()
        return self._text(f"define internal void @{name}({', '.join([*arguments, 'ptr noalias %scratch'])}) #{1 if inline else 0}")

    def _text(self, header: str) -> str:
        return "\n".join([self.f.text(header), *(self.checks.literals if self.checks is not None else ())])

    def _body(self) -> None:
        f, offset = self.f, 0
        for b in self.kernel.scratch:
            self.pointers[b] = f.emit(f"getelementptr i8, ptr %scratch, i64 {offset}").text
            assert isinstance(b.size, int)
            offset += -(-b.size * b.dtype.itemsize // 64) * 64
        if self.checks is not None:
            self.checks.poison_scratch(self.pointers)
        if self.hides_indices:
            address = f.emit("ptrtoint ptr %scratch to i64", "i64", 1)
            self.zero = f.emit(f"lshr i64 {address.text}, 63", "i64", 1)  # no memory of a process is so high
        if not self.code.is_inlined:
            self.find_large(self.kernel.params)
        self.block(self.kernel.body)
        f.do("ret void")

    # --- statements ----------------------------------------------------------------------------------------------------

    def block(self, body: list[Stmt]) -> None:
        if self.parts:
            self._mixed_width_block(body)
            return
        written: set[Store] = set()
        for s in body:
            if isinstance(s, Loop):
                self.loop(s)
            elif isinstance(s, Store):
                if s not in written:
                    together = self._interleaved_store(s, body)
                    written.update(together)
                    if not together:
                        self.store(s)
            elif isinstance(s, Accumulate):
                self.accumulate(s)
            elif isinstance(s, Prefetch):
                self.prefetch(s)
            elif s not in self.in_sums:
                self._define(s, self.instruction(s))

    def _define(self, s: Ins, value: Reg) -> None:
        """Makes ``value`` that of ``s``, for statements and for the index expressions that name it."""
        self.env[s] = value
        if s.name:
            self.values[s.name] = s

    def _mixed_width_block(self, body: list[Stmt]) -> None:
        """Every statement for each part in turn; what does not depend on the lane once for all."""
        for is_shared, run in itertools.groupby(body, lambda s: isinstance(s, Loop | Ins)):
            if not is_shared:
                self._in_parts(list(run))
                continue
            for s in run:
                if isinstance(s, Loop):
                    self.loop(s)
                else:
                    self._in_parts([s])

    def _in_parts(self, run: list[Stmt]) -> None:
        """Statements without loops for each part."""
        parts, self.parts = self.parts, []
        outer = self.lane, self.state, self.blocks
        for part in parts:
            self.lane, self.state, self.blocks = part.lane, part.state, {}
            shared = {e: r for e, r in self.exprs.items() if r.width == 1}
            self.exprs = dict(shared)
            self.env.update(part.env)
            self.block(run)
            if part.lane.width == 1:
                self.exprs = shared  # its own are as wide as what all share
            if isinstance(run[0], Ins) and run[0] not in self.in_sums:
                part.env[run[0]] = self.env[run[0]]
                if self.env[run[0]].width < part.lane.width:
                    break  # it does not depend on the lane
        self.lane, self.state, self.blocks = outer
        self.parts = parts

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
                x, n = self.narrow(e, size) or (self.integer(e), self.integer(size))
                x, n = self.f.splat(x, max(x.width, n.width)), self.f.splat(n, max(x.width, n.width))
                return self.f.emit(f"icmp ult {x.typed}, {n.text}", "i1", x.width)
            case "scan":
                return self.scan(ins)
        return self.code.row(ins, self.env, width)

    # --- loops ---------------------------------------------------------------------------------------------------------

    def loop(self, loop: Loop) -> None:
        if loop.kind == "parallel":
            self.scoped(lambda: self._parallel(loop))
            self.passed = self.passed + loop.extent
        elif loop.kind == "lanes":
            self._lanes(loop)
        elif loop.shared != 1:
            self._unless_done(loop)
        elif not self._streams_around(loop):
            self._serial(loop)

    def _parallel(self, loop: Loop) -> None:
        def body(i: Reg, _: list[Reg]) -> list[Reg]:
            self.vars[loop.var] = i
            self.chunk = i, first
            self.scoped(lambda: self._iteration(loop))
            return []

        first, last = self.begin, self.end
        if loop.extent != self.kernel.iterations:
            first, last = (self._clipped(r, loop.extent) for r in (first, last))
        self.f.counted(first, last, 1, [], body)

    def _iteration(self, loop: Loop) -> None:
        """The body of a parallel loop. Divisions by sizes that are known in a call come before its loops: LLVM moves none out of a loop, since the
        divisor may be 0 where the loop has no iterations."""
        for a in dict.fromkeys(a for e in integers_in(loop.body) for a in _factors(e)):
            if _divides_by_size(a) and all(v.name in self.vars for v in a.inside):
                self.atom(a)
        self.block(loop.body)

    def _unless_done(self, loop: Loop) -> None:
        """A loop whose work chunks share: the first one of them that is run here does it."""
        f, (chunk, first) = self.f, self.chunk
        place = f.int_op("urem", chunk, self.integer(loop.shared))
        leads, begins = (f.emit(f"icmp eq i64 {a.text}, {b}") for a, b in ((place, "0"), (chunk, first.text)))
        wanted = f.emit(f"or i1 {leads.text}, {begins.text}", "i1", 1)
        f.only_if(wanted, lambda: self.scoped(lambda: self._serial(loop)))

    def _clipped(self, chunk: Reg, extent: Int) -> Reg:
        """A chunk's number as one of the present parallel loop, or the nearer end of it."""
        f = self.f
        at = chunk if self.passed == 0 else f.emit(f"sub nsw i64 {chunk.text}, {self.integer(self.passed).text}", "i64", 1)
        at = f.emit(f"call i64 @llvm.smax.i64({at.typed}, i64 0)", "i64", 1)
        return f.emit(f"call i64 @llvm.smin.i64({at.typed}, {self.integer(extent).typed})", "i64", 1)

    def _serial(self, loop: Loop) -> None:
        """Vertical reduction: each lane of the enclosing loop accumulates left to right, a partial result every PAGE iterations."""
        transposed = None if self.lane else find_transposed(loop, self.target.vector_bytes)
        if transposed is not None:
            self._in_blocks(loop, *transposed)
            return
        start, stop = self._range(loop)
        monoids = self._monoids(loop)
        self.of_columns.update(loop.accs)
        widths = [p.lane.width for p in self.parts] or [self.lane.width if self.lane else 1]
        first = [r for width in widths for m in monoids for r in m.identity(width)]

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
                return combine_all(monoids * len(widths), carried, part)

            return self.f.counted(lo, hi, units[0], first, piece) if units else self.f.counted(lo, hi, 1, first, body)

        self._finish(monoids, run([] if self._scans(loop) or not monoids else reduced_pieces(loop.extent), start, stop))

    def _in_blocks(self, loop: Loop, side: int, transposed: list[Ins]) -> None:
        """A loop around lanes by blocks of ``side`` iterations and lanes, in which the loads ``transposed`` are transposed; then what is left
        over."""
        f, (*head, lanes) = self.f, loop.body
        assert isinstance(lanes, Loop)
        start, stop = self._range(loop)
        main = self._whole(start, stop, side)

        def at(i: Reg, body: Callable[[], None]) -> list[Reg]:
            def inner() -> None:
                self.vars[loop.var] = i
                body()

            self.scoped(inner)
            return []

        def block_row(i: Reg) -> None:
            first, last = self._range(lanes)
            edge = self._whole(first, last, side)
            f.counted(first, edge, side, [], lambda t, _: self._transposed_block(loop, side, transposed, i, t))
            if lanes.limit is not None or lanes.extent % side:
                end = f.emit(f"add nsw i64 {i.text}, {side}", "i64", 1)
                f.counted(i, end, 1, [], lambda k, _: at(k, lambda: self._some_vectors(head, lanes, edge, last)))

        def block_rows(i: Reg, _: list[Reg]) -> list[Reg]:
            self.scoped(lambda: block_row(i))
            return []

        f.counted(start, main, side, [], block_rows)
        if loop.limit is not None or loop.extent % side:
            f.counted(main, stop, 1, [], lambda i, _: at(i, lambda: self.block(loop.body)))

    def _whole(self, start: Reg, stop: Reg, side: int) -> Reg:
        """The last place before ``stop`` that is whole blocks away from ``start``."""
        f = self.f
        count = f.emit(f"sub nsw i64 {stop.text}, {start.text}", "i64", 1)
        blocks = f.emit(f"and i64 {count.text}, {-side}", "i64", 1)
        return f.emit(f"add nsw i64 {start.text}, {blocks.text}", "i64", 1)

    def _some_vectors(self, head: list[Stmt], lanes: Loop, start: Reg, stop: Reg) -> None:
        self.block(head)
        some = Loop(lanes.kind, lanes.var, lanes.start, lanes.extent, lanes.start + lanes.extent)
        some.body = lanes.body
        self._vectors(some, [], start, stop, self._width(lanes))

    def _transposed_block(self, loop: Loop, side: int, transposed: list[Ins], i: Reg, t: Reg) -> list[Reg]:
        """One block: what is transposed first, and then ``side`` iterations across it."""
        f, (*head, lanes) = self.f, loop.body
        assert isinstance(lanes, Loop)
        columns = {load: transpose(f, self.scoped(lambda load=load: self._rows(load, loop, lanes, side, i, t))) for load in transposed}
        rest = [s for s in lanes.body if s not in transposed]

        def across(row: Reg, of: dict[Ins, Reg]) -> None:
            self.vars[loop.var] = row
            self.block(head)
            outer, self.lane = self.lane, Lane(lanes.var, lanes.start, t, side, None)
            for load, column in of.items():
                self._define(load, column)
            self.block(rest)
            self.lane = outer

        if not _is_light(lanes) or len(rest) > MAX_BLOCK_STATEMENTS:
            self._rolled_block(side, columns, i, across)
            return []
        for k in range(side):
            row = f.emit(f"add nsw i64 {i.text}, {k}", "i64", 1)
            self.scoped(partial(across, row, {load: made[k] for load, made in columns.items()}))
        return []

    def _rolled_block(self, side: int, columns: dict[Ins, list[Reg]], i: Reg, across: Callable[[Reg, dict[Ins, Reg]], None]) -> None:
        """The iterations across a block as a loop, to which its columns go through stack memory: code that is long would be so many times longer."""
        f = self.f
        slots = {load: f.slot(made[0].type, side * side) for load, made in columns.items()}
        for load, made in columns.items():
            for k, column in enumerate(made):
                p = f.emit(f"getelementptr {column.type}, ptr {slots[load]}, i64 {k * side}", "ptr", 1)
                f.do(f"store {column.typed}, ptr {p.text}, align {load.dtype.itemsize}")

        def one(k: Reg, _: list[Reg]) -> list[Reg]:
            at = f.emit(f"mul nsw i64 {k.text}, {side}", "i64", 1)
            of = {}
            for load, (first, *_) in columns.items():
                p = f.emit(f"getelementptr {first.type}, ptr {slots[load]}, {at.typed}", "ptr", 1)
                of[load] = f.emit(f"load {vector(first.type, side)}, ptr {p.text}, align {load.dtype.itemsize}", first.type, side)
            row = f.int_op("add", i, k)
            self.scoped(partial(across, row, of))
            return []

        f.counted(Reg("0", "i64", 1), Reg(str(side), "i64", 1), 1, [], one, at_least_once=True, may_unroll=False)

    def _rows(self, load: Ins, loop: Loop, lanes: Loop, side: int, i: Reg, t: Reg) -> list[Reg]:
        """What ``load`` reads in a block: for each lane from ``t`` on a vector along the serial loop from ``i`` on."""
        f, (buffer, index) = self.f, load.attrs
        self.vars[loop.var], self.vars[lanes.var] = i, t
        of_lane, row = split_linear(index, lanes.var), row_of(load, loop.var)
        assert of_lane is not None and row is not None
        step, offset = row
        self.statement = load
        kind, align = memory_type(buffer.dtype), buffer.dtype.itemsize
        first = self.integer(index - offset)
        corner = f.emit(f"getelementptr {kind}, ptr {self.pointers[buffer]}, {first.typed}", "ptr", 1)
        rows = []
        for k in range(side):
            ahead = self.integer(k * of_lane[0])
            p = f.emit(f"getelementptr {kind}, ptr {corner.text}, {ahead.typed}", "ptr", 1)
            p = self.checked(p, buffer, first, side * step, offset=k * of_lane[0])
            whole = f.emit(f"load {vector(kind, side * step)}, ptr {p.text}, align {align}", kind, side * step)
            rows.append(whole if step == 1 else every(f, whole, step, offset))
        return rows

    # --- accumulators --------------------------------------------------------------------------------------------------

    def accumulate(self, s: Accumulate) -> None:
        old = self.state[s.acc]
        width = old[0].width
        monoid = self.monoid(s.acc)
        (first, *_) = s.args
        if is_fused_product(first):
            factors = [self.code.operand(a, self.env, width) for a in first.args]
            new = [self.code.fused(s.acc.value_dtype, [*factors, *old])]
        elif first in self.pair_dots:
            new = [add_pairs(self.f, old[0], *(self.code.operand(a, self.env, width) for a in first.args))]
        else:
            new = monoid.follow(old, [self.code.operand(a, self.env, width) for a in s.args])
        mask = self.lane.mask if self.lane and width > 1 and self.lane.width == width else None
        if mask is not None and s.acc not in self.of_columns:
            new = [self.f.emit(f"select {mask.typed}, {n.typed}, {o.typed}", n.type, width) for n, o in zip(new, old, strict=True)]
        self.state[s.acc] = new

    def scan(self, ins: Ins) -> Reg:
        """The running value: in a serial loop the accumulator itself; in a lanes loop a group of 16 at a time."""
        (acc,) = ins.attrs
        monoid = self.monoid(acc)
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


def _is_light(loop: Loop) -> bool:
    """Whether a loop has no loops and calls no functions, which are long chains of instructions: neighbouring iterations overlap in the machine
    without wider vectors."""
    return not any(isinstance(s, Loop) or (isinstance(s, Ins) and not isinstance(s.op, str) and s.op.spelling is None) for s in loop.body)


def _factors(e: Int) -> list[Atom]:
    """Variables and quotients, as the terms of an integer have them."""
    return [a for m in e.terms for a in m] if isinstance(e, Expr) else []


def _divides_by_size(a: Atom) -> bool:
    """Whether some divisor in a quotient is known in a call alone."""
    return bool(a.args) and (isinstance(a.args[1], Expr) or any(map(_divides_by_size, _factors(a.args[0]))))
