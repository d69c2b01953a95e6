"""Merge sort kernels for GPUs, whose items share memory: runs are merged by rank.

An element's position in two merged runs is its position in its own and the number of elements of the other run that come before it, which a binary
search finds: every element by itself, stably, in the one order that there is. A parallel iteration sorts a *tile* of short rows, or of a long one, in
shared memory by merging runs of 1, 2, 4, … elements. Long rows then merge runs of memory, pass by pass, from one half of the result to the other: a
parallel iteration writes one tile of it, and finds where its elements begin and end in both runs by a search along the diagonal of the merge (Green,
McColl and Bader 2012, GPU Merge Path). Searches have a number of steps that is known, so they are unrolled.

Keys are any unsigned numbers. ``order_keys`` moves indices and reads the keys through them.
"""

from __future__ import annotations

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.fusion.groups import Group
from hologram.graph.kernel.build import apply, cast, const, finish_kernel, index, inside, load, min_index, named
from hologram.graph.kernel.ir import Buffer, Kernel, Loop, Stmt, Store, Value
from hologram.graph.lower.lowered import Lowered
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Int, counter, floordiv, mod
from hologram.primitives.sorting import order_keys

TILE_BYTES = 16 * 1024  # of keys in shared memory
STEP_NS = 0.05  # of one step of one search


def lower_sort(group: Group) -> list[Lowered]:
    """The kernels of a group whose only node is ``sort_keys`` or ``order_keys`` of rows of a known length."""
    return _Sort(group).lowered()


