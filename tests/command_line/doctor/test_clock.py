"""The doctor on the clock."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from hologram.command_line.doctor.clock import clock
from hologram.command_line.doctor.findings import Level
from tests.support.devices.fake_machine import machine

SOURCE = "sys/devices/system/clocksource/clocksource0/current_clocksource"


@pytest.mark.parametrize(
    ("source", "cost", "level"),
    [("tsc", 3e-8, Level.OK), ("kvm-clock", 5e-8, Level.OK), ("hpet", 5e-8, Level.WARNING), ("tsc", 2e-6, Level.WARNING), (None, 5e-8, Level.OK)],
)
def test_clock(tmp_path: Path, source: str | None, cost: float, level: Level) -> None:
    ticks = itertools.count()
    found = clock(machine(tmp_path, {SOURCE: source} if source else {}, clock=lambda: next(ticks) * cost))
    assert found.level is level and f"{cost * 1e9:.0f} ns" in found.seen
