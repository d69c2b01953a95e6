"""Names of ``jax.tree_util``: those of :mod:`hologram.tree` with ``tree_`` before them, and classes as containers."""

from hologram.trace.tree import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey
from hologram.trace.tree import Treedef as PyTreeDef
from hologram.trace.tree import unflatten as tree_unflatten
from hologram.tree.arrays import flatten as tree_flatten
from hologram.tree.arrays import leaves as tree_leaves
from hologram.tree.arrays import map as tree_map
from hologram.tree.arrays import structure as tree_structure
from hologram.tree.classes import (
    Partial,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)
from hologram.tree.combined import all as tree_all
from hologram.tree.combined import (
    all_leaves,
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
    treedef_children,
    treedef_is_leaf,
    treedef_tuple,
)
from hologram.tree.combined import broadcast as tree_broadcast
from hologram.tree.combined import reduce as tree_reduce
from hologram.tree.combined import reduce_associative as tree_reduce_associative
from hologram.tree.combined import transpose as tree_transpose
from hologram.tree.with_paths import flatten_with_path as tree_flatten_with_path
from hologram.tree.with_paths import keystr
from hologram.tree.with_paths import leaves_with_path as tree_leaves_with_path
from hologram.tree.with_paths import map_with_path as tree_map_with_path

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "Partial", "PyTreeDef", "SequenceKey", "all_leaves", "flatten_one_level",
    "flatten_one_level_with_keys", "is_tree_node", "keystr", "register_dataclass", "register_pytree_node", "register_pytree_node_class",
    "register_pytree_with_keys", "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast", "tree_flatten",
    "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_with_path", "tree_reduce", "tree_reduce_associative",
    "tree_structure", "tree_transpose", "tree_unflatten", "treedef_children", "treedef_is_leaf", "treedef_tuple",
]  # fmt: skip
