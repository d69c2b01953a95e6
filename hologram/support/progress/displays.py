"""Where bars are drawn: a notebook, a terminal (by rich or tqdm, where they are installed), or a plain stream.

A display draws all bars that are under way, and ends each once. It is chosen when the first bar is drawn.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any, Protocol

from hologram.settings import settings
from hologram.support.progress.meter import Progress

PLAIN_SECONDS = 10.0  # between lines about a bar in a stream that is no terminal


class Display(Protocol):
    """Draws bars."""

    def draw(self, bars: Sequence[Progress]) -> None:
        """Shows all bars that are under way."""

    def end(self, bar: Progress) -> None:
        """Shows a bar for the last time."""


def in_notebook() -> bool:
    """Whether a kernel of IPython runs this process."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return getattr(shell, "kernel", None) is not None


def in_terminal() -> bool:
    """Whether standard error is a terminal whose cursor can be moved."""
    stream = sys.stderr
    return stream is not None and not stream.closed and stream.isatty() and os.environ.get("TERM") != "dumb"


def wanted() -> bool:
    """Whether bars are drawn, as ``settings.progress`` has it."""
    return settings.progress == "on" or (settings.progress == "auto" and (in_notebook() or in_terminal()))


def choose() -> Display:
    """The display of this process, as it stands now."""
    if in_notebook():
        return Notebook()
    if not in_terminal():
        return Plain()
    from importlib.util import find_spec

    if find_spec("rich") is not None:
        return Rich()
    return Tqdm() if find_spec("tqdm") is not None else Terminal()


def _ascii_only() -> bool:
    """Whether standard error takes no cells of bars."""
    try:
        "█·".encode(getattr(sys.stderr, "encoding", None) or "ascii")
    except (UnicodeError, LookupError):
        return True
    return False


class Terminal:
    """Lines at the bottom of a terminal, which are written over."""

    def __init__(self) -> None:
        self.stream, self.lines = sys.stderr, 0
        self.bars: list[Progress] = []

    def _text(self, bars: Sequence[Progress]) -> str:
        import shutil  # late: few programs draw bars

        width = max(10, shutil.get_terminal_size().columns - 1)
        return "\n".join(f"\x1b[K{b.line(width, _ascii_only())}" for b in bars)

    def _home(self) -> str:
        """Moves the cursor to where the first bar begins."""
        return "\r" + (f"\x1b[{self.lines - 1}A" if self.lines > 1 else "")

    def draw(self, bars: Sequence[Progress]) -> None:
        self.bars = list(bars)
        self.stream.write(self._home() + self._text(bars))
        self.lines = len(bars)
        self.stream.flush()

    def end(self, bar: Progress) -> None:
        rest = [b for b in self.bars if b.key != bar.key]
        last = self._text([bar]) + "\n" if bar.leaves else ""
        self.stream.write(f"{self._home()}\x1b[J{last}{self._text(rest)}")
        self.bars, self.lines = rest, len(rest)
        self.stream.flush()


class Plain:
    """Lines in a stream that is no terminal, few of them."""

    def __init__(self) -> None:
        self.stream = sys.stderr
        self.told: dict[Any, float] = {}

    def draw(self, bars: Sequence[Progress]) -> None:
        now = time.monotonic()
        for b in bars:
            if now - self.told.get(b.key, -PLAIN_SECONDS) >= PLAIN_SECONDS:
                self.told[b.key] = now
                print(b.line(150, _ascii_only()), file=self.stream, flush=True)

    def end(self, bar: Progress) -> None:
        self.told.pop(bar.key, None)
        if bar.leaves:
            print(bar.line(150, _ascii_only()), file=self.stream, flush=True)


class Rich:
    """Bars of rich."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(file=sys.stderr)
        self.live: Any = None
        self.tasks: dict[Any, Any] = {}

    def _started(self) -> Any:
        if self.live is None:
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

            spinner = SpinnerColumn(finished_text="")
            columns = [spinner, TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[times]}", markup=False)]
            # what is printed meanwhile goes above the bars, unless standard output is elsewhere
            redirect = sys.stdout is not None and sys.stdout.isatty()
            self.live = Progress(*columns, console=self.console, auto_refresh=False, redirect_stdout=redirect)
            self.live.start()
        return self.live

    def _update(self, b: Progress) -> None:
        live = self._started()
        if b.key not in self.tasks:
            self.tasks[b.key] = live.add_task(b.label, total=b.total, times=b.times)
        live.update(self.tasks[b.key], completed=b.done, total=b.total, times=b.times)

    def draw(self, bars: Sequence[Progress]) -> None:
        for b in bars:
            self._update(b)
        self.live.refresh()

    def end(self, bar: Progress) -> None:
        if self.live is None:
            return
        self._update(bar)
        if bar.leaves:
            self.live.stop_task(self.tasks.pop(bar.key))
        else:
            self.live.remove_task(self.tasks.pop(bar.key))
        self.live.refresh()
        if not self.tasks:
            self.live.stop()
            self.live = None


class Tqdm:
    """Bars of tqdm."""

    def __init__(self) -> None:
        self.bars: dict[Any, Any] = {}

    def draw(self, bars: Sequence[Progress]) -> None:
        for b in bars:
            if b.key not in self.bars:
                from tqdm import tqdm

                self.bars[b.key] = made = tqdm(total=b.total, desc=b.label, file=sys.stderr, unit=" steps")
                made.start_t -= b.elapsed
            self.bars[b.key].n = b.done
            self.bars[b.key].refresh()

    def end(self, bar: Progress) -> None:
        self.draw([bar])
        made = self.bars.pop(bar.key)
        made.leave = bar.leaves
        made.close()


class Notebook:
    """Bars in the output of a cell, as HTML without scripts."""

    def __init__(self) -> None:
        self.handles: dict[Any, Any] = {}

    def draw(self, bars: Sequence[Progress]) -> None:
        from IPython.display import HTML, display

        for b in bars:
            shown = HTML(as_html(b))
            if b.key in self.handles:
                self.handles[b.key].update(shown)
            else:
                self.handles[b.key] = display(shown, display_id=True)

    def end(self, bar: Progress) -> None:
        from IPython.display import HTML

        self.draw([bar])
        handle = self.handles.pop(bar.key)
        if not bar.leaves:
            handle.update(HTML(""))


def as_html(bar: Progress) -> str:
    """A bar as HTML, which takes the colours of the page around it."""
    from html import escape  # late: few programs draw bars

    share = bar.share
    value = "" if share is None else f' value="{share:.4f}" max="1"'
    style = "vertical-align:middle;width:16em;max-width:40%;margin:0 .8em"
    name, text = escape(bar.label), escape(bar.times)
    percent = "" if share is None else f"{int(100 * share)}% · "
    meter = "" if bar.stepless else f'<progress{value} aria-label="{name}" style="{style}"></progress>'
    return f'<div style="font-family:ui-monospace,monospace;font-size:.9em">{name}{meter or " "}{percent}{text}</div>'
