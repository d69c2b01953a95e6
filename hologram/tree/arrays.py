"""Pytrees as users see them: an array whose parts several processes have is one leaf.

To :mod:`hologram.trace.tree`, which takes arguments apart for programs, it is a container of the part that this process has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hologram.trace import tree as parts
from hologram.trace.tree import Treedef

__all__ = ["children_of", "flatten", "is_container", "is_divided", "leaves", "map", "structure"]

IsLeaf = Callable[[Any], bool] | None


def is_divided(x: Any) -> bool:
    """Whether ``x`` is an array whose parts several processes have."""
    return type(x) in parts.divided


def _stop(is_leaf: IsLeaf) -> Callable[[Any], bool]:
    return is_divided if is_leaf is None else lambda x: is_divided(x) or is_leaf(x)


def is_container(kind: type) -> bool:
    """Whether objects of a class are containers.

    >>> hg.tree.is_container(dict), hg.tree.is_container(int)
    (True, False)
    """
    return kind not in parts.divided and parts.is_container(kind)


def children_of(x: Any) -> tuple[Any, Sequence[Any]] | None:
    """Data and children of a container, ``(data, children)``; None for a leaf.

    >>> hg.tree.children_of([1, 2]), hg.tree.children_of(1)
    ((None, [1, 2]), None)
    """
    return None if is_divided(x) else parts.children_of(x)


def flatten(x: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], Treedef]:
    """Flattens a pytree: its leaves from left to right, and its structure. ``is_leaf`` stops the descent where it holds.

    Raises TreeError for containers nested deeper than DEEPEST, as those that contain themselves are.

    >>> hg.tree.flatten({"a": [1, 2], "b": 3})
    ([1, 2, 3], {'a': [*, *], 'b': *})
    """
    return parts.flatten(x, _stop(is_leaf))


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Leaves of a pytree, from left to right: a list. ``is_leaf`` stops the descent where it holds.

    >>> hg.tree.leaves({"a": [1, 2], "b": 3})
    [1, 2, 3]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> Treedef:
    """Structure of a pytree; leaves print as ``*``. ``is_leaf`` stops the descent where it holds.

    >>> hg.tree.structure({"a": [1, 2], "b": 3})
    {'a': [*, *], 'b': *}
    """
    return flatten(tree, is_leaf)[1]


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Applies ``f`` to the leaves of a pytree, and to what stands in the places of these in the others.

    That may be a container: the structure of ``tree`` is that of the others, or the upper part of it. Raises TreeError where structures differ.

    >>> hg.tree.map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    return parts.map(f, tree, *rest, is_leaf=_stop(is_leaf))
