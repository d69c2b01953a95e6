"""The kernel of attention derivatives: scores reduced along one axis (``reduced_scores`` of :mod:`hologram.graph.library.attention.nodes`), for
devices whose items share memory.

A parallel iteration is a block of the own axis of one head, which goes over blocks of the other axis. Products are computed again there, and what is
made of them element by element; of that are summed, or maximal, the elements of a row, or its products with a factor. Nothing of the size of scores
is in memory, and no two parallel iterations write to one place, so that results do not depend on timing.
"""

from __future__ import annotations

from hologram.graph.fusion.groups import Group
from hologram.graph.kernel.build import apply, const, load
from hologram.graph.kernel.ir import Acc, Accumulate, Loop, Stmt, Store, Value
from hologram.graph.library.attention.device_kernel import GFLOPS, TileKernel, whole
from hologram.graph.library.attention.nodes import score_products
from hologram.graph.library.attention.scores import static
from hologram.graph.lower.lowered import Lowered
from hologram.graph.schedule.tiles import SIDE, GpuTileConfig
from hologram.ir.index_maps import linear
from hologram.ir.node import Node
from hologram.ir.op import TABLE
from hologram.ir.symbolic import Int, counter


def lower_reduced(group: Group, materialized: set[Node], tile: GpuTileConfig) -> Lowered:
    """The one kernel of a group whose only value is a ``reduced_scores`` node."""
    return _Reduced(group, materialized, tile).lowered()


class _Reduced(TileKernel):
    """``found`` are the products; names are those of :class:`TileKernel`, with indices of the own axis for rows and of the walked one for keys."""

    def __init__(self, group: Group, materialized: set[Node], tile: GpuTileConfig) -> None:
        (self.node,) = group.nodes
        own, walked, self.reduction, self.factored = self.node.attrs
        scores, *factors = self.node.inputs
        super().__init__(group, materialized, scores, own, walked)
        self.factor = factors.pop(0) if self.factored else None
        self.pairs = list(zip(factors[::2], factors[1::2], strict=True))
        self.made_of = score_products(scores)
        self.width = static(self.factor.shape[-1]) if self.factor is not None else 0
        self.blocks_of(tile, self.width, factors if self.factor is None else [self.factor, *factors], len(self.pairs))
        self.found = [self.scratch(f"scores{i}", self.rows * self.block) for i in range(len(self.pairs))]
        self.outs = self.scratch("outs", self.rows * (whole(self.width) if self.factored else 1))
        self.r = counter("r", self.rows)

    def lowered(self) -> Lowered:
        kernel, body, number = self.start(self.row_blocks)
        self.begin_block(body, number)
        self._nothing(body)
        blocks = self.each_block(body)
        for i in range(len(self.pairs)):
            self._products(blocks, i)
        (self._sums if self.factored else self._rows)(blocks)
        self._give(body)
        scratch = [*self.found, self.outs, *([self.weights] if self.factored else [])]
        depth = sum(static(x.shape[-1]) for x, _ in self.pairs)
        return self.finish(kernel, scratch, 2 * self.rows * self.length * (depth + self.width) / GFLOPS)

    def _score(self) -> Int:
        return self.r * self.block + counter("t", self.block)

    def _out(self) -> Int:
        """Where the result at hand stands."""
        return self.r * whole(self.width) + counter("d", self.width) if self.factored else self.r

    def _nothing(self, body: list[Stmt]) -> None:
        """Results of no elements."""
        op = TABLE[self.reduction]
        rows, columns = self.by_elements(body, self.width or SIDE)
        start = const(rows.body, op.identity(self.dtype), self.dtype)
        (columns if self.factored else rows).body.append(Store(self.outs, self._out(), start))
        rows.body.insert(1, columns)

    def _products(self, body: list[Stmt], i: int) -> None:
        """Products of the ``i``-th pair."""
        rows, columns = self.by_keys(body)
        x, y = self.pairs[i]
        down = Loop("serial", "k", 0, static(x.shape[-1]))
        self.products(down, rows, columns, x, y)
        columns.body += [down, Store(self.found[i], self._score(), down.accs[0])]
        rows.body.append(columns)

    def _finished(self, rows: Loop, columns: Loop) -> Value:
        """The score at hand, made of the products."""
        known: dict[Node, Value] = {n: load(columns.body, b, self._score()) for n, b in zip(self.made_of, self.found, strict=True)}
        at = self.score_index(self.row + self.r, self.first + counter("t", self.block))
        return self.element(self.scores, at, columns.body, {"t"}, rows.body, known)

    def _sums(self, body: list[Stmt]) -> None:
        """Scores become weights, whose products with the factor are added to what earlier blocks gave."""
        assert self.factor is not None
        rows, columns = self.by_keys(body)
        self.keep_weight(columns, self._finished(rows, columns))
        rows.body.append(columns)
        rows, columns = self.by_elements(body, self.width)
        more = self.sums_of(columns, self.factor)
        columns.body.append(Store(self.outs, self._out(), apply(columns.body, "add", load(columns.body, self.outs, self._out()), more)))
        rows.body.append(columns)

    def _rows(self, body: list[Stmt]) -> None:
        """The scores of each row, reduced, and what earlier blocks gave."""
        rows, columns = self.by_keys(body)
        acc = Acc(TABLE[self.reduction], self.dtype, self.dtype)
        columns.accs.append(acc)
        columns.body.append(Accumulate(acc, (self._finished(rows, columns),)))
        rows.body.append(columns)
        monoid = TABLE[self.reduction].monoid
        assert monoid is not None
        earlier = load(rows.body, self.outs, self.r)
        rows.body.append(Store(self.outs, self.r, apply(rows.body, monoid.name, earlier, acc)))

    def _give(self, body: list[Stmt]) -> None:
        """The results, to memory."""
        rows, columns = self.by_elements(body, self.width or SIDE)
        inner = (columns if self.factored else rows).body
        element_index = [n for i, n in enumerate(self.score_index(self.row + self.r, 0)) if i != self.walked_axis]
        if self.factored:
            element_index.append(counter("d", self.width))
        result = load(inner, self.outs, self._out())
        inner.append(Store(self.buffers.buffer(self.node, "out"), linear(tuple(element_index), self.node.shape), result))
        rows.body.insert(0, columns)
