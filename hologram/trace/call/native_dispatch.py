"""Jitted calls without Python: what the native dispatcher is told of a specialisation."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from hologram.backends.device.storage import DeviceStorage
from hologram.backends.native import classes, dispatch
from hologram.backends.native.dispatch import (
    Argument,
    ArrayLeaf,
    Attributes,
    Dispatch,
    Named,
    Output,
    Parts,
    Passed,
    RemoteLeaf,
    Same,
    ScalarLeaf,
    Spec,
    TensorLeaf,
    ValueLeaf,
)
from hologram.ir.aval import aval
from hologram.trace import lazy, tree
from hologram.trace.call.signature import Call, LeafType
from hologram.trace.tensor import Tensor
from hologram.trace.tree import Treedef

if TYPE_CHECKING:
    from hologram.trace.call.specialisation import Specialisation

classes.register_tensor_class(Tensor)
block_until_ready = dispatch.block_until_ready(lazy.block_until_ready)


class _NotNative(Exception):
    """Native code has no such result."""


def add(dispatcher: Dispatch, call: Call, made: Specialisation, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Lets native code serve the calls that are like ``call``, made with these arguments, whose Tensors are realised, where it can.

    A program whose extents are symbolic is told apart by its sizes: what native code knows of it is one specialisation for each.
    """
    try:
        spec = _on_device(call, made) if made.executable.remote else _specification(call, made)
    except _NotNative:
        return
    dispatcher.add(spec, args, options)


def _on_device(call: Call, made: Specialisation) -> Spec:
    executable: Any = made.executable
    types, args, kwargs = _patterns(call)
    results = made.out_tree.leaves
    return Spec(
        args=args,
        kwargs=kwargs,
        result=_pattern(made.out_tree, iter(range(results)), is_result=True),
        outputs=(),
        donated=[i for i in made.donated if type(call.leaves[i]) is Tensor],
        run=made.tensors,
        results=results,
        replays=executable.replays([x._storage if type(x) is Tensor else None for x in call.leaves]),
    )


def _patterns(call: Call, passed: Collection[int] = ()) -> tuple[list[LeafType], list[Any], dict[str, Any]]:
    """The leaves' types, without symbols, and patterns of the arguments: positional ones, and keywords as the caller wrote them.

    Of ``passed`` leaves, which are results as they are, the memory belongs to nothing else.
    """
    types = call.concrete().types if call.sizes else call.types
    leaves = iter([_leaf(x, t, i in passed) for i, (x, t) in enumerate(zip(call.leaves, types, strict=True))])
    arguments, keywords = call.treedef.children
    positional = [_pattern(child, leaves) for child in arguments.children]
    options = {name: _pattern(child, leaves) for name, child in zip(keywords.data, keywords.children, strict=True)}
    for place, value in call.statics.items():  # positions ascend
        if isinstance(place, int):
            positional.insert(place, Same(value))
        else:
            options[place] = Same(value)
    return types, positional, {name: options[name] for name in call.keywords}


def _specification(call: Call, made: Specialisation) -> Spec:
    executable: Any = made.executable
    passed = {index for kind, index in executable.outputs if kind == "input"}
    types, args, kwargs = _patterns(call, passed)
    computed, symbols, arena_bytes = executable.computed, (), executable.arena_bytes
    if computed is None:
        computed, symbols, arena_bytes = executable.at_shapes([t.shape for t in types])
    donated = {i for i in made.donated if type(call.leaves[i]) is Tensor}
    donors = _matched([[d for d in possible if d in donated] for possible in executable.donors])
    outputs: list[Output | Argument] = [Output(a, donor) for a, donor in zip(computed, donors, strict=True)]
    results: list[Any] = []
    for kind, index in executable.outputs:
        if kind == "computed":
            results.append(index)
        elif kind == "input" and type(call.leaves[index]) is Tensor and index not in donated:
            results.append(Passed(index))
        else:  # borrowed memory must be copied, and a constant's Tensor may be assigned to or donated
            raise _NotNative
    return Spec(
        args=args,
        kwargs=kwargs,
        result=_pattern(made.out_tree, iter(results), is_result=True),
        outputs=outputs,
        address=executable.address,
        keep=executable,
        constants=executable.constants,
        symbols=symbols,
        donated=sorted(donated),
        arena_bytes=arena_bytes,
        long=executable.is_long_at([t.shape for t in types]),
        parallel=executable.parallel,
    )


def _matched(possible: list[list[int]]) -> list[int | None]:
    """One donor for as many results as can have one, from those possible for each: a maximum matching, by augmenting paths."""
    owner: dict[int, int] = {}

    def assign(result: int, tried: set[int]) -> bool:
        for d in possible[result]:
            if d not in tried:
                tried.add(d)
                if d not in owner or assign(owner[d], tried):
                    owner[d] = result
                    return True
        return False

    for result in range(len(possible)):
        assign(result, set())
    found = {result: d for d, result in owner.items()}
    return [found.get(result) for result in range(len(possible))]


def _leaf(x: Any, of: LeafType, is_passed: bool) -> Any:
    if type(x) is Tensor and type(x._storage) is DeviceStorage:
        return RemoteLeaf(x._storage.aval, x._storage.memory.pool)
    if type(x) is Tensor:
        return TensorLeaf(aval(of.dtype, of.shape), is_passed)  # type: ignore[arg-type]
    if isinstance(x, np.ndarray):
        return ArrayLeaf(aval(of.dtype, of.shape))  # type: ignore[arg-type]
    return ValueLeaf(x) if isinstance(x, np.generic) else ScalarLeaf(type(x), of.dtype)


def _pattern(treedef: Treedef, leaves: Iterator[Any], is_result: bool = False) -> Any:
    """The tree of that structure with these leaves, of containers that native code walks."""
    kind, data = treedef.kind, treedef.data
    if kind is None:
        return next(leaves)
    children = [_pattern(c, leaves, is_result) for c in treedef.children]
    if kind is tuple:
        return tuple(children)
    if kind is list:
        return children
    if kind is type(None):
        return None
    if kind is dict and all(type(k) is str for k in data):
        return dict(zip(data, children, strict=True))
    entry = tree.entry_of(kind)
    if entry is None:
        return _unregistered(kind, data, children)
    if entry.attributes is not None and (entry.assigns or not is_result):
        names, constants = entry.attributes
        return Attributes(kind, names, children, dict(zip(constants, data, strict=True)))
    return Parts(kind, data, children, entry.flatten, entry.unflatten)


def _unregistered(kind: Any, data: Any, children: list[Any]) -> Any:
    if kind is dict:
        return Parts(dict, data, children, _of_sorted_keys, lambda keys, values: dict(zip(keys, values, strict=True)))
    if kind is OrderedDict:
        join = lambda keys, values: OrderedDict(zip(keys, values, strict=True))  # noqa: E731
        return Parts(OrderedDict, data, children, lambda x: (x.values(), tuple(x)), join)
    if kind.__iter__ is tuple.__iter__:
        return Named(kind, children)
    return Parts(kind, None, children, lambda x: (x, None), lambda _, values: kind(*values))


def _of_sorted_keys(x: dict[Any, Any]) -> tuple[Any, Any]:
    keys = tuple(sorted(x))
    return [x[k] for k in keys], keys
