"""The doctor on the folder and the disk of the cache."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from hologram.command_line.doctor import disk
from hologram.command_line.doctor.findings import Level
from hologram.settings import override
from tests.support.devices.fake_machine import machine


def test_a_folder_that_can_be_written_to(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    with override(cache_dir=folder):
        assert disk.cache_folder(machine(tmp_path)).level is Level.OK
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_not_there_yet_is_not_made(tmp_path: Path) -> None:
    with override(cache_dir=tmp_path / "a" / "b"):
        found = disk.cache_folder(machine(tmp_path))
    assert found.level is Level.OK and "will make" in found.seen and not (tmp_path / "a").exists()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes are those of POSIX")
def test_a_folder_that_others_may_write_to(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    with override(cache_dir=tmp_path / "cache"):
        found = disk.cache_folder(machine(tmp_path))
    assert found.level is Level.WARNING and "others may write to it" in found.seen and found.advice


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(folder: Path) -> float:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(disk, "_try_out", fails)
    (tmp_path / "cache").mkdir(mode=0o700)
    with override(cache_dir=tmp_path / "cache"):
        assert "Read-only file system" in disk.cache_folder(machine(tmp_path)).seen
        assert disk.cache_disk(machine(tmp_path)).level is Level.OK  # of which the other check tells
    monkeypatch.setattr(disk.os, "access", lambda path, mode: False)
    with override(cache_dir=tmp_path / "there"):
        assert disk.cache_folder(machine(tmp_path)).level is Level.WARNING


def test_without_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hologram.backends import object_cache

    with override(cache=False):
        assert disk.cache_folder(machine(tmp_path)).level is Level.WARNING
    monkeypatch.setattr(object_cache, "folder", lambda: None)
    assert disk.cache_folder(machine(tmp_path)).level is Level.WARNING
    assert disk.cache_disk(machine(tmp_path)).level is disk.cache_size(machine(tmp_path)).level is Level.UNKNOWN


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=2**20))
    with override(cache_dir=tmp_path / "cache"):
        assert disk.cache_disk(machine(tmp_path)).level is Level.WARNING


def test_a_disk_that_is_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_try_out", lambda folder: 2.0)
    with override(cache_dir=tmp_path):
        found = disk.cache_disk(machine(tmp_path))
    assert found.level is Level.WARNING and "2000.0 ms" in found.seen


@pytest.mark.parametrize(("kind", "level"), [("ext4", Level.OK), ("nfs4", Level.NOTE)])
def test_file_systems(tmp_path: Path, kind: str, level: Level) -> None:
    """The longest mount point that leads to the folder counts."""
    above = tmp_path.resolve().parent
    there = machine(tmp_path, {"proc/mounts": f"a / tmpfs rw 0 0\nb {above} {kind} rw 0 0\nc {tmp_path}x xfs rw 0 0\nbroken\n"})
    with override(cache_dir=tmp_path / "cache"):
        found = disk.cache_disk(there)
    assert found.level is level and f"on {kind}" in found.seen


def test_a_cache_near_its_limit(tmp_path: Path) -> None:
    (tmp_path / "0123.hgo").write_bytes(bytes(950))
    with override(cache_dir=tmp_path, cache_limit=1000):
        assert disk.cache_size(machine(tmp_path)).level is Level.NOTE
    with override(cache_dir=tmp_path, cache_limit=2000):
        found = disk.cache_size(machine(tmp_path))
    assert found.level is Level.OK and "950 of 2,000 bytes in 1 entries" in found.seen
