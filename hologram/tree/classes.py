"""Classes as containers of pytrees, under JAX's names for their registration; ``Partial``, a function that holds arrays."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from hologram.errors import TreeError
from hologram.trace.tree import register

__all__ = [
    "Partial", "register_dataclass", "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "static",
]  # fmt: skip

Parts = Callable[[Any], tuple[Any, Any]]
Whole = Callable[[Any, Any], Any]


def register_pytree_node(nodetype: type, flatten_func: Parts, unflatten_func: Whole, flatten_with_keys_func: Parts | None = None) -> None:
    """Registers a class as a container.

    ``flatten_func(x)`` gives children and hashable data, ``unflatten_func(data, children)`` joins them. ``flatten_with_keys_func`` gives pairs of
    a key and a child instead of children. Raises TreeError for a class that is registered already.

    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> hg.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda data, children: Pair(*children))
    >>> hg.tree.leaves(Pair(1, [2, 3]))
    [1, 2, 3]
    """
    register(nodetype, flatten_func, unflatten_func, keys=flatten_with_keys_func and _keys(flatten_with_keys_func))


def _keys(flatten_with_keys: Parts) -> Callable[[Any], Sequence[Any]]:
    return lambda x: [key for key, _ in flatten_with_keys(x)[0]]


def register_pytree_with_keys(nodetype: type, flatten_with_keys: Parts, unflatten_func: Whole, flatten_func: Parts | None = None) -> None:
    """Registers a class as a container that says how its children are reached.

    ``flatten_with_keys(x)`` gives pairs of a key and a child, and hashable data; ``flatten_func``, which may be faster, the children alone. Raises
    TreeError for a class that is registered already.

    >>> class Box:
    ...     def __init__(self, inside):
    ...         self.inside = inside
    >>> keyed = lambda b: ([(hg.tree.GetAttrKey("inside"), b.inside)], None)
    >>> hg.tree_util.register_pytree_with_keys(Box, keyed, lambda data, children: Box(*children))
    >>> hg.tree.leaves_with_path(Box(5))
    [((GetAttrKey(name='inside'),), 5)]
    """

    def children(x: Any) -> tuple[Any, Any]:
        pairs, data = flatten_with_keys(x)
        return [child for _, child in pairs], data

    register(nodetype, flatten_func or children, unflatten_func, keys=_keys(flatten_with_keys))


def register_pytree_node_class(cls: type) -> type:
    """Registers a class with the methods ``tree_flatten(self)`` and ``tree_unflatten(cls, data, children)``: a class decorator.

    Raises TreeError for a class that is registered already.

    >>> @hg.tree_util.register_pytree_node_class
    ... class Point:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    ...     def tree_flatten(self):
    ...         return (self.x, self.y), None
    ...     @classmethod
    ...     def tree_unflatten(cls, data, children):
    ...         return cls(*children)
    >>> hg.tree.map(lambda v: 2 * v, Point(1, 2)).y
    4
    """
    made: Any = cls
    return register(cls, lambda x: x.tree_flatten(), made.tree_unflatten)


def register_pytree_with_keys_class(cls: type) -> type:
    """Registers a class with the methods ``tree_flatten_with_keys(self)`` and ``tree_unflatten(cls, data, children)``: a class decorator.

    Its method ``tree_flatten``, if there is one, gives the children alone. Raises TreeError for a class that is registered already.

    >>> @hg.tree_util.register_pytree_with_keys_class
    ... class Named:
    ...     def __init__(self, value):
    ...         self.value = value
    ...     def tree_flatten_with_keys(self):
    ...         return [(hg.tree.GetAttrKey("value"), self.value)], None
    ...     @classmethod
    ...     def tree_unflatten(cls, data, children):
    ...         return cls(*children)
    >>> hg.tree.keystr(hg.tree.leaves_with_path(Named(3))[0][0])
    '.value'
    """
    made: Any = cls
    flat = (lambda x: x.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(cls, lambda x: x.tree_flatten_with_keys(), made.tree_unflatten, flat)
    return cls


def register_dataclass(
    nodetype: type, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] | None = None, drop_fields: Sequence[str] = ()
) -> type:
    """Registers a dataclass: ``data_fields`` are its children, ``meta_fields`` its data, ``drop_fields`` neither. A class decorator.

    Without fields those that :func:`static` declares are data, and all others children. Another class gives both; its objects are made of them as
    keywords. Raises TreeError for one that does not, for fields that are not those of a dataclass, and for a class that is registered already.

    >>> import dataclasses
    >>> @hg.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = hg.tree.static(default="layer")
    >>> hg.tree.leaves(Layer(0.5))
    [0.5]
    """
    if not dataclasses.is_dataclass(nodetype):
        if data_fields is None or meta_fields is None:
            raise TreeError(f"register_dataclass: {nodetype.__name__} is no dataclass: give data_fields and meta_fields")
        names = (*meta_fields, *data_fields)
        return register(
            nodetype,
            unflatten=lambda data, children: nodetype(**dict(zip(names, (*data, *children), strict=True))),
            data_fields=data_fields,
            meta_fields=meta_fields,
        )
    fields = [f for f in dataclasses.fields(nodetype) if f.init and f.name not in drop_fields]
    marked = [f.name for f in fields if f.metadata.get("static", False)]
    meta = list(meta_fields) if meta_fields is not None else [n for n in marked if n not in (data_fields or ())]
    data = list(data_fields) if data_fields is not None else [f.name for f in fields if f.name not in meta]
    if sorted([*data, *meta]) != sorted(f.name for f in fields):
        raise TreeError(f"register_dataclass: {nodetype.__name__} has the fields {[f.name for f in fields]}, not {[*data, *meta]}")
    return register(nodetype, data_fields=data, meta_fields=meta)


def static(**options: Any) -> Any:
    """A dataclass field that is no child but data: ``dataclasses.field``, with its arguments, for :func:`register_dataclass`.

    ``static`` in ``metadata`` says otherwise.

    >>> hg.tree.static(default=3).metadata["static"]
    True
    """
    return dataclasses.field(metadata={"static": True, **options.pop("metadata", {})}, **options)


def register_static(cls: type) -> type:
    """Registers a class whose objects have no children: they are part of the structure, and so hashable. A class decorator.

    >>> @hg.tree_util.register_static
    ... class Mode(str):
    ...     pass
    >>> hg.tree.leaves([Mode("train"), 1])
    [1]
    """
    return register(cls, lambda x: ((), x), lambda data, children: data, keys=lambda x: ())


class Partial(functools.partial):
    """A partial function whose arguments are children of a pytree, and its function data: so it can be an argument of jitted functions.

    The arguments of a ``functools.partial`` that it is made of belong to the function; those of another Partial are children.

    >>> add = hg.tree_util.Partial(hnp.add, hnp.asarray([1.0, 2.0]))
    >>> hg.jit(lambda f, x: f(x))(add, 10.0)
    Tensor([11., 12.], dtype=float32)
    """

    def __new__(cls, function: Callable[..., Any], /, *args: Any, **keywords: Any) -> Partial:
        plain = isinstance(function, functools.partial) and not isinstance(function, Partial)
        return super().__new__(cls, PlainPartial(function) if plain else function, *args, **keywords)


@dataclasses.dataclass(frozen=True)
class PlainPartial:
    """A ``functools.partial`` that no other merges with. It equals the one it calls."""

    function: Callable[..., Any]

    def __call__(self, /, *args: Any, **keywords: Any) -> Any:
        return self.function(*args, **keywords)

    def __eq__(self, other: object) -> bool:
        return self.function == (other.function if isinstance(other, PlainPartial) else other)

    def __hash__(self) -> int:
        return hash(self.function)


register(
    Partial,
    unflatten=lambda function, children: Partial(*function, *children[0], **children[1]),
    data_fields=("args", "keywords"),
    meta_fields=("func",),
)
