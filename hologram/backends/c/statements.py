"""Statements of kernel IR in C, one at a time: instructions, loads, stores, and accumulations. Loops are :mod:`hologram.backends.c.kernel`'s."""

from __future__ import annotations

from hologram.backends.c.accumulators import Monoid
from hologram.backends.c.emitter import ITEM, Emitter
from hologram.backends.c.scalars import type_name
from hologram.backends.c.scan import scan
from hologram.dtypes import int64
from hologram.graph.kernel.ir import Accumulate, Store, is_fused_product
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Int, bounds


def _is_short(e: Int) -> bool:
    """Whether an index expression is compared as well in 32 bits."""
    low, high = bounds(e)
    return low is not None and high is not None and -(2**31) <= low and high < 2**31


class StatementWriter(Emitter):
    """Writes what is no loop."""

    def instruction(self, s: Ins) -> None:
        if s.op == "const":
            self.env[s] = self.scalars.literal(s.dtype, s.attrs[1])
        elif s.op == "scan":
            self.env[s] = scan(self, s)
        elif s not in self.in_sums:
            if s.op == "load" and not self.in_lanes and s.attrs[0] in self.hazards:
                self._settle()
                self.dirty = True
            name = s.name or self.fresh("v")
            self.f.do(f"const {type_name(s.dtype)} {name} = {self._value(s)};")
            self.env[s] = name
        if s.name:
            self.integers[s.name] = self.env[s]

    def _value(self, s: Ins) -> str:
        match s.op:
            case "load":
                return self._load(s)
            case "index":
                return self.scalars.cast(f"({self.integer(s.attrs[0])})", int64, s.dtype)
            case "inside":
                e, size = s.attrs
                kind = "u32" if _is_short(e) and _is_short(size) else "u64"
                return f"({kind})({self.integer(e)}) < ({kind})({self.integer(size)})"
        return self.scalars.row(s.op, s.attrs, tuple(a.dtype for a in s.args), s.dtype, [self.env[a] for a in s.args])

    def _load(self, s: Ins) -> str:
        buffer, index = s.attrs
        place = self.near.get((buffer, index), self.ahead.get((buffer, index))) if not s.args else None
        element = (place or f"{buffer.name}[{self.integer(index)}]") + (" != 0" if buffer.dtype.kind == "b" else "")
        mask = [m for m in (self.live, *(self.env[a] for a in s.args)) if m]
        zero = self.scalars.literal(s.dtype, bytes(s.dtype.itemsize))
        return f"{' && '.join(mask)} ? {element} : {zero}" if mask else element

    def store(self, s: Store) -> None:
        alone = not self.in_lanes and not self.mapping.by_item
        if alone and s.buffer in self.hazards:
            self._settle()
            self.dirty = True
        conditions = [f"{ITEM} == 0"] if alone else [self.live] if self.live else []
        conditions += [self.env[s.mask]] if s.mask is not None else []
        place = self.near.get((s.buffer, s.index)) if s.mask is None else None
        line = f"{place or f'{s.buffer.name}[{self.integer(s.index)}]'} = {self.env[s.value]};"
        self.f.do(f"if ({' && '.join(conditions)}) {line}" if conditions else line)

    def accumulate(self, s: Accumulate) -> None:
        monoid, names = Monoid(s.acc, self.scalars), self.state[s.acc]
        if is_fused_product(s.args[0]):
            self.f.do(monoid.fused(names[0], [self.env[a] for a in s.args[0].args]))
        else:
            self.f.do(monoid.combine(names, names, [self.env[a] for a in s.args]))
