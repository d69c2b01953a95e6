"""What the walk asks of a kernel before it writes it: which buffers its statements touch."""

from __future__ import annotations

from hologram.graph.kernel.ir import Buffer, Loop, Stmt, Store
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Int


def statements(body: list[Stmt]) -> list[Stmt]:
    out: list[Stmt] = []
    stack = list(body)
    while stack:
        s = stack.pop()
        out.append(s)
        if isinstance(s, Loop):
            stack += s.body
    return out


def stored(body: list[Stmt]) -> set[Buffer]:
    return {s.buffer for s in statements(body) if isinstance(s, Store)}


def loaded(body: list[Stmt]) -> set[Buffer]:
    return {s.attrs[0] for s in statements(body) if isinstance(s, Ins) and s.op == "load"}


def in_place(body: list[Stmt]) -> set[Buffer]:
    """Buffers that may be one in memory: elements of the one are read where those of the other are written, and nowhere else."""
    reads: dict[Buffer, set[Int]] = {}
    writes: dict[Buffer, set[Int]] = {}
    for s in statements(body):
        if isinstance(s, Ins) and s.op == "load":
            reads.setdefault(s.attrs[0], set()).add(s.attrs[1])
        elif isinstance(s, Store):
            writes.setdefault(s.buffer, set()).add(s.index)
    return {b for o, w in writes.items() for i, r in reads.items() if r == w and i.dtype.bits == o.dtype.bits for b in (o, i)}
