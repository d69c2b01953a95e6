"""Accumulators: the monoids of reductions and scans in LLVM text, and the canonical order in which lanes and pages combine."""

from __future__ import annotations

import numpy as np

from hologram.backends.llvm.scalars import ScalarCode, constant
from hologram.backends.llvm.text import FunctionText, Reg, scalar_type, shuffle_half, suffix, vector
from hologram.graph.kernel.ir import Acc, Accumulate, Loop, Value, walk
from hologram.primitives.reductions import INDEX_MAX, LANES, identity_bits


class Monoid:
    """One accumulator's registers. Most hold the value; ``argmax`` and ``argmin`` also its index; float extremes hold ordered keys.

    ``position``: the accumulator of the index, where :func:`positions_of_extremes` finds one.
    """

    def __new__(cls, acc: Acc, code: ScalarCode, position: Acc | None = None) -> Monoid:
        if acc.op.monoid is None:
            cls = _Position
        elif position is not None:
            cls = _ZeroOfExtreme
        elif is_float_extreme(acc):
            cls = _FloatExtreme
        return super().__new__(cls)

    components = 1

    def __init__(self, acc: Acc, code: ScalarCode, position: Acc | None = None) -> None:
        self.acc, self.code, self.f, self.position = acc, code, code.f, position

    def identity(self, width: int) -> list[Reg]:
        return [self.f.splat(constant(self.acc.value_dtype, identity_bits(self.acc.op, self.acc.value_dtype)), width)]

    def lift(self, args: list[Reg]) -> list[Reg]:
        """An element as this accumulator's registers."""
        return args

    def combine(self, a: list[Reg], b: list[Reg]) -> list[Reg]:
        """``a o b``, ``a`` being the earlier."""
        d, (x,), (y,) = self.acc.value_dtype, a, b
        return [self.f.emit(self.code.spell(self.acc.op.monoid, d, d, [x, y], x.width), scalar_type(d), x.width)]

    def follow(self, a: list[Reg], args: list[Reg]) -> list[Reg]:
        """``a o x`` of an element ``x`` that comes after all that ``a`` has seen."""
        return self.combine(a, self.lift(args))

    def result(self, state: dict[Acc, list[Reg]]) -> Reg:
        """The value after the loop, of the registers of all accumulators."""
        return state[self.acc][-1]


