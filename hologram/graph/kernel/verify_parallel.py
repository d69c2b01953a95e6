"""Race detection: whether iterations of parallel loops write to one element, tried point by point where the loops are static and short.

Larger kernels, and those of symbolic sizes, are cut into iterations by the same rules. Not tried are loops that say that they repeat each other's
work, whose values are the same, and what goes through values that are computed: where an algorithm leads is its own matter.
"""

from __future__ import annotations

import itertools

import numpy as np

from hologram.graph.kernel.ir import Loop
from hologram.graph.kernel.polynomials import evaluated
from hologram.graph.kernel.verify_bounds import Guard, Ranges
from hologram.ir.symbolic import Int, atoms, substitute

MAX_POINTS = 2**16  # of the loops of an access that are tried


class Access:
    """A store, or a load of what the kernel stores: its index, the loops around it, outermost first, and what is known of variables there."""

    __slots__ = ("index", "loops", "guards", "ranges", "writes")

    def __init__(self, index: Int, loops: list[Loop], guards: list[Guard], ranges: Ranges, writes: bool) -> None:
        known = {name: r.lows[0] for name, r in ranges.of.items() if len(r.lows) == 1 and r.lows == r.highs}  # by an index expression
        for _ in known:  # which may hold others
            index, guards = substitute(index, known), [(substitute(e, known), n) for e, n in guards]
        self.index, self.loops, self.guards, self.ranges, self.writes = index, loops, guards, ranges, writes


def collide(accesses: list[Access]) -> bool:
    """Whether an element that one iteration of a parallel loop writes to is accessed by another one, or by one of another loop.

    ``accesses`` are all those of a kernel to one buffer.
    """
    if any(a.loops[0].repeats for a in accesses) or not any(a.writes for a in accesses):
        return False
    number = {a.loops[0]: k for k, a in enumerate(accesses)}
    found = [_points(a, number[a.loops[0]]) for a in accesses]
    if any(p is None for p in found):
        return False
    index, *iteration = np.concatenate([p for p in found if p is not None], axis=1)
    order = np.lexsort((*iteration, index))  # np.unique(axis=1) compares records by Python code, and turns an interrupt there into a TypeError
    again = index[order][1:] == index[order][:-1]
    other = np.any([i[order][1:] != i[order][:-1] for i in iteration], axis=0)
    return bool(np.any(again & other))


def _points(access: Access, loop: int) -> np.ndarray | None:
    """(indices, iterations, ``loop``) of all points; None where there are too many of them, or symbols."""
    names = [around.var for around in access.loops]
    guards = access.guards
    if any(a.name not in names for e in (access.index, *itertools.chain(*guards)) for a in atoms(e)):
        return None
    point = access.ranges.points(names, MAX_POINTS)
    if point is None:
        return None
    live = np.ones((), bool)
    for around in access.loops:
        at, ends = point[around.var], [around.start + around.extent, *(() if around.limit is None else (around.limit,))]
        if any(a.name not in names for e in (around.start, *ends) for a in atoms(e)):
            return None
        for end in ends:
            live = live & (at >= evaluated(around.start, point)) & (at < evaluated(end, point))
    for e, n in guards:
        value = evaluated(e, point)
        live = live & (value >= 0) & (value < evaluated(n, point))
    index, iteration, live, *_ = np.broadcast_arrays(evaluated(access.index, point), point[names[0]], live, *point.values())
    return np.stack([index[live], iteration[live], np.full(int(live.sum()), loop)])
