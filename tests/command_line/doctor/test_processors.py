"""The doctor on processors: affinity, quotas, threads of Hologram and of other libraries."""

from __future__ import annotations

from pathlib import Path

import pytest

from hologram.command_line.doctor import processors
from hologram.command_line.doctor.findings import Level
from tests.support.devices.fake_machine import machine

CGROUP = {"proc/self/cgroup": "0::/a/b\n"}
MAX, STAT = "sys/fs/cgroup/a/cpu.max", "sys/fs/cgroup/a/cpu.stat"


@pytest.mark.parametrize(("allowed", "level"), [(8, Level.OK), (4, Level.NOTE), (1, Level.WARNING), (None, Level.UNKNOWN)])
def test_affinity(tmp_path: Path, allowed: int | None, level: Level) -> None:
    assert processors.affinity(machine(tmp_path, affinity=allowed)).level is level


@pytest.mark.parametrize(
    ("limit", "stat", "level"),
    [
        ("max 100000", "", Level.OK),
        ("400000 100000", "", Level.NOTE),
        ("1600000 100000", "", Level.OK),  # more than there are
        ("150000 100000", "", Level.WARNING),  # one and a half
        ("400000 100000", "nr_periods 1000\nnr_throttled 500\n", Level.WARNING),
        ("400000 100000", "nr_periods 1000\nnr_throttled 3\n", Level.NOTE),
        ("400000 100000", "usage_usec nothing\n", Level.NOTE),
    ],
)
def test_quota(tmp_path: Path, limit: str, stat: str, level: Level) -> None:
    found = processors.quota(machine(tmp_path, CGROUP | {MAX: limit, STAT: stat}))
    assert found.level is level
    assert ("throttled in 50%" in found.seen) == ("500" in stat)


def test_quota_where_there_are_no_cgroups(tmp_path: Path) -> None:
    assert processors.quota(machine(tmp_path)).level is Level.OK
    assert processors.quota(machine(tmp_path, system="win32")).level is Level.OK


@pytest.mark.parametrize(("asked", "level"), [("0", Level.OK), ("8", Level.OK), ("4", Level.NOTE), ("9", Level.WARNING), ("many", Level.OK)])
def test_threads(tmp_path: Path, asked: str, level: Level) -> None:
    """What is no number is told of by another check."""
    assert processors.threads(machine(tmp_path, environment={"HOLOGRAM_NUM_THREADS": asked})).level is level


def test_threads_follow_the_quota(tmp_path: Path) -> None:
    there = machine(tmp_path, CGROUP | {MAX: "200000 100000"}, environment={"HOLOGRAM_NUM_THREADS": "4"})
    assert there.usable == 2
    assert processors.threads(there).level is Level.WARNING and "4 threads on 2" in processors.threads(there).seen


@pytest.mark.parametrize(
    ("environment", "level"),
    [
        ({}, Level.OK),
        ({"OMP_NUM_THREADS": "8"}, Level.OK),
        ({"OMP_NUM_THREADS": "16"}, Level.WARNING),
        ({"OPENBLAS_NUM_THREADS": "64", "OMP_NUM_THREADS": "2"}, Level.WARNING),
        ({"OMP_NUM_THREADS": "4,2"}, Level.OK),  # by levels
        ({"OMP_NUM_THREADS": "some"}, Level.OK),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, Level.WARNING),
        ({"OMP_WAIT_POLICY": "passive"}, Level.OK),
    ],
)
def test_thread_pools(tmp_path: Path, environment: dict[str, str], level: Level) -> None:
    assert processors.thread_pools(machine(tmp_path, environment=environment)).level is level


def test_pools_that_do_not_know_of_a_quota(tmp_path: Path) -> None:
    found = processors.thread_pools(machine(tmp_path, CGROUP | {MAX: "200000 100000"}))
    assert found.level is Level.NOTE and "OMP_NUM_THREADS=2" in found.advice