class _Position(Monoid):
    """The larger (smaller) value and its index: NaN before all; of equals the smaller index."""

    components = 2

    def identity(self, width: int) -> list[Reg]:
        return [*super().identity(width), self.f.splat(Reg(str(INDEX_MAX), "i64", 1), width)]

    def follow(self, a: list[Reg], args: list[Reg]) -> list[Reg]:
        """Only what is beyond ``a``, or the first NaN, takes its place. Elements like the identity never do: :meth:`result` knows."""
        f, (v, _), (w, _), n = self.f, a, args, a[0].width
        d, than = self.acc.value_dtype, "gt" if self.acc.op.name == "argmax" else "lt"
        if d.is_float:
            beyond = f.emit(f"fcmp u{than} {w.typed}, {v.text}", "i1", n)
            known = f.emit(f"fcmp ord {v.typed}, {v.text}", "i1", n)
            beyond = f.emit(f"and {beyond.typed}, {known.text}", "i1", n)
        else:
            beyond = f.emit(f"icmp {'s' if d.kind == 'i' else 'u'}{than} {w.typed}, {v.text}", "i1", n)
        return [f.emit(f"select {beyond.typed}, {y.typed}, {x.typed}", x.type, n) for x, y in zip(a, args, strict=True)]

    def result(self, state: dict[Acc, list[Reg]]) -> Reg:
        """The index; where none was taken all elements are like the identity, and the first of them is meant."""
        _, i = state[self.acc]
        none = self.f.emit(f"icmp eq {i.typed}, {self.f.splat(Reg(str(INDEX_MAX), 'i64', 1), i.width).text}", "i1", i.width)
        return self.f.emit(f"select {none.typed}, {self.f.splat(Reg('0', 'i64', 1), i.width).typed}, {i.typed}", "i64", i.width)

    def combine(self, a: list[Reg], b: list[Reg]) -> list[Reg]:
        f, (v, i), (w, j) = self.f, a, b
        d, n = self.acc.value_dtype, a[0].width
        larger = self.acc.op.name == "argmax"

        def both(op: str, p: Reg, q: Reg) -> Reg:
            return f.emit(f"{op} {p.typed}, {q.text}", "i1", n)

        earlier = f.emit(f"icmp slt {j.typed}, {i.text}", "i1", n)
        if d.is_float:
            wins = f.emit(f"fcmp {'ogt' if larger else 'olt'} {w.typed}, {v.text}", "i1", n)
            w_nan, v_nan = (f.emit(f"fcmp uno {r.typed}, {r.text}", "i1", n) for r in (w, v))
            v_number = f.emit(f"fcmp ord {v.typed}, {v.text}", "i1", n)
            same = both("or", f.emit(f"fcmp oeq {w.typed}, {v.text}", "i1", n), both("and", w_nan, v_nan))
            wins = both("or", wins, both("and", w_nan, v_number))
        else:
            k = "s" if d.kind == "i" else "u"
            wins = f.emit(f"icmp {k}{'gt' if larger else 'lt'} {w.typed}, {v.text}", "i1", n)
            same = f.emit(f"icmp eq {w.typed}, {v.text}", "i1", n)
        take = both("or", wins, both("and", same, earlier))
        return [f.emit(f"select {take.typed}, {y.typed}, {x.typed}", x.type, n) for x, y in zip(a, b, strict=True)]


class _FloatExtreme(Monoid):
    """Float max and min on integer keys that order as IEEE's totalOrder does.

    Both the largest and the smallest key are kept: beyond the infinities' they tell of a NaN of either sign. Two integer instructions an element
    then do what a NaN-keeping maximum of floats takes six for.
    """

    components = 2

    def _key(self, bits: Reg) -> Reg:
        """Negative numbers have their magnitude's bits inverted; its own inverse."""
        f, n = self.f, bits.width
        last = int(bits.type[1:]) - 1
        sign = f.int_op("ashr", bits, Reg(str(last), bits.type, 1))
        flip = f.int_op("and", sign, Reg(str(2**last - 1), bits.type, 1))
        return f.emit(f"xor {bits.typed}, {flip.text}", bits.type, n)

    def identity(self, width: int) -> list[Reg]:
        last = self.acc.value_dtype.bits - 1
        ends = (-(2**last), 2**last - 1)
        return [self.f.splat(Reg(str(e), _integer(self.acc), 1), width) for e in ends]

    def lift(self, args: list[Reg]) -> list[Reg]:
        return [self._key(_bits(self.acc, self.f, *args))] * 2

    def combine(self, a: list[Reg], b: list[Reg]) -> list[Reg]:
        f, n, t = self.f, a[0].width, vector(a[0].type, a[0].width)
        s = suffix(a[0].type, n)
        ops = zip(("smax", "smin"), a, b, strict=True)
        return [f.emit(f"call {t} @llvm.{op}.{s}({x.typed}, {y.typed})", x.type, n) for op, x, y in ops]

    def result(self, state: dict[Acc, list[Reg]]) -> Reg:
        most, least = state[self.acc]
        f, d, n = self.f, self.acc.value_dtype, most.width
        infinity = d.format.greatest  # the greatest number, its own key; that of the least is the complement
        above = f.emit(f"icmp sgt {most.typed}, {f.splat(Reg(str(infinity), most.type, 1), n).text}", "i1", n)
        below = f.emit(f"icmp slt {least.typed}, {f.splat(Reg(str(~infinity), most.type, 1), n).text}", "i1", n)
        nan = f.emit(f"or {above.typed}, {below.text}", "i1", n)
        bits = self._key(most if self.acc.op.name == "reduce_max" else least)
        t = scalar_type(d)
        value = f.emit(f"bitcast {bits.typed} to {vector(t, n)}", t, n)
        return f.emit(f"select {nan.typed}, {_quiet(self.acc, f, n).typed}, {value.typed}", t, n)


