"""The attention kernel for CPUs (:mod:`hologram.graph.library.attention.nodes` has the node).

A parallel iteration is a block of rows (queries) of one head; rows are the lanes. Queries are transposed to (depth, rows) in scratch. Then, block of
keys by block of keys:

1. scores (keys, rows) by register tiles: a few keys, each element of which meets a vector of rows;
2. what is done with scores before the softmax, their maxima, exponentials and sums, down the keys, for a vector of rows at once;
3. the product of exponentials and values (rows, width) by register tiles: a few rows, each exponential of which meets a vector of a value.

So neither keys nor values are rearranged. Blocks of keys are as long for any number of them, so that sums have one order whether it is known or not.
With more than one block, sums and results so far are scaled by ``exp(old maximum - new maximum)``
(Milakov and Gimelshein 2018). Invariant: after a block, ``sums`` and ``outs`` are those of all keys so far, in units of ``exp(tops)``.
"""

from __future__ import annotations

from hologram.graph.fusion.groups import Group
from hologram.graph.kernel.build import apply, clamped_index, const, inside, load, min_index, named
from hologram.graph.kernel.ir import Acc, Accumulate, Loop, Stmt, Store, Value
from hologram.graph.library.attention.nodes import score_products
from hologram.graph.library.attention.scores import ScoreKernel, static
from hologram.graph.lower.lowered import Lowered
from hologram.graph.schedule.tiles import CpuTileConfig, parts
from hologram.ir.index_maps import linear
from hologram.ir.node import Node
from hologram.ir.op import TABLE
from hologram.ir.symbolic import Int, counter, floordiv, typical

BLOCK_ROWS = 64  # of a parallel iteration: what is read of keys and values serves that many
BLOCK_KEYS = 256  # of a block: its scores and values fit in the second-level cache
GFLOPS = 60.0  # that a parallel iteration is taken to reach, for its cost


def lower_attention(group: Group, materialized: set[Node], tile: CpuTileConfig) -> Lowered:
    """The one kernel of a group whose only value is an attention node."""
    return _Attention(group, materialized, tile).lowered()


