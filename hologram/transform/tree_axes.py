"""Structures of pytrees whose arrays get or lose an axis: a container that says how its array is divided among processes says it of the new one.

Divided arrays are containers of one leaf, this rank's part, whose data is a sharding. Without this a stack of parts would count as divided along the
axis of the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hologram.errors import TransformError
from hologram.support.user_lines import located
from hologram.trace.tree import Treedef


def has_shardings(structure: Treedef) -> bool:
    """Whether an array of the pytree is divided among processes."""
    return _is_sharded(structure) or any(map(has_shardings, structure.children))


def with_axes(structure: Treedef, axes: Iterable[int | None]) -> Treedef:
    """The structure where a new axis of each leaf stands at a place of ``axes``, or None does."""
    return _changed(structure, iter(axes), lambda sharding, axis: sharding.with_axis(axis)) if has_shardings(structure) else structure


def without_axes(structure: Treedef, axes: Iterable[int | None], what: str) -> Treedef:
    """The structure where each leaf has lost an axis. Raises TransformError for one that is divided."""

    def change(sharding: Any, axis: int) -> Any:
        if sharding.divides(axis):
            advice = "call it inside of shard_map, where each rank has its part"
            raise located(TransformError(f"{what}: axis {axis} of an array with {sharding.spec} is divided among processes: {advice}"))
        return sharding.without_axis(axis)

    return _changed(structure, iter(axes), change) if has_shardings(structure) else structure


def require_whole(structure: Treedef, what: str) -> None:
    """Raises TransformError where an array is divided: no rank can count its coordinates."""
    if has_shardings(structure):
        advice = "gather it inside of shard_map (all_gather, psum), or give the whole array"
        raise located(TransformError(f"{what} is divided among processes: {advice}"))


def _is_sharded(structure: Treedef) -> bool:
    return getattr(structure.data, "is_sharding", False) is True


def _changed(structure: Treedef, axes: Iterator[int | None], change: Callable[[Any, int], Any]) -> Treedef:
    if structure.kind is None:
        next(axes)
        return structure
    if _is_sharded(structure):
        axis = next(axes)
        return structure if axis is None else Treedef(structure.kind, change(structure.data, axis), structure.children)
    return Treedef(structure.kind, structure.data, tuple([_changed(c, axes, change) for c in structure.children]))
