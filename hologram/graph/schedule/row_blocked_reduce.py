"""Row-blocked reductions: long columns of wide rows, reduced a few rows at a time, with results in scratch.

Down a block of columns memory gives half of its bandwidth: each row has a few lines to read, far from those of the next. Here a parallel iteration
takes a block of :data:`~hologram.graph.schedule.choose.ROW_BLOCK` rows at a time, along their whole length, and adds what it gives to a row of
results in scratch, which stays in the first caches. This is not the canonical reduction order.
"""

from __future__ import annotations

from collections.abc import Sequence

from hologram.graph.kernel.ir import Acc, Buffer, Loop, Store, Value
from hologram.graph.lower.scalarize import PendingStore, ScalarProgram
from hologram.graph.schedule.nest import Nest
from hologram.ir.instruction import Ins
from hologram.primitives.reductions import identity_bits


def can_be_row_blocked(values: ScalarProgram, stores: Sequence[PendingStore]) -> bool:
    """Whether all that is written are accumulators that combine in any order, and nothing that is reduced depends on one."""
    accs = values.accumulates
    after: set[Value] = set(accs)
    for v in values.order:
        if isinstance(v, Ins) and any(a in after for a in v.args):
            return False
    return all(a.op.monoid is not None and not any(x in after for x in args) for a, args in accs.items()) and all(
        w.value in after and w.mask is None for w in stores
    )


class RowBlockedReduce:
    """What accumulators come to, in scratch: ``order`` and ``writes`` add a row block's, :meth:`before` and :meth:`after` are loops around all row
    blocks."""

    def __init__(self, accs: Sequence[Acc], stores: Sequence[PendingStore], nest: Nest) -> None:
        self.stores, self.nest = stores, nest
        self.results = {a: Buffer(f"results{i}", a.dtype, "scratch", nest.block) for i, a in enumerate(accs)}
        self.identities = {a: Ins("const", (), (a.dtype.name, identity_bits(a.op, a.dtype)), a.dtype) for a in accs}
        self.order: list[Ins] = []
        self.writes: list[PendingStore] = []
        for a, buffer in self.results.items():
            have = Ins("load", (), (buffer, nest.column), a.dtype)
            assert a.op.monoid is not None
            total = Ins(a.op.monoid, (have, a), (), a.dtype)
            self.order += [have, total]
            self.writes.append(PendingStore(buffer, nest.column, total, None))

    def before(self) -> Loop:
        lanes = self.nest.column_loop()
        lanes.body += [Store(buffer, self.nest.column, self.identities[a]) for a, buffer in self.results.items()]
        return lanes

    def after(self) -> Loop:
        lanes = self.nest.column_loop()
        loads = {a: Ins("load", (), (buffer, self.nest.column), a.dtype) for a, buffer in self.results.items()}
        lanes.body += loads.values()
        lanes.body += [Store(w.buffer, w.index, loads[w.value]) for w in self.stores if isinstance(w.value, Acc)]
        return lanes
