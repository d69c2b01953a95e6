"""Lowering of sorted scatters (``run_sums`` and ``scatter_runs``): each work item finds the run that begins at its pair, and combines it.

:mod:`hologram.graph.legalize.sorted_scatters` makes these nodes, and says in which order updates are combined."""

from __future__ import annotations

from typing import Any

from hologram import dtypes
from hologram.graph.fusion.groups import Group
from hologram.graph.kernel.build import apply, cast, const, index, inside, load, named, summarise
from hologram.graph.kernel.ir import Acc, Accumulate, Kernel, Loop, Stmt, Store, Value
from hologram.graph.legalize.sorts import INDEX_BITS
from hologram.graph.lower.group import lower
from hologram.graph.lower.lowered import Lowered
from hologram.graph.lower.scalarize import ScalarProgram
from hologram.ir.index_maps import linear
from hologram.ir.instruction import Ins
from hologram.ir.node import Node
from hologram.ir.op import TABLE, Op
from hologram.ir.symbolic import Int, counter, floordiv, mod, prod
from hologram.primitives.reductions import reduction_by
from hologram.primitives.sorted_scatter import run_sums

STEP_NS = 2.0  # of a step of a search


def lower_runs(group: Group, materialized: set[Node], precision: str) -> list[Lowered]:
    """The kernels of a group whose only value is ``run_sums`` or ``scatter_runs``: of this, what is there before comes first."""
    (node,) = group.nodes
    if node.op is run_sums:
        return [_Runs(group, materialized).sums()]
    return [*lower(group, materialized, {node}, precision), _Runs(group, materialized).scattered()]


