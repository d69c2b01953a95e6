"""Pytrees: nested containers as a flat list of leaves and a structure; the names of ``jax.tree``.

None, tuples, lists, dicts and defaultdicts (in the order of their sorted keys), named tuples, OrderedDicts (in their own order) and registered
classes are containers; everything else is a leaf.
"""

from hologram.trace.tree import LEAF, DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey, Treedef, flatten_up_to, keys_of, register, unflatten
from hologram.tree.arrays import children_of, flatten, is_container, leaves, map, structure
from hologram.tree.classes import static
from hologram.tree.combined import all, broadcast, reduce, reduce_associative, transpose
from hologram.tree.with_paths import flatten_with_path, keystr, leaves_with_path, map_with_path, paths

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "LEAF", "SequenceKey", "Treedef", "all", "broadcast", "children_of", "flatten", "flatten_up_to",
    "flatten_with_path", "is_container", "keys_of", "keystr", "leaves", "leaves_with_path", "map", "map_with_path", "paths", "reduce",
    "reduce_associative", "register", "static", "structure", "transpose", "unflatten",
]  # fmt: skip
