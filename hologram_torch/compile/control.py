"""Control flow: ``torch.cond``, ``while_loop`` and ``scan`` as Hologram's, where Hologram computes everything inside of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

import hologram as hg
from hologram_torch.aten.shapes.indexing import ranges
from hologram_torch.compile.fx_types import Sizes, typed

Evaluate = Callable[[fx.Node, Callable[[fx.Node], Any]], Any]


class Refused(Exception):
    """The reason why Hologram does not compute a node."""


class Bodies:
    """The subgraphs of branches and loops as functions of Tensors.

    ``types`` receives the types of their values; ``evaluate(node, value_of)`` records one of their nodes in the open trace.
    """

    def __init__(self, types: dict[fx.Node, Any], sizes: Sizes, evaluate: Evaluate) -> None:
        self.types, self.sizes, self.evaluate = types, sizes, evaluate

    def of(self, node: fx.Node) -> Callable[..., tuple[Any, ...]]:
        """The subgraph that a ``get_attr`` node names, as a function."""
        graph = getattr(node.graph.owning_module, str(node.target)).graph
        self.types.update({n: typed(n.meta.get("val"), self.sizes) for n in graph.nodes if n.op != "output"})
        (output,) = graph.find_nodes(op="output")
        results = output.args[0] if isinstance(output.args[0], (list, tuple)) else output.args

        def run(*operands: Any) -> tuple[Any, ...]:
            values: dict[fx.Node, Any] = dict(zip(graph.find_nodes(op="placeholder"), operands, strict=True))
            for n in graph.find_nodes(op="get_attr"):
                if not isinstance(getattr(graph.owning_module, str(n.target)), fx.GraphModule):
                    raise Refused(f"{n.name} inside of it is a constant")
            for n in graph.nodes:
                if n.op == "call_function":
                    values[n] = self._value(n, values)
            return tuple(fx.map_arg(x, values.__getitem__) for x in results)

        return run

    def _value(self, node: fx.Node, values: Mapping[fx.Node, Any]) -> Any:
        if isinstance(self.types[node], (bool, int, float)):
            return self.types[node]
        self._require_unchecked(node, values)
        try:
            return self.evaluate(node, values.__getitem__)
        except Refused as e:
            raise Refused(f"{node.target} inside of it: {e}") from None

    @staticmethod
    def _require_unchecked(node: fx.Node, values: Mapping[fx.Node, Any]) -> None:
        if isinstance(node.target, OpOverload) and ranges(node.target.name(), fx.map_arg(node.args, lambda n: values.get(n, n))):
            raise Refused(f"{node.target} inside of it has indices, which may be out of range")


def _cond(bodies: Bodies, value: Callable[[Any], Any], pred: Any, true_graph: fx.Node, false_graph: fx.Node, operands: Any) -> tuple[Any, ...]:
    return hg.cond(value(pred), bodies.of(true_graph), bodies.of(false_graph), *value(operands))


def _while_loop(
    bodies: Bodies, value: Callable[[Any], Any], cond_graph: fx.Node, body_graph: fx.Node, carried: Any, additional: Any
) -> tuple[Any, ...]:
    keep_on, step, others = bodies.of(cond_graph), bodies.of(body_graph), value(additional)
    return hg.while_loop(lambda carry: keep_on(*carry, *others)[0], lambda carry: step(*carry, *others), tuple(value(carried)))


def _scan(bodies: Bodies, value: Callable[[Any], Any], graph: fx.Node, init: Any, xs: Any, additional: Any = ()) -> tuple[Any, ...]:
    combine, others, count = bodies.of(graph), value(additional), len(init)

    def step(carry: tuple[Any, ...], parts: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        found = combine(*carry, *parts, *others)
        return found[:count], found[count:]

    last, stacked = hg.scan(step, tuple(value(init)), tuple(value(xs)))
    return (*last, *stacked)


higher_order = torch.ops.higher_order
FORMS: dict[Any, Callable[..., tuple[Any, ...]]] = {
    higher_order.cond: _cond,
    higher_order.while_loop: _while_loop,
    higher_order.scan: _scan,
}
