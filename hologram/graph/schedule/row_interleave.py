"""Row interleaving: rows that share nothing are reduced together, so that a thread reads several streams of memory at once.

A memory controller and the prefetchers of a core serve several streams faster than one, which waits at the end of every page until the next is
foreseen. So a parallel iteration of a horizontal reduction takes a row of each of :data:`MAX_INTERLEAVED_ROWS` equal parts of all rows, each part far
from the others, and neighbouring parallel iterations go on along each of them. What rows do share, such as the vector of a matrix-vector product, is
read once for all of them, as is one row of a matrix for all of its rows in a loop. The order within a row stays the canonical one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hologram.graph.kernel.ir import Acc, Value
from hologram.graph.lower.masks import mask_of_element
from hologram.graph.lower.scalarize import PendingStore, ScalarProgram
from hologram.graph.schedule.tiles import CpuTileConfig
from hologram.ir.index_maps import variables
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Expr, atoms, prod
from hologram.ir.traversal import reachable
from hologram.primitives.reductions import LANES

MAX_INTERLEAVED_ROWS = 4  # rows of a parallel iteration
MAX_MEMORY_STREAMS = 8  # that a thread reads at a time
MIN_INTERLEAVED_ITERATIONS = 32  # that are left for threads to share
MAX_INTERLEAVED_COST = 24  # cost of an element's work beyond which arithmetic, not memory, bounds a kernel


def interleaved_rows(values: ScalarProgram, writes: list[PendingStore], axes: tuple[int, ...] | None, tile: CpuTileConfig) -> int:
    """How many parts rows have, a row of each of which makes a parallel iteration. One where more are no gain: in other kernels than horizontal
    reductions, in one pass, of cheap elements."""
    if axes is None or axes[-1] != len(values.shape) - 1:
        return 1
    inside = _names(variables(values.shape)[a] for a in axes)
    if (values.taken and not _rows_are_alike(values)) or _are_masked(values, inside):
        return 1
    rows = prod(values.shape[: axes[0]])
    if _in_several_passes(values) or any(inside & _names([w.index]) for w in writes):
        return 1
    if not isinstance(rows, int) and any(isinstance(v, Ins) and v.op == "inside" and inside & _names(v.attrs) for v in values.order):
        return 1  # each row would have a mask, where of a known number of rows the last alone has one
    reads = sum(1 for v in values.order if isinstance(v, Ins) and v.op == "load" and _is_of_element(v, inside, axes[0], values))
    work = sum(v.op.cost for v in values.order if isinstance(v, Ins) and not isinstance(v.op, str))
    if reads == 0 or work > MAX_INTERLEAVED_COST:
        return 1
    register_bytes = sum(_row_bytes(a) for a in values.accumulates)
    together = min(MAX_INTERLEAVED_ROWS, MAX_MEMORY_STREAMS // reads, tile.rows * tile.nbytes // register_bytes)
    if isinstance(rows, int):
        together = min(together, rows // MIN_INTERLEAVED_ITERATIONS)
    return max(1, together)


def _in_several_passes(values: ScalarProgram) -> bool:
    """Whether anything that is reduced depends on a reduction."""
    after: set[Value] = set()
    for v in values.order:
        args = values.accumulates[v] if isinstance(v, Acc) else v.args
        if any(a in after for a in args):
            if isinstance(v, Acc):
                return True
            after.add(v)
        elif isinstance(v, Acc):
            after.add(v)
    return False


def _rows_are_alike(values: ScalarProgram) -> bool:
    """Whether indices go through values that are the same for all elements, and no mask may tell which elements of one row count."""
    axes = _names(variables(values.shape))
    varying: set[Value] = set()
    for v in values.order:
        if isinstance(v, Ins) and v.opname == "select":
            return False
        if isinstance(v, Acc) or any(a in varying for a in v.args) or axes & _names(v.attrs):
            varying.add(v)
            if isinstance(v, Ins) and v.name:
                return False
    return True


def _are_masked(values: ScalarProgram, inside: set[str]) -> bool:
    """Whether rows have masks of their own, so that some are read and others are not."""
    masks = [mask_of_element(acc, args) for acc, args in values.accumulates.items()]
    return any(m is not None and not inside & _names(_attrs_behind(m)) for m in masks)


def _attrs_behind(value: Value) -> Iterator[Any]:
    """The attributes of all instructions that a value is made of."""
    for v in reachable([value], lambda v: v.args if isinstance(v, Ins) else ()):
        yield from v.attrs if isinstance(v, Ins) else ()


def _is_of_element(load: Ins, inside: set[str], rows: int, values: ScalarProgram) -> bool:
    """Whether a load differs along the reduced axes and from row to row."""
    found = _names([load.attrs[1]])
    return bool(found & inside) and bool(found & _names(variables(values.shape)[:rows]))


def _row_bytes(acc: Acc) -> int:
    """Bytes of an accumulator's elements in registers: extremes hold two values a lane, of which positions take eight bytes."""
    size = acc.value_dtype.itemsize
    if acc.op.monoid is None:
        size += 8
    elif acc.op.name in ("reduce_max", "reduce_min"):
        size *= 2
    return LANES * size


def _names(indices: Iterable[Any]) -> set[str]:
    return {a.name for e in indices if isinstance(e, Expr) for a in atoms(e)}
