"""Steps of a plan: the calls of kernels that transform the lanes of a block, or one row.

A program's arrays are seen through views. What is between its passes is in memory of the thread, planar, where two places take turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hologram.backends.llvm.fft import tables
from hologram.backends.llvm.fft.arithmetic import FLOATS
from hologram.backends.llvm.fft.kernels import Code
from hologram.graph.library.fft.sizes import convolution_length, is_smooth, radices_of_lanes, radices_of_row, vector_width

X, Y, MEMORY = range(3)  # bases of addresses
_LINE = 64

Table = tuple[Callable[..., np.ndarray], tuple[Any, ...]]  # what makes it, and of what


class Place(NamedTuple):
    """An address: a base, and bytes after it."""

    base: int
    at: int = 0


class View(NamedTuple):
    """Rows of lanes, ``row`` elements apart, in one of the formats of :mod:`arithmetic`."""

    form: str
    real: Place
    imaginary: Place
    row: int

    def exchanged(self) -> View:
        """The same with exchanged parts."""
        form = {"c": "s", "s": "c", "r": "i", "i": "r"}.get(self.form, self.form)
        return View(form, self.imaginary, self.real, self.row) if self.form == "p" else self._replace(form=form)

    def moved(self, rows: int, itemsize: int) -> View:
        """From a later row on."""
        by = rows * self.row * itemsize * (2 if self.form in "cs" else 1)
        return self._replace(real=Place(self.real.base, self.real.at + by), imaginary=Place(self.imaginary.base, self.imaginary.at + by))


@dataclass(frozen=True)
class Step:
    """A call of a kernel, as :mod:`kernels` describes its arguments."""

    code: Code
    source: View
    target: View
    lanes: int
    runs: int = 1
    blocks: int = 1
    table: Table | None = None


class Program:
    """Steps on elements of type ``kind``, with vectors of up to ``width``."""

    def __init__(self, kind: str, width: int) -> None:
        self.kind, self.width, self.itemsize = kind, width, FLOATS[kind][1]
        self.steps: list[Step] = []
        self.memory = 0

    def room(self, elements: int, row: int) -> View:
        """Memory for complex elements."""
        size = -(-elements * self.itemsize // _LINE) * _LINE + _LINE  # a line more, so that places do not share their cache sets
        at = self.memory
        self.memory += 2 * size
        return View("p", Place(MEMORY, at), Place(MEMORY, at + size), row)

    def call(
        self, what: str, source: View, target: View, lanes: int, *, radix: int = 0, table: Table | None = None, width: int = 0, **counts: int
    ) -> None:
        """Adds a step."""
        code = Code(what, radix, width or vector_width(lanes, self.width), self.kind, source.form, target.form)
        self.steps.append(Step(code, source, target, lanes, counts.get("runs", 1), counts.get("blocks", 1), table))

    def _scale(self, scale: float) -> tuple[str, Table | None]:
        return ("last", None) if scale == 1 else ("scaled", (tables.of_scale, (scale, self.kind)))

    def convolution(self, n: int, scale: float) -> list[Table]:
        return [(tables.of_convolution, (n, self.kind, scale, i)) for i in range(3)]

    # --- lanes ---------------------------------------------------------------------------------------------------------------

    def lanes(self, n: int, source: View, target: View, lanes: int, scale: float = 1, in_place: bool = False) -> None:
        """The transforms of ``lanes`` columns of ``n`` rows."""
        if not is_smooth(n):
            return self._convolved_lanes(n, source, target, lanes, scale)
        radices = radices_of_lanes(n)[1] or (1,)
        rooms = [self.room(n * lanes, lanes) for _ in range(min(2, len(radices) - 1))]
        if len(radices) == 1 and in_place and lanes % vector_width(lanes, self.width):
            rooms = [self.room(n * lanes, lanes)]
            self.call("copy", source, rooms[0], lanes, blocks=n)
            source = rooms[0]
        done = 1
        for i, r in enumerate(radices):
            last, m = i == len(radices) - 1, n // done // r
            to = target if last else rooms[i % 2]
            what, table = self._scale(scale) if last else ("pass", (tables.of_pass, (r, m, self.kind)))
            if source.row == to.row == lanes:
                count = lanes * done
                self.call(what, source._replace(row=count), to._replace(row=count), count, radix=r, table=table, blocks=m)
            else:
                self.call(what, source, to, lanes, radix=r, table=table, runs=done, blocks=m)
            source, done = to, done * r
        return None

    def _convolved_lanes(self, n: int, source: View, target: View, lanes: int, scale: float) -> None:
        m = convolution_length(n)
        first, middle, last = self.convolution(n, scale)
        a, b = self.room(m * lanes, lanes), self.room(m * lanes, lanes)
        self.call("multiplyrows", source, a, lanes, blocks=n, table=first)
        rest = a.moved(n, self.itemsize)
        self.call("zero", rest, rest, (m - n) * lanes)
        self.lanes(m, a, b, lanes)
        self.call("multiplyrows", b, a, lanes, blocks=m, table=middle)
        self.lanes(m, a.exchanged(), b.exchanged(), lanes)
        self.call("multiplyrows", b, target, lanes, blocks=n, table=last)

    # --- one row -------------------------------------------------------------------------------------------------------------

    def row(self, n: int, source: View, target: View, scale: float = 1) -> None:
        """The transform of one row of ``n`` elements."""
        if not is_smooth(n):
            return self._convolved_row(n, source, target, scale)
        radices = radices_of_row(n, self.width)[1]
        if len(radices) < 2:
            return self.lanes(n, source._replace(row=1), target._replace(row=1), 1, scale)
        rooms = [self.room(n, 1) for _ in range(min(2, len(radices) - 1))]
        done = 1
        for i, r in enumerate(radices):
            m, to = n // done // r, (rooms[i % 2] if i < len(radices) - 1 else target)
            if i == 0:
                self.call("first", source, to, m, radix=r, table=(tables.of_first, (r, m, self.kind)))
            else:
                what, table = ("pass", (tables.of_pass, (r, m, self.kind))) if m > 1 else self._scale(scale)
                self.call(what, source._replace(row=done), to._replace(row=done), done, radix=r, table=table, blocks=m)
            source, done = to, done * r
        return None

    def _convolved_row(self, n: int, source: View, target: View, scale: float) -> None:
        m = convolution_length(n)
        first, middle, last = self.convolution(n, scale)
        a, b = self.room(m, 1), self.room(m, 1)
        self.call("multiply", source, a, n, table=first)
        rest = a.moved(n, self.itemsize)
        self.call("zero", rest, rest, m - n)
        self.row(m, a, b)
        self.call("multiply", b, a, m, table=middle)
        self.row(m, a.exchanged(), b.exchanged())
        self.call("multiply", b, target, n, table=last)

    # --- rows as lanes -------------------------------------------------------------------------------------------------------

    def gathered(self, n: int, source: View, rows: int) -> View:
        """Rows, of ``n`` elements ``source.row`` apart, as lanes."""
        out = self.room(n * rows, rows)
        out = out._replace(form="r") if source.form == "r" else out
        self.call("gather", source, out, n, radix=self._columns(n, source, rows), width=rows)
        return out

    def scattered(self, n: int, source: View, target: View, rows: int) -> None:
        """Lanes as rows ``target.row`` apart."""
        self.call("scatter", source, target, n, radix=self._columns(n, target, rows), width=rows)

    def _columns(self, n: int, array: View, rows: int) -> int:
        """How many columns, as wide as the rows are many, are transposed at one time."""
        return vector_width(n, max(1, rows if array.form == "r" else rows // 2))

    # --- real numbers --------------------------------------------------------------------------------------------------------

    def real_row(self, n: int, source: View, target: View, scale: float) -> None:
        """The first half of the transform of a row of real numbers, which are pairs where ``n`` is even."""
        half = n // 2
        middle = self.room(max(half, n if n % 2 else 0), 1)
        if n % 2:
            self.row(n, source, middle, scale)
            self.real_first(middle, 1)
            self.call("copy", middle, target, half + 1)
        else:
            self.row(half, source, middle)
            self.mirror("post", half, middle, target, half - 1, scale)

    def row_to_real(self, n: int, source: View, target: View, scale: float) -> None:
        """The row of real numbers, pairs where ``n`` is even, of whose transform the source is the first half."""
        half = n // 2
        if n % 2:
            middle = self.room(n, 1)
            self.completed(n, source._replace(row=1), middle, 1)
            self.row(n, middle.exchanged(), target.exchanged(), scale)
        else:
            middle = self.room(half, 1)
            self.mirror("pre", half, source, middle, half - 1)
            self.row(half, middle.exchanged(), target.exchanged(), scale)

    def mirror(self, what: str, half: int, source: View, target: View, count: int, scale: float = 1) -> None:
        """Between transforms of ``half`` pairs and of real numbers, for ``count`` elements."""
        table: Table = (tables.of_mirror, (half, self.kind, what == "post", scale))
        self.call(what, source, target, half, table=table, width=vector_width(max(1, count), self.width), runs=count)

    def completed(self, n: int, source: View, target: View, lanes: int) -> None:
        """All of a transform of an odd number of real elements, from its first half."""
        half = n // 2
        self.call("copy", source, target, lanes, blocks=half + 1)
        self.real_first(target, lanes)
        if half:
            end = target.moved(n - 1, self.itemsize)
            self.call("conjugate", source.moved(1, self.itemsize), end._replace(row=-lanes), lanes, blocks=half)

    def real_first(self, planar: View, lanes: int) -> None:
        """Makes the first element of each lane real, which in a transform of real numbers it is but for roundings."""
        first = View("r", planar.imaginary, planar.imaginary, lanes)
        self.call("zero", first, first, lanes)

    def real_lanes(self, n: int, source: View, target: View, lanes: int, scale: float) -> None:
        """The first half of the transforms of columns of real numbers, whose pairs of rows are planar where ``n`` is even."""
        half = n // 2
        middle = self.room((half if n % 2 == 0 else n) * lanes, lanes)
        if n % 2:
            self.lanes(n, source, middle, lanes, scale)
            self.real_first(middle, lanes)
            self.call("copy", middle, target, lanes, blocks=half + 1)
        else:
            self.lanes(half, source, middle, lanes)
            self.call("postrows", middle, target, lanes, blocks=half, table=(tables.of_mirror, (half, self.kind, True, scale)))

    def lanes_to_real(self, n: int, source: View, target: View, lanes: int, scale: float) -> None:
        """Columns of real numbers, in planar pairs of rows where ``n`` is even, of whose transforms the source is the first half."""
        half = n // 2
        middle = self.room((half if n % 2 == 0 else n) * lanes, lanes)
        if n % 2:
            self.completed(n, source, middle, lanes)
            self.lanes(n, middle.exchanged(), target.exchanged(), lanes, scale)
        else:
            self.call("prerows", source, middle, lanes, blocks=half, table=(tables.of_mirror, (half, self.kind, False, 1.0)))
            self.lanes(half, middle.exchanged(), target.exchanged(), lanes, scale)
