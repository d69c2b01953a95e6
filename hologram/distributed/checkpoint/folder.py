"""The folder of a checkpoint: safetensors files, and the index that is written last and says what is in them.

``step_00000012/rank_00000_of_00002.safetensors`` has the parts of arrays that rank 0 wrote, under the arrays' names. ``index.json`` has the shape and
type of each array and the region that each file's part of it fills, the state's numbers, and how long each file is. A folder is complete when it has
the name of a step and an index, and every file is as long as the index says.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, CheckpointError, UnsupportedError
from hologram.support.files import replacing
from hologram.support.user_lines import located

FORMAT = "hologram checkpoint"
VERSION = 1
INDEX = "index.json"
_STEP = re.compile(r"step_(\d{8,})")
# types that safetensors reads into NumPy arrays; others go in as their bits
_NAMED = {"bool", "float16", "bfloat16", "float32", "float64", "complex64"} | {f"{kind}{n}" for kind in ("int", "uint") for n in (8, 16, 32, 64)}


def root_of(directory: Any, what: str) -> Path:
    """The folder that has the checkpoints."""
    if not isinstance(directory, (str, os.PathLike)):
        raise located(ArgumentError(f"{what}: a directory is a path, not a {type(directory).__name__}"))
    return Path(directory)


def folder_of(root: Path, step: int) -> Path:
    """The folder of the checkpoint of a step."""
    return root / f"step_{step:08d}"


def file_name(rank: int, ranks: int) -> str:
    return f"rank_{rank:05d}_of_{ranks:05d}.safetensors"


# --- which are there -------------------------------------------------------------------------------------------------


def steps(directory: str | os.PathLike[str]) -> list[int]:
    """The steps of which there are complete checkpoints in a directory, ascending; none where there is no such directory.

    >>> hg.distributed.checkpoint.steps("no such directory")
    []
    """
    root = root_of(directory, "checkpoint.steps")
    if not root.is_dir():
        return []
    found = [(int(name[1]), root / name[0]) for name in map(_STEP.fullmatch, os.listdir(root)) if name]
    return sorted(step for step, folder in found if is_complete(folder))


def latest(directory: str | os.PathLike[str]) -> int | None:
    """The step of the last complete checkpoint in a directory; None where there is none.

    >>> hg.distributed.checkpoint.latest("no such directory") is None
    True
    """
    return max(steps(directory), default=None)


def is_complete(folder: Path) -> bool:
    """Whether a folder has an index, and the files of which it tells."""
    try:
        read_index(folder)
    except (CheckpointError, OSError):
        return False
    return True


def read_index(folder: Path) -> dict[str, Any]:
    """What the index says. Raises CheckpointError where the folder is not complete."""
    try:
        index = json.loads((folder / INDEX).read_bytes())
        if index["format"] != FORMAT or index["version"] > VERSION:
            raise CheckpointError(f"{folder}: an index of {index['format']!r}, version {index['version']}, and not of {FORMAT!r}, up to {VERSION}")
        sizes = {name: (folder / name).stat().st_size for name in index["files"]}
        wrong = [name for name, size in index["files"].items() if sizes[name] != size]
    except FileNotFoundError as e:
        raise CheckpointError(f"{folder}: there is no complete checkpoint: {e.filename} is missing") from None
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise e if isinstance(e, CheckpointError) else CheckpointError(f"{folder}: the index is damaged: {type(e).__name__}: {e}") from None
    if wrong:
        raise CheckpointError(f"{folder}: {wrong[0]} has {sizes[wrong[0]]} bytes, and the index says {index['files'][wrong[0]]}")
    return dict(index)


# --- files -----------------------------------------------------------------------------------------------------------


def engine(what: str) -> Any:
    """The library that reads and writes the files. Raises UnsupportedError where it is not installed."""
    try:
        import safetensors.numpy
    except ImportError as e:
        raise located(
            UnsupportedError(f"{what} asks for safetensors, which is not installed: pip install hologram-compute[checkpoint]: {e}")
        ) from None
    return safetensors


def write_parts(file: Path, parts: Mapping[str, np.ndarray]) -> int:
    """Writes this rank's parts of arrays, durably; how many bytes the file has."""
    library, kept = engine("checkpoint.save"), {name: np.asarray(_stored(x), order="C") for name, x in parts.items()}
    with replacing(file, durable=True) as temporary:
        library.numpy.save_file(kept, temporary, metadata={"format": FORMAT})
    return file.stat().st_size


def write_index(folder: Path, index: Mapping[str, Any]) -> None:
    with replacing(folder / INDEX, durable=True) as temporary:
        temporary.write_text(json.dumps({"format": FORMAT, "version": VERSION, **index}))


def _stored(x: np.ndarray) -> np.ndarray:
    """An array as its file has it: one that safetensors has no type for as its bits, along a new last axis where they are several numbers."""
    dtype = dtypes.of(x.dtype)
    if dtype.name in _NAMED:
        return x
    words = np.dtype(f"u{min(dtype.itemsize, 8)}")
    return np.asarray(x, order="C")[..., None].view(words)


class Reader:
    """Reads regions of the arrays of a folder. Files are opened once, when they are first asked for."""

    def __init__(self, folder: Path, index: Mapping[str, Any]) -> None:
        self._folder, self._arrays, self._opened = folder, index["arrays"], dict[str, Any]()
        self._engine = engine("checkpoint.restore")

    def region(self, name: str, region: Sequence[slice]) -> np.ndarray:
        """A region of an array. Raises CheckpointError where parts are damaged, or do not fill it."""
        dtype, filled = dtypes.of(self._arrays[name]["dtype"]).np, 0
        into = np.empty([s.stop - s.start for s in region], dtype)
        for part in self._arrays[name]["parts"]:
            start = part["start"]
            ends = [(max(s.start, a), min(s.stop, a + n)) for s, a, n in zip(region, start, part["shape"], strict=True)]
            if all(a < b for a, b in ends):
                there = tuple(slice(a - s, b - s) for (a, b), s in zip(ends, start, strict=True))
                here = tuple(slice(a - s.start, b - s.start) for (a, b), s in zip(ends, region, strict=True))
                into[here] = self._read(part["file"], name, there, dtype)
                filled += into[here].size
        if filled != into.size:
            raise CheckpointError(f"{self._folder}: parts of {name} are missing")
        return into

    def _read(self, file: str, name: str, region: tuple[slice, ...], dtype: np.dtype) -> np.ndarray:
        try:
            if file not in self._opened:
                self._opened[file] = self._engine.safe_open(str(self._folder / file), framework="np")
            opened = self._opened[file]
            found = opened.get_slice(name)[region] if region else opened.get_tensor(name)
        except (self._engine.SafetensorError, OSError) as e:
            raise CheckpointError(f"{self._folder / file}: {name} cannot be read: {e}") from None
        return found if dtypes.of(dtype).name in _NAMED else np.ascontiguousarray(found).view(dtype)[..., 0]
