"""The doctor on power: governors, boost, and the modes of macOS and Windows."""

from __future__ import annotations

from pathlib import Path

import pytest

from hologram.command_line.doctor.findings import Level
from hologram.command_line.doctor.power import boost, governor
from tests.support.devices.fake_machine import answers, machine

CPU0, CPU1 = (f"sys/devices/system/cpu/cpu{i}/cpufreq" for i in range(2))


@pytest.mark.parametrize(
    ("name", "driver", "preference", "level"),
    [
        ("performance", "acpi-cpufreq", None, Level.OK),
        ("schedutil", "acpi-cpufreq", None, Level.OK),
        ("ondemand", "acpi-cpufreq", None, Level.NOTE),
        ("powersave", "acpi-cpufreq", None, Level.WARNING),
        ("conservative", "cppc_cpufreq", None, Level.WARNING),
        ("powersave", "intel_pstate", "balance_performance", Level.OK),  # the processor chooses
        ("powersave", "amd-pstate-epp", "power", Level.WARNING),
        ("powersave", "intel_pstate", None, Level.OK),
    ],
)
def test_governors(tmp_path: Path, name: str, driver: str, preference: str | None, level: Level) -> None:
    files = {f"{CPU0}/scaling_governor": f"{name}\n", f"{CPU0}/scaling_driver": f"{driver}\n"}
    if preference is not None:
        files[f"{CPU0}/energy_performance_preference"] = preference
    found = governor(machine(tmp_path, files))
    assert found.level is level and name in found.seen and driver in found.seen
    assert bool(found.why and found.advice) == (level >= Level.NOTE)


def test_one_slow_processor_counts(tmp_path: Path) -> None:
    files = {f"{CPU0}/scaling_governor": "performance", f"{CPU1}/scaling_governor": "powersave"}
    assert governor(machine(tmp_path, files)).level is Level.WARNING


def test_a_virtual_machine_does_not_tell(tmp_path: Path) -> None:
    assert governor(machine(tmp_path)).level is Level.UNKNOWN
    assert boost(machine(tmp_path)).level is Level.UNKNOWN


def test_platform_profile(tmp_path: Path) -> None:
    assert governor(machine(tmp_path, {"sys/firmware/acpi/platform_profile": "low-power\n"})).level is Level.WARNING


@pytest.mark.parametrize(
    ("path", "state", "level"),
    [("intel_pstate/no_turbo", "1", Level.NOTE), ("intel_pstate/no_turbo", "0", Level.OK), ("cpufreq/boost", "0", Level.NOTE)],
)
def test_boost(tmp_path: Path, path: str, state: str, level: Level) -> None:
    assert boost(machine(tmp_path, {f"sys/devices/system/cpu/{path}": state})).level is level


@pytest.mark.parametrize(
    ("system", "command", "said", "level"),
    [
        ("darwin", "pmset", "System-wide power settings:\n lowpowermode         1\n", Level.WARNING),
        ("darwin", "pmset", " standby  1\n lowpowermode         0\n", Level.OK),
        ("darwin", "pmset", None, Level.UNKNOWN),
        ("win32", "powercfg", "Power Scheme GUID: a1841308-3541-4fab-bc81-f71556f20b4a  (Power saver)", Level.WARNING),
        ("win32", "powercfg", "Power Scheme GUID: 381b4222-f694-41f0-9685-ff5bb260df2e  (Balanced)", Level.OK),
        ("win32", "powercfg", None, Level.UNKNOWN),
        ("freebsd14", "sysctl", None, Level.UNKNOWN),
    ],
)
def test_other_systems(tmp_path: Path, system: str, command: str, said: str | None, level: Level) -> None:
    there = machine(tmp_path, system=system, command=answers({command: said}))
    assert governor(there).level is level and boost(there).level is Level.UNKNOWN
