"""Jitted calls without Python: what the native dispatcher is told of a specialisation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from hologram.backends.device.storage import DeviceStorage
from hologram.backends.native import dispatch
from hologram.backends.native.dispatch import Argument, ArrayLeaf, Dispatch, Output, RemoteLeaf, Same, ScalarLeaf, Spec, TensorLeaf, ValueLeaf
from hologram.ir.aval import aval
from hologram.trace import lazy
from hologram.trace.call.signature import Call, LeafType
from hologram.trace.tensor import Tensor
from hologram.trace.tree import Treedef

if TYPE_CHECKING:
    from hologram.trace.call.specialisation import Specialisation

dispatch.register_tensor_class(Tensor)
block_until_ready = dispatch.block_until_ready(lazy.block_until_ready)


class _NotNative(Exception):
    """Native code has no such container."""


def add(dispatcher: Dispatch, call: Call, made: Specialisation, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Lets native code serve the calls that are like ``call``, made with these arguments, whose Tensors are realised, where it can: not those with
    registered classes.

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
        result=_pattern(made.out_tree, iter(range(results))),
        outputs=(),
        donated=[i for i in made.donated if type(call.leaves[i]) is Tensor],
        run=made.tensors,
        results=results,
        replays=executable.replays([x._storage if type(x) is Tensor else None for x in call.leaves]),
    )


def _patterns(call: Call) -> tuple[list[LeafType], list[Any], dict[str, Any]]:
    """The leaves' types, without symbols, and patterns of the arguments: positional ones, and keywords as the caller wrote them."""
    types = call.concrete().types if call.sizes else call.types
    leaves = iter([_leaf(x, t) for x, t in zip(call.leaves, types, strict=True)])
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
    types, args, kwargs = _patterns(call)
    computed, symbols, arena_bytes = executable.computed, (), executable.arena_bytes
    if computed is None:
        computed, symbols, arena_bytes = executable.at_shapes([t.shape for t in types])
    donated = {i for i in made.donated if type(call.leaves[i]) is Tensor}
    donors = _matched([[d for d in possible if d in donated] for possible in executable.donors])
    outputs: list[Output | Argument] = [Output(a, donor) for a, donor in zip(computed, donors, strict=True)]
    results: list[Any] = []
    for kind, index in executable.outputs:
        if kind != "computed":  # returned as it is: borrowed memory must be copied, and a constant's Tensor may be assigned to or donated
            raise _NotNative
        results.append(index)
    return Spec(
        args=args,
        kwargs=kwargs,
        result=_pattern(made.out_tree, iter(results)),
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


def _leaf(x: Any, of: LeafType) -> Any:
    if type(x) is Tensor and type(x._storage) is DeviceStorage:
        return RemoteLeaf(x._storage.aval, x._storage.memory.pool)
    if type(x) is Tensor:
        return TensorLeaf(aval(of.dtype, of.shape))  # type: ignore[arg-type]
    if isinstance(x, np.ndarray):
        return ArrayLeaf(aval(of.dtype, of.shape))  # type: ignore[arg-type]
    return ValueLeaf(x) if isinstance(x, np.generic) else ScalarLeaf(type(x), of.dtype)


def _pattern(treedef: Treedef, leaves: Iterator[Any]) -> Any:
    """The tree of that structure with these leaves, of containers that native code walks."""
    if treedef.kind is None:
        return next(leaves)
    children = [_pattern(c, leaves) for c in treedef.children]
    if treedef.kind is tuple:
        return tuple(children)
    if treedef.kind is list:
        return children
    if treedef.kind is type(None):
        return None
    if treedef.kind is dict:
        return dict(zip(treedef.data, children, strict=True))
    raise _NotNative
