"""Loops whose columns are independent: threads may share the columns of a scan, each thread with all steps of its own ones.

This is loop interchange with strip mining. The elements of the arrays that steps write or hand on are numbered by column: element ``e`` of such an
array is in column ``e % stride``, where its rows are ``stride`` apart, or ``e`` where there are no rows. Columns are cut into units of whole chunks
of kernels. The invariant: chunk ``p`` of a kernel touches, of all these arrays, columns of its own unit alone. It is read off the index of each load
and store, which is

    each * p  +  what loops inside of the chunk add, from 0 to each - 1  +  multiples of the stride

with one stride everywhere. Reductions over columns, shifts along them, transposes, and windows that begin at a computed column have other indices.
What steps only read may be read anywhere. So no unit sees how far the steps of another one have come: all that happens to one element happens in the
order that it has in one thread, and gives the same bits.

Small arrays that depend on no column, such as counters and indices, are computed by each thread anew.

The floor is the time of one thread over the number of threads, or the memory's. Threads meet once in a loop, not once in a step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from hologram.graph.kernel.ir import Buffer, Kernel, Loop, Stmt, Store
from hologram.graph.kernel.rechunk import in_chunks_of
from hologram.graph.lower.control_step import ControlStep
from hologram.graph.lower.lowered import Lowered
from hologram.ir.instruction import Ins
from hologram.ir.node import estimated_bytes
from hologram.ir.symbolic import Expr, Int, split_linear, substitute, var
from hologram.primitives.control import scan

MANY_CHUNKS = 16  # of a kernel, from which threads share them as they are
SHORT_CHUNK = 128  # columns, otherwise: whole lines of the cache, whatever the type


class Columns(NamedTuple):
    """``units`` of columns. ``kernels`` has what works on columns, each as a kernel of which so many chunks are a unit; a unit takes about ``cost``
    nanoseconds a step. Each thread runs the ``repeated`` kernels as a whole."""

    units: int
    kernels: dict[Lowered, tuple[Kernel, int]]
    cost: float
    repeated: list[Lowered]


def independent_columns(step: ControlStep, small_bytes: int) -> Columns | None:
    """The columns of a loop; None where they are not independent, and for any other step of a program. Arrays of up to ``small_bytes`` that a step
    writes are a thread's own."""
    plan = step.execution_plans[0]
    kernels = [s for s in plan.steps if isinstance(s, Lowered)]
    if step.node.op is not scan or len(kernels) != len(plan.steps):
        return None
    carried = [x for x in plan.inputs[step.consts : step.consts + step.node.attrs[2]] if estimated_bytes(x) > small_bytes]
    large = [low for low in kernels if any(estimated_bytes(n) > small_bytes for n in low.writes())]
    shared = {plan.buffer(n) for n in [*carried, *(n for low in large for n in low.writes())]}
    repeated = [low for low in kernels if low not in large]
    if any(plan.buffer(n) in shared for low in repeated for n in low.bindings):
        return None
    working = {low: _in_short_chunks(low.kernel) for low in large if not low.is_copy}  # copies are of carries to where they are; a writer sees others
    accesses: dict[Lowered, list[_Access]] = {}
    for low, kernel in working.items():
        found = _accesses(kernel, {b for b, n in zip(kernel.params, low.bindings, strict=True) if plan.buffer(n) in shared})
        if not found:
            return None
        accesses[low] = found
    return _in_units(working, accesses, repeated) if accesses else None


def _in_short_chunks(kernel: Kernel) -> Kernel:
    """A kernel that has few chunks in shorter ones."""
    is_short = isinstance(kernel.iterations, int) and kernel.iterations < MANY_CHUNKS
    return in_chunks_of(kernel, SHORT_CHUNK) if is_short else kernel


class _Access(NamedTuple):
    """An index: ``each`` a chunk, up to ``inside`` by the loops of the chunk, multiples of ``stride`` and a constant ``offset``. The columns of the
    kernel end at ``end``."""

    each: int
    inside: int
    stride: int
    offset: int
    end: int


def _in_units(kernels: dict[Lowered, Kernel], accesses: dict[Lowered, list[_Access]], repeated: list[Lowered]) -> Columns | None:
    """Units that are whole chunks of all kernels; None where an access leaves its chunk's columns, or there is but one unit."""
    every = [a for found in accesses.values() for a in found]
    stride, each, end = math.gcd(*(a.stride for a in every)), math.lcm(*(a.each for a in every)), max(a.end for a in every)
    if 0 < stride < end or any(len({a.each for a in found}) > 1 for found in accesses.values()):
        return None
    for a in every:
        first = a.offset % stride if stride else a.offset
        if first < 0 or first + a.inside >= a.each or (first and a.end % a.each):
            return None
    chunks = {low: (kernels[low], each // found[0].each) for low, found in accesses.items()}
    units = -(-end // each)
    return Columns(units, chunks, sum(k.cost * n for k, n in chunks.values()), repeated) if units > 1 else None


def _accesses(kernel: Kernel, buffers: set[Buffer]) -> list[_Access] | None:
    """What a kernel reads and writes of ``buffers``; None where it is not known to keep to columns."""
    loops = [s for s in kernel.body if isinstance(s, Loop)]
    if kernel.ready is not None or kernel.scratch or len(loops) != 1 or not isinstance(kernel.iterations, int):
        return None
    found = []
    for index, around in _indices(kernel.body, buffers, []):
        access = _access(index, around[0], around[1:]) if around else None
        if access is None:
            return None
        found.append(access)
    return found


def _indices(body: list[Stmt], buffers: set[Buffer], around: list[Loop]) -> Iterator[tuple[Int, list[Loop]]]:
    """Indices into ``buffers``, each with the loops around it, outermost first."""
    for s in body:
        if isinstance(s, Loop):
            yield from _indices(s.body, buffers, [*around, s])
        elif isinstance(s, Store) and s.buffer in buffers:
            yield s.index, around
        elif isinstance(s, Ins) and s.op == "load" and s.attrs[0] in buffers:
            yield s.attrs[1], around


def _access(index: Int, parallel: Loop, around: list[Loop]) -> _Access | None:
    if parallel.kind != "parallel" or parallel.start != 0 or parallel.limit is not None or not isinstance(parallel.extent, int):
        return None
    extents: dict[str, int] = {}
    for loop in reversed(around):  # each variable becomes one that counts from 0; an inner one may start at an outer one
        if not isinstance(loop.extent, int) or loop.shared != 1:
            return None
        index = substitute(index, {loop.var: loop.start + var(loop.var)})
        extents[loop.var] = loop.extent
    terms = dict(index.terms) if isinstance(index, Expr) else {(): index}
    names = {m: m[0].name if len(m) == 1 and not m[0].args else "" for m in terms}
    each = sum(c for m, c in terms.items() if names[m] == parallel.var)
    if each <= 0:
        return None
    within = {names[m]: c for m, c in terms.items() if names[m] in extents and 0 < c < each}
    inside = sum(c * (extents[v] - 1) for v, c in within.items())
    offset = terms.get((), 0)
    rows = [c for m, c in terms.items() if m and names[m] != parallel.var and names[m] not in within]
    starts = {loop.var: split_linear(loop.start, parallel.var) for loop in around}
    limits = [loop.limit for loop in around if starts[loop.var] == (each, 0) and within == {loop.var: 1} and isinstance(loop.limit, int)]
    return _Access(each, inside, math.gcd(*rows), offset, min([each * parallel.extent, *limits]))
