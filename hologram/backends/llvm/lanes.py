"""Loops over lanes in LLVM IR: whole vectors and a masked, narrow or scalar tail; horizontal reductions page by page."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

from hologram.backends.llvm.accumulators import Monoid, PartialLanes, positions_of_extremes, reduce_lanes
from hologram.backends.llvm.memory import STACK_SLOT_BYTES, Lane, MemoryWriter
from hologram.backends.llvm.mixed_width import Part, mixed_width_parts, mixed_widths
from hologram.backends.llvm.scalars import FLAGS, Functions, ScalarCode
from hologram.backends.llvm.text import FunctionText, Reg, lane_numbers, memory_type, pieces, replaced, vector
from hologram.graph.kernel.ir import Acc, Kernel, Loop, Stmt, Store, summed_terms
from hologram.graph.lower.masked_rows import row_mask
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Int, atoms, split_linear
from hologram.primitives.reductions import GROUP, INTEGER_LANES, LANES, PAGE

MAX_LANES = 128  # lanes
MAX_UNROLLED_STATEMENTS = 64  # of a short loop of vectors, over all iterations, which LLVM may write one after the other


class LanesWriter(MemoryWriter):
    """Writes the lanes loops of a kernel; :meth:`block` writes their bodies."""

    def __init__(self, kernel: Kernel, functions: Functions, precision: str, target: Any) -> None:
        super().__init__(ScalarCode(FunctionText(), functions, FLAGS[precision]), target)
        self.state: dict[Acc, list[Reg]] = {}
        self.positions: dict[Acc, Acc] = {}  # of extremes whose index is wanted too, the accumulator of the index
        self.zero: Reg | None = None  # that LLVM does not know of
        self.bodies: dict[Loop, Callable[[], None]] = {}  # what writes the bodies of loops that the kernel does not have
        self.parts: list[Part] = []  # of the lanes loop being written, where one iteration takes several vectors
        self.pair_dots = summed_terms(kernel, "pair_dot") if precision != "exact" and target.adds_bfloat16_pairs else frozenset()
        sizes = {b.dtype.itemsize for b in kernel.params + kernel.scratch}
        self.masked = target.has("avx512bw") or (target.has("avx2") and sizes <= {4, 8})
        self.unlimited: set[Loop] = set()  # loops of masked rows, which are being written for where the mask holds
        self.hides_indices = target.splits_masks and any(isinstance(s, Ins) and s.op == "load" and s.args for s in kernel.walk())

    def block(self, body: list[Stmt]) -> None:
        raise NotImplementedError

    def scoped(self, body: Any) -> Any:
        """Runs ``body()``; what it defines is forgotten after it, since its block need not dominate what follows."""
        saved = dict(self.env), dict(self.values), dict(self.exprs), dict(self.vars), dict(self.blocks)
        out = body()
        self.env, self.values, self.exprs, self.vars, self.blocks = saved
        return out

    def _range(self, loop: Loop) -> tuple[Reg, Reg]:
        start = self._hidden(self.integer(loop.start))
        stop = self.f.int_op("add", start, self.integer(loop.extent)) if self.hides_indices else self.integer(loop.start + loop.extent)
        if (end := self._limit(loop)) is not None:
            limit = self.integer(end)
            stop = self.f.emit(f"call i64 @llvm.smin.i64({stop.typed}, {limit.typed})", "i64", 1)
        return start, stop

    def _limit(self, loop: Loop) -> Int | None:
        """The limit of a loop, None where it has none or is inside of the branch on its mask."""
        return None if loop in self.unlimited else loop.limit

    def _hidden(self, n: Reg) -> Reg:
        """``n`` for LLVM not to know, where a constant may make it wrong: where a mask is a condition of all lanes and a constant for each, of more
        lanes than a register has, LLVM's code for AVX and AVX2 loads a half in which the constant is zero as if it were all ones, or aborts."""
        return n if self.zero is None else self.f.int_op("add", n, self.zero)

    def _monoids(self, loop: Loop) -> list[Monoid]:
        self.positions |= positions_of_extremes(loop)
        return [self.monoid(a) for a in loop.accs]

    def monoid(self, acc: Acc) -> Monoid:
        return Monoid(acc, self.code, self.positions.get(acc))

    def _end(self, start: Reg, size: int, stop: Reg) -> Reg:
        """The end of a piece of ``size`` iterations."""
        end = self.f.emit(f"add nsw i64 {start.text}, {size}", "i64", 1)
        return self.f.emit(f"call i64 @llvm.smin.i64(i64 {end.text}, {stop.typed})", "i64", 1)

    def _scans(self, loop: Loop) -> bool:
        return any(isinstance(s, Ins) and s.op == "scan" for s in loop.body)

    def _states(self) -> list[dict[Acc, list[Reg]]]:
        return [p.state for p in self.parts] or [self.state]

    def _set(self, monoids: list[Monoid], regs: list[Reg]) -> None:
        at = 0
        for state in self._states():
            for m in monoids:
                state[m.acc] = list(regs[at : at + m.components])
                at += m.components

    def _get(self, monoids: list[Monoid]) -> list[Reg]:
        return [r for state in self._states() for m in monoids for r in state[m.acc]]

    def _finish(self, monoids: list[Monoid], regs: list[Reg]) -> None:
        self._set(monoids, regs)
        for m in monoids:
            self.env[m.acc] = m.result(self._states()[0])
            for part in self.parts:
                part.env[m.acc] = m.result(part.state)

    def _width(self, loop: Loop) -> int:
        """Lanes of a loop without accumulators: two native vectors of 32-bit elements. Across a serial loop as many as its accumulators have
        registers for, so that each step reads whole stretches of memory. Narrow enough for the loop's extent."""
        width = max(4, self.target.vector_bytes // 2)
        accs = [a for s in loop.body if isinstance(s, Loop) for a in s.accs]
        if accs:
            room = self.target.registers * 3 // 4 * self.target.vector_bytes // max(a.value_dtype.itemsize for a in accs)
            while width * 2 * len(accs) <= room and width < MAX_LANES:
                width *= 2
        if isinstance(loop.extent, int):
            while width > 4 and width // 2 >= loop.extent:
                width //= 2
        return width

    def _lanes(self, loop: Loop) -> None:
        monoids = self._monoids(loop)
        if not self._scans(loop) and (mask := row_mask(loop, self.values)) is not None:
            self._finish(monoids, self._masked_row(loop, monoids, mask))
            return
        start, stop = self._range(loop)
        if self._scans(loop):
            self._finish(monoids, self._vectors(loop, monoids, start, stop, GROUP))
        elif not monoids and (widths := self._mixed_widths(loop)):
            self._mixed_width_lanes(loop, start, widths)
        elif not monoids:
            self._vectors(loop, monoids, start, stop, self._width(loop))
        else:
            self._finish(monoids, self._paged_lanes(loop, monoids, reduced_pieces(loop.extent), start, stop))

    def _masked_row(self, loop: Loop, monoids: list[Monoid], mask: Ins) -> list[Reg]:
        """The whole loop where the mask holds, behind a branch: its length is known there."""
        f = self.f
        self.unlimited.add(loop)

        def row(_: Reg, carried: list[Reg]) -> list[Reg]:
            return self.scoped(lambda: self._paged_lanes(loop, monoids, reduced_pieces(loop.extent), *self._range(loop)))

        holds = f.emit(f"zext i1 {self.code.operand(mask, self.env, 1).text} to i64", "i64", 1)
        return f.counted(Reg("0", "i64", 1), holds, 1, [r for m in monoids for r in m.identity(1)], row)

    def _mixed_widths(self, loop: Loop) -> list[int]:
        """Vectors that cover all columns whose accumulators fit in registers together; none where one vector will do, or masks are wanting."""
        accs = [a for s in loop.body if isinstance(s, Loop) for a in s.accs]
        if not accs or not isinstance(loop.extent, int) or loop.limit is not None or self._width(loop) < loop.extent:
            return []
        widths = mixed_widths(loop.extent, self.target.vector_bytes // max(a.value_dtype.itemsize for a in accs))
        return widths if self.masked or sum(widths) == loop.extent else []

    def _mixed_width_lanes(self, loop: Loop, start: Reg, widths: list[int]) -> None:
        def inner() -> None:
            self.parts = mixed_width_parts(self.f, loop, start, widths)
            self.block(loop.body)
            self.parts = []

        self.scoped(inner)

    def _paged_lanes(self, loop: Loop, monoids: list[Monoid], units: list[int], start: Reg, stop: Reg) -> list[Reg]:
        """Horizontal reduction: beyond a page a partial result a page, and the same order again over the partial results."""
        if not units:
            width = self._reduced_lanes(loop)
            return reduce_lanes(monoids, self._vectors(loop, monoids, start, stop, width))
        if not isinstance(loop.extent, int):
            return self._perhaps_paged_lanes(loop, monoids, units, start, stop)
        partial = PartialLanes(self.f, monoids)
        partial.begin()

        def piece(i: Reg, carried: list[Reg]) -> list[Reg]:
            part = self.scoped(lambda: self._paged_lanes(loop, monoids, units[1:], i, self._end(i, units[0], stop)))
            partial.take(part, carried[0])
            return [self.f.emit(f"add nsw i64 {carried[0].text}, 1", "i64", 1)]

        self.f.counted(start, stop, units[0], [Reg("0", "i64", 1)], piece)
        return partial.result()

    def _perhaps_paged_lanes(self, loop: Loop, monoids: list[Monoid], units: list[int], start: Reg, stop: Reg) -> list[Reg]:
        """As :meth:`_paged_lanes` where the extent is known in a call: the result of a single piece is that of the loop."""
        f, partial = self.f, PartialLanes(self.f, monoids)
        count = f.emit(f"sub nsw i64 {stop.text}, {start.text}", "i64", 1)
        several = f.emit(f"icmp sgt i64 {count.text}, {units[0]}", "i1", 1)
        f.only_if(several, partial.begin)

        def piece(i: Reg, carried: list[Reg]) -> list[Reg]:
            part = self.scoped(lambda: self._paged_lanes(loop, monoids, units[1:], i, self._end(i, units[0], stop)))
            f.only_if(several, lambda: partial.take(part, carried[0]))
            return [f.emit(f"add nsw i64 {carried[0].text}, 1", "i64", 1), *part]

        nothing = [r for m in monoids for r in m.identity(1)]
        _, *last = f.counted(start, stop, units[0], [Reg("0", "i64", 1), *nothing], piece)
        once = f.emit(f"zext i1 {several.text} to i64", "i64", 1)
        return f.counted(Reg("0", "i64", 1), once, 1, last, lambda _, c: partial.result())

    def _reduced_lanes(self, loop: Loop) -> int:
        """Lanes of a reduction: in loops of the graph function no more than there are elements, since all others would hold the identity; few where
        the kernel finds the range of a loop of integers, whose order is free."""
        n, width, limit = loop.extent, LANES, self._limit(loop)
        if limit is not None and self._is_computed(limit) and all(a.op.monoid and a.value_dtype.kind in "iub" for a in loop.accs):
            return INTEGER_LANES
        while self.code.is_inlined and not self.pair_dots and limit is None and isinstance(n, int) and 1 < n <= width // 2:
            width //= 2
        return width

    def _is_computed(self, e: Int) -> bool:
        return any(a.name in self.values for a in atoms(e))

    def _vectors(self, loop: Loop, monoids: list[Monoid], start: Reg, stop: Reg, width: int) -> list[Reg]:
        """The loop over whole vectors, then its tail; gives the lanes of the accumulators."""
        f = self.f
        scans = self._scans(loop)
        lanes_carried = [r for m in monoids for r in m.identity(1 if scans else width)]
        static = isinstance(loop.extent, int) and self._limit(loop) is None and not monoids_paged(loop)
        whole = loop.extent // width * width if static and isinstance(loop.extent, int) else None
        if whole is None:
            count = f.emit(f"sub nsw i64 {stop.text}, {start.text}", "i64", 1)
            rest = f.emit(f"srem i64 {count.text}, {width}", "i64", 1)
            main_stop = f.emit(f"sub nsw i64 {stop.text}, {rest.text}", "i64", 1)
        else:
            main_stop = f.int_op("add", start, Reg(str(whole), "i64", 1)) if self.hides_indices else self.integer(loop.start + whole)
            rest = self._hidden(Reg(str(loop.extent - whole), "i64", 1))
        state = lanes_carried
        if whole != 0:
            main = partial(self._whole_vectors, loop, monoids, start, main_stop, width, state, bool(whole))
            streamed = self._streamed_stores(loop, width)
            if streamed:
                self._in_either_way(streamed, loop, start, main)
            else:
                state = main()
        if whole is not None and whole == loop.extent:
            return state
        if not self.masked and not scans:
            return f.counted(main_stop, stop, 1, state, lambda i, c: self._scalar_tail(loop, monoids, i, main_stop, width, c))
        if whole is not None and not scans and not self.pair_dots and rest.text.isdigit():
            return self._known_tail(loop, monoids, main_stop, int(rest.text), width, state)
        return self._masked_tail(loop, monoids, main_stop, rest, width, state, always=whole is not None)

    def _whole_vectors(
        self, loop: Loop, monoids: list[Monoid], start: Reg, stop: Reg, width: int, state: list[Reg], at_least_once: bool
    ) -> list[Reg]:
        main = partial(self._vector_body, loop, monoids, width=width)
        may_unroll = _is_small(loop, width)
        return self.f.counted(start, stop, width, state, lambda i, c: main(i=i, mask=None, carried=c), at_least_once, may_unroll)

    def _streamed_stores(self, loop: Loop, width: int) -> list[Store]:
        """The stores of a loop of nothing but instructions, without accumulators, that may pass the caches by."""
        if loop.accs or any(isinstance(s, Loop) for s in loop.body):
            return []
        stores = [s for s in loop.body if isinstance(s, Store) and self.may_be_nontemporal(s, width)]
        return [s for s in stores if (linear := split_linear(s.index, loop.var)) is not None and linear[0] == 1]

    def _in_either_way(self, stores: list[Store], loop: Loop, start: Reg, main: Callable[[], object]) -> None:
        """A loop twice: for results that all are large and begin at a line of the cache, and for others. Where each store chooses for itself, a loop
        in the caches is slower."""
        f, outer = self.f, self.streamed
        wanted = [of for s in stores for of in (self.large[s.buffer], self.starts_line(self._place(s, loop, start)))]

        def run(streamed: frozenset[Store]) -> None:
            self.streamed = streamed
            self.scoped(main)

        f.either(functools.reduce(lambda a, b: f.int_op("and", a, b), wanted), lambda: run(frozenset(stores)), lambda: run(frozenset()))
        self.streamed = outer

    def _place(self, s: Store, loop: Loop, start: Reg) -> Reg:
        """Where the first lane is stored of a loop from ``start`` on."""
        linear = split_linear(s.index, loop.var)
        assert linear is not None
        first = self.f.int_op("add", self.integer(linear[1]), start)
        return self.f.emit(f"getelementptr {memory_type(s.buffer.dtype)}, ptr {self.pointers[s.buffer]}, {first.typed}", "ptr", 1)

    def _vector_body(
        self, loop: Loop, monoids: list[Monoid], i: Reg, width: int, mask: Reg | None, carried: list[Reg], live: int | None = None
    ) -> list[Reg]:
        def inner() -> list[Reg]:
            outer, self.lane = self.lane, Lane(loop.var, loop.start, i, width, mask, live, loop.extent)
            self._set(monoids, carried)
            self.bodies.get(loop, lambda: self.block(loop.body))()
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
            return self._vector_body(loop, monoids, first, width, mask, carried, int(rest.text) if rest.text.isdigit() else None)

        if always:
            return tail(at, state)
        stop = f.emit(f"add nsw i64 {at.text}, {rest.text}", "i64", 1)
        return f.counted(at, stop, width, state, tail)

    def _known_tail(self, loop: Loop, monoids: list[Monoid], at: Reg, rest: int, width: int, state: list[Reg]) -> list[Reg]:
        """The last ``rest`` elements, in the narrowest vector that has room for them."""
        narrow = 1 if rest == 1 else min(width, max(4, 1 << (rest - 1).bit_length()))
        if narrow == 1:
            return self._scalar_tail(loop, monoids, at, at, width, state)
        f, count = self.f, Reg(str(rest), "i64", 1)
        first = [next(iter(pieces(f, r, narrow))) for r in state]
        if rest == narrow:
            new = self._vector_body(loop, monoids, at, narrow, None, first)
        else:
            new = self._masked_tail(loop, monoids, at, count, narrow, first, always=True)
        return [replaced(f, r, n) for r, n in zip(state, new, strict=True)]

    def _scalar_tail(self, loop: Loop, monoids: list[Monoid], i: Reg, first: Reg, width: int, carried: list[Reg]) -> list[Reg]:
        """One element at a time; a reduction's element goes to the lane that the canonical order gives it."""
        f = self.f
        lane = f.emit(f"sub nsw i64 {i.text}, {first.text}", "i64", 1)
        one = [f.emit(f"extractelement {r.typed}, i64 {lane.text}", r.type, 1) for r in carried]
        new = self._vector_body(loop, monoids, i, 1, None, one)
        return [f.emit(f"insertelement {r.typed}, {n.typed}, i64 {lane.text}", r.type, r.width) for r, n in zip(carried, new, strict=True)]


def _is_small(loop: Loop, width: int) -> bool:
    """Whether a loop of vectors is worth unrolling: it takes memory that may then be in registers, or is short altogether."""
    buffers = [s.buffer if isinstance(s, Store) else s.attrs[0] for s in loop.body if isinstance(s, Store) or (isinstance(s, Ins) and s.op == "load")]
    is_short = isinstance(loop.extent, int) and loop.extent // width * len(loop.body) <= MAX_UNROLLED_STATEMENTS
    return is_short or any(isinstance(b.size, int) and b.size * b.dtype.itemsize <= STACK_SLOT_BYTES for b in buffers)


def monoids_paged(loop: Loop) -> bool:
    """Whether the loop is cut in pages by its accumulators, so that its extent is not that of one run."""
    return bool(loop.accs) and bool(reduced_pieces(loop.extent))


def reduced_pieces(extent: Int) -> list[int]:
    """Lengths of the pieces of which partial results are combined, the longest first: pages, pages of pages where there may be that many."""
    return [n for n in (PAGE**2, PAGE) if not isinstance(extent, int) or extent > n]
