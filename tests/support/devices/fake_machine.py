"""Machines that are not there, for the doctor's checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hologram.command_line.doctor.machine import Machine


def machine(root: Path, files: Mapping[str, str] | None = None, **fields: Any) -> Machine:
    """A Linux machine of 8 processors, without variables, whose /proc, /sys and /etc hold ``files``; ``fields`` are others than these."""
    write(root, files or {})
    usual: dict[str, Any] = {"system": "linux", "environment": {}, "processors": 8, "affinity": 8, "process": 1, "load": lambda: 0.5}
    usual |= {"command": lambda command: None, "pause": lambda seconds: None}
    return Machine(root=root, **usual | fields)


def write(root: Path, files: Mapping[str, str]) -> None:
    """Files under a root, by their paths."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def answers(table: Mapping[str, str | None]) -> Callable[[Sequence[str]], str | None]:
    """A function that runs no command, and says what ``table`` has for its first word."""
    return lambda command: table.get(command[0])
