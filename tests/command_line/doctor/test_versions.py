"""The doctor on Python and on packages."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hologram.backends.native import module
from hologram.command_line.doctor import versions
from hologram.command_line.doctor.findings import Level
from tests.support.devices.fake_machine import machine

NEEDS = ["numpy>=2", "llvmlite>=0.45", 'torch>=2.11; extra == "torch"', 'rich; extra == "cli"', "numpy-like; python_version < '3'"]


def installed(monkeypatch: pytest.MonkeyPatch, found: dict[str, str], needs: list[str] | None = None) -> None:
    def version(name: str) -> str:
        if name not in found:
            raise metadata.PackageNotFoundError(name)
        return found[name]

    monkeypatch.setattr(metadata, "requires", lambda name: needs or NEEDS[:4])
    monkeypatch.setattr(metadata, "version", version)


@pytest.mark.parametrize(
    ("found", "level", "said"),
    [
        ({"numpy": "2.4.6", "llvmlite": "0.50.0"}, Level.OK, "numpy 2.4.6, llvmlite 0.50.0"),
        ({"numpy": "2.0", "llvmlite": "0.45.0rc1", "torch": "2.13.0+cpu"}, Level.OK, "torch 2.13.0+cpu"),
        ({"numpy": "1.26.4", "llvmlite": "0.50.0"}, Level.PROBLEM, "numpy 1.26.4"),
        ({"numpy": "2.4.6"}, Level.PROBLEM, "llvmlite missing"),
        ({"numpy": "2.4.6", "llvmlite": "0.50.0", "torch": "2.4"}, Level.WARNING, "torch 2.4"),
    ],
)
def test_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: dict[str, str], level: Level, said: str) -> None:
    installed(monkeypatch, found)
    answer = versions.packages(machine(tmp_path))
    assert answer.level is level and said in answer.seen and ("pip install" in answer.advice) == (level > Level.OK)


def test_hologram_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", requires)
    assert versions.packages(machine(tmp_path)).level is Level.UNKNOWN


@given(
    st.lists(st.integers(0, 99), min_size=1, max_size=4), st.lists(st.integers(0, 99), min_size=1, max_size=4), st.sampled_from(["", "rc1", "+cpu"])
)
def test_versions_are_compared_by_numbers(a: list[int], b: list[int], suffix: str) -> None:
    width = max(len(a), len(b))
    padded = [x + [0] * (width - len(x)) for x in (a, b)]
    assert versions._is_old(".".join(map(str, a)) + suffix, ".".join(map(str, b))) == (padded[0] < padded[1])


@pytest.mark.parametrize(("reason", "level"), [(None, Level.OK), ("this build has no GIL", Level.WARNING)])
def test_native_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str | None, level: Level) -> None:
    monkeypatch.setattr(module, "why_not_native", lambda: reason)
    assert versions.native_calls(machine(tmp_path)).level is level


@pytest.mark.parametrize(
    ("change", "level"),
    [
        (lambda m: None, Level.OK),
        (lambda m: m.setattr(sys, "gettotalrefcount", int, raising=False), Level.WARNING),
        (lambda m: m.setattr(versions, "NEWEST", (3, 1)), Level.NOTE),
        (lambda m: m.setattr(versions.sys, "flags", SimpleNamespace(dev_mode=True)), Level.NOTE),
    ],
)
def test_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[pytest.MonkeyPatch], None], level: Level) -> None:
    with monkeypatch.context() as m:
        change(m)
        found = versions.python(machine(tmp_path))
    assert found.level is level and f"{sys.version_info.major}.{sys.version_info.minor}" in found.seen
