"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(target: str | os.PathLike[str], durable: bool = False) -> Iterator[Path]:
    """A path to write, which becomes the file ``target`` at the end of the block, unless that raises.

    ``durable``: it then outlasts a loss of power.
    """
    path = Path(target)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        yield temporary
        if durable:
            synchronise(temporary)
        os.replace(temporary, path)
        if durable:
            synchronise(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def synchronise(path: Path) -> None:
    """Waits until a file's contents, or a folder's names, are on the disk."""
    if os.name == "nt" and path.is_dir():  # Windows has no such call for folders
        return
    handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
