"""Replay of bodies into a trace, and control nodes made of bodies under construction: helpers of transform rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import hologram.primitives.control as ops
from hologram.control.tracing import Recorded, close_bodies
from hologram.errors import DifferentiationError, TransformError
from hologram.ir.graph import Graph
from hologram.ir.node import Node
from hologram.ir.op import Op
from hologram.ir.traversal import topological
from hologram.primitives.host.effects import inner_nodes, is_call, without_effects
from hologram.support.user_lines import located
from hologram.trace.recorder import record


def replayed(graph: Graph, arguments: Sequence[Node], outputs: Sequence[Node] | None = None) -> list[Node]:
    """``outputs`` of ``graph``, by default all, recorded here on ``arguments``."""
    wanted = graph.outputs if outputs is None else outputs
    made = dict(zip(graph.inputs, arguments, strict=True))
    for n in topological(wanted, stop=made.__contains__):
        if n not in made:
            made[n] = record(n.op, tuple([made[x] for x in n.inputs]), n.attrs)
    return [made[x] for x in wanted]


def run_again(what: str, graph: Graph) -> Graph:
    """``graph`` as its derivative computes it once more, without effects. Raises DifferentiationError where it reads what an effect gives."""
    silent = without_effects(graph)
    if any(map(is_call, inner_nodes(silent))):
        advice = "call it around the loop or branch, or differentiate inside"
        raise located(DifferentiationError(f"{what}: it reads what io_callback gives, and the derivative would call that once more: {advice}"))
    return silent


def emitted(op: Op, fixed: Sequence[Node], rest: Iterable[Node], made: Sequence[Recorded], attrs: Any, first: Sequence[Node] = ()) -> Node:
    """A control node of bodies just recorded: ``fixed`` constants and the other inputs, in the order of the bodies' arguments, after ``first``.

    ``attrs(bodies, constants)`` gives the attributes: what the bodies turn out to read from around them comes before ``fixed``.
    """
    if any(t.trace.last_token is not None for t in made):
        text = "what is called for its effect in a derivative rule has no place in the derivative of a loop or branch"
        raise located(TransformError(f"{op.name}: {text}"))
    outer, closed_bodies = close_bodies(made)
    return record(op, (*first, *outer, *fixed, *rest), attrs(closed_bodies, len(outer) + len(fixed)))


def closed(made: Recorded) -> Graph:
    """The graph of a body just recorded, which reads nothing from around it."""
    outer, (body,) = close_bodies([made])
    assert not outer
    return body.graph


def result(node: Node, index: int, like: Any) -> Node:
    """Result ``index`` of a control node, of the shape and type of ``like``."""
    return record(ops.project, (node,), (index, like.shape, like.dtype.name))


def depends(graph: Graph, flags: Sequence[bool]) -> list[bool]:
    """Which outputs of ``graph`` depend on the inputs whose flag is True."""
    reached = {x for x, flag in zip(graph.inputs, flags, strict=True) if flag}
    for n in topological(graph.outputs):
        if any(x in reached for x in n.inputs):
            reached.add(n)
    return [x in reached for x in graph.outputs]
