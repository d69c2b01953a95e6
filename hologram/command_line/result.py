"""What a command gives: data for programs, tables and text for people, and an exit status."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


class Status(enum.IntEnum):
    """Exit statuses. ``profile`` gives the one of its script instead, where that is not 0."""

    FINE = 0
    FOUND = 1  # the command ran and found something wrong: the doctor a warning, verify a damaged entry; or the user's code raised an error
    WRONG_USE = 2  # as argparse; also: the doctor found a problem
    MISSING = 3  # a part that the command needs is not installed
    INTERRUPTED = 130  # as shells say it


@dataclass(frozen=True)
class Table:
    """Rows of cells under a title. Columns without names have no header. ``numbers`` are the columns that are aligned to the right; ``styles``, if
    there are any, are rich's, one a row, for its first cell."""

    title: str
    rows: Sequence[Sequence[str]]
    columns: Sequence[str] = ()
    numbers: frozenset[int] = frozenset()
    styles: Sequence[str] = ()


@dataclass(frozen=True)
class Result:
    """``data`` is what ``--json`` prints; ``shown`` is what people read instead: text, tables, and what draws itself by rich."""

    data: dict[str, Any] = field(default_factory=dict)
    shown: Sequence[Any] = ()
    status: int = Status.FINE


class CommandError(Exception):
    """Why a command could not be done, as a message for people and an exit status."""

    def __init__(self, message: str, status: int = Status.WRONG_USE) -> None:
        super().__init__(message)
        self.status = int(status)


def late_method(x: Any, form: str) -> Any:
    """The method of ``x`` that writes ``form``. Raises CommandError where this version of Hologram, or this installation, has none."""
    found = getattr(x, form, None)
    if found is None:
        raise CommandError(f"this version of Hologram writes no report as {form}: leave --{form} out", Status.MISSING)
    return found
