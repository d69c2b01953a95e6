"""``restore``: every rank reads what it has of the arrays, whatever ranks wrote them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hologram.distributed.array import ShardedArray
from hologram.distributed.checkpoint.agreement import from_all, together
from hologram.distributed.checkpoint.folder import Reader, folder_of, latest, read_index, root_of
from hologram.distributed.checkpoint.state import Leaf, is_leaf, leaves_of, regions
from hologram.errors import CheckpointError, HologramError
from hologram.support.user_lines import located
from hologram.support.world import current_world
from hologram.trace import tree
from hologram.trace.checks import integer
from hologram.trace.convert import asarray

NONE = -1


def restore(directory: str | os.PathLike[str], like: Any, step: int | None = None) -> Any:
    """The state that a checkpoint has, in the structure, and divided, as ``like``: what the program begins with where there is no checkpoint.

    Meshes and numbers of processes may be others than those that wrote: each process reads its own parts alone. In the places of Tensors, and of
    :class:`hologram.ShapeDtypeStruct`, come Tensors; of NumPy arrays, arrays; of numbers, numbers. Without ``step`` it is the last complete
    checkpoint. All processes call it.

    Raises CheckpointError where there is none, where it has other leaves, shapes or types than ``like``, and where it is damaged or another rank
    fails.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> hg.distributed.checkpoint.save(folder, {"w": hnp.ones(3), "step": 12}, step=12)
    >>> hg.distributed.checkpoint.restore(folder, {"w": hnp.zeros(3), "step": 0})
    {'step': 12, 'w': Tensor([1., 1., 1.], dtype=float32)}
    """
    what = "checkpoint.restore"
    root = root_of(directory, what)
    chosen = _agreed(root) if step is None else integer(step, what, "a step")
    folder, leaves = folder_of(root, chosen), leaves_of(like, what)
    with together(what):
        try:
            index = read_index(folder)
            _require_same(leaves, index, folder)
            reader = Reader(folder, index)
            values = [_value(leaf, reader, index) for leaf in leaves]
        except HologramError as e:
            raise located(type(e)(f"{what}: {e}")) from None
    treedef = tree.structure(like, is_leaf)
    return tree.unflatten(treedef, values)


def _agreed(root: Path) -> int:
    """The last complete checkpoint, as rank 0 sees it."""
    last = latest(root)
    chosen = from_all(NONE if last is None else last)[0]
    if chosen == NONE:
        raise located(CheckpointError(f"checkpoint.restore: there is no complete checkpoint in {root}"))
    return chosen


def _require_same(leaves: list[Leaf], index: Mapping[str, Any], folder: Path) -> None:
    """Raises CheckpointError where names, shapes or types are not those of the checkpoint."""
    wanted, there = {x.name for x in leaves}, {*index["arrays"], *index["values"]}
    for names, advice in ((wanted - there, "the checkpoint has not"), (there - wanted, "is in the checkpoint, and not in the state")):
        if names:
            raise CheckpointError(f"{folder}: {min(names)} {advice}; {len(names)} in all")
    for leaf in leaves:
        shape, dtype = _saved_type(index, leaf.name)
        if (shape, dtype) != (leaf.shape, leaf.dtype):
            raise CheckpointError(f"{folder}: {leaf.name} is {_described(shape, dtype)}, and in the state {_described(leaf.shape, leaf.dtype)}")


def _saved_type(index: Mapping[str, Any], name: str) -> tuple[tuple[int, ...] | None, str]:
    if name in index["values"]:
        return None, type(index["values"][name]).__name__
    entry = index["arrays"][name]
    return tuple(entry["shape"]), entry["dtype"]


def _described(shape: tuple[int, ...] | None, dtype: str) -> str:
    return dtype if shape is None else f"{dtype}{list(shape)}"


def _value(leaf: Leaf, reader: Reader, index: Mapping[str, Any]) -> Any:
    """This rank's part of a leaf."""
    if leaf.shape is None:
        return index["values"][leaf.name]
    world = current_world()
    read = reader.region(leaf.name, regions(leaf, world.size)[world.rank])
    if isinstance(leaf.value, ShardedArray):
        return ShardedArray(asarray(read), leaf.value.sharding)
    return read if isinstance(leaf.value, (np.ndarray, np.generic)) else asarray(read)
