"""Tile epilogues: expensive work on the sums of a tile is done row by row, out of scratch.

In registers the work on every row of a tile would be unrolled, once a row, between sums that occupy most registers. A loop over the rows is a
fraction of the code, which compiles in a fraction of the time and spills nothing; the sums' way through the first-level cache costs little beside
the products that made them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hologram.graph.kernel.ir import Acc, Buffer, Loop, Store, Value
from hologram.graph.lower.scalarize import PendingStore
from hologram.graph.schedule.nest import Nest
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Expr, Int, atoms, substitute, var
from hologram.ir.traversal import reachable

EPILOGUE_COST = 8  # cost of an element's work from which it is done in a loop of its own


class Epilogue:
    """The instructions between sums and stores, in their order, and the buffers between."""

    def __init__(self, order: list[Value], stores: list[PendingStore], nest: Nest) -> None:
        self.order, self.stores, self.nest = order, stores, nest
        self.block, self.column = nest.block, nest.column
        size = nest.rows_at_once * self.block
        accs = [v for v in order if isinstance(v, Acc)]
        self.sums = {v: Buffer(f"sums{i}", v.dtype, "scratch", size) for i, v in enumerate(accs)}

    def keep(self, of_row: dict[Value, list[Value]]) -> list[PendingStore]:
        """The writes that put the sums of every row into their buffers."""
        return [PendingStore(buffer, r * self.block + self.column, acc, None) for v, buffer in self.sums.items() for r, acc in enumerate(of_row[v])]

    def constants(self) -> list[Ins]:
        return [v for v in self.order if isinstance(v, Ins) and v.op == "const"]

    def loop(self) -> Loop:
        """Over the rows that no block before has finished, and across the columns in each."""
        count = self.nest.rows_at_once
        done = self.nest.row - self.nest.row_var if self.nest.repeats else 0
        rows = Loop("serial", "e", done, count, count if done != 0 else None)
        lanes = self.nest.column_loop()
        rows.body.append(lanes)
        e = var("e", 0, count - 1)
        row = self.nest.row_var + e
        made: dict[Value, Value] = {}
        for v in self.order:
            if isinstance(v, Acc):
                copy = Ins.load(self.sums[v], e * self.block + self.column)
            elif v.op == "const":
                continue
            else:
                copy = v.copy(made, partial(at_row, row=row))
            made[v] = copy
            lanes.body.append(copy)
        for w in self.stores:
            lanes.body.append(Store(w.buffer, at_row(w.index, row), made.get(w.value, w.value), made.get(w.mask, w.mask) if w.mask else None))
        return rows


def find_epilogue(order: list[Value], stores: list[PendingStore], nest: Nest) -> Epilogue | None:
    """The work between the sums of one pass and ``stores``, if it is expensive and once a sum: elements of the summed axes need a pass of their
    own."""
    needed = dependencies([v for w in stores for v in (w.value, w.mask) if v is not None])
    if any(_is_of_element(x, nest) for x in (*(w.index for w in stores), *(a for v in needed if isinstance(v, Ins) for a in v.attrs))):
        return None
    after: set[Value] = set()
    cost = 0
    for v in order:
        if isinstance(v, Ins) and v in needed and any(isinstance(a, Acc) or a in after for a in v.args):
            after.add(v)
            cost += 0 if isinstance(v.op, str) else v.op.cost
        elif isinstance(v, Acc) and v not in needed:
            return None  # sums of sums
    return Epilogue([v for v in order if v in needed], stores, nest) if cost >= EPILOGUE_COST else None


def _is_of_element(x: Any, nest: Nest) -> bool:
    """Whether an attribute is an index expression that differs between the elements of a sum."""
    return isinstance(x, Expr) and any(nest.level_of.get(a.name) == nest.element_level for a in atoms(x))


def dependencies(values: list[Value]) -> set[Value]:
    """What the values are made of, themselves included, down to the sums."""
    return set(reachable(values, lambda v: v.args if isinstance(v, Ins) else ()))


def at_row(x: Any, row: Int) -> Any:
    """An index expression at a row; anything else as it is."""
    return substitute(x, {"row": row}) if isinstance(x, Expr) else x
