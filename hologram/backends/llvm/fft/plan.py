"""Plans of Fourier transforms of whole arrays: phases, one after the other, each of which is a parallel loop over rows or blocks of lanes.

An axis whose elements are next to one another is transformed row by row: alone, with as many rows as a vector has lanes, or, where it is long, in
two phases over blocks of lanes (:mod:`hologram.graph.library.fft.sizes`). Another axis is transformed in blocks of lanes, which stay in the cache.
The first axis is transformed from the operand to the result, the others in the result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import NamedTuple

from hologram.backends.llvm.fft import tables
from hologram.backends.llvm.fft.arithmetic import FLOATS
from hologram.backends.llvm.fft.program import Place, Program, Step, Table, View, X, Y
from hologram.backends.llvm.sharing import GRAIN_NS, SERIAL_NS
from hologram.graph.library.fft import sizes
from hologram.graph.library.fft.sizes import TRANSPOSE, vector_width

OPERAND, RESULT, WORK = range(3)
NEAR_BYTES = 2**15  # of a block in the first-level cache
GATHERED_BYTES = 2**19  # at most, of rows that are transformed as lanes
MIRRORED = 2**12  # elements of a block between the transforms of pairs and of real numbers
MAX_MEMORY = 2**26  # of a thread: longer transforms of columns go to NumPy
UNIT_NS = 0.5  # of one vector in one unit of cost
PREFIX = "hg_fft_plan_"


class Request(NamedTuple):
    """A transform of an array: the op, type of the parts, shape of the operand, axes, elements of ``irfft`` (else 0), direction and ``norm``; and
    elements of a vector."""

    name: str
    kind: str
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    n: int
    inverse: bool
    norm: str
    width: int

    @property
    def symbol(self) -> str:
        """A name from which :meth:`of` makes it again."""
        shape, axes = ("x".join(map(str, x)) for x in (self.shape, self.axes))
        return PREFIX + "_".join([self.name, self.kind, shape, axes, str(self.n), "ft"[self.inverse], self.norm, str(self.width)])

    @classmethod
    def of(cls, symbol: str) -> Request:
        """Raises KeyError for what is no such name."""
        parts = symbol.removeprefix(PREFIX).split("_")
        if not symbol.startswith(PREFIX) or len(parts) != 8:
            raise KeyError(symbol)
        name, kind, shape, axes, n, inverse, norm, width = parts
        try:
            extents, chosen = (tuple(int(x) for x in text.split("x")) for text in (shape, axes))
            return cls(name, kind, extents, chosen, int(n), inverse == "t", norm, int(width))
        except ValueError:
            raise KeyError(symbol) from None


@dataclass(frozen=True)
class Phase:
    """``outer`` times ``blocks`` iterations; ``last_steps`` are those of the last block. Bytes, but for ``width`` and ``limit``; ``cost`` in rough
    nanoseconds an iteration."""

    steps: list[Step]
    last_steps: list[Step]
    outer: int
    blocks: int
    width: int
    limit: int
    source: Where
    target: Where
    memory: int
    cost: float
    aux: Table | None = None
    aux_step: int = 0

    @property
    def chunks(self) -> int:
        return self.outer * self.blocks

    @property
    def grain(self) -> int:
        """How many iterations a thread takes at one time; all of them where they are soon done."""
        return self.chunks if self.chunks * self.cost < SERIAL_NS else max(1, int(GRAIN_NS / self.cost))


@dataclass(frozen=True)
class Where:
    """An array, and how many bytes on the next row and the next element of a block are."""

    array: int
    outer: int = 0
    step: int = 0


@dataclass
class Axis:
    """The transform along one axis: ``outer`` times ``n`` times ``inner`` elements. ``what``: ``fft``, ``rfft`` or ``irfft``."""

    what: str
    outer: int
    n: int
    inner: int
    source: int
    target: int
    inverse: bool
    scale: float
    at: int = field(default=0)  # bytes from the start of the work memory where there is room

    @property
    def rows_read(self) -> int:
        return self.n // 2 + 1 if self.what == "irfft" else self.n

    @property
    def rows_written(self) -> int:
        return self.n // 2 + 1 if self.what == "rfft" else self.n

    @property
    def count(self) -> int:
        """Elements of the complex transform that is computed."""
        return self.n // 2 if self.what != "fft" and self.n % 2 == 0 else self.n


@lru_cache(maxsize=256)
def plan(r: Request) -> tuple[Phase, ...] | None:
    """The phases of a transform; None where there are none because it takes too much memory."""
    phases: list[Phase] = []
    for axis in _axes(r):
        phases += _Planner(r, axis).phases()
    return None if any(p.memory > MAX_MEMORY for p in phases) else tuple(phases)


def _axes(r: Request) -> list[Axis]:
    """The transforms along single axes, in order."""
    last, shape = r.axes[-1], list(r.shape)
    if r.name == "irfft":
        order = [*sorted(r.axes[:-1], reverse=True), last]
    elif r.name == "rfft":
        order = [last, *sorted(r.axes[:-1], reverse=True)]
    else:
        order = sorted(r.axes, reverse=True)
    total = prod(r.n if r.name == "irfft" and a == last else shape[a] for a in r.axes)
    inverse = r.inverse or r.name == "irfft"
    scale = {"ortho": total**-0.5, "backward": 1 / total if inverse else 1.0, "forward": 1.0 if inverse else 1 / total}[r.norm]
    reserved = 2 * FLOATS[r.kind][1] * prod(shape) if r.name == "irfft" and len(order) > 1 else 0
    out = []
    for i, a in enumerate(order):
        what = r.name if a == last and r.name != "fft" else "fft"
        n = r.n if what == "irfft" else shape[a]
        middle = WORK if r.name == "irfft" else RESULT
        source = OPERAND if i == 0 else middle
        target = RESULT if i == len(order) - 1 else middle
        axis = Axis(what, prod(shape[:a]), n, prod(shape[a + 1 :]), source, target, inverse, scale if i == len(order) - 1 else 1.0, reserved)
        shape[a] = axis.rows_written
        out.append(axis)
    return out


class _Planner:
    """Phases of the transform along one axis."""

    def __init__(self, r: Request, axis: Axis) -> None:
        self.kind, self.width, self.axis = r.kind, r.width, axis
        self.itemsize = FLOATS[r.kind][1]
        self.real_in, self.real_out = axis.what == "rfft", axis.what == "irfft"

    def phases(self) -> list[Phase]:
        if self.axis.inner > 1:
            return [self._columns()]
        if sizes.is_long(self.axis.count, self.itemsize):
            return self._long()
        return [self._rows()]

    def program(self) -> Program:
        return Program(self.kind, self.width)

    def cost(self, elements: int, cost: float) -> float:
        return UNIT_NS * cost * elements / self.width * self.itemsize / 4

    # --- where elements are ----------------------------------------------------------------------------------------------

    def _bytes(self, real: bool, elements: int) -> int:
        return elements * self.itemsize * (1 if real else 2)

    def _form(self, base: int, real: bool, row: int) -> View:
        """An array of complex numbers, or of real ones, which for even lengths are pairs."""
        second = Place(base)
        if not real or (self.axis.n % 2 == 0 and self.axis.inner == 1):
            return View("c", Place(base), second, row if not real else self.axis.n // 2)
        if self.axis.n % 2:
            return View("r", Place(base), second, row)
        return View("p", Place(base), Place(base, self.itemsize * self.axis.inner), 2 * row)

    def views(self) -> tuple[View, View]:
        """The operand and result, with exchanged parts where the transform is inverse and from complex numbers to complex numbers."""
        a = self.axis
        row = a.inner if a.inner > 1 else 0
        source = self._form(X, self.real_in, row or a.rows_read)
        target = self._form(Y, self.real_out, row or a.rows_written)
        return (source.exchanged(), target.exchanged()) if a.what == "fft" and a.inverse else (source, target)

    # --- columns ---------------------------------------------------------------------------------------------------------

    def _columns(self) -> Phase:
        a = self.axis
        lanes = self.width
        while lanes > 1 and 4 * lanes * sizes.smooth_length(a.count) * self.itemsize > MAX_MEMORY // 2:
            lanes //= 2
        while lanes < a.inner and 2 * lanes * a.count * 4 * self.itemsize <= NEAR_BYTES:
            lanes *= 2
        lanes = min(lanes, a.inner)
        blocks, rest = -(-a.inner // lanes), a.inner % lanes or lanes
        whole, last = self._column_program(lanes), self._column_program(rest)
        source = Where(a.source, self._bytes(self.real_in, a.rows_read * a.inner), self._bytes(self.real_in, 1))
        target = Where(a.target, self._bytes(self.real_out, a.rows_written * a.inner), self._bytes(self.real_out, 1))
        cost = self.cost(a.count * lanes, self._cost_of_lanes(a.count))
        memory = max(whole.memory, last.memory)
        return Phase(whole.steps, last.steps, a.outer, blocks, lanes, a.inner, source, target, memory, cost)

    def _cost_of_lanes(self, n: int) -> float:
        if sizes.is_smooth(n):
            return sizes.radices_of_lanes(n)[0]
        m = sizes.convolution_length(n)
        return m / n * (2 * sizes.radices_of_lanes(m)[0] + 10)

    def _column_program(self, lanes: int) -> Program:
        a, p = self.axis, self.program()
        source, target = self.views()
        if a.what == "rfft":
            p.real_lanes(a.n, source, target, lanes, a.scale)
        elif a.what == "irfft":
            p.lanes_to_real(a.n, source, target, lanes, a.scale)
        else:
            p.lanes(a.n, source, target, lanes, a.scale, in_place=a.source == a.target)
        return p

    # --- rows ------------------------------------------------------------------------------------------------------------

    def _rows(self) -> Phase:
        a = self.axis
        source_row, target_row = self._bytes(self.real_in, a.rows_read), self._bytes(self.real_out, a.rows_written)
        alone, rows = self._cost_of_row(a.count), self._rows_at_one_time()
        together = (self._cost_of_lanes(a.count) + 2 * TRANSPOSE) * self.width / rows if rows > 1 else float("inf")
        if together < alone:
            p = self._gathered(rows)
            blocks = -(-a.outer // rows)
            source, target = Where(a.source, 0, source_row), Where(a.target, 0, target_row)
            return Phase(p.steps, p.steps, 1, blocks, rows, a.outer - rows, source, target, p.memory, self.cost(a.count * rows, together))
        p = self.program()
        views = self.views()
        if a.what == "rfft":
            p.real_row(a.n, *views, a.scale)
        elif a.what == "irfft":
            p.row_to_real(a.n, *views, a.scale)
        else:
            p.row(a.n, *views, a.scale)
        cost = self.cost(a.count, alone)
        return Phase(p.steps, p.steps, a.outer, 1, 1, 0, Where(a.source, source_row), Where(a.target, target_row), p.memory, cost)

    def _rows_at_one_time(self) -> int:
        """How many rows may be transformed as lanes: one where they are written in place, or take too much memory."""
        a = self.axis
        m = a.count if sizes.is_smooth(a.count) else 2 * sizes.convolution_length(a.count)
        if a.source == a.target or 4 * m * self.itemsize * self.width > GATHERED_BYTES:
            return 1
        return vector_width(a.outer, self.width)

    def _cost_of_row(self, n: int) -> float:
        if not sizes.is_smooth(n):
            m = sizes.convolution_length(n)
            return m / n * (2 * self._cost_of_row(m) + 10)
        cost, radices = sizes.radices_of_row(n, self.width)
        return cost if len(radices) > 1 else sizes.radices_of_lanes(n)[0] * self.width

    def _gathered(self, rows: int) -> Program:
        """The program of some rows as lanes."""
        a, p = self.axis, self.program()
        source, target = self.views()
        half = a.n // 2
        if a.what == "fft":
            x, y = p.gathered(a.n, source, rows), p.room(a.n * rows, rows)
            p.lanes(a.n, x, y, rows, a.scale)
            p.scattered(a.n, y, target, rows)
        elif a.what == "rfft":
            x, y = p.gathered(a.n if a.n % 2 else half, source, rows), p.room((half + 1) * rows, rows)
            p.real_lanes(a.n, x, y, rows, a.scale)
            p.scattered(half + 1, y, target, rows)
        else:
            x, y = p.gathered(half + 1, source, rows), p.room(a.count * rows, rows)
            y = y._replace(form="r") if a.n % 2 else y
            p.lanes_to_real(a.n, x, y, rows, a.scale)
            p.scattered(a.count, y, target, rows)
        return p

    # --- long rows -------------------------------------------------------------------------------------------------------

    def _long(self) -> list[Phase]:
        """The operand, or the rows that it becomes in the second place of the work memory, is transformed by way of the first place."""
        a, n = self.axis, self.axis.count
        source, target = self.views()
        read = Where(a.source, self._bytes(self.real_in, a.rows_read), self._bytes(source.form == "r", 1))
        written = Where(a.target, self._bytes(self.real_out, a.rows_written), self._bytes(target.form == "r", 1))
        if a.what == "rfft":
            after = self._mirror("post", self._room(X, 1), self._planes, target, written, a.scale)
            return [*self._transform(n, source, read, self._room(Y, 1), self._planes, 1), after]
        if a.what == "irfft":
            before = self._mirror("pre", source, read, self._room(Y, 1), self._planes)
            return [before, *self._transform(n, self._room(X, 1).exchanged(), self._planes, target.exchanged(), written, a.scale)]
        return self._transform(n, source, read, target, written, a.scale)

    @property
    def _length(self) -> int:
        return sizes.smooth_length(self.axis.count)

    @property
    def _planes(self) -> Where:
        """Rows in the work memory."""
        return Where(WORK, self._length * self.itemsize, self.itemsize)

    def _room(self, base: int, which: int) -> View:
        """A place for all rows in the work memory, planar."""
        size = self._length * self.axis.outer * self.itemsize
        at = self.axis.at + 2 * which * size
        return View("p", Place(base, at), Place(base, at + size), 1)

    def _transform(self, n: int, source: View, read: Where, target: View, written: Where, scale: float) -> list[Phase]:
        if sizes.is_smooth(n):
            return self._halves(n, source, read, 0, target, written, scale)
        return self._convolved(n, source, read, target, written, scale)

    def _convolved(self, n: int, source: View, read: Where, target: View, written: Where, scale: float) -> list[Phase]:
        """A transform as a convolution, in the first place of the work memory, by way of the second one."""
        m, planes, x, y = self._length, self._planes, self._room(X, 0), self._room(Y, 0)
        p = self.program()
        first, middle, last = p.convolution(n, scale)
        p.call("multiply", source, y, n, table=first)
        rest = y.moved(n, self.itemsize)
        p.call("zero", rest, rest, m - n)
        q, r = self.program(), self.program()
        q.call("multiply", x, y, m, table=middle, width=vector_width(m & -m, self.width))  # in place
        r.call("multiply", x, target, n, table=last)
        return [
            self._rows_of(p, m, read, planes),
            *self._halves(m, x, planes, 1, y, planes, 1),
            self._rows_of(q, m, planes, planes),
            *self._halves(m, x.exchanged(), planes, 1, y.exchanged(), planes, 1),
            self._rows_of(r, n, planes, written),
        ]

    def _rows_of(self, p: Program, n: int, read: Where, written: Where) -> Phase:
        """Steps on whole rows."""
        return Phase(p.steps, p.steps, self.axis.outer, 1, 1, 0, read, written, p.memory, self.cost(n, TRANSPOSE))

    def _mirror(self, what: str, source: View, read: Where, target: View, written: Where, scale: float = 1) -> Phase:
        """Between the transform of pairs and that of real numbers, or between half a transform of an odd number of them and the whole."""
        a, p, last = self.axis, self.program(), self.program()
        if a.n % 2:
            if what == "post":
                p.real_first(source, 1)
                p.call("copy", source, target, a.n // 2 + 1)
            else:
                p.completed(a.n, source._replace(row=1), target, 1)
            return self._rows_of(p, a.n, read, written)
        half, width = a.n // 2, MIRRORED
        blocks, rest = -(-(half - 1) // width), (half - 1) % width or width
        p.mirror(what, half, source, target, width, scale)
        last.mirror(what, half, source, target, rest, scale)
        read, written = (Where(w.array, w.outer) for w in (read, written))
        return Phase(p.steps, last.steps, a.outer, blocks, width, half, read, written, 0, self.cost(width, TRANSPOSE), None, width)

    def _halves(self, n: int, source: View, read: Where, middle: int, target: View, written: Where, scale: float) -> list[Phase]:
        """Transforms of n1 rows of n2 columns and a transposition, to a ``middle`` place in the work memory; transforms of n2 rows there."""
        n1, n2 = sizes.parts(n) or (n, 1)
        lanes, outer = self.width, self.axis.outer
        p, blocks = self.program(), -(-n2 // lanes)
        block = p.room(n1 * lanes, lanes)
        p.lanes(n1, source._replace(row=n2), block, lanes)
        p.call("turn", block, self._room(Y, middle)._replace(row=n1), lanes, blocks=n1, table=(tables.of_lanes, (n, n1, lanes, self.kind)))
        turned, cost = Where(WORK, n * self.itemsize, n1 * self.itemsize), self._cost_of_lanes(n1) + TRANSPOSE
        factors: Table = (tables.of_blocks, (n, n1, blocks, lanes, n2 - lanes, self.kind))
        first = Phase(
            p.steps, p.steps, outer, blocks, lanes, n2 - lanes, read, turned, p.memory, self.cost(n1 * lanes, cost), factors, 2 * n1 * self.itemsize
        )
        p, blocks = self.program(), -(-n1 // lanes)
        p.lanes(n2, self._room(X, middle)._replace(row=n1), target._replace(row=n1), lanes, scale)
        cost = self.cost(n2 * lanes, self._cost_of_lanes(n2))
        return [first, Phase(p.steps, p.steps, outer, blocks, lanes, n1 - lanes, self._planes, written, p.memory, cost)]
