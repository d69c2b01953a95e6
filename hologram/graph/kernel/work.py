"""The work of a kernel, counted from its loops: bytes that it must move, and scalar operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hologram.graph.kernel.ir import Accumulate, Buffer, Kernel, Loop, Stmt, Store
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Int, atoms, substitute, typical

MAX_ENUMERATED = 4096  # iterations of an outer loop that are gone through for the trips of an inner one


@dataclass(slots=True)
class Work:
    """``read`` and ``written``: bytes, each element once; ``operations`` on floats, of which a multiply-add is two, and on
    integers, many of which compute indices; ``itemsize``: bytes of the
    widest numbers that it computes with."""

    read: float = 0.0
    written: float = 0.0
    operations: float = 0.0
    integer_operations: float = 0.0
    itemsize: int = 4
    _accesses: dict[tuple[Buffer, bool], float] = field(default_factory=dict)

    @property
    def nbytes(self) -> float:
        return self.read + self.written


def work_of(kernel: Kernel, sizes: Mapping[str, int]) -> Work:
    """The work of one run of ``kernel``, for these values of the symbols."""
    work = Work()
    _count(kernel.body, 1.0, work, dict(sizes), {})
    known = {p: at_sizes(p.size, sizes) for p in kernel.params}
    if kernel.ready is not None:
        work._accesses = {(p, writes): float(known[p]) for p in kernel.params for writes in _directions(p)}
    for (buffer, writes), times in work._accesses.items():
        if buffer in known:
            nbytes = min(known[buffer], times) * buffer.dtype.itemsize
            work.written += nbytes if writes else 0
            work.read += 0 if writes else nbytes
    return work


def _directions(buffer: Buffer) -> tuple[bool, ...]:
    return {"in": (False,), "out": (True,), "inout": (False, True)}[buffer.role]


def at_sizes(n: Int, sizes: Mapping[str, int]) -> int:
    """``n`` for these values of the symbols; a guess where others are left."""
    return typical(substitute(n, sizes))


def _count(body: list[Stmt], times: float, work: Work, sizes: dict[str, int], loops: dict[str, tuple[int, int]]) -> None:
    """Adds what ``body`` does in ``times`` runs. ``loops``: start and count of each loop around it."""
    for s in body:
        if isinstance(s, Loop):
            trips = _trips(s, sizes, loops)
            inside = loops | {s.var: (at_sizes(s.start, sizes), max(1, round(trips)))}
            _count(s.body, times * trips, work, sizes, inside)
        elif isinstance(s, Store):
            work._accesses[s.buffer, True] = work._accesses.get((s.buffer, True), 0.0) + times
        elif isinstance(s, Accumulate):
            work.operations += times
        elif isinstance(s, Ins) and s.op == "load":
            work._accesses[s.attrs[0], False] = work._accesses.get((s.attrs[0], False), 0.0) + times
        elif isinstance(s, Ins) and not isinstance(s.op, str):
            _count_operation(s, times, work)


def _count_operation(s: Ins, times: float, work: Work) -> None:
    assert not isinstance(s.op, str)
    if s.dtype.kind in "fc":
        work.operations += times * s.op.cost
        work.itemsize = max(work.itemsize, s.dtype.itemsize)
    else:
        work.integer_operations += times * s.op.cost


def _trips(loop: Loop, sizes: Mapping[str, int], loops: Mapping[str, tuple[int, int]]) -> float:
    """Iterations of ``loop`` in a run of it: the mean, where its end depends on one loop around it."""
    if loop.limit is None:
        return float(at_sizes(loop.extent, sizes))
    ends = substitute(loop.limit, sizes), substitute(loop.start, sizes)
    names = {a.name for e in ends for a in (() if isinstance(e, int) else atoms(e))}
    if len(names) > 1 or not names <= loops.keys():
        return float(at_sizes(loop.extent, sizes))
    extent = at_sizes(loop.extent, sizes)
    if not names:
        return float(max(0, min(extent, at_sizes(ends[0] - ends[1], sizes))))
    (name,) = names
    start, count = loops[name]
    step = max(1, count // MAX_ENUMERATED)
    values = [at_sizes(substitute(ends[0] - ends[1], {name: v}), sizes) for v in range(start, start + count, step)]
    return sum(max(0, min(extent, v)) for v in values) / len(values)
