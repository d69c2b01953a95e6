"""Control flow: ``torch.cond``, ``while_loop`` and ``scan`` as Hologram's, where Hologram computes everything inside of them.

Whether an index in a branch or in a step of a loop is out of range is a result of the branch, and carried by the loop, which ends there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import fx
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import unset_fake_temporarily

import hologram as hg
from hologram import numpy as hnp
from hologram.trace.tensor import Tensor
from hologram_torch.aten.shapes.indexing import has_indices, out_of_range
from hologram_torch.bridge.interop import to_numpy
from hologram_torch.compile.fx_types import Sizes, typed

Evaluate = Callable[[fx.Node, Callable[[fx.Node], Any]], Any]
T = TypeVar("T")


class Refused(Exception):
    """The reason why Hologram does not compute a node."""


def indices_out_of_range(node: fx.Node, values: Mapping[fx.Node, Any]) -> list[Tensor]:
    """For each index of a node, whether one of its elements is out of range."""
    if not isinstance(node.target, OpOverload):
        return []
    return out_of_range(node.target.name(), fx.map_arg(node.args, lambda n: values.get(n, n)))


class Bodies:
    """The subgraphs of branches and loops as functions of Tensors.

    ``types`` receives the types of their values; ``evaluate(node, value_of)`` records one of their nodes in the open trace.
    """

    def __init__(self, types: dict[fx.Node, Any], sizes: Sizes, evaluate: Evaluate) -> None:
        self.types, self.sizes, self.evaluate = types, sizes, evaluate
        self._out_of_range: list[Tensor] = []

    def checked(self, call: Callable[[], T]) -> tuple[T, list[Tensor]]:
        """What ``call`` returns, and whether indices were out of range in what it recorded."""
        before, self._out_of_range = self._out_of_range, []
        try:
            return call(), self._out_of_range
        finally:
            self._out_of_range = before

    def note(self, bad: Tensor) -> None:
        """An index may be out of range in what is being recorded."""
        self._out_of_range.append(bad)

    def has_indices(self, node: fx.Node) -> bool:
        """Whether the subgraph that a ``get_attr`` node names has indices, or one inside of it has."""
        graph = _graph(node)
        ops = [n.target for n in graph.nodes if n.op == "call_function" and isinstance(n.target, OpOverload)]
        inner = [n for n in graph.find_nodes(op="get_attr") if _is_graph(n)]
        return any(has_indices(op.name()) for op in ops) or any(self.has_indices(n) for n in inner)

    def of(self, node: fx.Node) -> Callable[..., tuple[Any, ...]]:
        """The subgraph that a ``get_attr`` node names, as a function."""
        graph = _graph(node)
        self.types.update({n: typed(n.meta.get("val"), self.sizes) for n in graph.nodes if n.op != "output"})
        (output,) = graph.find_nodes(op="output")
        results = output.args[0] if isinstance(output.args[0], (list, tuple)) else output.args

        def run(*operands: Any) -> tuple[Any, ...]:
            values: dict[fx.Node, Any] = dict(zip(graph.find_nodes(op="placeholder"), operands, strict=True))
            for n in graph.nodes:
                if n.op == "get_attr" and not _is_graph(n):
                    with unset_fake_temporarily():
                        values[n] = hg.tensor(to_numpy(getattr(graph.owning_module, str(n.target))))
                elif n.op == "call_function":
                    values[n] = self._value(n, values)
            return tuple(fx.map_arg(x, values.__getitem__) for x in results)

        return run

    def flagged(self, node: fx.Node) -> Callable[..., tuple[Any, ...]]:
        """As :meth:`of`, with a last result: whether an index was out of range."""
        run = self.of(node)

        def run_checked(*operands: Any) -> tuple[Any, ...]:
            results, bad = self.checked(lambda: run(*operands))
            return (*results, functools.reduce(hnp.logical_or, bad, hnp.asarray(False)))

        return run_checked

    def _value(self, node: fx.Node, values: Mapping[fx.Node, Any]) -> Any:
        if isinstance(self.types[node], (bool, int, float)):
            return self.types[node]
        try:
            made = self.evaluate(node, values.__getitem__)
        except Refused as e:
            raise Refused(f"{node.target} inside of it: {e}") from None
        self._out_of_range += indices_out_of_range(node, values)
        return made


def _graph(node: fx.Node) -> fx.Graph:
    found: fx.Graph = getattr(node.graph.owning_module, str(node.target)).graph
    return found


def _is_graph(node: fx.Node) -> bool:
    return isinstance(getattr(node.graph.owning_module, str(node.target)), fx.GraphModule)


def _cond(bodies: Bodies, value: Callable[[Any], Any], pred: Any, true_graph: fx.Node, false_graph: fx.Node, operands: Any) -> tuple[Any, ...]:
    if not (bodies.has_indices(true_graph) or bodies.has_indices(false_graph)):
        return hg.cond(value(pred), bodies.of(true_graph), bodies.of(false_graph), *value(operands))
    *found, bad = hg.cond(value(pred), bodies.flagged(true_graph), bodies.flagged(false_graph), *value(operands))
    bodies.note(bad)
    return tuple(found)


def _while_loop(
    bodies: Bodies, value: Callable[[Any], Any], cond_graph: fx.Node, body_graph: fx.Node, carried: Any, additional: Any
) -> tuple[Any, ...]:
    others = value(additional)
    if not (bodies.has_indices(cond_graph) or bodies.has_indices(body_graph)):
        keep_on, step = bodies.of(cond_graph), bodies.of(body_graph)
        return hg.while_loop(lambda carry: keep_on(*carry, *others)[0], lambda carry: step(*carry, *others), tuple(value(carried)))
    return _checked_while_loop(bodies, bodies.flagged(cond_graph), bodies.flagged(body_graph), tuple(value(carried)), others)


def _checked_while_loop(
    bodies: Bodies, keep_on: Callable[..., tuple[Any, ...]], step: Callable[..., tuple[Any, ...]], carried: tuple[Any, ...], others: Any
) -> tuple[Any, ...]:
    """A loop that ends when an index is out of range."""

    def goes_on(carry: tuple[Any, ...]) -> Any:
        *given, bad = carry
        wanted, beyond = keep_on(*given, *others)
        return hnp.logical_and(wanted, hnp.logical_not(hnp.logical_or(bad, beyond)))

    def stepped(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        *given, bad = carry
        *found, beyond = step(*given, *others)
        return (*found, hnp.logical_or(bad, beyond))

    *last, bad = hg.while_loop(goes_on, stepped, (*carried, hnp.asarray(False)))
    bodies.note(hnp.logical_or(bad, keep_on(*last, *others)[1]))
    return tuple(last)


def _scan(bodies: Bodies, value: Callable[[Any], Any], graph: fx.Node, init: Any, xs: Any, additional: Any = ()) -> tuple[Any, ...]:
    others, count, is_checked = value(additional), len(init), bodies.has_indices(graph)
    combine = bodies.flagged(graph) if is_checked else bodies.of(graph)

    def step(carry: tuple[Any, ...], parts: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        found = combine(*carry[:count], *parts, *others)
        if not is_checked:
            return found[:count], found[count:]
        return (*found[:count], hnp.logical_or(carry[count], found[-1])), found[count:-1]

    start = (*value(init), hnp.asarray(False)) if is_checked else tuple(value(init))
    last, stacked = hg.scan(step, start, tuple(value(xs)))
    if is_checked:
        bodies.note(last[count])
    return (*last[:count], *stacked)


higher_order = torch.ops.higher_order
FORMS: dict[Any, Callable[..., tuple[Any, ...]]] = {
    higher_order.cond: _cond,
    higher_order.while_loop: _while_loop,
    higher_order.scan: _scan,
}
