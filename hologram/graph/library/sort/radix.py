"""Radix sort kernels, of one pass: ``digit_counts`` and ``digit_move``.

Items count without atomic operations, each in counters of its own in shared memory: several in a word, and words of neighbouring items in
neighbouring banks. A tile is sorted by its digit in rounds of at most 4 bits, in each of which an item takes neighbouring elements: it counts them,
a running sum over all counters, digit by digit and in a digit item by item, gives the position of each, and it moves them, in their order. So the
sort is stable. Then the elements of one digit stand side by side, and go to memory as they stand.
"""

from __future__ import annotations

from hologram import dtypes
from hologram.graph.fusion.groups import Group
from hologram.graph.kernel.build import apply, cast, const, index, inside, least, load, named, summarise
from hologram.graph.kernel.ir import Acc, Accumulate, Buffer, Kernel, Loop, Stmt, Store, Value
from hologram.graph.legalize.radix_plan import COUNTER_ROWS, COUNTING_ITEMS, MAX_COUNTED, Layout, layout
from hologram.graph.lower.lowered import Lowered
from hologram.graph.lower.scalarize import ScalarProgram
from hologram.ir.index_maps import linear
from hologram.ir.instruction import Ins
from hologram.ir.node import Node
from hologram.ir.op import TABLE
from hologram.ir.symbolic import Int, counter, floordiv, mod
from hologram.primitives.sorting import Finish, digit_counts, finished_type

ROUND = 4  # bits of a digit by which a tile is sorted at one time
COUNT_NS, MOVE_NS = 1.5, 4.0  # of one element
WORD = dtypes.uint32


def lower_digits(group: Group, materialized: set[Node], shared_bytes: int) -> Lowered:
    """The kernel of a group whose only value is ``digit_counts`` or ``digit_move``, where groups share so many bytes."""
    return (_Counts if group.nodes[0].op is digit_counts else _Move)(group, materialized, shared_bytes).lowered()


class _Pass:
    """What both kernels have: a parallel iteration ``p`` is tile ``t`` of a row ``row_at``; ``body`` is its body, which begins with the number of its
    items."""

    def __init__(self, group: Group, materialized: set[Node], shared_bytes: int) -> None:
        (self.node,) = group.nodes
        self.group, self.materialized = group, materialized
        self.items = self.node.inputs[0]
        self.low, self.bits, self.tile, self.block, *_ = self.node.attrs
        self.rows, self.n = self.items.shape
        self.layout: Layout = layout(self.items.dtype.itemsize, shared_bytes)
        self.buffers = ScalarProgram(group, materialized)
        self.tiles = self._tiles()
        p = counter("p", self.rows * self.tiles)
        self.row_at, self.t = floordiv(p, self.tiles), mod(p, self.tiles)
        self.body: list[Stmt] = []
        self.count = self._in_tile()

    def _tiles(self) -> Int:
        """Of a row."""
        return floordiv(self.n + (self.tile - 1), self.tile)

    def _in_tile(self) -> Int:
        """Of the tile's items, those that the row has."""
        if isinstance(self.n, int) and self.n == self.tiles * self.tile:
            return self.tile
        rest = least(self.body, self.n - self.t * self.tile, self.tile)
        return named(apply(self.body, "max", rest, const(self.body, 0, rest.dtype)), "count", self.tile + 1, assumed=True)

    def kernel(self, scratch: list[Buffer], cost: float) -> Lowered:
        kernel = Kernel()
        kernel.params, kernel.scratch, kernel.iterations = list(self.buffers.buffers.values()), scratch, self.rows * self.tiles
        parallel = Loop("parallel", "p", 0, kernel.iterations)
        parallel.body = self.body
        kernel.body.append(parallel)
        summarise(kernel)
        kernel.cost = cost * self.tile
        return Lowered(kernel, list(self.buffers.buffers), self.group)

    def item(self, values: ScalarProgram, i: Int) -> Value:
        """The tile's ``i``-th item. Beyond a row's end stand the largest: they come last, and have no place in memory."""
        position = (self.row_at, self.t * self.tile + i)
        if self.count is self.tile:
            return values.element(self.items, position, ())
        d = self.items.dtype
        value = values.element(self.items, position, ((i, self.count),))
        is_there = values.emit("inside", (), (i, self.count), dtypes.bool_)
        largest = values.emit("const", (), (d.name, b"\xff" * d.itemsize), d)
        return values.emit(TABLE["select"], (is_there, value, largest), (), d)

    def digit(self, body: list[Stmt], item: Value, low: int, bits: int) -> Ins:
        """So many bits of an item, as a word."""
        wide = cast(body, item, WORD) if item.dtype.bits < WORD.bits else item
        word = cast(body, apply(body, "shr_low", wide, const(body, low, wide.dtype)) if low else wide, WORD)
        return apply(body, "and", word, const(body, (1 << bits) - 1, WORD))


