"""Panels of rows: what differs between the rows of a product, and not between its columns, in the order in which tiles read it.

The factor of a weight's gradient, ``x.T @ dy``, has its rows next to each other, and the terms of a sum far apart: each of a tile's few rows lies in
a line of its own for each term, so many lines apart that no cache keeps them for the next tile. A parallel iteration copies the rows of several tiles
first, each line once, and what is computed of them is computed once for all columns (Goto and van de Geijn 2008).
"""

from __future__ import annotations

from typing import Any

from hologram import dtypes
from hologram.graph.kernel.ir import Acc, Buffer, Loop, Store, Value, is_fused_product
from hologram.graph.lower.row_copies import RowCopies
from hologram.graph.lower.scalarize import ScalarProgram
from hologram.graph.schedule.nest import Nest
from hologram.ir.instruction import Ins
from hologram.ir.op import TABLE
from hologram.ir.symbolic import Expr, Int, atoms, counter, substitute
from hologram.ir.traversal import reachable


class RowPanels:
    """``panels`` has a buffer for each value that is packed, by the value in the first row of a tile; ``place_of`` the panel of each copy and its row
    in the tile."""

    def __init__(self, order: list[Value], values: ScalarProgram, nest: Nest, copies: RowCopies) -> None:
        self.order, self.values, self.nest = order, values, nest
        assert nest.row_panel is not None and isinstance(nest.last_row, int)
        self.last_row = nest.last_row
        self.panel = nest.row_panel
        self.panels: dict[Value, Buffer] = {}
        self.place_of: dict[Value, tuple[Value, int]] = {}
        if any(isinstance(v, Acc) and v.stage > 1 for v in order):
            return
        terms = [a for args in values.accumulates.values() for a in args]
        factors = {f for a in terms for f in (a.args if is_fused_product(a) else (a,))}
        for rows in copies.copies.values():
            if len(set(rows)) == nest.rows_at_once and factors.issuperset(rows) and self._is_packed(rows[0]):
                first = rows[0]
                self.panels[first] = Buffer(f"rows{len(self.panels)}", first.dtype, "scratch", self.panel.size)
                self.place_of.update({v: (first, k) for k, v in enumerate(rows)})

    def _is_packed(self, v: Value) -> bool:
        """Whether a factor is the same for all columns, and there before anything is summed."""
        made_of = [x for x in self._made_of([v]) if isinstance(x, Ins)]
        names = {a.name for x in made_of for e in x.attrs if isinstance(e, Expr) for a in atoms(e)}
        return isinstance(v, Ins) and v.level == self.nest.element_level and v.stage == 0 and names <= self.nest.level_of.keys() - {"t"}

    def _made_of(self, values: list[Value]) -> set[Value]:
        return {v for v in reachable(values, lambda v: v.args if isinstance(v, Ins) else ()) if v.level > 1}

    def load(self, v: Value) -> Ins:
        """A copy, read from its panel."""
        first, k = self.place_of[v]
        return Ins.load(self.panels[first], self._place(k))

    def _place(self, row: Int) -> Int:
        """Where the panels have a row of a tile, at one of the terms."""
        return (self.panel.tile * self.panel.terms + counter("q", self.panel.terms)) * self.nest.rows_at_once + row

    def loops(self) -> list[Any]:
        """The loops that fill the panels of a parallel iteration: over the terms, the tiles, and the rows of a tile."""
        if not self.panels:
            return []
        nest, rows = self.nest, self.nest.rows_at_once
        _, down = nest.element_loops()
        outer = nest.tile_loop()
        tiles, lanes = Loop(outer.kind, outer.var, outer.start, outer.extent, outer.limit), Loop("lanes", "i", 0, rows)
        start, tiles.body = self._start()
        row = counter("i", rows)

        def at(x: Any) -> Any:
            return substitute(x, {"row": counter(start.name, self.last_row + 1) + row}) if isinstance(x, Expr) else x

        needed, made = self._made_of(list(self.panels)), dict[Value, Value]()
        for v in self.order:
            if v in needed and isinstance(v, Ins):
                lanes.body.append(copy := v.copy(made, at))
                made[v] = copy
                if v in self.panels:
                    lanes.body.append(Store(self.panels[v], self._place(row), copy))
        tiles.body.append(lanes)
        down.body.append(tiles)
        return [down]

    def _start(self) -> tuple[Ins, list[Any]]:
        """The first row of a tile, and what computes it."""
        nest = self.nest
        first, last = Ins.index(nest.row), Ins.const(self.last_row, dtypes.int64)
        start = Ins(TABLE["min"], (first, last), (), dtypes.int64)
        start.name, start.extent = self.values.fresh_name(), self.last_row + 1
        return start, [first, last, start]
