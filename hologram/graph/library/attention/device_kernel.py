"""The attention kernel for GPUs, whose items share memory (:mod:`hologram.graph.library.attention.nodes` has the node).

A parallel iteration is a block of rows (queries) of one head, which goes over blocks of keys. All its work is nests of two loops of lanes, rows by
keys or rows by elements of a value, whose elements items keep in registers (:mod:`hologram.backends.c.analysis.tiles`): block of keys by block of
keys

1. products of queries and keys, and the scores made of them;
2. their maximum in each row, and the factor ``exp(old maximum - new maximum)`` for what there is so far;
3. exponentials, to shared memory, and their sum;
4. products of exponentials and values, added to the outputs so far, scaled.

Where queries, keys and values are 16-bit floats and the device multiplies such, weights are rounded to their type, but not for their
sums, as the result commonly is.

Invariant: after a block, ``sums`` and ``outs`` are those of all keys so far, in units of ``exp(tops)`` (Milakov and Gimelshein 2018; Dao et al.
2022).
"""

from __future__ import annotations

from collections.abc import Sequence

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.fusion.groups import Group
from hologram.graph.kernel.build import apply, cast, const, index, load, min_index, named
from hologram.graph.kernel.ir import Acc, Accumulate, Buffer, Loop, Stmt, Store, Value
from hologram.graph.library.attention.nodes import movement_source, score_products
from hologram.graph.library.attention.scores import ScoreKernel, static
from hologram.graph.lower.lowered import Lowered
from hologram.graph.schedule.tiles import MAX_ITEM_REGISTERS, PAD, SIDE, GpuTileConfig
from hologram.ir.index_maps import linear, variables
from hologram.ir.node import Node
from hologram.ir.op import TABLE
from hologram.ir.symbolic import Int, counter

MAX_MATRIX_UNIT_WIDTH = 128  # elements of a value: outputs and sums are in registers
MIN_MATRIX_UNIT_KEYS = 32  # keys of a block: terms that panels have
MAX_VALUE_ROW_BYTES = 2048  # of a value: its panels and outputs fit where shared memory is least
GFLOPS = 60.0  # that a parallel iteration is taken to reach, for its cost


def lower_attention(group: Group, materialized: set[Node], tile: GpuTileConfig) -> Lowered:
    """The one kernel of a group whose only value is an attention node."""
    return _Attention(group, materialized, tile).lowered()


def rounded_type(factor: Node) -> DType | None:
    """The type of 16-bit floats that a factor of products consists of, though it is float32; None where it does not."""
    node, _ = movement_source(factor, variables(factor.shape))
    if node.op.name != "cast" or node.dtype is not dtypes.float32:
        return None
    d = node.inputs[0].dtype
    return d if d.is_16bit_float else None


def block(count: int, most: int) -> int:
    """Rows, or keys, of a block where there are ``count``: a power of two, of :data:`SIDE` at least."""
    return min(most, max(SIDE, 1 << (count - 1).bit_length()))


