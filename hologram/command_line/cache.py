"""The disk cache of compiled object code: lists its entries, tells its size, clears it, verifies every entry.

Only files that Hologram made there are looked at or removed.
"""

from __future__ import annotations

import argparse
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hologram.command_line.options import add_json
from hologram.command_line.result import CommandError, Result, Status, Table

if TYPE_CHECKING:
    from hologram.backends.cache_inventory import Found

HELP = "the disk cache of compiled code: list, size, clear, verify"
DAY = 86_400.0  # seconds
NAME = 12  # leading characters of a key that a table shows


def add_arguments(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, about in (
        ("list", "each entry, those used last first"),
        ("size", "bytes, by kinds"),
        ("verify", "compares each entry with its checksum"),
    ):
        add_json(actions.add_parser(name, help=about, description=about))
    clear = actions.add_parser("clear", help="removes entries", description="Removes entries. Programs that run are not disturbed.")
    add_json(clear)
    clear.add_argument("--older-than", type=_days, metavar="DAYS", help="only those that were not used for so many days")
    clear.add_argument("--dry-run", action="store_true", help="tell what would go, and remove nothing")


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no number of days")
    return days


def run(options: argparse.Namespace) -> Result:
    folder = _folder()
    try:
        return {"list": _list, "size": _sizes, "verify": _verify, "clear": _clear}[options.action](folder, options)
    except OSError as e:
        raise CommandError(f"{folder} cannot be read: {e.strerror}", Status.FOUND) from e


def _folder() -> Path:
    from hologram.backends import object_cache

    found = object_cache.folder()
    if found is None:
        raise CommandError("you have no home folder for the cache: set HOLOGRAM_CACHE_DIR", Status.FOUND)
    return found


def _list(folder: Path, options: argparse.Namespace) -> Result:
    from hologram.backends.cache_inventory import inventory

    found = inventory(folder)
    rows = [(f.path.stem[:NAME], f.kind, f"{f.nbytes:,}", _date(f.used)) for f in found]
    table = Table(str(folder), rows, ("entry", "kind", "bytes", "last used"), frozenset([2]))
    return Result({"folder": str(folder), "entries": [_described(f) for f in found]}, [table])


def _sizes(folder: Path, options: argparse.Namespace) -> Result:
    from hologram.backends.cache_inventory import inventory
    from hologram.settings import settings

    kinds: dict[str, list[int]] = {}
    for f in inventory(folder):
        kinds.setdefault(f.kind, []).append(f.nbytes)
    total = sum(map(sum, kinds.values()))
    entries = sum(map(len, kinds.values()))
    rows = [(kind, f"{len(sizes):,}", f"{sum(sizes):,}") for kind, sizes in sorted(kinds.items())] + [("all", f"{entries:,}", f"{total:,}")]
    table = Table(str(folder), rows, ("kind", "entries", "bytes"), frozenset([1, 2]))
    data: dict[str, Any] = {"folder": str(folder), "bytes": total, "limit": settings.cache_limit, "entries": entries, "on": settings.cache}
    data["kinds"] = {kind: {"entries": len(sizes), "bytes": sum(sizes)} for kind, sizes in kinds.items()}
    state = f"{total / max(settings.cache_limit, 1):.1%} of the limit of {settings.cache_limit:,} bytes"
    return Result(data, [table, state if settings.cache else state + "; the cache is off (HOLOGRAM_CACHE)"])


def _verify(folder: Path, options: argparse.Namespace) -> Result:
    from hologram.backends.cache_inventory import State, inventory, verify

    found = [(f, *verify(f)) for f in inventory(folder)]
    counts = {state: sum(s is state for _, s, _ in found) for state in State}
    rows = [(state.value, f.path.stem[:NAME], f.kind, why) for f, state, why in found if state is not State.GOOD]
    said = f"{folder}: " + ", ".join(f"{n:,} {state.value}" for state, n in counts.items())
    shown = [said, Table("", rows, ("state", "entry", "kind", "why"))] if rows else [said]
    if counts[State.DAMAGED]:
        shown.append("Damaged entries are not used: they are compiled again when they are needed. `hologram cache clear` removes all.")
    data: dict[str, Any] = {"folder": str(folder), "entries": [_described(f) | {"state": state.value, "why": why} for f, state, why in found]}
    data |= {state.value: n for state, n in counts.items()}
    return Result(data, shown, Status.FOUND if counts[State.DAMAGED] else Status.FINE)


def _clear(folder: Path, options: argparse.Namespace) -> Result:
    from hologram.backends.cache_inventory import removable, remove

    before = float("inf") if options.older_than is None else time.time() - options.older_than * DAY
    files = removable(folder, before)
    kept = [] if options.dry_run else [path for path, _ in files if not remove(path)]
    gone = [(path, nbytes) for path, nbytes in files if path not in kept]
    nbytes = sum(n for _, n in gone)
    said = f"{folder}: {len(gone):,} files of {nbytes:,} bytes " + ("would be removed" if options.dry_run else "removed")
    shown = [said] + ([f"{len(kept):,} files cannot be removed, such as {kept[0]}"] if kept else [])
    data = {"folder": str(folder), "files": len(gone), "bytes": nbytes, "removed": not options.dry_run, "kept": [str(p) for p in kept]}
    return Result(data, shown, Status.FOUND if kept else Status.FINE)


def _described(found: Found) -> dict[str, object]:
    return {"key": found.path.stem, "kind": found.kind, "bytes": found.nbytes, "last_used": _date(found.used)}


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(" ", "seconds")
