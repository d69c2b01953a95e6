"""Unroll-and-jam: copies of instructions for the rows of a parallel iteration that takes several rows at once."""

from __future__ import annotations

from typing import Any

from hologram import dtypes
from hologram.graph.kernel.ir import Acc, Value
from hologram.graph.lower.scalarize import PendingStore, ScalarProgram
from hologram.graph.schedule.nest import Nest
from hologram.ir.instruction import Ins
from hologram.ir.node import const_attrs
from hologram.ir.symbolic import bounds


class RowCopies:
    """``copies`` has the value of an instruction in each row of a parallel iteration, ``of_row`` what differs between rows."""

    def __init__(self, values: ScalarProgram, nest: Nest) -> None:
        self.values, self.nest = values, nest
        self.copies: dict[Value, list[Value]] = {}
        self.of_row: set[Value] = set()
        self.always = Ins("const", (), const_attrs(True, dtypes.bool_), dtypes.bool_)

    def repeat(self, order: list[Value]) -> list[Value]:
        """The instructions of all rows: what depends on the row once for each, the rest once."""
        out: dict[Value, None] = {}
        for v in order:
            copies = self.copies[v] = self._rows_of(v)
            if len(set(copies)) > 1:
                self.of_row.update(copies)
            out.update(dict.fromkeys(copies))
        return list(out)

    def stores(self, stores: list[PendingStore]) -> list[PendingStore]:
        """The stores of all rows."""
        return [
            PendingStore(w.buffer, self.nest.at_row(w.index, k), self.copies[w.value][k], self.copies[w.mask][k] if w.mask else None)
            for w in stores
            for k in range(self.nest.rows_at_once)
        ]

    def _rows_of(self, v: Value) -> list[Value]:
        """The value for each row of a parallel iteration: one for all rows that it does not differ between."""
        n = self.nest.rows_at_once
        if isinstance(v, Acc):
            args = self.values.accumulates.pop(v)
            accs = [Acc(v.op, v.value_dtype, v.dtype) for _ in range(n)]
            for k, acc in enumerate(accs):
                self.values.accumulates[acc] = tuple(self.copies[a][k] for a in args)
            return list(accs)
        made: dict[Any, Value] = {(v.args, v.attrs): v}
        out: list[Value] = []
        for k in range(n):
            key = tuple(self.copies[a][k] for a in v.args), tuple(self.nest.at_row(a, k) for a in v.attrs)
            if key not in made:
                made[key] = self._unguarded(Ins(v.op, *key, v.dtype))
            out.append(made[key])
        return out

    def _unguarded(self, ins: Ins) -> Value:
        """What an instruction is where the row at hand lies within its guard for certain, as only a last page does not."""
        if ins.op == "inside":
            e, size = ins.attrs
            low, high = bounds(e)
            return self.always if isinstance(size, int) and low is not None and high is not None and 0 <= low and high < size else ins
        if not ins.args or ins.args[0] is not self.always:
            return ins
        if ins.op == "load":
            return Ins("load", (), ins.attrs, ins.dtype)
        return ins.args[1] if ins.opname == "select" else ins
