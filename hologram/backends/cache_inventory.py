"""What lies in the disk cache of object code, for people: which entries there are, whether they are whole, and how to be rid of them.

Only files that the cache itself makes count: regular files whose names are a key and its suffix, and what a process that died has left half written.
"""

from __future__ import annotations

import contextlib
import enum
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hologram.backends import object_cache as cache


class State(enum.StrEnum):
    """What use an entry is of."""

    GOOD = "good"
    UNUSED = "unused"  # whole, and made by another version of Hologram or LLVM, or for another machine: this installation never reads it
    DAMAGED = "damaged"


class Found(NamedTuple):
    """A file of the cache: its size, when it was last used (seconds of the epoch), and what made it."""

    path: Path
    nbytes: int
    used: float
    kind: str


def inventory(folder: Path) -> list[Found]:
    """The entries of a folder, those used last first. A folder that is not there has none. Raises OSError for one that cannot be read."""
    found = [Found(path, s.st_size, s.st_mtime, _kind(path)) for path, s in _files(folder) if _is_entry(path)]
    return sorted(found, key=lambda f: (-f.used, f.path.name))


def verify(entry: Found) -> tuple[State, str]:
    """Reads all of an entry and compares it with its checksum. What use it is of, and why."""
    try:
        with open(os.open(entry.path, cache.OPEN_FLAGS), "rb") as file:
            cache.check_file(os.fstat(file.fileno()))
            document, _ = cache.unpack(entry.path.stem, file.read())
    except cache.OtherFormat as e:
        return State.UNUSED, str(e)
    except cache.Refused as e:
        return State.DAMAGED, str(e)
    except OSError as e:
        return State.DAMAGED, f"it cannot be read: {e.strerror}"
    if document["target"] != cache.this_target():
        return State.UNUSED, f"it is for {document['target']}"
    if document["toolchain"] != cache.toolchain():
        return State.UNUSED, f"it was made by {document['toolchain']}"
    return State.GOOD, ""


def removable(folder: Path, used_before: float = float("inf")) -> list[tuple[Path, int]]:
    """The files, with their sizes, that :func:`remove` may take: entries last used before a time, and what was left half written."""
    return [
        (path, s.st_size) for path, s in _files(folder) if (_is_entry(path) and s.st_mtime < used_before) or cache.is_abandoned(path.name, s.st_mtime)
    ]


def remove(path: Path) -> bool:
    """Deletes a file of the cache; whether it is gone. Programs that run lose nothing: their code is in memory."""
    try:
        path.unlink(missing_ok=True)  # another process may have been faster
    except OSError:
        return False
    return True


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    try:
        listed = sorted(folder.iterdir())
    except FileNotFoundError:
        return
    for path in listed:
        with contextlib.suppress(OSError):  # gone meanwhile
            s = path.lstat()
            if stat.S_ISREG(s.st_mode):
                yield path, s


def _is_entry(path: Path) -> bool:
    return path.suffix == cache.SUFFIX and path.stem.isalnum()


def _kind(path: Path) -> str:
    try:
        return cache.document_of(path)["kind"]
    except cache.OtherFormat:
        return "of another version"
    except (cache.Refused, OSError):
        return "unreadable"
