"""``save``: every rank writes its parts into a folder, which gets its name when all are there."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hologram.distributed.checkpoint.agreement import together
from hologram.distributed.checkpoint.background import Saving, begin, wait
from hologram.distributed.checkpoint.folder import engine, file_name, folder_of, is_complete, root_of, steps, write_index, write_parts
from hologram.distributed.checkpoint.state import Leaf, Part, fingerprint, leaves_of, own_array, parts_of, regions
from hologram.errors import ArgumentError, DistributedError
from hologram.support.files import synchronise
from hologram.support.user_lines import located
from hologram.support.world import current_world
from hologram.trace.checks import integer
from hologram.version import __version__


def save(directory: str | os.PathLike[str], state: Any, step: int, *, keep: int | None = None, background: bool = False) -> None:
    """Writes ``state`` as the checkpoint of ``step``: a pytree of arrays, sharded or not, numbers and texts. All processes call it.

    Each writes a safetensors file with its own parts, of what several have one of them. The checkpoint is there, for :func:`latest`, once all files
    and the index are on the disk, or not at all. ``directory`` is one that all processes see. ``keep`` is how many checkpoints stay: older ones are
    then deleted. ``background``: what this rank writes is copied, and written by a thread while the program goes on, which may change the arrays; the
    next save waits for it, as :func:`wait` does, and raises its errors.

    Raises ArgumentError for leaves that are neither, and where there is a checkpoint of the step; DistributedError where ranks save different
    states; CheckpointError where another rank fails; OSError; UnsupportedError where safetensors is not installed.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> hg.distributed.checkpoint.save(folder, {"w": hnp.ones((2, 3)), "step": 12}, step=12)
    >>> hg.distributed.checkpoint.latest(folder)
    12
    """
    what = "checkpoint.save"
    root, number = root_of(directory, what), integer(step, what, "a step")
    if number < 0 or (keep is not None and integer(keep, what, "keep") < 1):
        raise located(ArgumentError(f"{what}: a step is not negative, and at least one checkpoint is kept: step={step}, keep={keep}"))
    wait()
    leaves = leaves_of(state, what)
    with together(what) as prints:
        engine(what)
        prints.append(fingerprint(leaves))
        if current_world().rank == 0:
            _begin(folder_of(root, number))
    if len(set(prints)) > 1:
        other = next(rank for rank, found in enumerate(prints) if found != prints[0])
        raise located(DistributedError(f"{what}: ranks 0 and {other} save states of different names, types or numbers"))
    (_write_beside if background else _write)(root, number, leaves, keep)


def _write(root: Path, step: int, leaves: list[Leaf], keep: int | None) -> None:
    """The files, then the index, then the folder's name."""
    world, parts = current_world(), parts_of(leaves, current_world().size)
    with together("checkpoint.save") as sizes:
        sizes.append(write_parts(_unfinished(folder_of(root, step)) / file_name(world.rank, world.size), _own(leaves, parts)))
    with together("checkpoint.save"):
        if world.rank == 0:
            _finish(root, step, keep, _index(leaves, parts, step, world.size), sizes)


def _write_beside(root: Path, step: int, leaves: list[Leaf], keep: int | None) -> None:
    """The same, of copies, in a thread."""
    world, parts = current_world(), parts_of(leaves, current_world().size)
    finish = partial(_finish, root, step, keep, _index(leaves, parts, step, world.size))
    own = {name: x.copy() for name, x in _own(leaves, parts).items()}
    begin(Saving(_unfinished(folder_of(root, step)), step, world.rank, world.size, own, finish))


def _finish(root: Path, step: int, keep: int | None, index: dict[str, Any], sizes: list[int]) -> None:
    """All files are there, of so many bytes."""
    done, files = folder_of(root, step), {file_name(rank, len(sizes)): size for rank, size in enumerate(sizes)}
    work = _unfinished(done)
    write_index(work, {**index, "files": files})
    os.rename(work, done)
    synchronise(root)
    _delete(root, steps(root)[:-keep] if keep else [])


def _unfinished(done: Path) -> Path:
    """The folder of a checkpoint while it is written."""
    return done.with_name(f".{done.name}.incomplete")


def _begin(done: Path) -> None:
    """An empty folder to write into. What was interrupted, while it was written or deleted, goes."""
    if is_complete(done):
        raise located(ArgumentError(f"checkpoint.save: {done} is there already"))
    for remains in [done, *done.parent.glob(".step_*")]:
        if remains.exists():
            shutil.rmtree(remains)
    _unfinished(done).mkdir(parents=True)


def _own(leaves: list[Leaf], parts: dict[str, list[Part]]) -> dict[str, np.ndarray]:
    """What this rank writes."""
    world, found = current_world(), {}
    for leaf in leaves:
        for part in parts.get(leaf.name, ()):
            if part.writer == world.rank:
                assert regions(leaf, world.size)[world.rank] == part.region
                found[leaf.name] = own_array(leaf)
    return found


def _index(leaves: list[Leaf], parts: dict[str, list[Part]], step: int, ranks: int) -> dict[str, Any]:
    """The index, but for how long files are."""

    def described(part: Part) -> dict[str, Any]:
        start, shape = [s.start for s in part.region], [s.stop - s.start for s in part.region]
        return {"file": file_name(part.writer, ranks), "start": start, "shape": shape}

    arrays = {
        x.name: {"dtype": x.dtype, "shape": list(x.shape), "parts": [described(p) for p in parts[x.name]]} for x in leaves if x.shape is not None
    }  # fmt: skip
    values = {x.name: x.value for x in leaves if x.shape is None}
    return {"writer": f"hologram {__version__}", "step": step, "arrays": arrays, "values": values}


def _delete(root: Path, old: list[int]) -> None:
    """Deletes checkpoints; one that is half deleted has another name."""
    for step in old:
        folder = folder_of(root, step)
        gone = folder.with_name(f".{folder.name}.deleted")
        shutil.rmtree(gone, ignore_errors=True)
        os.rename(folder, gone)
        shutil.rmtree(gone)
