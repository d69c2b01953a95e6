"""Pytrees: nested containers as a flat list of leaves and a structure, as programs are traced from them. :mod:`hologram.tree` is what users call.

None, tuples, lists, dicts and defaultdicts (in the order of their sorted keys), named tuples, OrderedDicts (in their own order) and registered
classes are containers; everything else is a leaf.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hologram.errors import TreeError


class Treedef:
    """Structure of a pytree: hashable, compared by structure. ``kind`` None is a leaf.

    >>> hg.tree.structure({"w": [1, 2]}) == hg.tree.structure({"w": [3, 4]})
    True
    """

    __slots__ = ("kind", "data", "children", "leaves", "_hash")

    def __init__(self, kind: type | None, data: Any, children: tuple[Treedef, ...]) -> None:
        self.kind, self.data, self.children = kind, data, children
        self.leaves: int = 1 if kind is None else sum(c.leaves for c in children)
        self._hash = hash((kind, data, children))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is Treedef
            and self._hash == other._hash
            and self.kind is other.kind
            and self.data == other.data
            and self.children == other.children
        )

    @property
    def num_leaves(self) -> int:
        """The number of leaves."""
        return self.leaves

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The pytree of this structure that has these leaves. Raises TreeError where their number is wrong."""
        return unflatten(self, leaves)

    def flatten_up_to(self, x: Any) -> list[Any]:
        """The parts of ``x`` that stand where this structure has its leaves. Raises TreeError where ``x`` has another structure."""
        return flatten_up_to(self, x)

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        inside = [repr(c) for c in self.children]
        if self.kind in (dict, OrderedDict):
            body = ", ".join(f"{k!r}: {v}" for k, v in zip(self.data, inside, strict=True))
            return f"{{{body}}}" if self.kind is dict else f"OrderedDict({{{body}}})"
        if self.kind is list:
            return f"[{', '.join(inside)}]"
        if self.kind is tuple:
            return f"({', '.join(inside)}{',' if len(inside) == 1 else ''})"
        return "None" if self.kind is type(None) else f"{self.kind.__name__}({', '.join(inside)})"


DEEPEST = 200  # levels of containers
LEAF = Treedef(None, None, ())
NONE = Treedef(type(None), None, ())


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The way into a list or tuple: an index. As text it is what one writes behind the container, as that of all keys is.

    >>> str(hg.tree.SequenceKey(2))
    '[2]'
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclasses.dataclass(frozen=True)
class DictKey:
    """The way into a dict: a key.

    >>> str(hg.tree.DictKey("w"))
    "['w']"
    """

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The way into a named tuple or a dataclass: an attribute's name.

    >>> str(hg.tree.GetAttrKey("bias"))
    '.bias'
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclasses.dataclass(frozen=True)
class FlattenedIndexKey:
    """The way into a registered class that does not say how its children are reached: a child's number.

    >>> str(hg.tree.FlattenedIndexKey(0))
    '[0]'
    """

    key: int

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class Entry:
    """How a registered class comes apart and together. ``keys`` gives the ways to the children; without it they are numbered.

    ``attributes``: ``flatten`` reads these attributes: the children, and those whose tuple is the data. ``assigns``: all that ``unflatten`` does is
    to set them on a new object.
    """

    __slots__ = ("flatten", "unflatten", "keys", "attributes", "assigns")

    def __init__(
        self,
        flatten: Callable[[Any], tuple[Iterable[Any], Any]],
        unflatten: Callable[[Any, Sequence[Any]], Any],
        keys: Callable[[Any], Sequence[Any]] | None,
        attributes: tuple[tuple[str, ...], tuple[str, ...]] | None = None,
        assigns: bool = False,
    ) -> None:
        self.flatten, self.unflatten, self.keys, self.attributes, self.assigns = flatten, unflatten, keys, attributes, assigns


_registered: dict[type, Entry] = {}
divided: set[type] = set()  # registered classes of arrays whose parts several processes have: containers of this one's part here, leaves to users
reinterpreted: list[Callable[[], None]] = []  # called where a class that was a container already is registered: it comes apart otherwise now


