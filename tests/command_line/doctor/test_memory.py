"""The doctor on memory and its pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from hologram.command_line.doctor.findings import Level
from hologram.command_line.doctor.memory import available, huge_pages
from tests.support.devices.fake_machine import answers, machine

MIB = 2**20
CGROUP = {"proc/self/cgroup": "4:memory:/a\n0::/b\n"}


def meminfo(total: int, free: int) -> dict[str, str]:
    """In MiB."""
    return {"proc/meminfo": f"MemTotal:       {total * 1024} kB\nMemFree:  1 kB\nMemAvailable:   {free * 1024} kB\nHugePages_Total:  0\n"}


@pytest.mark.parametrize(("total", "free", "level"), [(16_384, 8_192, Level.OK), (16_384, 1_000, Level.WARNING), (2_048, 300, Level.WARNING)])
def test_available(tmp_path: Path, total: int, free: int, level: Level) -> None:
    assert available(machine(tmp_path, meminfo(total, free))).level is level


@pytest.mark.parametrize(
    ("files", "level"),
    [
        ({"sys/fs/cgroup/b/memory.max": "max", "sys/fs/cgroup/b/memory.current": str(MIB)}, Level.OK),
        ({"sys/fs/cgroup/b/memory.max": str(4096 * MIB), "sys/fs/cgroup/b/memory.current": str(100 * MIB)}, Level.NOTE),
        ({"sys/fs/cgroup/b/memory.max": str(4096 * MIB), "sys/fs/cgroup/b/memory.current": str(4000 * MIB)}, Level.WARNING),
        ({"sys/fs/cgroup/memory/a/memory.limit_in_bytes": str(4096 * MIB)}, Level.NOTE),  # version 1
        ({"sys/fs/cgroup/memory/a/memory.limit_in_bytes": str(2**63 - 4096)}, Level.OK),
    ],
)
def test_limits_of_cgroups(tmp_path: Path, files: dict[str, str], level: Level) -> None:
    found = available(machine(tmp_path, CGROUP | meminfo(16_384, 8_192) | files))
    assert found.level is level and ("the limit of the cgroup is 4.0 GiB" in found.seen) == (level > Level.OK)


def test_memory_of_other_systems(tmp_path: Path) -> None:
    assert available(machine(tmp_path)).level is Level.UNKNOWN
    assert available(machine(tmp_path, system="win32")).level is Level.UNKNOWN
    mac = available(machine(tmp_path, system="darwin", command=answers({"sysctl": f"{16 * 2**30}\n"})))
    assert mac.level is Level.OK and "16.0 GiB" in mac.seen
    assert available(machine(tmp_path, system="darwin")).level is Level.UNKNOWN


@pytest.mark.parametrize(
    ("text", "level"),
    [("[always] madvise never", Level.OK), ("always [madvise] never", Level.OK), ("always madvise [never]", Level.WARNING), ("", Level.UNKNOWN)],
)
def test_huge_pages(tmp_path: Path, text: str, level: Level) -> None:
    assert huge_pages(machine(tmp_path, {"sys/kernel/mm/transparent_hugepage/enabled": text})).level is level


def test_huge_pages_elsewhere(tmp_path: Path) -> None:
    assert huge_pages(machine(tmp_path)).level is Level.UNKNOWN
    assert huge_pages(machine(tmp_path, system="darwin")).level is Level.OK
