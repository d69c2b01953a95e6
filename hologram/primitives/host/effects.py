"""``effect``: a user's function that is called for what it does, once for each time that the program comes to it.

What is called for its effect must be neither removed, nor run twice, nor reordered, though graphs are pure. So effects are values: an effect takes a
*token* and gives the next one. Tokens order the effects of a graph by data dependence, are carries of loops and results of branches, and the last
one is a result of the program. No pass needs to know.

``effect(call)``, inputs ``(token, enabled, *args)``: where the scalar ``enabled`` does not hold, nothing is called, and the other results are zeros.
Results: the next token, and what the function gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.ir.graph import Body, Graph, bodies
from hologram.ir.node import Builder, Node
from hologram.primitives.control import project, with_bodies
from hologram.primitives.host.host_op import Type, define_host_op
from hologram.primitives.movement import broadcast

TOKEN: Type = ((), dtypes.uint8)


def _results(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> list[Type]:
    return list(attrs[0].types)


def _effect(token: np.ndarray, enabled: np.ndarray, *args: Any) -> Sequence[np.ndarray]:
    *arrays, call = args
    if enabled:
        return call.run([a.copy() for a in arrays])
    return [np.zeros(shape, dtype.np) for shape, dtype in call.types]


effect = define_host_op("effect", None, _results, _effect, "call", kinds="biufc")


def is_effect(node: Node) -> bool:
    """Whether ``node`` is an effect, or a loop or branch that has effects."""
    return node.op is effect or (node.op.kind == "control" and any(map(_has_effects, bodies(node))))


def _has_effects(body: Body) -> bool:
    return any(map(is_effect, body.graph.nodes()))


def is_token(x: Node) -> bool:
    """Whether ``x`` is a token that an effect, or a loop or branch with effects, gave, or the first of a stack of them."""
    while x.op.kind == "movement":
        x = x.inputs[0]
    if x.op is not project:
        return False
    node, index = x.inputs[0], x.attrs[0]
    if node.op is effect:
        return bool(index == 0)
    return node.op.kind == "control" and any(index < len(outs) and is_token(outs[index]) for outs in (b.graph.outputs for b in bodies(node)))


def is_call(node: Node) -> bool:
    """Whether ``node`` is an effect that gives more than a token."""
    return node.op is effect and len(node.attrs[0].types) > 1


def inner_nodes(graph: Graph) -> Iterator[Node]:
    """The nodes of ``graph``, and of the bodies in it."""
    for n in graph.nodes():
        yield n
        if n.op.kind == "control":
            for body in bodies(n):
                yield from inner_nodes(body.graph)


def without_effects(graph: Graph) -> Graph:
    """``graph`` as derivatives and rematerialization run it once more: tokens pass through. Effects that give values stay where these are read."""
    if not any(map(is_effect, graph.nodes())):
        return graph
    build, image = Builder(), {x: x for x in graph.inputs}
    for n in graph.nodes():
        if n in image:
            continue
        if n.op is project and n.inputs[0].op is effect and n.attrs[0] == 0:
            token = image[n.inputs[0].inputs[0]]
            image[n] = token if token.shape == n.shape else build(broadcast, (token,), (n.shape, ()))  # a stack's
        else:
            image[n] = build(n.op, tuple([image[x] for x in n.inputs]), silent_attrs(n))
    return graph.mapped(image)


def silent_attrs(node: Node) -> tuple[Any, ...]:
    """The attributes of ``node``, of whose bodies the effects are taken."""
    if node.op.kind != "control" or not is_effect(node):
        return node.attrs
    return with_bodies(node, [Body(without_effects(b.graph)) for b in bodies(node)])
