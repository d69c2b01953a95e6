"""Alternatives: parallel loops of a kernel, one for each range of symbolic sizes, of which a call runs at most one.

Written as branches they are compiled one by one. Written one after another they are slow to compile with PoCL: it copies what follows a loop that
has barriers, once for the case that the loop has no iteration, so each loop doubles the code.
"""

from __future__ import annotations

import itertools
from collections import Counter

from hologram.graph.kernel.ir import Loop, Stmt
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Expr, Int, Monomial


def find_alternatives(body: list[Stmt]) -> int | None:
    """The index in a kernel's body of its first loop, if that and all that follow are alternatives; None where there are no two, or where some
    may run in one call. Instructions among them read no memory."""
    first = next((i for i, s in enumerate(body) if isinstance(s, Loop)), len(body))
    loops = [s for s in body[first:] if isinstance(s, Loop)]
    others = [s for s in body[first:] if not isinstance(s, Loop)]
    if len(loops) < 2 or body[-1] is not loops[-1] or not all(isinstance(s, Ins) and s.op != "load" for s in others):
        return None
    alone = all(s.kind == "parallel" for s in loops) and all(is_one_zero(a.extent, b.extent) for a, b in itertools.combinations(loops, 2))
    return first if alone else None


def is_one_zero(a: Int, b: Int) -> bool:
    """Whether the product of two extents is certainly 0, whatever the symbols are: a condition (0 or 1) is its own square."""
    product = a * b
    if not isinstance(product, Expr):
        return product == 0
    terms = Counter[Monomial]()
    for m, c in product.terms.items():
        terms[tuple(x for i, x in enumerate(m) if (x.low, x.high) != (0, 1) or x not in m[:i])] += c
    return not any(terms.values())