def register(
    cls: type,
    flatten: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
    unflatten: Callable[[Any, Sequence[Any]], Any] | None = None,
    *,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] = (),
    keys: Callable[[Any], Sequence[Any]] | None = None,
) -> type:
    """Registers a class as a pytree container; usable as a class decorator on dataclasses.

    ``flatten(x)`` gives ``(children, data)`` with hashable ``data``; ``unflatten(data, children)`` puts them together. A dataclass
    needs neither: its fields are the children, those named in ``meta_fields`` the data. Another class may name its attributes in ``data_fields``
    and ``meta_fields`` instead of giving ``flatten``; its data are the tuple of the latter. ``keys(x)`` gives the way to each child, as in paths.

    Raises TreeError for a class that is registered already or cannot be taken apart.

    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> Pair = hg.tree.register(Pair, lambda p: ((p.a, p.b), None), lambda data, children: Pair(*children))
    >>> hg.tree.leaves(Pair(1, [2, 3]))
    [1, 2, 3]
    """
    if cls in _registered:
        raise TreeError(f"{cls.__name__} is registered already")
    known = is_container(cls)
    if flatten is not None and unflatten is not None:
        _registered[cls] = Entry(flatten, unflatten, keys)
    else:
        if flatten is not None or not (dataclasses.is_dataclass(cls) if unflatten is None else data_fields is not None):
            raise TreeError(f"{cls.__name__} is no dataclass: give both flatten and unflatten")
        fields = data_fields if data_fields is not None else [f.name for f in dataclasses.fields(cls) if f.name not in meta_fields]
        _registered[cls] = _by_attributes(cls, tuple(fields), tuple(meta_fields), unflatten, keys)
    if known:
        for listener in reinterpreted:
            listener()
    return cls


def _by_attributes(cls: type, names: tuple[str, ...], meta: tuple[str, ...], join: Any, keys: Any) -> Entry:
    ways = tuple(GetAttrKey(n) for n in names)

    def flatten(x: Any) -> tuple[list[Any], tuple[Any, ...]]:
        return [getattr(x, n) for n in names], tuple([getattr(x, n) for n in meta])

    def unflatten(data: tuple[Any, ...], children: Sequence[Any]) -> Any:
        made: Any = object.__new__(cls)  # fields are set as they are: __post_init__ may compute with values, which a trace lacks
        for n, v in (*zip(names, children, strict=True), *zip(meta, data, strict=True)):
            object.__setattr__(made, n, v)
        return made

    return Entry(flatten, join or unflatten, keys or (lambda x: ways), (names, meta), join is None)


def entry_of(kind: type) -> Entry | None:
    """Leaves and structure, as :func:`hologram.tree.flatten` says."""
    return _registered.get(kind)


def _is_namedtuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def is_container(kind: type) -> bool:
    """Whether objects of a class are containers."""
    return kind in (tuple, list, dict, OrderedDict, type(None)) or kind in _registered or _is_namedtuple(kind)


def children_of(x: Any) -> tuple[Any, Sequence[Any]] | None:
    """Data and children of a container, ``(data, children)``; None for a leaf."""
    kind = type(x)
    if kind is tuple or kind is list:
        return None, x
    if x is None:
        return None, ()
    if kind is dict:
        keys = _sorted_keys(x)
        return keys, [x[k] for k in keys]
    entry = _registered.get(kind)
    if entry is not None:
        children, data = entry.flatten(x)
        return data, list(children)
    if kind is OrderedDict:
        return tuple(x), list(x.values())
    if _is_namedtuple(kind):
        return None, x
    return None