class _ZeroOfExtreme(Monoid):
    """Float max and min whose index is wanted too. The registers of the index hold the value; what they leave open is the sign of a zero.

    Where the maximum is a zero no element is above it, so +0 is among them if some element has no sign: the bits of all elements tell, joined by and.
    A minimum is -0 if some element has a sign: there they are joined by or.
    """

    @property
    def _join(self) -> str:
        return "and" if self.acc.op.name == "reduce_max" else "or"

    def identity(self, width: int) -> list[Reg]:
        return [self.f.splat(Reg("-1" if self._join == "and" else "0", _integer(self.acc), 1), width)]

    def lift(self, args: list[Reg]) -> list[Reg]:
        return [_bits(self.acc, self.f, *args)]

    def combine(self, a: list[Reg], b: list[Reg]) -> list[Reg]:
        return [self.f.emit(f"{self._join} {a[0].typed}, {b[0].text}", a[0].type, a[0].width)]

    def result(self, state: dict[Acc, list[Reg]]) -> Reg:
        assert self.position is not None
        (joined,), (v, _) = state[self.acc], state[self.position]
        f, d, n, t = self.f, self.acc.value_dtype, v.width, scalar_type(self.acc.value_dtype)
        sign = f.int_op("and", joined, Reg(str(-(2 ** (d.bits - 1))), joined.type, 1))
        zero = f.emit(f"bitcast {sign.typed} to {vector(t, n)}", t, n)
        is_zero = f.emit(f"fcmp oeq {v.typed}, {f.splat(constant(d, bytes(d.itemsize)), n).text}", "i1", n)
        is_nan = f.emit(f"fcmp uno {v.typed}, {v.text}", "i1", n)
        value = f.emit(f"select {is_zero.typed}, {zero.typed}, {v.typed}", t, n)
        return f.emit(f"select {is_nan.typed}, {_quiet(self.acc, f, n).typed}, {value.typed}", t, n)


def _integer(acc: Acc) -> str:
    """The type of the bits of a float."""
    return f"i{acc.value_dtype.bits}"


def _bits(acc: Acc, f: FunctionText, x: Reg) -> Reg:
    return f.emit(f"bitcast {x.typed} to {vector(_integer(acc), x.width)}", _integer(acc), x.width)


def _quiet(acc: Acc, f: FunctionText, width: int) -> Reg:
    """The NaN that stands for all of them."""
    return f.splat(constant(acc.value_dtype, np.asarray(np.nan, acc.value_dtype.np).tobytes()), width)


_INDEX_OF = {"reduce_max": "argmax", "reduce_min": "argmin"}


def is_float_extreme(acc: Acc) -> bool:
    return acc.value_dtype.is_float and acc.op.name in _INDEX_OF


def positions_of_extremes(loop: Loop) -> dict[Acc, Acc]:
    """Float maxima and minima of a loop that takes the index of the same elements' maximum or minimum too, and the accumulator of that."""
    taken: dict[Acc, list[Value]] = {a: [] for a in loop.accs}
    for s in walk(loop.body):
        if isinstance(s, Accumulate) and s.acc in taken:
            taken[s.acc].append(s.args[0])
    found = {}
    for a in filter(is_float_extreme, loop.accs):
        for b in loop.accs:
            if b.op.name == _INDEX_OF[a.op.name] and b.value_dtype is a.value_dtype and taken[a] == taken[b]:
                found[a] = b
    return found


