"""Structures of arguments and results as data of JSON.

A leaf is ``"*"``, None ``null``; a list is ``["list", child, …]``, likewise a tuple and the named tuples that Hologram's functions return, by the
names of their classes; a dict is ``["dict", [key, …], child, …]``, likewise an OrderedDict.
"""

from __future__ import annotations

from collections import OrderedDict
from importlib import import_module
from typing import Any

from hologram.errors import ExportError, ProgramFileError
from hologram.saved.attributes import refuse
from hologram.trace.tree import DEEPEST, LEAF, NONE, Treedef

# the module of each named tuple, which is imported where a file has one
_RESULTS = {
    "EighResult": "linalg.decompositions",
    "LstsqResult": "linalg.systems",
    "QRResult": "linalg.decompositions",
    "SVDResult": "linalg.decompositions",
    "SlogdetResult": "linalg.systems",
    "UniqueAll": "numpy.along_axes.sets",
    "UniqueCounts": "numpy.along_axes.sets",
    "UniqueInverse": "numpy.along_axes.sets",
}
_SEQUENCES: dict[str, Any] = {kind.__name__: kind for kind in (list, tuple)}
_MAPPINGS: dict[str, Any] = {kind.__name__: kind for kind in (dict, OrderedDict)}
_KEYS = (str, int, bool)


def _class(name: str) -> Any:
    """The container that a file calls ``name``, None for another name."""
    if name in _RESULTS:
        return getattr(import_module(f"hologram.{_RESULTS[name]}"), name)
    return _SEQUENCES.get(name) or _MAPPINGS.get(name)


def encode_tree(treedef: Treedef, what: str) -> Any:
    """The structure as data. Raises ExportError for a class that a file cannot name, and for keys that are no strings or integers."""
    if treedef.kind is None:
        return "*"
    if treedef.kind is type(None):
        return None
    name = treedef.kind.__name__
    if _class(name) is not treedef.kind:
        classes = "dicts, lists, tuples and None"
        raise ExportError(f"export: {what} hold a {treedef.kind.__name__}, a class that a file cannot name: use {classes}")
    children = [encode_tree(c, what) for c in treedef.children]
    if name not in _MAPPINGS:
        return [name, *children]
    for key in treedef.data:
        if type(key) not in _KEYS:
            raise ExportError(f"export: {what} hold a dict with the key {key!r}: a file has strings, integers and bools as keys")
    return [name, list(treedef.data), *children]


def decode_tree(data: Any, depth: int = 0) -> Treedef:
    """The structure again. Raises ProgramFileError."""
    if data == "*":
        return LEAF
    if data is None:
        return NONE
    if type(data) is not list or not data or type(data[0]) is not str or depth > DEEPEST:
        raise refuse("a structure of containers", data)
    name, *rest = data
    kind = _class(name)
    if kind is not None and name not in _MAPPINGS:
        if name in _RESULTS and len(rest) != len(kind._fields):
            raise refuse(f"a {name} of {len(kind._fields)} fields", rest)
        return Treedef(kind, None, tuple([decode_tree(x, depth + 1) for x in rest]))
    if kind is None or not rest or type(rest[0]) is not list:
        raise refuse("a structure of containers", data)
    keys, *children = rest
    if any(type(k) not in _KEYS for k in keys) or len(set(keys)) != len(keys) or len(keys) != len(children):
        raise refuse("the keys of a dict", keys)
    if name == "dict" and _sorted(keys) != keys:
        raise ProgramFileError(f"the keys {keys} are not in order")
    return Treedef(kind, tuple(keys), tuple([decode_tree(x, depth + 1) for x in children]))


def _sorted(keys: list[Any]) -> list[Any]:
    try:
        return sorted(keys)
    except TypeError:
        raise refuse("keys that sort", keys) from None
