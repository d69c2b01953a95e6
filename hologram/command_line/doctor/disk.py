"""The disk cache: whether entries can be written, how fast, and whether there is room."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path

from hologram.command_line.doctor.findings import Finding, note, ok, unknown, warning
from hologram.command_line.doctor.machine import Machine

ANEW = "Every process compiles its programs anew, which takes tenths of a second to seconds."
SAMPLE = 2**20  # bytes that are written and read for a try
SLOW_SECONDS = 0.1
LITTLE = 64 * 2**20  # bytes free
FULL = 0.9  # of the limit
REMOTE = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "lustre", "beegfs", "gpfs", "ceph", "9p", "virtiofs", "sshfs", "fuse.sshfs", "glusterfs")
MOVE = "Set HOLOGRAM_CACHE_DIR to a folder of your own on a local disk."


def cache_folder(machine: Machine) -> Finding:
    """Whether the folder of the cache is trusted and can be written to."""
    from hologram.backends import object_cache
    from hologram.settings import settings

    if not settings.cache:
        return warning("the cache is off", ANEW, "Unset HOLOGRAM_CACHE.")
    folder = object_cache.folder()
    if folder is None:
        return warning("the user has no home folder", ANEW, MOVE)
    if not os.path.lexists(folder):
        parent = _existing(folder)
        if not os.access(parent, os.W_OK | os.X_OK):
            return warning(f"{folder} cannot be made in {parent}", ANEW, MOVE)
        return ok(f"{folder}, which the first program will make")
    reason = object_cache.distrust(folder)
    if reason:
        return warning(
            f"{folder} is not used: {reason}", ANEW, "Entries are code. Make it your own and closed to others (chmod 700), or name another."
        )
    try:
        _try_out(folder)
    except OSError as e:
        return warning(f"{folder} cannot be written to: {e.strerror}", ANEW, MOVE)
    return ok(str(folder))


def cache_disk(machine: Machine) -> Finding:
    """Room and speed of the disk with the cache."""
    folder = _folder()
    if folder is None:
        return unknown("there is no folder for the cache")
    parent = _existing(folder)
    free = shutil.disk_usage(parent).free
    kind = _file_system(machine, parent)
    seen = f"{free / 2**30:.1f} GiB free" + (f" on {kind}" if kind else "")
    if free < LITTLE:
        return warning(seen, "Entries that do not fit are not kept. " + ANEW, "Make room, or set HOLOGRAM_CACHE_DIR to another disk.")
    if parent == folder:
        with contextlib.suppress(OSError):  # of which cache_folder tells
            seconds = _try_out(folder)
            seen += f"; {SAMPLE / 2**20:.0f} MiB written and read in {seconds * 1e3:.1f} ms"
            if seconds > SLOW_SECONDS:
                return warning(seen, "Looking for an entry may take longer than compiling it.", MOVE)
    if kind in REMOTE:
        return note(seen, "On a remote file system entries come by the network, and its locks and clocks may differ.", MOVE)
    return ok(seen)


def cache_size(machine: Machine) -> Finding:
    """How near the cache is to its limit."""
    from hologram.backends.cache_inventory import inventory
    from hologram.settings import settings

    folder = _folder()
    if folder is None:
        return unknown("there is no folder for the cache")
    sizes = [f.nbytes for f in inventory(folder)]
    seen = f"{sum(sizes):,} of {settings.cache_limit:,} bytes in {len(sizes):,} entries"
    if sum(sizes) > FULL * settings.cache_limit:
        return note(seen, "The least recently used entries go, and are compiled again when they are needed.", "Raise HOLOGRAM_CACHE_LIMIT.")
    return ok(seen)


def _folder() -> Path | None:
    from hologram.backends import object_cache

    return object_cache.folder()


def _existing(path: Path) -> Path:
    """The path, or the nearest of its parents that is there."""
    return next((p for p in (path, *path.parents) if p.is_dir()), path)


def _try_out(folder: Path) -> float:
    """Seconds of writing and reading a file there, which is removed again."""
    start = time.perf_counter()
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(os.urandom(SAMPLE))
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        file.read()
    return time.perf_counter() - start


def _file_system(machine: Machine, path: Path) -> str | None:
    """The type of the file system that holds ``path``: of the longest mount point that leads there."""
    mounts = [line.split() for line in (machine.text("proc/mounts") or "").splitlines()]
    above = {str(p) for p in (path.resolve(), *path.resolve().parents)}
    found = [(len(m[1]), i, m[2]) for i, m in enumerate(mounts) if len(m) > 2 and m[1] in above]
    return max(found)[2] if found else None
