"""The doctor on who else uses the processors."""

from __future__ import annotations

from pathlib import Path

import pytest

from hologram.command_line.doctor.findings import Level
from hologram.command_line.doctor.load import busy_processes, stolen_time
from tests.support.devices.fake_machine import machine, write


def stat(pid: int, name: str, parent: int, ticks: int) -> dict[str, str]:
    return {f"proc/{pid}/stat": f"{pid} ({name}) R {parent} " + "0 " * 9 + f"{ticks} 1 0 0 20"}


def total(user: int = 0, idle: int = 0, steal: int = 0) -> dict[str, str]:
    return {"proc/stat": f"cpu  {user} 0 0 {idle} 0 0 0 {steal} 0 0\ncpu0 1 2 3\n"}


@pytest.mark.parametrize(("ticks", "level"), [(0, Level.OK), (30, Level.NOTE), (200, Level.WARNING)])
def test_busy_processes(tmp_path: Path, ticks: int, level: Level) -> None:
    """Of 800 ticks, which are those of 8 processors; the doctor and what it has started do not count."""
    later = stat(10, "a (b) c", 1, ticks) | stat(20, "python", 1, 300) | stat(21, "probe", 20, 300) | stat(30, "new", 1, 500) | total(user=800)
    before = stat(10, "a (b) c", 1, 0) | stat(20, "python", 1, 0) | stat(21, "probe", 20, 0) | stat(40, "gone", 1, 0)
    there = machine(tmp_path, before | total(), process=20, pause=lambda seconds: write(tmp_path, later))
    found = busy_processes(there)
    assert found.level is level and f"use {ticks / 100:.1f} of 8" in found.seen
    assert ("a (b) c (10)" in found.seen) == (level >= Level.NOTE)
    assert not any(name in found.seen for name in ("python", "probe", "new", "gone"))


@pytest.mark.parametrize(("steal", "level"), [(0, Level.OK), (2, Level.OK), (30, Level.WARNING)])
def test_stolen_time(tmp_path: Path, steal: int, level: Level) -> None:
    found = stolen_time(machine(tmp_path, total(5, 5, 5), pause=lambda seconds: write(tmp_path, total(5, 105 - steal, 5 + steal))))
    assert found.level is level and f" {steal}%" in found.seen


def test_what_does_not_tell(tmp_path: Path) -> None:
    assert busy_processes(machine(tmp_path)).level is Level.UNKNOWN
    assert stolen_time(machine(tmp_path)).level is Level.UNKNOWN
    assert stolen_time(machine(tmp_path, system="darwin")).level is Level.UNKNOWN


@pytest.mark.parametrize(("load", "level"), [(0.5, Level.OK), (6.0, Level.WARNING)])
def test_the_average_elsewhere(tmp_path: Path, load: float, level: Level) -> None:
    assert busy_processes(machine(tmp_path, system="darwin", load=lambda: load)).level is level


def test_windows_has_no_average(tmp_path: Path) -> None:
    def load() -> float:
        raise AttributeError("module 'os' has no attribute 'getloadavg'")

    assert busy_processes(machine(tmp_path, system="win32", load=load)).level is Level.UNKNOWN
