"""What lies in the disk cache: entries, whether they are whole, and what may be removed."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from hologram.backends import object_cache as cache
from hologram.backends.cache_inventory import State, inventory, removable, remove, verify
from hologram.settings import override

CODE = bytes(range(256))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with override(cache=True, cache_dir=tmp_path / "cache", cache_limit=2**20):
        yield tmp_path / "cache"


def store(name: str, kind: str, used: float) -> Path:
    """An entry that was last used at a time."""
    key = cache.key(name)
    cache.store(key, CODE, {"n": 1}, kind)
    folder = cache.folder()
    assert folder is not None
    path = folder / f"{key}.hgo"
    os.utime(path, (used, used))
    return path


def foreign_files(folder: Path) -> list[Path]:
    """What the cache did not make."""
    folder.mkdir(exist_ok=True, mode=0o700)
    paths = [folder / name for name in ("notes.txt", "a-b.hgo", ".hgo", ".hidden", "new.hgo.bak")]
    for path in paths:
        path.write_text("mine")
    (folder / "folder.hgo").mkdir()
    (folder / "link.hgo").symlink_to(folder / "notes.txt")
    return [*paths, folder / "folder.hgo", folder / "link.hgo"]


def test_entries_are_listed_those_used_last_first(folder: Path) -> None:
    assert inventory(folder) == []
    old, new = store("old", "program", 1e9), store("new", "rates", 1.1e9)
    foreign_files(folder)
    found = inventory(folder)
    assert [(f.path, f.kind, f.used) for f in found] == [(new, "rates", 1.1e9), (old, "program", 1e9)]
    assert all(f.nbytes == f.path.stat().st_size > len(CODE) for f in found)


def test_what_hologram_stores_has_a_kind(folder: Path) -> None:
    import numpy as np

    import hologram as hg

    hg.jit(lambda x: x * 3.25 - 1)(np.ones(7, np.float32))
    assert "program" in {f.kind for f in inventory(folder)}


@pytest.mark.parametrize("place", [0, 8, 30, 60, -1])
def test_any_damage_is_seen(folder: Path, place: int) -> None:
    path = store("a", "program", 1e9)
    (entry,) = inventory(folder)
    assert verify(entry) == (State.GOOD, "")
    content = bytearray(path.read_bytes())
    content[place] ^= 0x55
    path.write_bytes(content)
    state, why = verify(entry)
    assert state is (State.UNUSED if place == 8 else State.DAMAGED) and why  # the format's number stands at 8
    path.write_bytes(b"short")
    assert [(f.kind, *verify(f)) for f in inventory(folder)] == [("unreadable", State.DAMAGED, "it is truncated")]


def test_entries_of_others_are_not_damaged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as m:
        m.setattr(cache, "toolchain", lambda: "hologram 0.0.9")
        store("version", "program", 1e9)
    with monkeypatch.context() as m:
        m.setattr(cache, "_described", lambda machine: "riscv64")
        store("machine", "program", 1.1e9)
    assert [verify(f) for f in inventory(folder)] == [(State.UNUSED, "it is for riscv64"), (State.UNUSED, "it was made by hologram 0.0.9")]
    path = store("format", "program", 1.2e9)
    content = path.read_bytes()
    path.write_bytes(content[:8] + struct.pack("<I", 1) + content[12:])
    (newest, *_) = inventory(folder)
    assert (newest.kind, *verify(newest)) == ("of another version", State.UNUSED, f"it has format 1, not {cache._FORMAT}")


def test_an_entry_that_is_gone_or_closed(folder: Path) -> None:
    path = store("a", "program", 1e9)
    (entry,) = inventory(folder)
    if hasattr(os, "geteuid"):
        path.chmod(0o666)
        assert verify(entry)[0] is State.DAMAGED
    path.unlink()
    assert verify(entry)[0] is State.DAMAGED and remove(path)


def test_only_files_of_the_cache_are_removed(folder: Path) -> None:
    foreign = foreign_files(folder)
    old, new = store("old", "program", 1e9), store("new", "program", 1.1e9)
    left, writing = folder / ".writing-dead", folder / ".writing-now"
    for path in (left, writing):
        path.write_bytes(b"half")
    os.utime(left, (1e9, 1e9))
    assert {p for p, _ in removable(folder, 1.05e9)} == {old, left}
    assert {p for p, _ in removable(folder)} == {old, new, left}
    assert all(remove(p) for p, _ in removable(folder))
    assert sorted(folder.iterdir()) == sorted([*foreign, writing])
