"""Canonical order of a kernel's instructions, operands and parameters, by the kernel's own structure alone.

Canonical reduction orders the operands of commutative ops by all that is below them, which differs between the layers of a network. Here a load
counts for where it reads, not for what: alike parts of a graph then become the same kernel, which is compiled once.
"""

from __future__ import annotations

import zlib
from typing import Any

from hologram.graph.kernel.ir import Acc, Value
from hologram.graph.lower.scalarize import PendingStore, ScalarProgram
from hologram.ir.instruction import Ins
from hologram.ir.traversal import post_order

LAST = 1 << 64  # beyond any hash: constants come last, as canonical reduction has them


def order_canonically(values: ScalarProgram, stores: list[PendingStore]) -> None:
    """Orders operands, instructions and parameters. Indices that go through values, and scans, have an order of their own: they are left alone."""
    if values.taken or any(isinstance(v, Ins) and v.op == "scan" for v in values.order):
        return
    rank: dict[Value, int] = {}
    for v in values.order:
        if isinstance(v, Ins) and not isinstance(v.op, str) and "commutative" in v.op.algebra:
            x, y = v.args
            if rank[x] > rank[y]:
                v.args = (y, x)
        rank[v] = LAST + _own(v) if isinstance(v, Ins) and v.op == "const" else hash((_own(v), *(rank[a] for a in _inputs(v, values))))
    accs = [v for v in values.order if isinstance(v, Acc)]
    values.order = post_order([*accs, *(v for w in stores for v in (w.value, w.mask) if v is not None)], lambda v: _inputs(v, values))
    _number_buffers(values, stores)


def _inputs(v: Value, values: ScalarProgram) -> tuple[Value, ...]:
    return v.args if isinstance(v, Ins) else values.accumulates[v]


def _own(v: Value) -> int:
    """What an instruction does, its operands aside: from text, so that no process's hash seed plays a part."""
    if isinstance(v, Acc):
        return zlib.crc32(f"{v.op.name} {v.value_dtype} {v.dtype}".encode())
    what: Any = (v.attrs[0].dtype, v.attrs[1]) if v.op == "load" else v.attrs
    return zlib.crc32(f"{v.opname} {what} {v.dtype}".encode())


def _number_buffers(values: ScalarProgram, stores: list[PendingStore]) -> None:
    """Parameters in the order of their first use, what is written last."""
    used = [v.attrs[0] for v in values.order if isinstance(v, Ins) and v.op == "load"]
    first = {b: i for i, b in reversed(list(enumerate([*used, *(w.buffer for w in stores)])))}
    values.buffers = dict(sorted(values.buffers.items(), key=lambda item: first.get(item[1], -1)))
    for i, b in enumerate(values.buffers.values()):
        b.name = f"b{i}"


__all__ = ["order_canonically"]
