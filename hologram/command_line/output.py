"""Prints results: as one JSON document, in tables on a terminal with ``rich``, else as plain text."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from hologram.command_line.result import Result, Table


def print_json(data: dict[str, Any]) -> None:
    """A document on a line of its own. Numbers that JSON lacks (infinity, NaN) are null."""
    print(json.dumps(_finite(data), indent=2, default=str))


def _finite(x: Any) -> Any:
    if isinstance(x, dict):
        return {str(k): _finite(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [_finite(v) for v in x]
    if isinstance(x, float) and not abs(x) < float("inf"):
        return None
    return x


def show(result: Result) -> None:
    """What people read."""
    with contextlib.suppress(AttributeError, ValueError):
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # for a console that lacks a character
    console = _console()
    for i, item in enumerate(result.shown):
        if i and isinstance(item, Table):
            print()
        if isinstance(item, str) or console is None:
            print(_plain(item) if isinstance(item, Table) else item)  # as it is: no wrapping, no markup
        else:
            console.print(_rich(item) if isinstance(item, Table) else item)


def _console() -> Any:
    """rich's console, where standard output is a terminal; None without it."""
    if not sys.stdout.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console()


def _rich(table: Table) -> Any:
    from rich.table import Table as RichTable
    from rich.text import Text

    names = table.columns or [""] * max((len(row) for row in table.rows), default=0)
    made = RichTable(title=table.title or None, title_justify="left", show_header=bool(table.columns))
    for i, name in enumerate(names):
        made.add_column(name, justify="right" if i in table.numbers else "left")
    for i, row in enumerate(table.rows):
        first = Text(row[0], style=table.styles[i] if table.styles else "")
        made.add_row(first, *[Text(cell) for cell in row[1:]])
    return made


def _plain(table: Table) -> str:
    rows = [list(row) for row in ([table.columns] if table.columns else []) + list(table.rows)]
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(max(map(len, rows), default=0))]

    def line(row: list[str]) -> str:
        cells = [cell.rjust(widths[i]) if i in table.numbers else cell.ljust(widths[i]) for i, cell in enumerate(row)]
        return ("  " + "  ".join(cells)).rstrip()

    return "\n".join([*([table.title] if table.title else []), *map(line, rows)])


@contextlib.contextmanager
def to_stderr(active: bool) -> Iterator[None]:
    """Where ``active``, all that is written to standard output in this block goes to standard error: that of user code, of native code and of
    processes that it starts, too. So a document on standard output stays one."""
    if not active:
        yield
        return
    with contextlib.redirect_stdout(sys.stderr), _descriptor_redirected(sys.__stdout__, sys.__stderr__):
        yield


@contextlib.contextmanager
def _descriptor_redirected(source: TextIO | None, target: TextIO | None) -> Iterator[None]:
    try:
        number, other = (stream.fileno() for stream in (source, target) if stream is not None)
        kept = os.dup(number)
    except (OSError, ValueError):  # no descriptors: a program without a console
        yield
        return
    try:
        _flush(source)
        os.dup2(other, number)
        yield
    finally:
        _flush(source)
        os.dup2(kept, number)
        os.close(kept)


def _flush(stream: TextIO | None) -> None:
    if stream is not None and not stream.closed:
        stream.flush()
