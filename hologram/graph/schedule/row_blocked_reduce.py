"""Row-blocked reductions: long columns of wide rows, reduced row after row, with results in scratch.

Down a block of columns memory gives half of its bandwidth: each row has a few lines to read, far from those of the next. So does reading several rows
at a time. A parallel iteration that takes a block of rows, one after the other along their whole length, reads memory as it lies: one stream, which
the hardware foresees at its full speed. It adds each row to a row of results in scratch, which stays in the first caches. Within a block this is the
canonical reduction order; the blocks' results are reduced by another kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from hologram.graph.kernel.ir import Acc, Buffer, Loop, Store, Value, is_fused_product
from hologram.graph.lower.scalarize import PendingStore, ScalarProgram
from hologram.graph.schedule.nest import Nest
from hologram.ir.instruction import Ins
from hologram.ir.op import TABLE
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
    """What accumulators come to, in scratch: ``order`` and ``writes`` add a row's elements, :meth:`before` and :meth:`after` are loops around all
    rows."""

    def __init__(self, accumulates: dict[Acc, tuple[Value, ...]], stores: Sequence[PendingStore], nest: Nest) -> None:
        self.stores, self.nest = stores, nest
        self.results = {a: Buffer(f"results{i}", a.dtype, "scratch", nest.block) for i, a in enumerate(accumulates)}
        self.identities = {a: Ins("const", (), (a.dtype.name, identity_bits(a.op, a.dtype)), a.dtype) for a in accumulates}
        self.order: list[Ins] = []
        self.writes: list[PendingStore] = []
        for a, (term, *_) in accumulates.items():
            have = Ins.load(self.results[a], nest.column)
            assert a.op.monoid is not None
            op, operands = (TABLE["mad"], (*term.args, have)) if is_fused_product(term) else (a.op.monoid, (have, term))
            total = Ins(op, operands, (), a.dtype)
            self.order += [have, total]
            self.writes.append(PendingStore(self.results[a], nest.column, total, None))

    def before(self) -> Loop:
        outer, inner = self.nest.result_loops()
        inner.body += [Store(buffer, self.nest.column, self.identities[a]) for a, buffer in self.results.items()]
        return outer

    def after(self) -> Loop:
        outer, inner = self.nest.result_loops()
        loads = {a: Ins.load(buffer, self.nest.column) for a, buffer in self.results.items()}
        inner.body += loads.values()
        inner.body += [Store(w.buffer, w.index, loads[w.value]) for w in self.stores if isinstance(w.value, Acc)]
        return outer
