"""``hologram doctor``: all checks on this machine and on strange ones; what comes out, and with which exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hologram.command_line import doctor
from hologram.command_line.doctor import examination
from hologram.command_line.doctor.examination import CHECKS, examine
from hologram.command_line.doctor.findings import Finding, Level, note, ok, problem, unknown, warning
from hologram.command_line.doctor.machine import Machine, this_machine
from hologram.command_line.main import main
from hologram.command_line.result import CommandError
from tests.support.devices.fake_machine import machine

FILES = (
    "proc/stat", "proc/meminfo", "proc/cpuinfo", "proc/mounts", "proc/self/cgroup", "proc/7/stat", "proc/driver/nvidia/version",
    "sys/fs/cgroup/cpu.max", "sys/fs/cgroup/memory.max", "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "sys/bus/pci/devices/0/class", "etc/OpenCL/vendors/a.icd",
)  # fmt: skip


def check_is_sound(found: list[Finding]) -> None:
    assert [f.check for f in found] == list(CHECKS)
    for f in found:
        assert f.seen and (f.level <= Level.NOTE or f.why)


def test_this_machine() -> None:
    found = examine(this_machine())
    check_is_sound(found)
    assert not [f for f in found if "the check failed" in f.seen]


@pytest.mark.parametrize("system", ["linux", "darwin", "win32", "emscripten"])
def test_nothing_is_known(tmp_path: Path, system: str) -> None:
    def fails() -> float:
        raise OSError

    found = examine(machine(tmp_path, system=system, affinity=None, load=fails))
    check_is_sound(found)
    assert not [f for f in found if "the check failed" in f.seen]


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from(FILES), st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=40)),
    st.sampled_from(["linux", "darwin"]),
)
def test_files_of_any_content_raise_nothing(tmp_path_factory: pytest.TempPathFactory, files: dict[str, str], system: str) -> None:
    cheap = {name: check for name, check in CHECKS.items() if name not in ("packages", "cache disk", "cache folder", "cache size")}
    found = examine(machine(tmp_path_factory.mktemp("root"), files, system=system, command=lambda c: "x"), None, cheap)
    assert [f.check for f in found] == list(cheap)


def test_a_check_that_fails_hides_no_other() -> None:
    def fails(m: Machine) -> Finding:
        raise RuntimeError("no such bus")

    found = examine(this_machine(), None, {"bus": fails, "other": lambda m: ok("fine")})
    assert [(f.check, f.level) for f in found] == [("bus", Level.UNKNOWN), ("other", Level.OK)] and "RuntimeError: no such bus" in found[0].seen


def test_only_some_checks() -> None:
    assert [f.check for f in examine(this_machine(), ["clock", "python"])] == ["python", "clock"]
    with pytest.raises(CommandError, match="do you mean 'clock'"):
        examine(this_machine(), ["clok"])


@pytest.mark.parametrize(
    ("findings", "status"),
    [
        ([ok("fine"), unknown("not known")], 0),
        ([ok("fine"), note("odd")], 0),
        ([warning("slow", "it is slow"), ok("fine")], 1),
        ([warning("slow", "it is slow"), problem("broken", "it is broken", "mend it")], 2),
    ],
)
def test_exit_statuses(monkeypatch: pytest.MonkeyPatch, capsys: Any, findings: list[Finding], status: int) -> None:
    monkeypatch.setattr(examination, "examine", lambda machine, only: findings)
    assert main(["doctor"]) == status
    assert all(f.seen in capsys.readouterr().out for f in findings[:1])
    assert main(["doctor", "--json"]) == status
    found = json.loads(capsys.readouterr().out)
    assert found["worst"] == str(max(f.level for f in findings)) and [f["seen"] for f in found["findings"]] == [f.seen for f in findings]


def test_a_broken_environment_is_told_of() -> None:
    """Programs cannot import Hologram then; the doctor can, and makes the other checks."""
    environment = os.environ | {"HOLOGRAM_DEBUG": "loud", "HOLOGRAM_CACHE_LIMIT": "much"}
    only = ["--only", "variables", "--only", "cache size", "--only", "slow settings", "--json"]
    done = subprocess.run([sys.executable, "-m", "hologram", "doctor", *only], env=environment, capture_output=True, text=True)
    levels = {f["check"]: f["level"] for f in json.loads(done.stdout)["findings"]}
    assert levels == {"cache size": "ok", "variables": "problem", "slow settings": "warning"} and done.returncode == 2  # tests verify


def test_the_text_has_the_worst_first(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [note("odd", "it is odd"), problem("broken", "it is broken", "mend it"), ok("fine")]
    monkeypatch.setattr(examination, "examine", lambda machine, only: found)
    doctor_says = main(["doctor"]), capsys.readouterr().out
    assert doctor_says[1].index("it is broken") < doctor_says[1].index("it is odd") and doctor_says[1].endswith("1 problem, 1 note, 1 ok\n")
    assert set(doctor._STYLES) == set(Level)
