"""A profile as a table: kernels by their time. Drawn by rich where that is installed, and as plain text elsewhere."""

from __future__ import annotations

import io
import os
import shutil
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from hologram.profiling.records import Kernel, Measured
from hologram.support.wording import counted

_RIGHT = frozenset({"calls", "total", "a call", "share", "GB/s", "GFLOP/s", "roofline", "balance", "wait"})
_COLUMNS = ("kernel", "calls", "total", "a call", "share", "GB/s", "GFLOP/s", "roofline", "balance", "wait", "lines")
MAX_PHASES = 8  # of the phases of compiling, the longest
MAX_LINES = 3  # of a kernel's lines
MIN_WIDTH = 150  # of a table that is not drawn on a terminal
MIN_NAME_WIDTH = 20  # of names and lines


class Table:
    """What ``str`` and ``print`` show, with rich where that is installed; a table of rich is in :meth:`__rich__`."""

    def __init__(self, measured: Measured) -> None:
        self.measured = measured
        self.rows = rows_of(measured)

    def __str__(self) -> str:
        try:
            from rich.console import Console
        except ImportError:
            return self.plain()
        console = Console(file=io.StringIO(), width=max(MIN_WIDTH, shutil.get_terminal_size((MIN_WIDTH, 0)).columns))
        with console.capture() as captured:
            console.print(self)
        return captured.get().rstrip()

    __repr__ = __str__

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.table import Table as RichTable
        from rich.text import Text

        drawn = RichTable(title=_title(self.measured), title_justify="left", title_style="bold")
        for name in _COLUMNS:
            least = None if name in _RIGHT else MIN_NAME_WIDTH
            drawn.add_column(name, justify="right" if name in _RIGHT else "left", no_wrap=name in _RIGHT, overflow="fold", min_width=least)
        for row in self.rows:
            drawn.add_row(*map(Text, row.cells), style="dim" if row.is_part else None)
        return Group(drawn, *map(Text, _notes(self.measured)))

    def plain(self) -> str:
        """The table as plain text."""
        cells = [_COLUMNS, *[r.cells for r in self.rows]]
        widths = [max(len(row[i]) for row in cells) for i in range(len(_COLUMNS))]
        lines = [
            "  ".join(c.rjust(w) if name in _RIGHT else c.ljust(w) for c, w, name in zip(row, widths, _COLUMNS, strict=True)).rstrip()
            for row in cells
        ]
        return "\n".join([_title(self.measured), *lines, *_notes(self.measured)])


class Row(NamedTuple):
    """A line of the table, about ``kernel``. ``is_part``: of the time of the loop or branch above it."""

    kernel: Kernel
    cells: Sequence[str]
    is_part: bool


def rows_of(measured: Measured) -> list[Row]:
    """The kernels by their time, the longest first; what is inside of a loop after it."""
    inside: dict[int | None, list[int]] = defaultdict(list)
    for i, k in enumerate(measured.kernels):
        inside[k.parent].append(i)

    def below(parent: int | None, depth: int) -> list[Row]:
        found: list[Row] = []
        for i in sorted(inside[parent], key=lambda i: -(measured.kernels[i].seconds or 0.0)):
            if parent is not None or measured.kernels[i].calls:
                found += [Row(measured.kernels[i], _cells(measured, measured.kernels[i], depth), depth > 0), *below(i, depth + 1)]
        return found

    return below(None, 0)


def _cells(m: Measured, k: Kernel, depth: int) -> list[str]:
    name = "  " * depth + k.name
    if k.kind == "loop" and k.iterations:
        name += f" ({k.iterations:,} steps)"
    if len(m.programs) > 1 and not depth:
        name = f"{m.programs[k.program].name}: {name}"
    rates = [x and x * 1e-9 for x in (k.rate(k.bytes), k.rate(k.flops))]
    each = None if k.seconds is None or not k.calls else k.seconds / k.calls
    inside = sum(p.seconds for p in m.programs)
    shares = (k.seconds or 0.0) / inside if k.seconds is not None and inside else None, m.share_of_roofline(k), k.balance
    return [
        name, f"{k.calls:,}" if k.calls else "", seconds(k.seconds), seconds(each), percent(shares[0]), *[f"{x:,.1f}" if x else "" for x in rates],
        percent(shares[1]), percent(shares[2]), seconds(k.wait_seconds or None), _lines(k),
    ]  # fmt: skip


def _lines(k: Kernel) -> str:
    shown = [f"{os.path.basename(file)}:{line}" for file, line in k.lines[:MAX_LINES]]
    return ", ".join([*shown, *(["…"] if len(k.lines) > MAX_LINES else [])])


def _title(m: Measured) -> str:
    inside = sum(p.seconds for p in m.programs)
    calls = [p.calls for p in m.programs if p.calls]
    runs = f"{counted(sum(calls), 'call')} of {counted(len(calls), 'program')}, {seconds(inside)} in them"
    return f"profile of {seconds(m.seconds)}: {runs}, {counted(m.machine.threads, 'thread')}"


def _notes(m: Measured) -> list[str]:
    notes = []
    times: dict[str, float] = defaultdict(float)
    for p in m.phases:
        times[p.name] += p.seconds
    if times:
        longest = sorted(times.items(), key=lambda x: -x[1])[:MAX_PHASES]
        notes.append("compiling: " + ", ".join(f"{name} {seconds(t)}" for name, t in longest))
    if m.memory:
        notes.append(f"arrays: peak {m.memory['peak']:,} bytes; {m.memory['before']:,} before, {m.memory['after']:,} after")
    if m.lost_events:
        notes.append(f"{m.lost_events:,} older events are not on the time line")
    return notes


def seconds(t: float | None) -> str:
    """A time in the unit that suits it; nothing for None."""
    if t is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if t >= size:
            return f"{t / size:.3g} {unit}"
    return f"{t * 1e9:.3g} ns"


def percent(x: float | None) -> str:
    return "" if x is None else f"{100 * x:.1f} %"
