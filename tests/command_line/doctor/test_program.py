"""The doctor on whether Hologram works at all."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from hologram.command_line.doctor import program
from hologram.command_line.doctor.findings import Level
from hologram.command_line.doctor.machine import Machine
from tests.support.devices.fake_machine import machine


def test_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert program.imports(machine(tmp_path)).level is Level.OK
    monkeypatch.setitem(sys.modules, "networkx", None)
    found = program.imports(machine(tmp_path))
    assert found.level is Level.PROBLEM and "networkx: ModuleNotFoundError" in found.seen


@pytest.mark.parametrize(
    ("said", "level", "seen"),
    [
        (json.dumps(["", 0.5]), Level.OK, "0.5 s"),
        ("a driver says hello\n" + json.dumps(["OSError: libLLVM", 0.5]), Level.PROBLEM, "OSError: libLLVM"),
        (None, Level.PROBLEM, "ended its process"),
    ],
)
def test_a_program_of_another_process(tmp_path: Path, said: str | None, level: Level, seen: str) -> None:
    found = program.runs(machine(tmp_path, command=lambda command: said))
    assert found.level is level and seen in found.seen


def test_the_real_program() -> None:
    assert program.runs(Machine()).level is Level.OK


@pytest.mark.parametrize(
    ("line", "instead", "seen"),
    [
        ("import numpy as np", "pass", "NameError"),
        ("found = np.asarray(", "found = 1 + np.asarray(", "a wrong result"),
        ("    import numpy", "    import os; os.abort()\n    import numpy", "ended its process"),
    ],
)
def test_a_program_that_goes_wrong(monkeypatch: pytest.MonkeyPatch, line: str, instead: str, seen: str) -> None:
    """In the real process: an error there, a wrong result, a crash."""
    assert line in program._PROGRAM
    monkeypatch.setattr(program, "_PROGRAM", program._PROGRAM.replace(line, instead))
    found = program.runs(Machine())
    assert found.level is Level.PROBLEM and seen in found.seen