def whole(n: int) -> int:
    """Columns of a nest that has room for ``n``: one or two of an item, or fours of neighbours."""
    return next((m for m in (SIDE, 2 * SIDE) if n <= m), -(-n // (4 * SIDE)) * (4 * SIDE))


class TileKernel(ScoreKernel):
    """A kernel of nests. Names: ``r`` a row of the parallel iteration, ``left`` how many rows there are from the parallel iteration's first, ``j``
    the block, ``here`` how many keys it has, ``t`` one of them, ``k`` an element of a query, ``d`` of a value."""

    def blocks_of(self, tile: GpuTileConfig, width: int, factors: Sequence[Node], products: int = 1) -> None:
        """Sizes of blocks, where ``width`` is what a row of the outputs has, and ``factors`` are those of all products, ``products`` of which are of
        the size of scores.

        Where matrix units can take the factors, blocks are theirs, and weights are rounded as factors are."""
        most_rows, most_keys = tile.scores
        wide = self.dtype.itemsize // 4
        narrow = {rounded_type(x) for x in factors}
        by_units = tile.tile_16_bit is not None and len(narrow) == 1 and None not in narrow and whole(width) <= MAX_MATRIX_UNIT_WIDTH
        self.weight_type: DType = narrow.pop() if by_units else self.dtype  # type: ignore[assignment]
        if by_units and products > 1 and whole(width) > MAX_MATRIX_UNIT_WIDTH // 2:
            most_keys //= 2
        self.block = max(MIN_MATRIX_UNIT_KEYS * by_units, block(self.length, most_keys // wide))
        self.rows = most_rows if by_units else block(self.count, most_rows // wide)
        of_a_row = (2 * whole(width) + self.block) // SIDE + 3  # outputs, their sums, scores, and what softmax has of it
        while not by_units and self.rows > SIDE and wide * (self.rows // SIDE) * of_a_row > MAX_ITEM_REGISTERS:
            self.rows //= 2
        self.blocks, self.row_blocks = -(-self.length // self.block), -(-self.count // self.rows)
        self.stride = self.rows + PAD
        self.weights = Buffer("weights", self.weight_type, "scratch", self.block * self.stride)

    # --- where things are ----------------------------------------------------------------------------------------------

    @property
    def row(self) -> Int:
        return 0 if self.row_blocks == 1 else counter("row", self.count)

    @property
    def left(self) -> Int | None:
        """Rows from the parallel iteration's first on; None where they are enough for every parallel iteration."""
        return None if self.count % self.rows == 0 else self.count - self.row

    @property
    def first(self) -> Int:
        """The block's first key."""
        return counter("j", self.blocks) * self.block if self.blocks > 1 else 0

    @property
    def here(self) -> Int | None:
        """Keys of the block at hand; None where every block is full."""
        return None if self.length % self.block == 0 else counter("here", self.block + 1)

    # --- loops ---------------------------------------------------------------------------------------------------------

    def begin_block(self, body: list[Stmt], number: Int) -> None:
        if self.row_blocks > 1:
            named(index(body, number * self.rows), "row")

    def each_block(self, body: list[Stmt]) -> list[Stmt]:
        """The statements of a loop over blocks."""
        if self.blocks > 1:
            loop = Loop("serial", "j", 0, self.blocks)
            body.append(loop)
            body = loop.body
        if self.here is not None:
            named(min_index(body, self.length - self.first, self.block), "here")
        return body

    def by_keys(self, body: list[Stmt]) -> tuple[Loop, Loop]:
        """A nest of the block's scores; the loop across is not yet in the loop of rows."""
        rows = Loop("lanes", "r", 0, self.rows, self.left)
        body.append(rows)
        return rows, Loop("lanes", "t", 0, self.block, self.here)

    def by_elements(self, body: list[Stmt], width: int) -> tuple[Loop, Loop]:
        """A nest of the outputs; the loop across is not yet in the loop of rows."""
        rows = Loop("lanes", "r", 0, self.rows, self.left)
        body.append(rows)
        return rows, Loop("lanes", "d", 0, whole(width), width if width != whole(width) else None)

    def products(self, down: Loop, rows: Loop, columns: Loop, queries: Node, keys: Node) -> None:
        """Sums of products of the parallel iteration's rows and the block's keys."""
        k = counter("k", static(queries.shape[-1]))
        r, t = counter("r", self.rows), counter("t", self.block)
        x = self.element(queries, (*self.score_index(self.row + r, 0), k), down.body, {"k"}, rows.body)
        y = self.element(keys, (*self.score_index(0, self.first + t), k), down.body, {"k"}, columns.body)
        self.add_product(down, x, y)

    def keep_weight(self, columns: Loop, weight: Value) -> None:
        """Makes a value the weight of the key at hand."""
        kept = cast(columns.body, weight, self.weight_type)
        columns.body.append(Store(self.weights, counter("t", self.block) * self.stride + counter("r", self.rows), kept))

    def sums_of(self, columns: Loop, factor: Node) -> Value:
        """Sums of products of the block's weights and the elements of ``factor`` at its keys."""
        down = Loop("serial", "t", 0, self.block, self.here)
        t, d = counter("t", self.block), counter("d", static(factor.shape[-1]))
        weight = cast(down.body, load(down.body, self.weights, t * self.stride + counter("r", self.rows)), self.dtype)
        value = self.element(factor, (*self.score_index(0, self.first + t), d), down.body, {"t"}, columns.body)
        self.add_product(down, weight, value)
        columns.body.append(down)
        return down.accs[0]


class _Attention(TileKernel):
    def __init__(self, group: Group, materialized: set[Node], tile: GpuTileConfig) -> None:
        (self.node,) = group.nodes
        self.queries, self.keys, scores, self.values = self.node.inputs
        row_axis, key_axis, self.safe = self.node.attrs
        super().__init__(group, materialized, scores, row_axis, key_axis)
        (self.made_of,) = score_products(scores)
        self.depth, self.width = static(self.queries.shape[-1]), static(self.values.shape[-1])
        self.blocks_of(tile, self.width, [self.queries, self.keys, self.values])
        self.outs = self.scratch("outs", self.rows * whole(self.width))
        self.found = self.scratch("scores", self.rows * self.block)
        self.tops, self.sums, self.scales = (self.scratch(name, self.rows) for name in ("tops", "sums", "scales"))
        self.r = counter("r", self.rows)

    def lowered(self) -> Lowered:
        kernel, body, number = self.start(self.row_blocks)
        self.begin_block(body, number)
        self._no_key(body)
        blocks = self.each_block(body)
        self._scores(blocks)
        self._maxima(blocks)
        self._exponentials(blocks)
        self._outputs(blocks)
        self._divide(body)
        scratch = [self.weights, self.found, self.outs, self.tops, self.sums, self.scales]
        return self.finish(kernel, scratch, 2 * self.rows * self.length * (self.depth + self.width) / GFLOPS)

    def _out(self) -> Int:
        """Where the output at hand stands."""
        return self.r * whole(self.width) + counter("d", self.width)

    def _score(self) -> Int:
        return self.r * self.block + counter("t", self.block)

    def _no_key(self, body: list[Stmt]) -> None:
        """No key has been seen."""
        rows, columns = self.by_elements(body, self.width)
        lowest, zero = self.lowest(rows.body), const(rows.body, 0.0, self.dtype)
        columns.body.append(Store(self.outs, self._out(), zero))
        rows.body += [columns, Store(self.tops, self.r, lowest), Store(self.sums, self.r, zero)]

    def _scores(self, body: list[Stmt]) -> None:
        rows, columns = self.by_keys(body)
        down = Loop("serial", "k", 0, self.depth)
        self.products(down, rows, columns, self.queries, self.keys)
        columns.body.append(down)
        at = self.score_index(self.row + self.r, self.first + counter("t", self.block))
        (acc,) = down.accs
        score = self.element(self.scores, at, columns.body, {"t"}, rows.body, {self.made_of: acc})
        columns.body.append(Store(self.found, self._score(), score))
        rows.body.append(columns)

    def _maxima(self, body: list[Stmt]) -> None:
        rows, columns = self.by_keys(body)
        best = self._reduced(columns, "reduce_max", load(columns.body, self.found, self._score()))
        rows.body.append(columns)
        old = load(rows.body, self.tops, self.r)
        top = apply(rows.body, "max", old, best)
        scale = apply(rows.body, "exp", apply(rows.body, "sub", old, top))
        rows.body += [Store(self.tops, self.r, top), Store(self.scales, self.r, scale)]

    def _exponentials(self, body: list[Stmt]) -> None:
        rows, columns = self.by_keys(body)
        top = load(rows.body, self.tops, self.r)
        weight = apply(columns.body, "exp", apply(columns.body, "sub", load(columns.body, self.found, self._score()), top))
        self.keep_weight(columns, weight)
        total = self._reduced(columns, "reduce_sum", weight)
        rows.body.append(columns)
        total = apply(rows.body, "mad", load(rows.body, self.sums, self.r), load(rows.body, self.scales, self.r), total)
        rows.body.append(Store(self.sums, self.r, total))

    def _reduced(self, loop: Loop, op: str, value: Value) -> Value:
        acc = Acc(TABLE[op], self.dtype, self.dtype)
        loop.accs.append(acc)
        loop.body.append(Accumulate(acc, (value,)))
        return acc

    def _outputs(self, body: list[Stmt]) -> None:
        rows, columns = self.by_elements(body, self.width)
        scale = load(rows.body, self.scales, self.r)
        more = self.sums_of(columns, self.values)
        total = apply(columns.body, "mad", load(columns.body, self.outs, self._out()), scale, more)
        columns.body.append(Store(self.outs, self._out(), total))
        rows.body.append(columns)

    def _divide(self, body: list[Stmt]) -> None:
        """The results: outputs over sums."""
        rows, columns = self.by_elements(body, self.width)
        total: Value = load(rows.body, self.sums, self.r)
        one = const(rows.body, 1.0, self.dtype)
        if self.safe:
            total = apply(rows.body, "select", apply(rows.body, "eq", total, const(rows.body, 0.0, self.dtype)), one, total)
        share = apply(rows.body, "div", one, total)
        result = apply(columns.body, "mul", load(columns.body, self.outs, self._out()), share)
        at = [n for i, n in enumerate(self.score_index(self.row + self.r, 0)) if i != self.walked_axis]
        columns.body.append(Store(self.buffers.buffer(self.node, "out"), linear((*at, counter("d", self.width)), self.node.shape), result))
        rows.body.append(columns)
