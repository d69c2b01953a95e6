"""Rows under a mask: a reduction whose mask is the same for a whole row runs where the mask holds, and reads nothing of other rows.

Where the mask does not hold, each element would be the identity of the reduction, which changes nothing. So the loop over the row has no iteration
there: its end is its extent times the mask. Elements of other rows need no mask any more. The bits are those of all elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from hologram import dtypes
from hologram.graph.kernel.ir import Loop, Value
from hologram.graph.legalize.demand_masks import MIN_ROW_ELEMENTS
from hologram.graph.lower.masks import can_do_without, mask_of_loop, unmasked
from hologram.ir.instruction import Ins
from hologram.ir.op import TABLE
from hologram.ir.symbolic import atoms, counter


def skip_masked_rows(loop: Loop, is_uniform: Callable[[Value], bool], fresh_name: Callable[[], str]) -> list[Ins]:
    """Lets ``loop`` run where its mask holds. Gives the instructions, to run before it, that find its end; none where it has no mask of its own.

    ``is_uniform``: of a value, whether it is there before the loop, and the same in all vector lanes around it.
    """
    n = loop.extent
    if not isinstance(n, int) or n < MIN_ROW_ELEMENTS or loop.limit is not None or loop.start != 0 or not loop.accs:
        return []
    mask = mask_of_loop(loop)
    if mask is None or not is_uniform(mask) or not can_do_without(loop, mask):
        return []
    whole, nothing = Ins.const(n, dtypes.int64), Ins.const(0, dtypes.int64)
    end = Ins(TABLE["select"], (mask, whole, nothing), (), dtypes.int64)
    end.name, end.extent = fresh_name(), n + 1
    loop.limit, loop.body = counter(end.name, n + 1), unmasked(loop, mask)
    return [whole, nothing, end]


def row_mask(loop: Loop, named: Mapping[str, Ins]) -> Ins | None:
    """The mask of a loop that :func:`skip_masked_rows` has changed, which runs over its whole extent where the mask holds and not at all elsewhere.
    None for other loops. ``named``: the instructions that index expressions go through, by name."""
    if loop.limit is None or not loop.accs:
        return None
    names = [a.name for a in atoms(loop.limit)]
    end = named.get(names[0]) if len(names) == 1 else None
    if end is None or end.opname != "select" or loop.limit != counter(names[0], end.extent):
        return None
    mask, *ends = end.args
    counts = [int(np.frombuffer(e.attrs[1], e.dtype.np)[0]) for e in ends if isinstance(e, Ins) and e.op == "const"]
    return mask if isinstance(mask, Ins) and counts == [loop.extent, 0] else None
