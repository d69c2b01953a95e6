"""Templates: what a function of the table records is remembered, and recorded again without calling the function.

The table's functions do torch's type promotion and broadcasting in Python on each call. What they record depends only on the shapes and types of
their Tensors and on their other arguments. So when these are met for the second time, the function is traced, and from then on the nodes of the trace
are made directly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import hologram as hg
from hologram import numpy as hnp
from hologram.errors import TracedValueError
from hologram.ir.leaves import const, leaf
from hologram.ir.node import Node
from hologram.ir.op import MULTI_RESULT
from hologram.ir.traversal import topological
from hologram.primitives.markers import place
from hologram.support.lru_cache import Recent
from hologram.trace import recorder
from hologram.trace.apply import node_of, wrap
from hologram.trace.recorder import Trace
from hologram_torch.eager.recording import pending

MAX_TEMPLATES = 4096  # sets of shapes, types and arguments that are remembered
_SEEN, _NEVER = object(), object()
_templates = Recent(MAX_TEMPLATES)


def strong(x: hg.Tensor) -> hg.Tensor:
    """``x`` with a type of its own, where it had the weak type of Python numbers."""
    return hnp.astype(x, x.dtype) if x._weak else x


class _Template:
    """The nodes that a function records, in order.

    ``steps``: (op, positions of the inputs, attributes, shape, type) of each node; positions count the operands' nodes, ``constants``, and the steps.
    ``results``: positions of what is returned, None for absent ones; ``single``: whether that is one Tensor, else a tuple. ``expected``: positions of
    conditions, and their errors, for :func:`pending.expect`.
    """

    __slots__ = ("constants", "steps", "results", "single", "expected")

    def __init__(self, inputs: list[Node], found: Any, conditions: list[tuple[hg.Tensor, Exception]]) -> None:
        self.single = type(found) is hg.Tensor
        wanted = [found] if self.single else list(found)
        outputs = [None if x is None else node_of(strong(x)) for x in [*wanted, *[condition for condition, _ in conditions]]]
        nodes = [n for n in topological([x for x in outputs if x is not None]) if n not in inputs]
        if any(n.op is leaf or n.op is place or n.op.kind in MULTI_RESULT for n in nodes):
            raise TracedValueError("what depends on other values, or is computed together, is not made node by node")
        constants = [n for n in nodes if n.op is const]
        positions = {n: i for i, n in enumerate([*inputs, *constants])}
        count = len(positions)
        self.constants = [recorder.pending(const, (), n.attrs, n.shape, n.dtype) for n in constants]
        self.steps = []
        for n in nodes:
            if n.op.kind == "mark":  # for Hologram's own derivatives: torch has others
                positions[n] = positions[n.inputs[0]]
            elif n not in positions:
                positions[n] = count
                count += 1
                self.steps.append((n.op, [positions[x] for x in n.inputs], n.attrs, n.shape, n.dtype))
        found_at = [None if x is None else positions[x] for x in outputs]
        self.results, checks = found_at[: len(wanted)], found_at[len(wanted) :]
        self.expected = [(at, error) for at, (_, error) in zip(checks, conditions, strict=True)]

    def record(self, nodes: list[Any]) -> Any:
        nodes += self.constants
        for op, inputs, attrs, shape, dtype in self.steps:
            nodes.append(recorder.pending(op, tuple([nodes[i] for i in inputs]), attrs, shape, dtype))
        for at, error in self.expected:
            pending.expect(wrap(nodes[at]), error)  # type: ignore[index]
        if self.single:
            return wrap(nodes[self.results[0]])  # type: ignore[index]
        return tuple([None if i is None else wrap(nodes[i]) for i in self.results])


def _key(x: Any, tensors: list[hg.Tensor]) -> Any:
    """The part of the cache key that ``x`` makes up; its Tensors are added to ``tensors``."""
    kind = type(x)
    if kind is hg.Tensor:
        tensors.append(x)
        return x._aval()
    if kind is list:
        return tuple([_key(e, tensors) for e in x])
    if kind is float and (x == 0 or x != x):
        return repr(x)  # zeros have signs, and a NaN is not itself
    return kind, x


def _with(x: Any, tensors: list[hg.Tensor]) -> Any:
    """``x`` with each Tensor in it replaced by the next of ``tensors``."""
    if type(x) is hg.Tensor:
        return tensors.pop(0)
    return [_with(e, tensors) for e in x] if type(x) is list else x


def _made(function: Callable[..., Any], args: list[Any], options: dict[str, Any], tensors: list[hg.Tensor]) -> Any:
    with Trace(getattr(function, "__name__", "function")) as trace:
        inputs = [trace.input(*x._aval()) for x in tensors]
        stand_ins = [wrap(n) for n in inputs]
        pending.collected().clear()
        try:
            found = function(*[_with(x, stand_ins) for x in args], **{name: _with(x, stand_ins) for name, x in options.items()})
            return _Template(inputs, found, pending.collected())
        except TracedValueError:
            return _NEVER


def apply(function: Callable[..., Any], args: list[Any], options: dict[str, Any]) -> Any:
    """Calls ``function(*args, **options)``, a function of the table, by a template if there is one.

    Arguments are Tensors, lists, and values that can be hashed.
    """
    tensors: list[hg.Tensor] = []
    key: Any = function, torch.get_default_dtype(), *[_key(x, tensors) for x in args]
    if options:
        key += tuple([(name, _key(x, tensors)) for name, x in options.items()])
    if recorder.current() is not None:
        return function(*args, **options)
    pending.begin(key)
    found = _templates.get(key)
    if found is None or found is _NEVER:
        if found is None:
            _templates.put(key, _SEEN)
        return function(*args, **options)
    if found is _SEEN:
        found = _made(function, args, options, tensors)
        _templates.put(key, found)
        return apply(function, args, options)
    return found.record([node_of(x) for x in tensors])
