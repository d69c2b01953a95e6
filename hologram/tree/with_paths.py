"""Leaves of pytrees with the ways to them: sequences of keys, which ``keystr`` writes as one would in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hologram.errors import TreeError
from hologram.trace.tree import (
    DEEPEST,
    LEAF,
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    SequenceKey,
    Treedef,
    flatten_up_to,
    keys_of,
    structure_of,
    unflatten,
)
from hologram.tree.arrays import children_of

__all__ = ["flatten_with_path", "keystr", "leaves_with_path", "map_with_path", "paths"]

Path = tuple[Any, ...]
Stop = Callable[..., bool] | None


def flatten_with_path(tree: Any, is_leaf: Stop = None, is_leaf_takes_path: bool = False) -> tuple[list[tuple[Path, Any]], Treedef]:
    """Flattens a pytree: pairs of a path and a leaf, from left to right, and the structure.

    A path is a tuple of keys: SequenceKey, DictKey, GetAttrKey, FlattenedIndexKey, or what a class was registered with. ``is_leaf`` stops the descent
    where it holds; with ``is_leaf_takes_path`` it is called with the path and the value. Raises TreeError for containers that contain themselves.

    >>> hg.tree.flatten_with_path({"w": [1]})
    ([((DictKey(key='w'), SequenceKey(idx=0)), 1)], {'w': [*]})
    """
    found: list[tuple[Path, Any]] = []
    stop = is_leaf if is_leaf is None or is_leaf_takes_path else lambda _, x: is_leaf(x)
    return found, _walk(tree, (), stop, found)


def _walk(x: Any, path: Path, is_leaf: Stop, found: list[tuple[Path, Any]]) -> Treedef:
    parts = None if is_leaf is not None and is_leaf(path, x) else children_of(x)
    if parts is None:
        found.append((path, x))
        return LEAF
    data, children = parts
    if len(path) == DEEPEST and children:
        raise TreeError(f"a {type(x).__name__} in a pytree is nested deeper than {DEEPEST} levels: does a container contain itself?")
    return structure_of(x, data, tuple([_walk(c, (*path, key), is_leaf, found) for key, c in zip(keys_of(x), children, strict=True)]))


def leaves_with_path(tree: Any, is_leaf: Stop = None, is_leaf_takes_path: bool = False) -> list[tuple[Path, Any]]:
    """Paths and leaves of a pytree, from left to right; the arguments are those of :func:`flatten_with_path`.

    >>> hg.tree.leaves_with_path((5, {"w": 6}))
    [((SequenceKey(idx=0),), 5), ((SequenceKey(idx=1), DictKey(key='w')), 6)]
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Stop = None, is_leaf_takes_path: bool = False) -> Any:
    """Applies ``f(path, leaf, *others)`` to every leaf of a pytree, as :func:`hologram.tree.map` does without paths.

    Raises TreeError where structures differ.

    >>> hg.tree.map_with_path(lambda path, x: hg.tree.keystr(path) + f" is {x}", {"w": [1, 2]})
    {'w': ["['w'][0] is 1", "['w'][1] is 2"]}
    """
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = [[path for path, _ in pairs], [x for _, x in pairs], *[flatten_up_to(treedef, other) for other in rest]]
    return unflatten(treedef, [f(*xs) for xs in zip(*columns, strict=True)])


def keystr(path: Sequence[Any], *, simple: bool = False, separator: str = "") -> str:
    """A path as text, as one would write it in Python; with ``simple`` the bare names and indices, joined by ``separator``.

    >>> path = (hg.tree.DictKey("layers"), hg.tree.SequenceKey(0), hg.tree.GetAttrKey("bias"))
    >>> hg.tree.keystr(path), hg.tree.keystr(path, simple=True, separator="/")
    ("['layers'][0].bias", 'layers/0/bias')
    """
    return separator.join(_bare(key) if simple else str(key) for key in path)


def _bare(key: Any) -> str:
    if isinstance(key, SequenceKey):
        return str(key.idx)
    if isinstance(key, GetAttrKey):
        return key.name
    return str(key.key) if isinstance(key, (DictKey, FlattenedIndexKey)) else str(key)


def paths(tree: Any, prefix: str = "") -> list[tuple[str, Any]]:
    """Paths and leaves of a pytree: ``(path, leaf)`` pairs, paths as one would write them in Python.

    >>> hg.tree.paths({"w": [1, 2]})
    [("['w'][0]", 1), ("['w'][1]", 2)]
    """
    return [(prefix + keystr(path), leaf) for path, leaf in leaves_with_path(tree)]
