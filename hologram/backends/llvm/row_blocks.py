"""Columns that are reduced a few rows at a time, with the accumulators of a block of columns in stack memory.

Down a block of columns, a row has a few lines to read, far from those of the next: memory gives half of what it could, and fetches little ahead.
Where a loop of lanes holds a serial loop that reads large inputs (which has hints for the rows to come), the serial loop goes outside: a block of
:data:`ROW_BLOCK` rows at a time is read along all lanes. It goes out of a loop around the lanes as well, whose iterations read neighbours. Elements
of each lane are accumulated in the same order, so results are the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hologram.backends.llvm.accumulators import Monoid, combine_all
from hologram.backends.llvm.lanes import LanesWriter, reduced_pieces
from hologram.backends.llvm.text import Reg, vector
from hologram.graph.kernel.ir import Acc, Accumulate, Loop, Prefetch, Stmt
from hologram.ir.instruction import Ins

ROW_BLOCK = 8  # rows that are read at a time
MAX_BLOCK_LANES = 512  # lanes whose accumulators are in stack memory
MAX_ROW_STATEMENTS = 24  # of a row, which is written once for each row of a block


class RowBlocksWriter(LanesWriter):
    """Writes lanes loops that are read in blocks of rows, and all others."""

    of_columns: set[Acc]

    def _lanes(self, loop: Loop) -> None:
        serial = None if self.parts else streaming_loop(loop)
        if serial is None:
            super()._lanes(loop)
        else:
            self._stream(loop, serial, None)

    def _streams_around(self, loop: Loop) -> bool:
        """Writes a serial loop around lanes whose rows are read in blocks; False, and nothing written, where it is another."""
        lanes = None if self.parts or self.lane else streaming_lanes(loop)
        serial = None if lanes is None else streaming_loop(lanes)
        if lanes is None or serial is None:
            return False
        self._stream(lanes, serial, loop)
        return True

    def _stream(self, loop: Loop, serial: Loop, around: Loop | None) -> None:
        """Writes the ``serial`` loop in ``loop``, of lanes, which may be in a loop ``around`` it."""
        at = loop.body.index(serial)
        head, tail = loop.body[:at], loop.body[at + 1 :]
        monoids = self._monoids(serial)
        self.of_columns.update(serial.accs)
        columns = _Columns(self, loop, monoids, around)
        lo, hi = self._range(serial)
        slots = self._accumulated(columns, head, serial, reduced_pieces(serial.extent), lo, hi)

        def finish() -> None:
            self.block(head)
            self._finish(monoids, columns.load(slots))
            self.block(tail)

        columns.each(finish)

    def _accumulated(self, columns: _Columns, head: list[Stmt], serial: Loop, units: list[int], lo: Reg, hi: Reg) -> list[str]:
        """Accumulates rows ``lo`` to ``hi``, in pieces of ``units``; gives the memory of the accumulators."""
        f, slots = self.f, columns.slots()
        columns.each(lambda: columns.store(slots, columns.identities()))

        def piece(i: Reg, _: list[Reg]) -> list[Reg]:
            part = self.scoped(lambda: self._accumulated(columns, head, serial, units[1:], i, self._end(i, units[0], hi)))
            columns.each(lambda: columns.store(slots, combine_all(columns.monoids, columns.load(slots), columns.load(part))))
            return []

        def rows(count: int, i: Reg, _: list[Reg]) -> list[Reg]:
            columns.each(lambda: self._row_block(columns, head, serial, slots, i, count))
            return []

        if units:
            f.counted(lo, hi, units[0], [], piece)
            return slots
        count = f.emit(f"sub nsw i64 {hi.text}, {lo.text}", "i64", 1)
        whole = f.emit(f"and i64 {count.text}, {-ROW_BLOCK}", "i64", 1)
        edge = f.emit(f"add nsw i64 {lo.text}, {whole.text}", "i64", 1)
        f.counted(lo, edge, ROW_BLOCK, [], partial(rows, ROW_BLOCK))
        if serial.limit is not None or not isinstance(serial.extent, int) or serial.extent % ROW_BLOCK:
            f.counted(edge, hi, 1, [], partial(rows, 1))
        return slots

    def _row_block(self, columns: _Columns, head: list[Stmt], serial: Loop, slots: list[str], first: Reg, count: int) -> None:
        """Accumulates ``count`` rows from ``first`` on, of the lanes being written."""
        self.block(head)
        state = columns.load(slots)
        for k in range(count):
            row = first if k == 0 else self.f.emit(f"add nsw i64 {first.text}, {k}", "i64", 1)
            state = self.scoped(partial(self._row_of_block, columns.monoids, serial, row, state))
        columns.store(slots, state)

    def _row_of_block(self, monoids: list[Monoid], serial: Loop, row: Reg, state: list[Reg]) -> list[Reg]:
        self.vars[serial.var] = row
        self._set(monoids, state)
        self.block(serial.body)
        return self._get(monoids)


class _Columns:
    """The lanes of a loop, in each iteration of the one ``around`` it if there is one, and their accumulators in stack memory."""

    def __init__(self, writer: RowBlocksWriter, loop: Loop, monoids: list[Monoid], around: Loop | None) -> None:
        self.writer, self.loop, self.monoids, self.around = writer, loop, monoids, around
        self.types = [r.type for r in self.identities(1)]
        self.start, self.stop = writer._range(loop)

    def slots(self) -> list[str]:
        """Memory for the registers of each accumulator. A masked vector at the end may be wider than what is left."""
        assert isinstance(self.loop.extent, int)
        return [self.writer.f.slot(t, _lanes_of(self.loop, self.around) + self.loop.extent) for t in self.types]

    def each(self, write: Callable[[], None]) -> None:
        """Loops over the lanes, in whose body ``write`` writes."""
        if self.around is None:
            self._each_lane(write)
            return
        around, writer = self.around, self.writer

        def at(i: Reg, _: list[Reg]) -> list[Reg]:
            def iteration() -> None:
                writer.vars[around.var] = i
                writer.block([s for s in around.body if s is not self.loop])
                self._each_lane(write)

            writer.scoped(iteration)
            return []

        writer.f.counted(*writer._range(around), 1, [], at)

    def _each_lane(self, write: Callable[[], None]) -> None:
        lanes = Loop("lanes", self.loop.var, self.loop.start, self.loop.extent, self.loop.limit)
        self.writer.bodies[lanes] = write
        self.writer._vectors(lanes, [], self.start, self.stop, self.writer._width(lanes))
        del self.writer.bodies[lanes]

    def identities(self, width: int = 0) -> list[Reg]:
        return [r for m in self.monoids for r in m.identity(width or self._width)]

    def load(self, slots: list[str]) -> list[Reg]:
        f, n = self.writer.f, self._width
        return [f.emit(f"load {vector(t, n)}, {self._place(s, t)}", t, n) for s, t in zip(slots, self.types, strict=True)]

    def store(self, slots: list[str], regs: list[Reg]) -> None:
        for s, t, r in zip(slots, self.types, regs, strict=True):
            self.writer.f.do(f"store {self.writer.f.splat(r, self._width).typed}, {self._place(s, t)}")

    @property
    def _width(self) -> int:
        assert self.writer.lane is not None
        return self.writer.lane.width

    def _place(self, slot: str, t: str) -> str:
        """The lanes being written in memory."""
        f, lane = self.writer.f, self.writer.lane
        assert lane is not None
        at = f.int_op("sub", lane.base, self.start)
        if self.around is not None:
            assert isinstance(self.loop.extent, int)
            at = f.int_op("add", at, f.int_op("mul", self.writer.vars[self.around.var], Reg(str(self.loop.extent), "i64", 1)))
        p = f.emit(f"getelementptr {t}, ptr {slot}, {at.typed}", "ptr", 1)
        return f"ptr {p.text}, align {ALIGNMENTS[t]}"


ALIGNMENTS = {"i8": 1, "i16": 2, "half": 2, "bfloat": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}


def streaming_loop(loop: Loop) -> Loop | None:
    """The serial loop of ``loop``, of lanes, that reads rows of large inputs, where little else is in both."""
    inner = [s for s in loop.body if isinstance(s, Loop)]
    if loop.accs or len(inner) != 1 or not isinstance(loop.extent, int) or not 4 <= loop.extent <= MAX_BLOCK_LANES:
        return None
    (serial,) = inner
    is_serial = serial.kind == "serial" and serial.shared == 1 and bool(serial.accs)
    if not is_serial or not any(isinstance(s, Prefetch) for s in serial.body):
        return None
    head = loop.body[: loop.body.index(serial)]
    is_short = len(head) + len(serial.body) <= MAX_ROW_STATEMENTS
    return serial if is_short and all(map(_is_light, [*head, *serial.body])) and not any(a.value_dtype.kind == "b" for a in serial.accs) else None


def streaming_lanes(loop: Loop) -> Loop | None:
    """The lanes in a serial ``loop`` that are read in blocks of rows for all of its iterations; None where there are none."""
    inner = [s for s in loop.body if isinstance(s, Loop)]
    if loop.accs or loop.shared != 1 or loop.limit is not None or loop.start != 0 or len(inner) != 1 or inner[0].kind != "lanes":
        return None
    (lanes,) = inner
    serial = streaming_loop(lanes)
    if serial is None or serial.limit is not None or not all(isinstance(n, int) for n in (lanes.start, lanes.extent, loop.extent, serial.start)):
        return None
    is_short = loop.body[-1] is lanes and len(loop.body) <= MAX_ROW_STATEMENTS and all(map(_is_light, loop.body[:-1]))
    return lanes if is_short and _lanes_of(lanes, loop) <= MAX_BLOCK_LANES else None


def _lanes_of(loop: Loop, around: Loop | None) -> int:
    """How many lanes there are in all iterations of the loop around them."""
    assert isinstance(loop.extent, int)
    if around is None:
        return loop.extent
    assert isinstance(around.extent, int)
    return loop.extent * around.extent


def _is_light(s: Stmt) -> bool:
    """Whether a statement is an instruction or two of the machine."""
    if isinstance(s, Ins):
        return s.op != "scan" and (isinstance(s.op, str) or s.op.spelling is not None)
    return isinstance(s, Accumulate | Prefetch)