def tile_length(count: int, most: int) -> int:
    """Of how many rows or keys the tiles of ``count`` are best: the last is as long as the others, and each costs a quarter of a row itself."""
    return min(range(most, 1, -1), key=lambda n: -(-count // n) * (n + 0.25))


class _Attention(ScoreKernel):
    """Names: ``r`` a row of the parallel iteration, ``j`` the block, ``t`` a key of it, ``at`` the first row or key of a tile, ``k`` an element of a
    query, ``d`` of a value."""

    def __init__(self, group: Group, materialized: set[Node], tile: CpuTileConfig) -> None:
        (self.node,) = group.nodes
        self.queries, self.keys, scores, self.values = self.node.inputs
        row_axis, key_axis, self.safe = self.node.attrs
        super().__init__(group, materialized, scores, row_axis, key_axis)
        (self.products,) = score_products(scores)
        self.vector = tile.nbytes // self.dtype.itemsize
        self.depth, self.width = static(self.queries.shape[-1]), static(self.values.shape[-1])
        rows, keys = self.own_extent, self.walked_extent
        self.iterations_of_head = parts(rows, BLOCK_ROWS)
        self.rows = -(-rows // static(self.iterations_of_head)) if isinstance(rows, int) else BLOCK_ROWS
        self.row_limit = None if isinstance(rows, int) else rows  # of fewer rows than an iteration has
        block = max(BLOCK_KEYS, tile.rows)
        self.block = keys if isinstance(keys, int) and keys <= block else block
        self.row_tile, self.key_tile = tile_length(self.rows, tile.rows), tile_length(self.block, tile.rows)
        self.stride = -(-self.rows // self.row_tile) * self.row_tile  # of rows in scratch: a last tile may be more than there are
        self.blocks = parts(keys, self.block)
        self.several = self.blocks != 1
        self.may_be_short = not isinstance(keys, int) or 0 < keys % self.block < self.key_tile  # whether the last block has fewer keys than a tile
        self.transposed = self.scratch("transposed", self.depth * self.rows)
        keys_in_tiles = -(-self.block // self.key_tile) * self.key_tile if self.may_be_short else self.block
        self.weights = self.scratch("weights", keys_in_tiles * self.stride)
        self.outs = self.scratch("outs", self.stride * self.width)
        self.tops, self.sums, self.scales = (self.scratch(name, self.stride) for name in ("tops", "sums", "scales"))

    # --- where things are ----------------------------------------------------------------------------------------------

    @property
    def row(self) -> Int:
        if self.iterations_of_head == 1:
            return 0
        return counter("row", self.count - self.rows + 1 if self.row_limit is None else None)

    @property
    def first(self) -> Int:
        """The block's first key."""
        return counter("j", self.blocks) * self.block if self.several else 0

    @property
    def ragged(self) -> bool:
        return not isinstance(self.walked_extent, int) or self.walked_extent % self.block != 0

    @property
    def here(self) -> Int:
        """The keys of the block at hand."""
        return counter("here", self.block + 1) if self.ragged else self.block

    # --- the kernel ----------------------------------------------------------------------------------------------------

    def lowered(self) -> Lowered:
        repeats = self.row_limit is not None or self.count % self.rows != 0
        kernel, body, block = self.start(self.iterations_of_head, repeats)
        if self.iterations_of_head != 1:  # the last rows of a head may be computed twice, to the same bits
            find = min_index if self.row_limit is None else clamped_index
            named(find(body, block * self.rows, self.own_extent - self.rows), "row")
        self._turn(body)
        if self.several:
            self._no_key(body)
            blocks = Loop("serial", "j", 0, self.blocks)
            body.append(blocks)
            self._one_block(blocks.body)
        else:
            self._one_block(body)
        self._divide(body)
        scratch = [self.transposed, self.weights, self.outs, self.tops, self.sums, *([self.scales] if self.several else [])]
        flops = 2 * self.rows * (self.depth + self.width)  # of a key
        low = self.finish(kernel, scratch, flops * typical(self.walked_extent) / GFLOPS)
        if not isinstance(kernel.iterations * self.walked_extent, int):
            kernel.work = kernel.iterations * self.walked_extent * int(1000 * flops / GFLOPS)
        return low

    def _lanes_of_rows(self) -> Loop:
        """A loop of lanes over the rows of an iteration."""
        return Loop("lanes", "r", 0, self.rows, self.row_limit)

    def _turn(self, body: list[Stmt]) -> None:
        """Queries to (depth, rows)."""
        down, across = Loop("serial", "k", 0, self.depth), self._lanes_of_rows()
        k, r = counter("k", self.depth), counter("r", self.rows)
        query = self.element(self.queries, (*self.score_index(self.row + r, 0), k), across.body, {"r", "k"}, down.body)
        across.body.append(Store(self.transposed, k * self.rows + r, query))
        down.body.append(across)
        body.append(down)

    def _no_key(self, body: list[Stmt]) -> None:
        """No key has been seen: zeros that change no sign of what is added to them."""
        lowest, zero, nothing = self.lowest(body), const(body, 0.0, self.dtype), const(body, -0.0, self.dtype)
        rows, whole = self._lanes_of_rows(), Loop("lanes", "z", 0, self.outs.size)
        r = counter("r", self.rows)
        rows.body += [Store(self.tops, r, lowest), Store(self.sums, r, zero)]
        whole.body.append(Store(self.outs, counter("z", self.outs.size), nothing))
        body += [rows, whole]

    def _one_block(self, body: list[Stmt]) -> None:
        if self.ragged:
            named(min_index(body, self.walked_extent - self.first, self.block), "here")
        self._products(body)
        self._softmax(body)
        self._outputs(body)

    def _key_tiles(self, body: list[Stmt]) -> tuple[Loop, Int]:
        """A loop over tiles of the block's keys, and the first of each. The last tile ends at the last key, and may have some of the one before;
        where there may be fewer keys than it has, it goes on behind the last one."""
        tile, tiles = self.key_tile, -(-self.block // self.key_tile)
        loop = Loop("serial", "g", 0, tiles, floordiv(self.here + (tile - 1), tile) if self.ragged else None)
        body.append(loop)
        start = counter("g", tiles) * tile
        if self.may_be_short or (not self.ragged and self.block % tile == 0):
            return loop, start
        named(min_index(loop.body, start, self.here - tile), "at")
        return loop, counter("at", self.block - tile + 1)

    def _key(self, body: list[Stmt], at: Int, i: int) -> Int:
        """The place of a tile's key: behind the last key that one again, for scores that nothing reads."""
        key = self.first + at + i
        if not self.may_be_short:
            return key
        return named(min_index(body, key, self.walked_extent - 1), f"key{i}")

    def _across(self, body: list[Stmt], name: str, extent: int, limit: Int | None = None) -> Loop:
        """A loop of lanes that a tile's accumulators have room for."""
        if extent <= self.vector:
            lanes = Loop("lanes", name, 0, extent, limit)
        else:
            panels = Loop("serial", "w", 0, -(-extent // self.vector))
            start = counter("w", -(-extent // self.vector)) * self.vector
            lanes = Loop("lanes", name, start, self.vector, limit if limit is not None else extent if extent % self.vector else None)
            body.append(panels)
            body = panels.body
        body.append(lanes)
        return lanes

    def _products(self, body: list[Stmt]) -> None:
        """Step 1: the products of queries and the block's keys."""
        tiles, at = self._key_tiles(body)
        keys = [self._key(tiles.body, at, i) for i in range(self.key_tile)]
        across = self._across(tiles.body, "r", self.rows, self.row_limit)
        k, r = counter("k", self.depth), counter("r", self.rows)
        down = Loop("serial", "k", 0, self.depth)
        query = load(down.body, self.transposed, k * self.rows + r)
        for place in keys:
            key = self.element(self.keys, (*self.score_index(0, place), k), down.body, {"k"}, across.body)
            self.add_product(down, key, query)
        across.body.append(down)
        across.body += [Store(self.weights, (at + i) * self.stride + r, acc) for i, acc in enumerate(down.accs)]

    def _softmax(self, body: list[Stmt]) -> None:
        """Step 2: the scores are finished, and become exponentials; the maxima, sums and scales of the rows."""
        across = self._lanes_of_rows()
        body.append(across)
        body = across.body
        r = counter("r", self.rows)
        several = self.several
        old = load(body, self.tops, r) if several else self.lowest(body)
        top = apply(body, "max", old, self._finished(body))
        total = self._exponentials(body, top)
        if several:
            scale = apply(body, "exp", apply(body, "sub", old, top))
            total = apply(body, "mad", load(body, self.sums, r), scale, total)
            body += [Store(self.tops, r, top), Store(self.scales, r, scale)]
        body.append(Store(self.sums, r, total))

    def _finished(self, body: list[Stmt]) -> Value:
        """Scores in place of products; their maximum."""
        down = Loop("serial", "t", 0, self.block, self.here if self.ragged else None)
        t, r = counter("t", self.block), counter("r", self.rows)
        here = t * self.stride + r
        known = {self.products: load(down.body, self.weights, here)}
        score = self.element(self.scores, self.score_index(self.row + r, self.first + t), down.body, {"t"}, body, known)
        if self.scores is not self.products:
            down.body.append(Store(self.weights, here, score))
        return self._reduced(body, down, "reduce_max", score)

    def _exponentials(self, body: list[Stmt], unit: Value) -> Value:
        """Exponentials in place of scores; their sum."""
        down = Loop("serial", "t", 0, self.block, self.here if self.ragged else None)
        here = counter("t", self.block) * self.stride + counter("r", self.rows)
        weight = apply(down.body, "exp", apply(down.body, "sub", load(down.body, self.weights, here), unit))
        down.body.append(Store(self.weights, here, weight))
        return self._reduced(body, down, "reduce_sum", weight)

    def _reduced(self, body: list[Stmt], loop: Loop, op: str, value: Value) -> Value:
        acc = Acc(TABLE[op], self.dtype, self.dtype)
        loop.accs.append(acc)
        loop.body.append(Accumulate(acc, (value,)))
        body.append(loop)
        return acc

    def _outputs(self, body: list[Stmt]) -> None:
        """Step 3: the products of exponentials and the block's values, added to what earlier blocks gave."""
        tiles = Loop("serial", "g", 0, self.stride // self.row_tile)
        body.append(tiles)
        at = counter("g", self.stride // self.row_tile) * self.row_tile
        across = self._across(tiles.body, "d", self.width)
        t, d = counter("t", self.block), counter("d", self.width)
        down = Loop("serial", "t", 0, self.block, self.here if self.ragged else None)
        value = self.element(self.values, (*self.score_index(0, self.first + t), d), down.body, {"t"}, across.body)
        for i in range(self.row_tile):
            self.add_product(down, load(down.body, self.weights, t * self.stride + at + i), value)
        across.body.append(down)
        for i, acc in enumerate(down.accs):
            element_index = (at + i) * self.width + d
            total: Value = acc
            if self.several:
                earlier = load(across.body, self.outs, element_index)
                total = apply(across.body, "mad", earlier, load(across.body, self.scales, at + i), acc)
            across.body.append(Store(self.outs, element_index, total))

    def _divide(self, body: list[Stmt]) -> None:
        """The results: outputs over sums."""
        across, down, lanes = self._lanes_of_rows(), Loop("serial", "e", 0, self.rows, self.row_limit), Loop("lanes", "d", 0, self.width)
        r, e, d = counter("r", self.rows), counter("e", self.rows), counter("d", self.width)
        total: Value = load(across.body, self.sums, r)
        one = const(across.body, 1.0, self.dtype)
        if self.safe:
            total = apply(across.body, "select", apply(across.body, "eq", total, const(across.body, 0.0, self.dtype)), one, total)
        elif not isinstance(self.walked_extent, int):  # without keys there is nothing to divide
            total = apply(across.body, "select", inside(body, 0, self.walked_extent), total, one)
        across.body.append(Store(self.sums, r, apply(across.body, "div", one, total)))
        result = apply(lanes.body, "mul", load(lanes.body, self.outs, e * self.width + d), load(lanes.body, self.sums, e))
        index = [n for i, n in enumerate(self.score_index(self.row + e, 0)) if i != self.walked_axis]
        lanes.body.append(Store(self.buffers.buffer(self.node, "out"), linear((*index, d), self.node.shape), result))
        down.body.append(lanes)
        body += [across, down]