def _sorted_keys(x: dict[Any, Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(x))
    except TypeError as e:
        raise TreeError(f"a {type(x).__name__} in a pytree needs keys that sort: {e}") from None


def flatten(x: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Treedef]:
    """Flattens a pytree: its leaves from left to right, and its structure. ``is_leaf`` stops the descent where it holds.

    Raises TreeError for containers nested deeper than DEEPEST, as those that contain themselves are.

    >>> hg.tree.flatten({"a": [1, 2], "b": 3})
    ([1, 2, 3], {'a': [*, *], 'b': *})
    """
    leaves: list[Any] = []
    return leaves, _flatten(x, leaves, is_leaf, 0)


def _flatten(x: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None, depth: int) -> Treedef:
    parts = None if is_leaf is not None and is_leaf(x) else children_of(x)
    if parts is None:
        leaves.append(x)
        return LEAF
    if x is None:
        return NONE
    if depth == DEEPEST:
        raise TreeError(f"a {type(x).__name__} in a pytree is nested deeper than {DEEPEST} levels: does a container contain itself?")
    data, children = parts
    return structure_of(x, data, tuple([_flatten(c, leaves, is_leaf, depth + 1) for c in children]))


def structure_of(x: Any, data: Any, children: tuple[Treedef, ...]) -> Treedef:
    """The structure of a container of these data and structures of children. Raises TreeError for data that are not hashable."""
    try:
        return Treedef(type(x), data, children)
    except TypeError:
        raise TreeError(f"the data of a {type(x).__name__} in a pytree must be hashable") from None


def unflatten(treedef: Treedef, leaves: Iterable[Any]) -> Any:
    """Puts a pytree together from its structure and leaves. Raises TreeError where their number is wrong.

    >>> leaves, structure = hg.tree.flatten({"a": [1, 2], "b": 3})
    >>> hg.tree.unflatten(structure, [x * 10 for x in leaves])
    {'a': [10, 20], 'b': 30}
    """
    given = list(leaves)
    if len(given) != treedef.leaves:
        raise TreeError(f"{len(given)} leaves for a structure of {treedef.leaves}: {treedef}")
    return _unflatten(treedef, iter(given))


def _unflatten(treedef: Treedef, leaves: Any) -> Any:
    kind = treedef.kind
    if kind is None:
        return next(leaves)
    children = [_unflatten(c, leaves) for c in treedef.children]
    if kind is tuple:
        return tuple(children)
    if kind is list:
        return children
    if kind is type(None):
        return None
    entry = _registered.get(kind)
    if entry is not None:
        return entry.unflatten(treedef.data, children)
    if kind is dict or kind is OrderedDict:
        return kind(zip(treedef.data, children, strict=True))
    return kind(*children)  # a named tuple


def flatten_up_to(treedef: Treedef, x: Any) -> list[Any]:
    """The parts of ``x`` that stand where ``treedef`` has its leaves: leaves, or containers. Raises TreeError where ``x`` has another structure.

    >>> hg.tree.flatten_up_to(hg.tree.structure({"a": 1, "b": 2}), {"a": [10, 20], "b": 30})
    [[10, 20], 30]
    """
    found: list[Any] = []
    _up_to(treedef, x, found)
    return found


def _up_to(treedef: Treedef, x: Any, found: list[Any]) -> None:
    if treedef.kind is None:
        found.append(x)
        return
    data, children = children_of(x) or (None, ())
    if type(x) is not treedef.kind or data != treedef.data or len(children) != len(treedef.children):
        raise TreeError(f"structures differ: {treedef} and {structure(x)}")
    for child, part in zip(treedef.children, children, strict=True):
        _up_to(child, part, found)


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """As :func:`hologram.tree.map`, part by part of arrays that are divided."""
    leaves, treedef = flatten(tree, is_leaf)
    columns = [leaves, *[flatten_up_to(treedef, other) for other in rest]]
    return unflatten(treedef, [f(*xs) for xs in zip(*columns, strict=True)])


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves, from left to right."""
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Treedef:
    """The structure."""
    return flatten(tree, is_leaf)[1]


def keys_of(x: Any) -> Sequence[Any]:
    """The ways to the children of a container: one key a child, in their order.

    >>> hg.tree.keys_of({"w": 1, "b": 2})
    [DictKey(key='b'), DictKey(key='w')]
    """
    found = children_of(x)
    assert found is not None, type(x)
    data, children = found
    kind = type(x)
    if kind in _registered:
        keys = _registered[kind].keys
        return [FlattenedIndexKey(i) for i in range(len(children))] if keys is None else list(keys(x))
    if kind is dict or kind is OrderedDict:
        return [DictKey(k) for k in data]
    if _is_namedtuple(kind):
        return [GetAttrKey(n) for n in kind._fields]
    return [SequenceKey(i) for i in range(len(children))]


def paths(tree: Any, prefix: str = "") -> list[tuple[str, Any]]:
    """Paths and leaves, as :func:`hologram.tree.paths`."""
    parts = children_of(tree)
    if parts is None:
        return [(prefix, tree)]
    return [p for key, child in zip(keys_of(tree), parts[1], strict=True) for p in paths(child, f"{prefix}{key}")]


def _default_parts(x: defaultdict[Any, Any]) -> tuple[list[Any], tuple[Any, ...]]:
    keys = _sorted_keys(x)
    return [x[k] for k in keys], (x.default_factory, keys)


def _default_joined(data: tuple[Any, ...], children: Sequence[Any]) -> defaultdict[Any, Any]:
    return defaultdict(data[0], zip(data[1], children, strict=True))


register(defaultdict, _default_parts, _default_joined, keys=lambda x: [DictKey(k) for k in _sorted_keys(x)])
