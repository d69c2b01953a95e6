"""Finds what makes this machine slow or broken for Hologram, says why it matters and what to do. Nothing is changed.

Exit status: 0 where all is well or there are only notes, 1 for warnings, 2 for problems.
"""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from hologram.command_line.doctor.findings import Finding, Level
from hologram.command_line.doctor.machine import this_machine
from hologram.command_line.doctor.variables import without_unreadable
from hologram.command_line.options import add_json
from hologram.command_line.result import Result, Table

HELP = "find what makes this machine slow or broken"
_STYLES = {Level.OK: "green", Level.UNKNOWN: "dim", Level.NOTE: "cyan", Level.WARNING: "yellow", Level.PROBLEM: "bold red"}


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_json(command)
    only = command.add_argument("--only", action="append", metavar="CHECK", help="only this check; may be given several times")
    only.completer = _complete_check  # type: ignore[attr-defined]  # argcomplete asks for it


def run(options: argparse.Namespace) -> Result:
    machine = this_machine()
    _import_settings()
    from hologram.command_line.doctor.examination import examine

    found = examine(machine, options.only)
    level = max(f.level for f in found)
    data = {"worst": str(level), "findings": [f.as_dict() for f in found]}
    return Result(data, [_table(found), *_advice(found), _summary(found)], level.status)


def _complete_check(prefix: str, **_: Any) -> list[str]:
    from hologram.command_line.doctor.examination import CHECKS

    return [name for name in CHECKS if name.startswith(prefix)]


def _import_settings() -> None:
    """Imports the settings, without the variables that have no value of theirs: a check tells of them, and the others can be made."""

    def read(environment: Mapping[str, str]) -> None:
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        importlib.import_module("hologram.settings")

    without_unreadable(os.environ, read)


def _table(found: Sequence[Finding]) -> Table:
    rows = [(str(f.level), f.check, f.seen) for f in found]
    return Table("", rows, ("", "check", "seen"), styles=[_STYLES[f.level] for f in found])


def _advice(found: Sequence[Finding]) -> list[str]:
    """What to do, the worst first."""
    wrong = sorted([f for f in found if f.why or f.advice], key=lambda f: -f.level)
    return ["\n".join([f"\n{f.level} · {f.check}: {f.seen}", *[f"  {text}" for text in (f.why, f.advice) if text]]) for f in wrong]


def _summary(found: Sequence[Finding]) -> str:
    counts = {level: sum(f.level is level for f in found) for level in reversed(Level)}
    return "\n" + ", ".join(f"{n} {level.counted(n)}" for level, n in counts.items() if n)