def reduce_lanes(monoids: list[Monoid], lanes: list[Reg]) -> list[Reg]:
    """LANES registers to one, as a tree: lane l with lane l+16, then 8, 4, 2, 1."""
    out, at = [], 0
    for m in monoids:
        regs = lanes[at : at + m.components]
        at += m.components
        while regs[0].width > 1:
            low = [shuffle_half(m.f, r, True) for r in regs]
            high = [shuffle_half(m.f, r, False) for r in regs]
            regs = m.combine(low, high)
        out += regs
    return out


def combine_all(monoids: list[Monoid], a: list[Reg], b: list[Reg]) -> list[Reg]:
    """``a o b`` of several accumulators, whose registers stand one after the other."""
    out, at = [], 0
    for m in monoids:
        out += m.combine(a[at : at + m.components], b[at : at + m.components])
        at += m.components
    return out


class PartialLanes:
    """Horizontal reduction over results of pages as they come: LANES partial results of each register, in stack memory."""

    def __init__(self, f: FunctionText, monoids: list[Monoid]) -> None:
        self.f, self.monoids = f, monoids
        first = [r for m in monoids for r in m.identity(LANES)]
        self.types = [r.type for r in first]
        self.slots = [f.slot(self._stored(t), LANES) for t in self.types]

    def begin(self) -> None:
        """No page has been seen."""
        first = [r for m in self.monoids for r in m.identity(LANES)]
        for slot, r in zip(self.slots, first, strict=True):
            self.f.do(f"store {self._to_memory(r).typed}, ptr {slot}")

    def take(self, part: list[Reg], number: Reg) -> None:
        """Page ``number`` goes to its lane."""
        f = self.f
        lane = f.emit(f"and i64 {number.text}, {LANES - 1}", "i64", 1)
        slots = zip(self.types, self.slots, strict=True)
        pointers = [f.emit(f"getelementptr {self._stored(t)}, ptr {slot}, i64 {lane.text}", "ptr", 1) for t, slot in slots]
        old = [self._load(t, p.text, 1) for t, p in zip(self.types, pointers, strict=True)]
        for p, r in zip(pointers, combine_all(self.monoids, old, part), strict=True):
            f.do(f"store {self._to_memory(r).typed}, ptr {p.text}")

    def result(self) -> list[Reg]:
        return reduce_lanes(self.monoids, [self._load(t, slot, LANES) for t, slot in zip(self.types, self.slots, strict=True)])

    def _stored(self, t: str) -> str:
        return "i8" if t == "i1" else t  # a vector of i1 is bits in memory, an array of them bytes

    def _to_memory(self, r: Reg) -> Reg:
        return r if r.type != "i1" else self.f.emit(f"zext {r.typed} to {vector('i8', r.width)}", "i8", r.width)

    def _load(self, t: str, place: str, width: int) -> Reg:
        stored = self._stored(t)
        r = self.f.emit(f"load {vector(stored, width)}, ptr {place}, align {_align(stored)}", stored, width)
        return r if t == stored else self.f.emit(f"trunc {r.typed} to {vector(t, width)}", t, width)


def _align(t: str) -> int:
    return {"half": 2, "float": 4, "double": 8}.get(t) or max(1, int(t[1:]) // 8)


def scan_group(m: Monoid, carry: Reg, x: Reg, mask: Reg | None) -> tuple[Reg, Reg]:
    """Inclusive scan of one group by Hillis and Steele (1986) with ``carry`` before it; also the last element."""
    f, n, t = m.f, x.width, vector(x.type, x.width)
    (identity,) = m.identity(n)
    if mask is not None:
        x = f.emit(f"select {mask.typed}, {x.typed}, {identity.typed}", x.type, n)
    step = 1
    while step < n:
        order = ", ".join(f"i32 {i - step if i >= step else n + i}" for i in range(n))
        moved = f.emit(f"shufflevector {t} {x.text}, {t} {identity.text}, <{n} x i32> <{order}>", x.type, n)
        (x,) = m.combine([moved], [x])
        step *= 2
    (out,) = m.combine([f.splat(carry, n)], [x])
    return out, f.emit(f"extractelement {out.typed}, i64 {n - 1}", out.type, 1)
