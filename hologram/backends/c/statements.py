"""Statements of kernel IR in C, one at a time: instructions, loads, stores, and accumulations. Loops are :mod:`hologram.backends.c.kernel`'s."""

from __future__ import annotations

import numpy as np

from hologram import dtypes
from hologram.backends.c.accumulators import Monoid
from hologram.backends.c.emitter import ITEM, Emitter
from hologram.backends.c.helpers import NARROW
from hologram.backends.c.scalars import type_name
from hologram.backends.c.scan import scan
from hologram.dtypes import DType, int64
from hologram.graph.kernel.ir import Acc, Accumulate, Store, is_fused_product
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
            self.f.do(f"const {type_name(s.dtype)} {name} = {self.value(s)};")
            self.env[s] = name
        if s.name:
            self.integers[s.name] = self.env[s]

    def value(self, s: Ins) -> str:
        match s.op:
            case "load":
                return self._load(s)
            case "index":
                return self.scalars.cast(f"({self.integer(s.attrs[0])})", int64, s.dtype)
            case "inside":
                e, size = s.attrs
                kind = "u32" if _is_short(e) and _is_short(size) else "u64"
                return f"({kind})({self.integer(e)}) < ({kind})({self.integer(size)})"
        return self._of_halves(s) or self.scalars.row(s.op, s.attrs, tuple(a.dtype for a in s.args), s.dtype, [self.env[a] for a in s.args])

    def _of_halves(self, s: Ins) -> str | None:
        """A float32 sum, difference or product of 16-bit floats that is rounded to their type, as the dialect's instruction for these. Float32 has
        more than twice their digits and two more, so that the second rounding changes nothing (Figueroa 1995)."""
        of = s.args[0] if s.args else None
        if s.opname != "cast" or s.dtype not in (dtypes.float16, dtypes.bfloat16) or not isinstance(of, Ins) or of.dtype is not dtypes.float32:
            return None
        name = f"hg_{of.opname}_{NARROW[s.dtype]}"
        operands = [self._half(a, s.dtype) for a in of.args] if name in self.dialect.helpers and of not in self.in_sums else [None]
        return None if None in operands else f"{name}({', '.join(map(str, operands))})"

    def _half(self, a: Ins | Acc, d: DType) -> str | None:
        """The 16-bit float that a float32 has been."""
        if isinstance(a, Acc):
            return None
        if a.opname == "cast" and a.args[0].dtype is d:
            return self.env[a.args[0]]
        if a.op != "const":
            return None
        value = np.frombuffer(a.attrs[1], np.float32)
        narrow = value.astype(d.np)
        return self.scalars.literal(d, narrow.tobytes()) if narrow.astype(np.float32).tobytes() == value.tobytes() else None

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