class _Runs:
    """A kernel of which every item has a pair, at ``k`` of row ``s``, and one of the outer and of the inner elements, ``o`` and ``c``."""

    def __init__(self, group: Group, materialized: set[Node]) -> None:
        (self.node,) = group.nodes
        self.group = group
        self.values = ScalarProgram(group, materialized)
        *_, self.pairs, self.updates = self.node.inputs
        self.op, self.low, self.index_bits, self.cut = self.node.attrs
        self.monoid: Op | None = TABLE[self.op].monoid
        self.space = self.updates.shape
        shared, outer, self.m, inner = self.space
        self.iterations = prod(self.space)
        p = counter("p", self.iterations)
        self.c, rest = mod(p, inner), floordiv(p, inner)
        self.k, rest = mod(rest, self.m), floordiv(rest, self.m)
        self.o, self.s = mod(rest, outer), floordiv(rest, outer)
        self.body: list[Stmt] = []
        self.buffer = self.values.buffer(self.pairs, "in")

    def sums(self) -> Lowered:
        """The pieces of runs."""
        begins = self._begins(cut=True)
        rest = self.cut - mod(self.k, self.cut)
        length = self._length(
            begins,
            named(apply(self.body, "min", index(self.body, rest), index(self.body, self.m - self.k)), "most", self.cut + 1, assumed=True),
            self.cut,
        )
        total = self._combined(length, lambda body, j: self._update(body, self.k + j))
        out = self.values.buffer(self.node, "out")
        self.body.append(Store(out, linear((self.s, self.o, self.k, self.c), self.space), total, begins))
        return self._finished()

    def scattered(self) -> Lowered:
        """Runs, or their pieces, to where they go."""
        n = self.node.shape[2]
        begins = self._begins(cut=False)
        target = named(cast(self.body, self._target_of(self.body, self.k, None), dtypes.int64), "place", n, assumed=True)  # type: ignore[arg-type]
        begins = apply(self.body, "and", begins, inside(self.body, target, n))
        at = linear((self.s, self.o, target, self.c), self.node.shape)
        out = self.values.buffer(self.node, "inout")
        if self.monoid is None:
            self.body.append(Store(out, at, self._update(self.body, self.k), begins))
        elif self.cut:
            total = self._combined(self._pieces(begins), self._piece)
            self.body.append(Store(out, at, apply(self.body, self.monoid.name, load(self.body, out, at, begins), total), begins))
        else:
            length = self._length(begins, self.m - self.k, self.m)
            serial = Loop("serial", "j", 0, length)
            update = self._update(serial.body, self.k + counter("j", self.m))
            serial.body.append(Store(out, at, apply(serial.body, self.monoid.name, load(serial.body, out, at), update)))
            self.body.append(serial)
        return self._finished()

    # --- pairs ---------------------------------------------------------------------------------------------------------

    def _target_of(self, body: list[Stmt], k: Int, mask: Value | None) -> Ins:
        pair = load(body, self.buffer, self.s * self.m + k, mask)
        return apply(body, "shr_low", pair, const(body, self.low, pair.dtype)) if self.low else pair

    def _begins(self, cut: bool) -> Ins:
        """Whether a run, or if ``cut`` a piece of one, begins here; where updates are set, whether it ends here, since the last of them stays."""
        body, other = self.body, self.k + 1 if self.monoid is None else self.k - 1
        there = inside(body, other, self.m)
        self.own = self._target_of(body, self.k, None)
        same = apply(body, "and", there, apply(body, "eq", self._target_of(body, other, there), self.own))
        begins = apply(body, "not", same)
        return apply(body, "or", begins, inside(body, mod(self.k, self.cut), 1)) if cut else begins

    def _length(self, begins: Value, most: Int, bound: Int) -> Int:
        """How many pairs from here on, no more than ``most``, which is at most ``bound``, are of this index; 0 where no run begins: a search."""
        body = self.body
        steps, size = ((bound - 1).bit_length(), bound) if isinstance(bound, int) else (INDEX_BITS, None)
        at: Int = 0
        for step in (1 << e for e in range(steps - 1, -1, -1)):
            there = apply(body, "and", begins, inside(body, at + step, most))
            same = apply(body, "and", there, apply(body, "eq", self._target_of(body, self.k + at + step, there), self.own))
            at = named(apply(body, "select", same, index(body, at + step), index(body, at)), f"at{step}", size, assumed=True)
        length = apply(body, "select", begins, index(body, at + 1), const(body, 0, dtypes.int64))
        return named(length, "length", None if size is None else size + 1, assumed=True)

    def _pieces(self, begins: Value) -> Int:
        """In how many pieces the run is cut that begins here."""
        length = self._length(begins, self.m - self.k, self.m)
        first = floordiv(self.k, self.cut)
        count = index(self.body, floordiv(self.k + length + (self.cut - 1), self.cut) - first)
        return named(apply(self.body, "select", begins, count, const(self.body, 0, dtypes.int64)), "pieces", assumed=True)

    def _piece(self, body: list[Stmt], j: Int) -> Value:
        start = apply(body, "max", index(body, (floordiv(self.k, self.cut) + j) * self.cut), index(body, self.k))
        values = ScalarProgram(self.group, self.values.materialized, whole=self.values)
        value = values.element(self.updates, (self.s, self.o, named(start, "start", self.m, assumed=True), self.c), ())
        body += values.order  # type: ignore[arg-type]
        return value

    def _update(self, body: list[Stmt], k: Int) -> Value:
        """The update that the pair at ``k`` stands for."""
        j: Int = 0
        if self.index_bits:
            pair = load(body, self.buffer, self.s * self.m + k)
            low = apply(body, "and", pair, const(body, (1 << self.index_bits) - 1, pair.dtype))
            j = named(cast(body, low, dtypes.int64) if low.dtype.bits == 64 else low, "update", self.m, assumed=True)  # type: ignore[arg-type]
        values = ScalarProgram(self.group, self.values.materialized, whole=self.values)
        value = values.element(self.updates, (self.s, self.o, j, self.c), ())
        body += values.order  # type: ignore[arg-type]
        return value

    def _combined(self, count: Int, value: Any) -> Acc:
        """So many values, ``value(body, j)`` each, combined in order."""
        serial = Loop("serial", "j", 0, count)
        d = self.updates.dtype
        serial.accs = [Acc(reduction_by(self.monoid), d, d)]
        serial.body.append(Accumulate(serial.accs[0], (value(serial.body, counter("j", None)),)))
        self.body.append(serial)
        return serial.accs[0]

    def _finished(self) -> Lowered:
        kernel = Kernel()
        kernel.params, kernel.iterations = list(self.values.buffers.values()), self.iterations
        parallel = Loop("parallel", "p", 0, kernel.iterations)
        parallel.body = self.body
        kernel.body.append(parallel)
        summarise(kernel)
        kernel.cost = STEP_NS * INDEX_BITS
        return Lowered(kernel, list(self.values.buffers), self.group)