class _Counts(_Pass):
    """Items of a group take elements in turn and count them in bytes, 4 digits in a word. Words are then added up, each by one item, two bytes at
    a time; items begin at different words, which lie in different banks."""

    def lowered(self) -> Lowered:
        words = Buffer("words", WORD, "scratch", self._words * COUNTING_ITEMS)
        self.body += [self._counted(words), self._summed(words)]
        return self.kernel([words], COUNT_NS)

    def _tiles(self) -> Int:
        """Of a row, in whole blocks."""
        return self.node.shape[1]

    @property
    def _words(self) -> int:
        """How many an item has."""
        return max(1, (1 << self.bits) // 4)

    def _counted(self, words: Buffer) -> Loop:
        lanes, i = Loop("lanes", "i", 0, COUNTING_ITEMS), counter("i", COUNTING_ITEMS)
        clear = Loop("serial", "r", 0, self._words)
        clear.body.append(Store(words, counter("r", self._words) * COUNTING_ITEMS + i, const(clear.body, 0, WORD)))
        own, at_once = self.tile // COUNTING_ITEMS, self.layout.at_once
        rounds = Loop("serial", "k", 0, own // at_once)
        values = ScalarProgram(self.group, self.materialized, whole=self.buffers)
        items = [self.item(values, (counter("k", own // at_once) * at_once + j) * COUNTING_ITEMS + i) for j in range(at_once)]
        rounds.body += values.order  # type: ignore[arg-type]
        for j, item in enumerate(items):
            self._count(rounds.body, words, item, i, f"word{j}")
        lanes.body += [clear, rounds]
        return lanes

    def _count(self, body: list[Stmt], words: Buffer, item: Value, i: Int, name: str) -> None:
        digit = self.digit(body, item, self.low, self.bits)
        position = i
        if self._words > 1:
            position = named(apply(body, "shr_low", digit, const(body, 2, WORD)), name, self._words, assumed=True) * COUNTING_ITEMS + i
        byte = apply(body, "shl_low", apply(body, "and", digit, const(body, 3, WORD)), const(body, 3, WORD))
        one = apply(body, "shl_low", const(body, 1, WORD), byte)
        body.append(Store(words, position, apply(body, "add", load(body, words, position), one)))

    def _summed(self, words: Buffer) -> Loop:
        lanes, w = Loop("lanes", "w", 0, self._words), counter("w", self._words)
        together = 1 << (MAX_COUNTED // (self.tile // COUNTING_ITEMS)).bit_length() - 1  # words whose bytes add up to no more than a byte holds
        down = Loop("serial", "s", 0, COUNTING_ITEMS // together)
        down.accs = [Acc(TABLE["reduce_sum"], WORD, WORD) for _ in range(2)]
        first = counter("s", COUNTING_ITEMS // together) * together + w
        word: Value = load(down.body, words, w * COUNTING_ITEMS + mod(first, COUNTING_ITEMS))
        for j in range(1, together):
            word = apply(down.body, "add", word, load(down.body, words, w * COUNTING_ITEMS + mod(first + j, COUNTING_ITEMS)))
        pairs = const(down.body, 0x00FF00FF, WORD)
        odd = apply(down.body, "shr_low", word, const(down.body, 8, WORD))
        for acc, part in zip(down.accs, (word, odd), strict=True):
            down.body.append(Accumulate(acc, (apply(down.body, "and", part, pairs),)))
        lanes.body.append(down)
        out = self.buffers.buffer(self.node, "out")
        for byte in range(min(4, 1 << self.bits)):
            total = down.accs[byte % 2]
            if byte >= 2:
                number = apply(lanes.body, "shr_low", total, const(lanes.body, 16, WORD))
            else:
                number = apply(lanes.body, "and", total, const(lanes.body, 0xFFFF, WORD))
            lanes.body.append(Store(out, linear((self.row_at, self.t, w * 4 + byte), self.node.shape), number))
        return lanes


class _Move(_Pass):
    """A tile goes to and fro between two buffers of shared memory, a round each way."""

    def lowered(self) -> Lowered:
        kind, many = self.items.dtype, self.layout.items
        pair = [Buffer(f"tile{k}", kind, "scratch", self.tile) for k in (0, 1)]
        self.words = Buffer("words", WORD, "scratch", COUNTER_ROWS * self.layout.pitch)
        self.sums = Buffer("sums", WORD, "scratch", many + 1)
        offsets = Buffer("offsets", WORD, "scratch", 1 << self.bits)
        self.body += [self._brought(pair[0])]
        for low in range(0, self.bits, ROUND):
            self.body += _Round(self, low, min(ROUND, self.bits - low)).loops(*pair)
            pair.reverse()
        self.body += [self._offset(offsets), self._given(pair[0], offsets)]
        return self.kernel([*pair, self.words, self.sums, offsets], MOVE_NS)

    def _brought(self, to: Buffer) -> Loop:
        lanes, i = Loop("lanes", "i", 0, self.tile), counter("i", self.tile)
        values = ScalarProgram(self.group, self.materialized, whole=self.buffers)
        item = self.item(values, i)
        lanes.body += [*values.order, Store(to, i, item)]  # type: ignore[list-item]
        return lanes

    def _offset(self, offsets: Buffer) -> Loop:
        """How far the items of each digit go from where they stand in the sorted tile: what is to end where the block's items end, but for those of
        this tile and of the following ones, now ends where the items of no larger digit do."""
        _, counts, upto = self.node.inputs
        lanes, d = Loop("lanes", "d", 0, 1 << self.bits), counter("d", 1 << self.bits)
        after, j = Loop("serial", "j", 0, self.block - mod(self.t, self.block)), counter("j", self.block)
        after.accs = [Acc(TABLE["reduce_sum"], WORD, WORD)]
        body = lanes.body
        tile = named(index(body, self.t), "tile", assumed=True)  # whole blocks of them are counted
        values = ScalarProgram(self.group, self.materialized, whole=self.buffers)
        following = values.element(counts, (self.row_at, tile + j, d), ())
        after.body += [*values.order, Accumulate(after.accs[0], (following,))]  # type: ignore[list-item]
        values = ScalarProgram(self.group, self.materialized, whole=self.buffers)
        own = values.element(counts, (self.row_at, tile, d), ())
        end = values.element(upto, (self.row_at, d, floordiv(tile, self.block)), ())
        body += [after, *values.order]  # type: ignore[list-item]
        lanes.accs = [Acc(TABLE["cumsum"], WORD, WORD)]
        stands = Ins("scan", (own,), (lanes.accs[0],), WORD)
        body.append(stands)
        start = apply(body, "sub", end, after.accs[0])
        body.append(Store(offsets, d, apply(body, "sub", start, apply(body, "sub", stands, own))))
        return lanes

    def _given(self, tile: Buffer, offsets: Buffer) -> Loop:
        lanes, i = Loop("lanes", "i", 0, self.tile), counter("i", self.tile)
        body = lanes.body
        there = inside(body, i, self.count) if self.count is not self.tile else None
        item: Value = load(body, tile, i)
        d = named(self.digit(body, item, self.low, self.bits), "d", 1 << self.bits, assumed=True)
        position = named(apply(body, "add", load(body, offsets, d), index(body, i, WORD)), "place", self.n, assumed=True)
        out = self.buffers.buffer(self.node, "out")
        body.append(Store(out, self.row_at * self.n + position, _finished(body, item, self.node.attrs[-1]), there))
        return lanes


def _finished(body: list[Stmt], item: Value, finish: Finish) -> Value:
    for step in finish:
        name, attrs, constant = step
        operands = (item,) if constant is None else (item, const(body, constant, item.dtype))
        item = Ins(TABLE[name], operands, attrs, finished_type(item.dtype, (step,)))
        body.append(item)
    return item


class _Round:
    """A tile is sorted by ``bits`` bits of its digit, from bit ``low`` of it on. Digits of the lower half have the lower half of a word each, those
    of the upper half the upper one: word (r, i) counts digits r and r + rows of item i."""

    def __init__(self, move: _Move, low: int, bits: int) -> None:
        self.move, self.low, self.bits = move, move.low + low, bits
        self.rows = 1 << (bits - 1)
        self.many, self.own = move.layout.items, move.layout.own
        self.words, self.sums = move.words, move.sums

    def loops(self, source: Buffer, to: Buffer) -> list[Stmt]:
        return [self._counted(source), self._summed(), self._placed(), self._moved(source, to)]

    def _at(self, r: Int, i: Int) -> Int:
        return r * self.move.layout.pitch + i + floordiv(i, 32)

    def _counter(self, body: list[Stmt], item: Value, i: Int) -> tuple[Int, Value]:
        """The word that counts an item's digit, and the lowest bit there."""
        digit = self.move.digit(body, item, self.low, self.bits)
        r: Int = 0
        if self.rows > 1:
            r = named(apply(body, "and", digit, const(body, self.rows - 1, WORD)), "r", self.rows, assumed=True)
        upper = apply(body, "shr_low", digit, const(body, self.bits - 1, WORD))
        return self._at(r, i), apply(body, "shl_low", upper, const(body, 4, WORD))

    def _own(self) -> tuple[Loop, Loop, Int, Int]:
        """The loops over items and over an item's elements, the item, and the element."""
        lanes, serial = Loop("lanes", "i", 0, self.many), Loop("serial", "k", 0, self.own)
        i = counter("i", self.many)
        return lanes, serial, i, i * self.own + counter("k", self.own)

    def _counted(self, source: Buffer) -> Loop:
        lanes, serial, i, element = self._own()
        for r in range(self.rows):
            lanes.body.append(Store(self.words, self._at(r, i), const(lanes.body, 0, WORD)))
        body = serial.body
        position, shift = self._counter(body, load(body, source, element), i)
        one = apply(body, "shl_low", const(body, 1, WORD), shift)
        body.append(Store(self.words, position, apply(body, "add", load(body, self.words, position), one)))
        lanes.body.append(serial)
        return lanes

    def _run(self, i: Int) -> list[Int]:
        """The words that item ``i`` sums: neighbours in the order of the positions."""
        first = i * self.rows
        return [self._at(floordiv(first, self.many), mod(first, self.many) + j) for j in range(self.rows)]

    def _summed(self) -> Loop:
        """What stands before each run of words: an item's sum, and those of the items before it."""
        lanes, i = Loop("lanes", "i", 0, self.many), counter("i", self.many)
        body = lanes.body
        lanes.accs = [Acc(TABLE["cumsum"], WORD, WORD)]
        total: Value = const(body, 0, WORD)
        for at in self._run(i):
            total = apply(body, "add", total, load(body, self.words, at))
        running = Ins("scan", (total,), (lanes.accs[0],), WORD)
        body.append(running)
        body.append(Store(self.sums, i, apply(body, "sub", running, total)))
        body.append(Store(self.sums, self.many, running, inside(body, i - (self.many - 1), 1)))
        return lanes

    def _placed(self) -> Loop:
        """Counts become positions: digits of the upper halves of words come after all of the lower."""
        lanes, i = Loop("lanes", "i", 0, self.many), counter("i", self.many)
        body = lanes.body
        lower = apply(body, "shl_low", load(body, self.sums, self.many), const(body, 16, WORD))
        before: Value = apply(body, "add", load(body, self.sums, i), lower)
        for at in self._run(i):
            count = load(body, self.words, at)
            body.append(Store(self.words, at, before))
            before = apply(body, "add", before, count)
        return lanes

    def _moved(self, source: Buffer, to: Buffer) -> Loop:
        lanes, serial, i, element = self._own()
        body = serial.body
        item = load(body, source, element)
        at, shift = self._counter(body, item, i)
        word = load(body, self.words, at)
        one = apply(body, "shl_low", const(body, 1, WORD), shift)
        body.append(Store(self.words, at, apply(body, "add", word, one)))
        half = apply(body, "and", apply(body, "shr_low", word, shift), const(body, 0xFFFF, WORD))
        body.append(Store(to, named(half, "place", self.move.tile, assumed=True), item))
        lanes.body.append(serial)
        return lanes
