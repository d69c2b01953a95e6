"""Prefetches: hints for rows of large inputs that are read soon, placed in the loops of a kernel."""

from __future__ import annotations

from hologram.graph.kernel.ir import Buffer, Loop, Prefetch
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Int, is_static, split_linear

MIN_PREFETCHED_ROW_BYTES = 512  # shorter rows are foreseen by the hardware
ROWS_AHEAD = 16  # rows between a hint and the read


def prefetch_down(loads: list[Ins], down: Loop, least: int) -> list[Prefetch]:
    """Hints for rows further down columns of inputs of ``least`` bytes or more: steps that the hardware does not foresee, beyond the ends of its
    pages."""
    out: dict[Buffer, Prefetch] = {}
    for v in loads:
        b, index = v.attrs
        step = split_linear(index, down.var)
        if not _is_large(b, least) or step is None or not is_static(step[0]):
            continue
        if MIN_PREFETCHED_ROW_BYTES // b.dtype.itemsize <= step[0] < b.size // ROWS_AHEAD:
            out[b] = Prefetch(b, index + ROWS_AHEAD * step[0])
    return list(out.values())


def prefetch_next_row(loads: list[Ins], row: Int, least: int) -> list[Prefetch]:
    """Hints for the following row, of ``row`` elements, of inputs of ``least`` bytes or more: the second pass computes on cached data while memory is
    idle. Inputs and rows whose sizes are known in a call are taken for long ones: a hint costs little beside the work on a line."""
    out: dict[Buffer, Prefetch] = {}
    for v in loads:
        b, index = v.attrs
        step = split_linear(index, "p")
        if step is None:
            continue
        if is_static(b.size):
            wanted = _is_large(b, least) and is_static(row) and row * b.dtype.itemsize >= MIN_PREFETCHED_ROW_BYTES and step[0] == row
        else:
            wanted = not is_static(step[0])
        if wanted:
            out[b] = Prefetch(b, index + step[0])
    return list(out.values())


def _is_large(b: Buffer, least: int) -> bool:
    return is_static(b.size) and b.size * b.dtype.itemsize >= least
