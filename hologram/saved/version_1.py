"""Programs of version 1 of the format: gathers and scatters along one axis, written as those of windows.

``take(x, indices; axis)`` had the axes of the indices in the place of ``axis``, and so had the updates of ``scatter_…(x, indices, updates; axis,
batch)``, whose first ``batch`` axes all inputs shared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hologram.errors import ProgramFileError
from hologram.ir.node import Node
from hologram.saved.attributes import COUNT, refuse

Make = Callable[..., Node]  # of an op's name, its inputs and its attributes

SCATTERS = ("scatter_set", "scatter_add", "scatter_mul", "scatter_max", "scatter_min")


def is_changed(name: str) -> bool:
    """Whether nodes of that name mean something else since."""
    return name == "take" or name in SCATTERS


def converted(make: Make, name: str, inputs: Sequence[Node], data: Sequence[Any]) -> Node:
    """The node as it is written now. Raises ProgramFileError for inputs and attributes that it did not have."""
    wanted = (2, 1) if name == "take" else (3, 2)
    if (len(inputs), len(data)) != wanted:
        raise ProgramFileError(f"{len(inputs)} inputs and {len(data)} attributes for {wanted[0]} and {wanted[1]}")
    axis, batch = (*(COUNT.decode(x, None) for x in data), 0)[:2]
    if not batch <= axis < inputs[0].ndim or batch > inputs[1].ndim:
        raise refuse("an axis, and a number of shared axes before it", list(data))
    x, indices, *updates = inputs
    return _scatter(make, name, x, indices, updates[0], axis, batch) if updates else _take(make, x, indices, axis)


def _take(make: Make, x: Node, indices: Node, axis: int) -> Node:
    windows = make("gather", (x, indices), ((axis,), (1,), 0))
    taken = make("reshape", (windows,), ((*indices.shape, *x.shape[:axis], *x.shape[axis + 1 :]),))
    rank = indices.ndim
    return make("transpose", (taken,), ((*range(rank, rank + axis), *range(rank), *range(rank + axis, taken.ndim)),))


def _scatter(make: Make, name: str, x: Node, indices: Node, updates: Node, axis: int, batch: int) -> Node:
    end = axis + indices.ndim - batch
    if updates.shape != (*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :]):
        raise ProgramFileError(f"updates of shape {list(updates.shape)} for an array of shape {list(x.shape)}")
    order = (*range(batch), *range(axis, end), *range(batch, axis), *range(end, updates.ndim))
    moved = make("transpose", (updates,), (order,))
    windows = make("reshape", (moved,), ((*indices.shape, *x.shape[batch:axis], 1, *x.shape[axis + 1 :]),))
    return make(name, (x, windows, indices), ((axis,), batch))
