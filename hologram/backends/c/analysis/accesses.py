"""What the walk asks of a kernel before it writes it: which buffers its statements touch, and which products are fused with sums."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hologram.graph.kernel.ir import Accumulate, Buffer, Kernel, Loop, Stmt, Store
from hologram.ir.instruction import Ins
from hologram.ir.op import TABLE
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


def fusible(kernel: Kernel) -> dict[Any, Ins]:
    """Sums and accumulations that take a product made for them alone, beside them: what they take."""
    everything = list(kernel.walk())
    uses: Counter[Any] = Counter()
    for s in everything:
        if isinstance(s, (Ins, Accumulate)):
            uses.update(s.args)
        elif isinstance(s, Store):
            uses.update(v for v in (s.value, s.mask) if v is not None)
    add, mul = TABLE["add"], TABLE["mul"]
    found: dict[Any, Ins] = {}
    for body in [kernel.body, *(s.body for s in everything if isinstance(s, Loop))]:
        here = set(x for x in body if isinstance(x, Ins))
        for s in body:
            summed = s.op is add if isinstance(s, Ins) else isinstance(s, Accumulate) and s.acc.op.monoid is add and s.acc.op.kind == "reduce"
            if not summed:
                continue
            for x in s.args:  # type: ignore[union-attr]
                if x in here and x.op is mul and x.dtype.is_float and uses[x] == 1:
                    found[s] = x
                    break
    return found
