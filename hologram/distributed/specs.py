"""Pytrees of specs beside pytrees of arrays: a spec may stand in the place of a whole container."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hologram import tree
from hologram.errors import ArgumentError
from hologram.support.user_lines import located
from hologram.trace.tree import LEAF, Treedef

__all__ = ["map_with_specs"]


def map_with_specs(f: Callable[[Any, Any], Any], value: Any, specs: Any, what: str, kinds: tuple[type, ...]) -> Any:
    """``value`` with ``f(leaf, spec)`` in the places of its leaves. Specs are of ``kinds``. Raises ArgumentError where they do not fit."""
    own = tree.children_of(value)
    if own is None:
        if not isinstance(specs, kinds):
            raise located(ArgumentError(f"{what} has {specs!r} for one array: it takes a {kinds[0].__name__}"))
        return f(value, specs)
    data, children = own
    each = [specs] * len(children) if isinstance(specs, kinds) else _children_of_specs(specs, data, children, value, what)
    made = [map_with_specs(f, child, spec, what, kinds) for child, spec in zip(children, each, strict=True)]
    return tree.unflatten(Treedef(type(value), data, (LEAF,) * len(made)), made)


def _children_of_specs(specs: Any, data: Any, children: Sequence[Any], value: Any, what: str) -> Sequence[Any]:
    mine = tree.children_of(specs)
    fits = mine is not None and len(mine[1]) == len(children) and (mine[0] == data or isinstance(specs, (tuple, list)))
    if mine is None or not fits:
        raise located(ArgumentError(f"{what} {specs!r} does not match the structure {tree.structure(value)}"))
    return mine[1]
