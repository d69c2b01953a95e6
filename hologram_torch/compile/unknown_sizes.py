"""Graphs in which a size depends on values, cut after the nodes that tell such sizes (``nonzero``, ``item``, ``unique``).

Before the cut such a size is unknown. After it the size is that of an argument, and an ordinary symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx
from torch._ops import OpOverload

from hologram_torch.compile.fx_types import symbols_of
from hologram_torch.compile.symbolic_sizes import size_sources

Call = Callable[[list[Any]], Any]


class Cut(NamedTuple):
    """Two graphs in the place of one. ``head`` takes the arguments and gives a list of values. ``tail`` takes these, and then the arguments whose
    numbers are in ``passed``."""

    head: fx.GraphModule
    tail: fx.GraphModule
    passed: list[int]

    def joined(self, head: Call, tail: Call) -> Call:
        """The graph's function, from those of its two parts."""
        passed = self.passed

        def call(args: list[Any]) -> Any:
            given = [args[i] for i in passed]
            return tail([*head(args), *given])

        call._boxed_call = True  # type: ignore[attr-defined]
        return call


def cut(module: fx.GraphModule) -> Cut | None:
    """The graph cut after the first nodes that tell sizes; None where no size depends on values."""
    late = _late(module.graph)
    return _split(module, late) if late else None


def _late(graph: fx.Graph) -> set[fx.Node]:
    """The nodes that are computed after the cut: those that depend on a size that is found, assignments, and draws of random numbers after these."""
    known = set(size_sources(graph.find_nodes(op="placeholder")))
    telling: set[fx.Node] = set()
    late: set[fx.Node] = set()
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        if any(x in late or x in telling for x in node.all_input_nodes) or (late and _is_seeded(node)):
            late.add(node)
        elif not _sizes_in(node.meta.get("val")) <= known:
            telling.add(node)
    if not telling:
        return set()
    parts = {n for n in late if all(x in telling for x in n.all_input_nodes) and n.target.__name__ == "getitem"}  # type: ignore[union-attr]
    assignments = {n for n in graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default)}
    return (late - parts) | assignments | {n for n in graph.nodes if n.op == "output"}


def _is_seeded(node: fx.Node) -> bool:
    return isinstance(node.target, OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags


def _sizes_in(val: Any) -> set[Any]:
    """The symbols that a value's sizes depend on."""
    if isinstance(val, (list, tuple)):
        return set().union(*map(_sizes_in, val))
    if isinstance(val, torch.Tensor):
        return set().union(*[symbols_of(n) for n in (*val.shape, *(val.stride() if val.layout is torch.strided else ()))])
    return set(symbols_of(val))


def _split(module: fx.GraphModule, late: set[fx.Node]) -> Cut:
    placeholders = list(module.graph.find_nodes(op="placeholder"))
    read = {x for n in module.graph.nodes if n in late for x in n.all_input_nodes if x not in late}
    crossing = [n for n in module.graph.nodes if n in read and n.op == "call_function"]
    passed = [i for i, p in enumerate(placeholders) if p in read]
    head, tail = fx.Graph(), fx.Graph()
    in_head: dict[fx.Node, fx.Node] = {}
    for n in module.graph.nodes:
        if n not in late:
            in_head[n] = head.node_copy(n, in_head.__getitem__)
    head.output([in_head[n] for n in crossing])
    in_tail = {n: _argument(tail, n) for n in [*crossing, *[placeholders[i] for i in passed]]}
    for n in module.graph.nodes:
        if n in late or (n in read and n.op == "get_attr"):
            in_tail[n] = tail.node_copy(n, in_tail.__getitem__)
    return Cut(fx.GraphModule(module, head), fx.GraphModule(module, tail), passed)


def _argument(graph: fx.Graph, of: fx.Node) -> fx.Node:
    made = graph.placeholder(of.name)
    made.meta.update(of.meta)
    return made


def static_arguments(of: Cut, static: Sequence[int]) -> list[int]:
    """Which arguments of the tail are among the ``static`` ones of the whole."""
    first = len(list(of.tail.graph.find_nodes(op="placeholder"))) - len(of.passed)
    return [first + i for i, p in enumerate(of.passed) if p in static]
