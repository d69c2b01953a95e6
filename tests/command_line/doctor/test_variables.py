"""The doctor on environment variables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hologram.command_line.doctor import variables
from hologram.command_line.doctor.findings import Level
from tests.support.devices.fake_machine import machine

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("environment", "level", "said"),
    [
        ({}, Level.OK, "none"),
        ({"HOLOGRAM_DEBUG": "2", "OTHER": "x"}, Level.OK, "HOLOGRAM_DEBUG=2"),
        ({"HOLOGRAM_DEBUG": "loud"}, Level.PROBLEM, "must be an integer, not 'loud'"),
    ],
)
def test_values(tmp_path: Path, environment: dict[str, str], level: Level, said: str) -> None:
    found = variables.values(machine(tmp_path, environment=environment))
    assert found.level is level and said in found.seen


def test_all_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    environment = {"HOLOGRAM_DEBUG": "loud", "HOLOGRAM_CACHE_LIMIT": "1 GiB", "HOLOGRAM_VERIFY": "1"}
    assert variables.values(machine(tmp_path, environment=environment)).advice == "unset HOLOGRAM_CACHE_LIMIT HOLOGRAM_DEBUG"
    assert variables.readable(environment) == {"HOLOGRAM_VERIFY": "1"}
    assert "HOLOGRAM_VERIFY=1" in variables.slow(machine(tmp_path, environment=environment)).seen


def test_an_error_that_names_no_variable_is_no_endless_loop() -> None:
    def read(environment: object) -> None:
        raise ValueError("something else")

    with pytest.raises(ValueError, match="something else"):
        variables.without_unreadable({"A": "1"}, read)


def test_names(tmp_path: Path) -> None:
    found = variables.names(machine(tmp_path, environment={"HOLOGRAM_CASHE": "0", "HOLOGRAM_DEBUG": "1", "HOLOGRAM_DISABLE_PASSES": "", "HG": "1"}))
    assert (found.level, found.seen) == (Level.WARNING, "HOLOGRAM_CASHE") and "do you mean HOLOGRAM_CACHE?" in found.advice
    assert variables.names(machine(tmp_path, environment={"HOLOGRAM_TEST_DEVICE": "cuda"})).level is Level.OK


def test_every_documented_variable_is_known(tmp_path: Path) -> None:
    documented = re.findall(r"`(HOLOGRAM_\w+)`", (ROOT / "docs" / "settings.md").read_text())
    assert documented and variables.names(machine(tmp_path, environment=dict.fromkeys(documented, "0"))).level is Level.OK


@pytest.mark.parametrize(
    ("environment", "level"),
    [
        ({}, Level.OK),
        ({"HOLOGRAM_VERIFY": "0", "HOLOGRAM_NATIVE": "1", "HOLOGRAM_DEBUG": "0"}, Level.OK),
        ({"HOLOGRAM_VERIFY": "1"}, Level.WARNING),
        ({"HOLOGRAM_CHECKED": "yes"}, Level.WARNING),
        ({"HOLOGRAM_DISABLE_PASSES": "sink"}, Level.WARNING),
        ({"HOLOGRAM_NATIVE": "off"}, Level.WARNING),
        ({"HOLOGRAM_CACHE": "0", "HOLOGRAM_TARGET": "x86-64"}, Level.WARNING),
        ({"HOLOGRAM_TARGET": "x86-64"}, Level.NOTE),
    ],
)
def test_slow_settings(tmp_path: Path, environment: dict[str, str], level: Level) -> None:
    found = variables.slow(machine(tmp_path, environment=environment))
    assert found.level is level and all(name in found.advice for name in environment if level > Level.OK)
