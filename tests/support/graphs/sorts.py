"""Sorts of every length and type: short rows, rows that are merged, and those by digits."""

from __future__ import annotations

from hologram.graph.library.sort.merge import TILE_BYTES
from hologram.ir.graph import Graph
from tests.support.building import Draft

LONG = TILE_BYTES // 4 + 700  # float32: more than a tile of merging, and no whole number of them
# shape, type, op, axis, descending
SORTS: dict[str, tuple[tuple[int, ...], str, str, int, bool]] = {
    "one_row": ((7,), "float32", "sort", 0, False),
    "one_element": ((3, 1), "float32", "argsort", 1, False),
    "short_rows": ((3, 50), "int8", "sort", 1, True),
    "many_short_rows": ((300, 8), "float32", "argsort", 1, False),
    "columns": ((33, 5, 4), "bfloat16", "argsort", 0, True),
    "long_rows": ((2, LONG), "float32", "sort", 1, False),
    "whole_tiles": ((8192,), "uint32", "sort", 0, True),
    "order_of_wide_keys": ((5300,), "int64", "argsort", 0, True),
    "order_of_narrow_keys": ((5000, 2), "float16", "argsort", 0, False),
    "wide_keys": ((9000,), "uint64", "sort", 0, False),
    "doubles": ((2, 2500), "float64", "argsort", 1, False),
}
# by digits: whole tiles and not, rows side by side, one digit and several, indices below keys and beside them
BY_DIGITS: dict[str, tuple[tuple[int, ...], str, str, int, bool]] = {
    "floats": ((2, 4100), "float32", "sort", 1, False),
    "halves_down": ((9000,), "float16", "sort", 0, True),
    "bytes": ((2 * 256 * 63,), "int8", "sort", 0, False),
    "truths": ((3, 5000), "bool", "sort", 1, True),
    "wide": ((2, 1800), "uint64", "sort", 1, True),
    "order_of_floats": ((2 * 256 * 7,), "float32", "argsort", 0, False),
    "order_of_truths": ((9000,), "bool", "argsort", 0, False),
    "order_of_bytes": ((5, 70_000 // 5), "uint8", "argsort", 1, True),
    "order_of_wide": ((2, 3000), "int64", "argsort", 1, True),
    "order_of_doubles": ((4000,), "float64", "argsort", 0, False),
}


def graph_of(name: str, d: Draft | None = None) -> Graph:
    shape, dtype, op, axis, descending = (SORTS | BY_DIGITS)[name]
    d = d or Draft()
    return d.graph(d(op, d.input(*shape, dtype=dtype), axis, descending))
