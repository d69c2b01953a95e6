"""Pytrees as a whole: folds over leaves, transposition, leaves spread over what is below them; structures of structures."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import Any

from hologram.errors import TreeError
from hologram.trace.tree import LEAF, Treedef, flatten_up_to, keys_of, unflatten
from hologram.tree.arrays import children_of, flatten, is_container, leaves, structure

__all__ = [
    "all", "all_leaves", "broadcast", "flatten_one_level", "flatten_one_level_with_keys", "is_tree_node", "reduce", "reduce_associative", "transpose",
    "treedef_children", "treedef_is_leaf", "treedef_tuple",
]  # fmt: skip

IsLeaf = Callable[[Any], bool] | None
_NOTHING = object()


def all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true.

    >>> hg.tree.all({"a": True, "b": [1, 0]})
    False
    """
    return builtins.all(leaves(tree, is_leaf))


def reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _NOTHING, is_leaf: IsLeaf = None) -> Any:
    """Folds the leaves from left to right, from ``initializer`` on if there is one. Raises TreeError where there is neither that nor a leaf.

    >>> hg.tree.reduce(lambda a, b: a + b, {"a": 1, "b": [2, 3]})
    6
    """
    found = leaves(tree, is_leaf)
    if initializer is not _NOTHING:
        return functools.reduce(function, found, initializer)
    if not found:
        raise TreeError("reduce: a pytree without leaves needs an initializer")
    return functools.reduce(function, found)


def reduce_associative(operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = _NOTHING, is_leaf: IsLeaf = None) -> Any:
    """Folds the leaves pair by pair, which takes few steps after one another. ``identity`` is the result without leaves, else a TreeError.

    >>> hg.tree.reduce_associative(lambda a, b: a + b, [1, 2, 3, 4])
    10
    """
    found = leaves(tree, is_leaf)
    if not found:
        if identity is _NOTHING:
            raise TreeError("reduce_associative: a pytree without leaves needs an identity")
        return identity
    while len(found) > 1:
        found = [operation(*found[i : i + 2]) if i + 1 < len(found) else found[i] for i in range(0, len(found), 2)]
    return found[0]


def transpose(outer_treedef: Treedef, inner_treedef: Treedef | None, pytree_to_transpose: Any) -> Any:
    """Exchanges two levels: of ``outer`` containers of ``inner`` ones it makes ``inner`` containers of ``outer`` ones.

    None for the inner structure takes that of the first. Raises TreeError where the pytree has another structure.

    >>> s = hg.tree.structure
    >>> hg.tree.transpose(s([0, 0]), s({"a": 0, "b": 0}), [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    {'a': [1, 3], 'b': [2, 4]}
    """
    parts = flatten_up_to(outer_treedef, pytree_to_transpose)
    if inner_treedef is None:
        if not parts:
            raise TreeError("transpose: an outer structure without leaves needs the inner structure")
        inner_treedef = structure(parts[0])
    rows = [flatten_up_to(inner_treedef, part) for part in parts]
    columns = zip(*rows, strict=True) if rows else [()] * inner_treedef.leaves
    return unflatten(inner_treedef, [unflatten(outer_treedef, column) for column in columns])


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """A pytree like ``full_tree``, with each leaf of ``prefix_tree`` in the place of all that is below it. Raises TreeError where it does not fit.

    >>> hg.tree.broadcast({"a": 0, "b": 1}, {"a": [5, 6], "b": 7})
    {'a': [0, 0], 'b': 1}
    """
    values, prefix = flatten(prefix_tree, is_leaf)
    repeated = []
    for value, below in zip(values, flatten_up_to(prefix, full_tree), strict=True):
        repeated += [value] * len(leaves(below, is_leaf))
    return unflatten(structure(full_tree, is_leaf), repeated)


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether every item is a leaf.

    >>> hg.tree_util.all_leaves([1, 2]), hg.tree_util.all_leaves([1, [2]])
    (True, False)
    """
    return builtins.all(structure(x, is_leaf) == LEAF for x in iterable)


def is_tree_node(cls: type) -> bool:
    """Whether objects of a class are containers.

    >>> hg.tree_util.is_tree_node(dict), hg.tree_util.is_tree_node(int)
    (True, False)
    """
    return is_container(cls)


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Any]:
    """Children and data of a container. Raises TreeError for a leaf.

    >>> hg.tree_util.flatten_one_level({"a": [1], "b": 2})
    ([[1], 2], ('a', 'b'))
    """
    found = children_of(tree)
    if found is None:
        raise TreeError(f"flatten_one_level: a {type(tree).__name__} is a leaf")
    return list(found[1]), found[0]


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Any]:
    """Pairs of a key and a child of a container, and its data. Raises TreeError for a leaf.

    >>> hg.tree_util.flatten_one_level_with_keys([7])
    ([(SequenceKey(idx=0), 7)], None)
    """
    children, data = flatten_one_level(tree)
    return list(zip(keys_of(tree), children, strict=True)), data


def treedef_is_leaf(treedef: Treedef) -> bool:
    """Whether a structure is that of a leaf.

    >>> hg.tree_util.treedef_is_leaf(hg.tree.structure(1))
    True
    """
    return treedef.kind is None


def treedef_children(treedef: Treedef) -> list[Treedef]:
    """The structures of a container's children.

    >>> hg.tree_util.treedef_children(hg.tree.structure([1, (2, 3)]))
    [*, (*, *)]
    """
    return list(treedef.children)


def treedef_tuple(treedefs: Iterable[Treedef]) -> Treedef:
    """The structure of a tuple of pytrees of these structures.

    >>> hg.tree_util.treedef_tuple([hg.tree.structure(1), hg.tree.structure([2])])
    (*, [*])
    """
    return Treedef(tuple, None, tuple(treedefs))
