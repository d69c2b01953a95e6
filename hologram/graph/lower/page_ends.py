"""Ends of pages: where a page is filled up to its size, a loop over it runs over what there is.

An axis of symbolic extent is cut in pages of a static extent, and the last is filled up with the identity of the reduction or scan. A mask tells
which elements are there. They are the first ones, so the mask is the end of the loop; what it leaves out would change nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from hologram.graph.kernel.ir import Loop
from hologram.graph.lower.masks import can_do_without, mask_of_loop, unmasked
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Expr, Int, atoms, bounds, split_linear


def trim_page(loop: Loop, is_uniform_name: Callable[[str], bool]) -> None:
    """Ends ``loop`` where the mask of all that it accumulates and stores does, and takes the mask away.

    ``is_uniform_name``: of a name in an index expression, whether it is the same in all vector lanes around the loop, which end together.
    """
    if not isinstance(loop.extent, int) or loop.limit is not None or loop.start != 0 or not loop.accs:
        return
    mask = mask_of_loop(loop)
    if mask is None or mask.op != "inside":
        return
    limit = _end(mask, loop.var)
    if limit is not None and all(is_uniform_name(a.name) for a in atoms(limit)) and can_do_without(loop, mask):
        loop.limit = limit
        loop.body = unmasked(loop, mask)


def _end(mask: Ins, name: str) -> Int | None:
    """Up to which value of the variable ``name`` the mask holds; None where it is not of that form, or static."""
    e, size = mask.attrs
    linear = split_linear(e, name)
    if linear is None or linear[0] != 1 or not isinstance(size, Expr):
        return None
    low, _ = bounds(linear[1])
    return size - linear[1] if low is not None and low >= 0 else None