def merging_of(n: int, keys: DType) -> tuple[int, int]:
    """The rounds of merging in a tile, and the passes of merging after it, of rows of ``n`` keys."""
    line = min(TILE_BYTES // keys.itemsize // 2, _up(n))
    return _log2(line), _log2(_up(-(-n // line)))


def _log2(n: int) -> int:
    return n.bit_length() - 1


def _up(n: int) -> int:
    """The least power of two that is not below ``n``."""
    return 1 << max(0, n - 1).bit_length()


class _Sort:
    """Names: ``i`` an element of the tile, ``at…`` the steps of a search.

    ``tile`` is what a parallel iteration sorts, in *lines* of ``line`` elements, each of one row; ``merged`` what a parallel iteration merges.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        (self.node,) = group.nodes
        (self.keys,) = self.node.inputs
        self.rows, n = self.keys.shape
        assert isinstance(n, int)
        self.n, self.kind = n, self.keys.dtype
        self.moves_indices = self.node.op is order_keys
        self.merged = TILE_BYTES // self.kind.itemsize
        self.tile = self.merged // 2  # there are two buffers
        self.line = min(self.tile, _up(n))
        if isinstance(self.rows, int):
            self.tile = min(self.tile, self.line * _up(self.rows))
        self.runs = [self.line << k for k in range(merging_of(n, self.kind)[1])]

    def lowered(self) -> list[Lowered]:
        """Passes end in the first half of the result."""
        return [self._tiles(len(self.runs) % 2), *(self._merge(run, (len(self.runs) - k) % 2) for k, run in enumerate(self.runs))]

    def _kernel(self, iterations: Int, body: list[Stmt], buffers: dict[Buffer, object], scratch: list[Buffer], steps: int) -> Lowered:
        kernel = Kernel()
        kernel.params, kernel.scratch, kernel.iterations = list(buffers), scratch, iterations
        parallel = Loop("parallel", "p", 0, iterations)
        parallel.body = body
        kernel.body.append(parallel)
        finish_kernel(kernel)
        kernel.cost = STEP_NS * steps
        return Lowered(kernel, list(buffers.values()), self.group)  # type: ignore[arg-type]

    def _half(self, row_at: Int, half: int) -> Int:
        """Where a row begins in a half of the result."""
        return row_at * (2 * self.n) + half * self.n

    # --- tiles ---------------------------------------------------------------------------------------------------------

    def _tiles(self, half: int) -> Lowered:
        """Sorts every tile; the result goes to ``half``."""
        keys, out = Buffer("b0", self.kind, "in", self.keys.size), Buffer("b1", self.node.dtype, "out", self.node.size)
        pair = [Buffer(f"keys{k}", self.kind, "scratch", self.tile) for k in (0, 1)]
        index_buffers = [Buffer(f"places{k}", dtypes.int32, "scratch", self.tile) for k in (0, 1)] if self.moves_indices else []
        body: list[Stmt] = []
        self._bring(body, keys, pair[0], index_buffers[:1])
        runs = [1 << k for k in range(_log2(self.line))]
        for run in runs:
            body.append(self._merged_in_tile(run, pair, index_buffers))
            pair, index_buffers = pair[::-1], index_buffers[::-1]
        self._give(body, pair[0], index_buffers[:1], out, half)
        steps = self.tile * sum(_log2(run) + 1 for run in runs)
        return self._kernel(self._tile_count(), body, {keys: self.keys, out: self.node}, [*pair, *index_buffers], steps)

    def _tile_count(self) -> Int:
        lines = self.tile // self.line
        return floordiv(self.rows + (lines - 1), lines) if self.line >= self.n else self.rows * -(-self.n // self.line)

    def _place(self, i: Int) -> tuple[Int, Int]:
        """The row and the column of a tile's element."""
        p, lines = counter("p", self._tile_count()), self.tile // self.line
        if self.line >= self.n:
            return p * lines + floordiv(i, self.line), mod(i, self.line)
        of_row = -(-self.n // self.line)
        return floordiv(p, of_row), mod(p, of_row) * self.line + i

    def _mask(self, body: list[Stmt], row_at: Int, column: Int) -> Value | None:
        """Whether the element is one of the rows'; None where all of a tile are."""
        lines = self.tile // self.line
        short = inside(body, column, self.n) if self.n % self.line else None
        few = inside(body, row_at, self.rows) if lines > 1 and not (isinstance(self.rows, int) and self.rows % lines == 0) else None
        return apply(body, "and", short, few) if short is not None and few is not None else short or few

    def _bring(self, body: list[Stmt], keys: Buffer, to: Buffer, index_buffers: list[Buffer]) -> None:
        """Keys to shared memory; what is beyond a row's end is the largest key, and stays behind since merging is stable."""
        lanes, i = Loop("lanes", "i", 0, self.tile), counter("i", self.tile)
        row_at, column = self._place(i)
        mask = self._mask(lanes.body, row_at, column)
        key: Value = load(lanes.body, keys, row_at * self.n + column, mask)
        if mask is not None:
            key = apply(lanes.body, "select", mask, key, self._largest(lanes.body))
        lanes.body.append(Store(to, i, key))
        lanes.body += [Store(b, i, index(lanes.body, mod(i, self.line), dtypes.int32)) for b in index_buffers]
        body.append(lanes)

    def _give(self, body: list[Stmt], keys: Buffer, index_buffers: list[Buffer], out: Buffer, half: int) -> None:
        lanes, i = Loop("lanes", "i", 0, self.tile), counter("i", self.tile)
        row_at, column = self._place(i)
        mask = self._mask(lanes.body, row_at, column)
        value: Value = load(lanes.body, keys, i)
        for b in index_buffers:
            first = index(lanes.body, column - mod(i, self.line))
            value = apply(lanes.body, "add", first, cast(lanes.body, load(lanes.body, b, i), dtypes.int64))
        lanes.body.append(Store(out, self._half(row_at, half) + column, value, mask))
        body.append(lanes)

    def _merged_in_tile(self, run: int, pair: list[Buffer], index_buffers: list[Buffer]) -> Loop:
        """Pairs of runs of ``run`` elements become one each."""
        (source, to), lanes, i = pair, Loop("lanes", "i", 0, self.tile), counter("i", self.tile)
        body = lanes.body
        second = mod(floordiv(i, run), 2)
        other = named(index(body, i - mod(i, run) + run - second * (2 * run), dtypes.int32), "other", self.tile - run + 1, assumed=True)
        key = load(body, source, i)
        bound, all_before = self._bound(body, key, apply(body, "lt", const(body, 0, dtypes.int64), index(body, second)))
        at: Int = 0
        for k in range(_log2(run) - 1, -1, -1):
            at = self._step(body, source, other, at, 1 << k, bound, f"at{k}", run)
        after = apply(body, "lt", load(body, source, other + at), bound)
        last = apply(body, "select", after, index(body, at + 1, dtypes.int32), index(body, at, dtypes.int32))
        before = apply(body, "select", all_before, const(body, run, dtypes.int32), last)
        position = i - mod(i, 2 * run) + mod(i, run) + named(before, "before", run + 1, assumed=True)
        body.append(Store(to, position, key))
        if self.moves_indices:
            body.append(Store(index_buffers[1], position, load(body, index_buffers[0], i)))
        return lanes

    def _step(self, body: list[Stmt], source: Buffer, first: Int, at: Int, step: int, bound: Value, name: str, size: int) -> Int:
        """``at + step`` if so many elements of the run at ``first`` are below ``bound``, else ``at``."""
        below = apply(body, "lt", load(body, source, first + at + (step - 1)), bound)
        further, here = index(body, at + step, dtypes.int32), index(body, at, dtypes.int32)
        return named(apply(body, "select", below, further, here), name, size, assumed=True)

    def _bound(self, body: list[Stmt], key: Value, is_second: Value) -> tuple[Value, Value]:
        """What keys of the other run are below if they come before ``key``: equal ones do if they are of the first run. And whether all do, ``key``
        being the largest there is."""
        bound = apply(body, "add", key, cast(body, is_second, self.kind))
        return bound, apply(body, "and", is_second, apply(body, "eq", key, self._largest(body)))

    def _largest(self, body: list[Stmt]) -> Value:
        return const(body, 2**self.kind.bits - 1, self.kind)

    # --- merging -------------------------------------------------------------------------------------------------------

    def _merge(self, run: int, source_half: int) -> Lowered:
        """Pairs of runs of ``run`` elements, of ``source_half``, become one each in the other half."""
        kind: DType = self.node.dtype
        source, out = Buffer("b0", kind, "in", self.node.size), Buffer("b1", kind, "out", self.node.size)
        keys = Buffer("b2", self.kind, "in", self.keys.size)
        tile = Buffer("keys", self.kind, "scratch", self.merged)
        tiles = -(-self.n // self.merged)
        p = counter("p", self.rows * tiles)
        row_at, here, body = floordiv(p, tiles), mod(p, tiles), list[Stmt]()
        merge = _Merge(self, body, run, floordiv(here, 2 * run // self.merged) * (2 * run), mod(here, 2 * run // self.merged) * self.merged)
        merge.source, merge.at = source, self._half(row_at, source_half)
        merge.keys, merge.row_at = keys, row_at * self.n
        merge.find()
        body += [merge.brought(tile), merge.placed(tile, out, self._half(row_at, 1 - source_half))]
        buffers: dict[Buffer, object] = {source: self.node, out: self.node}
        if self.moves_indices:
            buffers[keys] = self.keys
        return self._kernel(self.rows * tiles, body, buffers, [tile], self.merged * (_log2(self.merged) + 1))


class _Merge:
    """One tile of the merge of two runs, the first of which begins at ``start`` of its row; the tile begins at ``diagonal`` of the merged run.

    Names: ``long0`` and ``long1`` the lengths of the runs, ``from…`` and ``upto…`` steps of the searches for the tile's first and last place in the
    first run, ``count`` the tile's elements, ``left`` those of the first run.
    """

    source: Buffer
    at: Int  # where the row begins in it
    keys: Buffer
    row_at: Int  # where the row begins in these

    def __init__(self, sort: _Sort, body: list[Stmt], run: int, start: Int, diagonal: Int) -> None:
        self.sort, self.body, self.run, self.start, self.diagonal = sort, body, run, start, diagonal

    def key(self, body: list[Stmt], position: Int, mask: Value, name: str) -> Value:
        """The key of the source's element at ``position`` of the row. ``name``: of its index."""
        value = load(body, self.source, self.at + position, mask)
        if not self.sort.moves_indices:
            return value
        return load(body, self.keys, self.row_at + named(value, name, self.sort.n, assumed=True), mask)

    def find(self) -> None:
        """Where the tile begins and ends in both runs."""
        body, n, run = self.body, self.sort.n, self.run
        self.first = named(min_index(body, n - self.start, run), "long0", run + 1, assumed=True)
        rest = apply(body, "max", min_index(body, n - self.start - run, run), const(body, 0, dtypes.int64))
        self.second = named(rest, "long1", run + 1, assumed=True)
        end = named(min_index(body, self.diagonal + self.sort.merged, self.first + self.second), "end", 2 * run + 1, assumed=True)
        begins, ends = _Split(self, "from", self.diagonal), _Split(self, "upto", end)
        for k in range(_log2(run), -1, -1):
            begins.step(1 << k)
            ends.step(1 << k)
        self.begin, self.count = begins.at, named(index(body, end - self.diagonal), "count", self.sort.merged + 1, assumed=True)
        self.left = named(index(body, ends.at - begins.at), "left", self.sort.merged + 1, assumed=True)

    def brought(self, tile: Buffer) -> Loop:
        """The tile's elements of the first run, and then those of the second, to shared memory."""
        lanes, i = Loop("lanes", "i", 0, self.sort.merged), counter("i", self.sort.merged)
        body = lanes.body
        is_there = inside(body, i, self.count)
        position = named(self._from(body, i), "place", self.sort.n, assumed=True)
        body.append(Store(tile, i, self.key(body, position, is_there, "moved")))
        return lanes

    def _from(self, body: list[Stmt], i: Int) -> Ins:
        """Where the tile's ``i``-th element comes from, counted from the row's first."""
        of_first = inside(body, i, self.left)
        second = index(body, self.start + self.run + self.diagonal - self.begin + i - self.left)
        return apply(body, "select", of_first, index(body, self.start + self.begin + i), second)

    def placed(self, tile: Buffer, out: Buffer, at: Int) -> Loop:
        """Each element of the tile to its position."""
        lanes, i, most = Loop("lanes", "i", 0, self.sort.merged), counter("i", self.sort.merged), self.sort.merged
        body = lanes.body
        is_there, of_first = inside(body, i, self.count), inside(body, i, self.left)
        of_second = apply(body, "not", of_first)
        value: Value = load(body, tile, i)
        bound, all_before = self.sort._bound(body, value, of_second)
        zero, left = const(body, 0, dtypes.int32), index(body, self.left, dtypes.int32)
        other = named(apply(body, "select", of_first, left, zero), "other", most + 1, assumed=True)
        others = apply(body, "select", of_first, index(body, self.count - self.left, dtypes.int32), left)
        before: Int = 0
        for k in range(_log2(most), -1, -1):
            further = index(body, before + (1 << k), dtypes.int32)
            fits = apply(body, "le", further, others)
            below = apply(body, "lt", load(body, tile, other + before + ((1 << k) - 1), fits), bound)
            here = index(body, before, dtypes.int32)
            before = named(apply(body, "select", apply(body, "and", fits, below), further, here), f"at{k}", most + 1, assumed=True)
        passed = named(apply(body, "select", all_before, others, index(body, before, dtypes.int32)), "passed", most + 1, assumed=True)
        own = named(apply(body, "select", of_first, index(body, i), index(body, i - self.left)), "own", most, assumed=True)
        if self.sort.moves_indices:
            value = load(body, self.source, self.at + named(self._from(body, i), "place", self.sort.n, assumed=True), is_there)
        body.append(Store(out, at + self.start + self.diagonal + own + passed, value, is_there))
        return lanes


class _Split:
    """A search for how many of the first ``diagonal`` merged elements are of the first run: the most such that the last of them is not above what
    would be the next of the second run."""

    def __init__(self, merge: _Merge, name: str, diagonal: Int) -> None:
        self.merge, self.name, self.diagonal = merge, name, diagonal
        body, limit = merge.body, merge.run + 1
        least_ = apply(body, "max", index(body, diagonal - merge.second), const(body, 0, dtypes.int64))
        self.at: Int = named(least_, f"{name}_least", limit, assumed=True)
        self.most = named(min_index(body, diagonal, merge.first), f"{name}_most", limit, assumed=True)

    def step(self, step: int) -> None:
        merge, body = self.merge, self.merge.body
        fits = inside(body, self.most - self.at - step, merge.run + 1)
        last = merge.key(body, merge.start + self.at + (step - 1), fits, f"{self.name}{step}_last")
        following = merge.key(body, merge.start + merge.run + self.diagonal - self.at - step, fits, f"{self.name}{step}_next")
        moves = apply(body, "and", fits, apply(body, "le", last, following))
        further, here = index(body, self.at + step), index(body, self.at)
        self.at = named(apply(body, "select", moves, further, here), f"{self.name}{step}", merge.run + 1, assumed=True)
