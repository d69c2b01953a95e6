"""Partitioning of a graph that runs on several devices: the device of each node, and a graph of its own for each part.

Where a user says so (:func:`hologram.device_put` while tracing), a node is computed on the device of the values that it reads; see
:func:`by_hand`. :mod:`hologram.graph.placement.min_cut` decides where nobody says anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from hologram.errors import DeviceError
from hologram.ir.devices import CPU
from hologram.ir.graph import Graph, bodies
from hologram.ir.leaves import input_, leaf
from hologram.ir.node import Builder, Node
from hologram.primitives.host.effects import is_token
from hologram.primitives.markers import place

ANYWHERE = ""  # the device of a ``place`` that binds nothing


class Part(NamedTuple):
    """A graph for one device. ``inputs[i]`` is the node of the whole graph that its input i stands for, ``outputs[i]`` that of its output i."""

    device: str
    graph: Graph
    inputs: list[Node]
    outputs: list[Node]


def is_placed(nodes: Iterable[Node]) -> bool:
    """Whether one of ``nodes``, or of those in the bodies of loops and branches among them, says where something is to be computed."""
    return any(n.op is place or (n.op.kind == "control" and any(is_placed(b.graph.nodes()) for b in bodies(n))) for n in nodes)


# --- where the user says so ------------------------------------------------------------------------------------------


def by_hand(graph: Graph, default: str) -> dict[Node, str]:
    """The device of every node that is computed. A value that was placed binds what is computed from it to its device; what nothing binds is computed
    on ``default``, the program's own device.

    Tokens of effects bind nothing: an effect on one device may follow one on another.

    A loop or branch is computed on one device, that of its arguments and of every placement inside of it. Raises DeviceError where values bound to
    two devices meet.
    """
    where: dict[Node, str] = {}
    bound: dict[Node, str] = {}
    for n in graph.nodes():
        if n.op.kind == "leaf":
            continue
        named = _named(graph, n, bound)
        if named and not is_token(n):
            bound[n] = named
        around = {where[x] for x in n.inputs if x in where}
        where[n] = named or (around.pop() if len(around) == 1 else default)
    return where


def _named(graph: Graph, n: Node, bound: Mapping[Node, str]) -> str:
    """The device that a node is bound to; "" for none."""
    if n.op is place:
        return n.attrs[0]
    found = {bound[x] for x in n.inputs if x in bound} | _inside(n)
    if len(found) > 1:
        both = " and on ".join(sorted(found))
        raise DeviceError(f"{n.op.name} has values on {both}: hg.device_put brings one to the other's device{_line(graph, n)}")
    return found.pop() if found else ""


def _inside(n: Node) -> set[str]:
    """The devices that a loop or branch names in its bodies."""
    if n.op.kind != "control":
        return set()
    nodes = [x for b in bodies(n) for x in b.graph.nodes()]
    return {x.attrs[0] for x in nodes if x.op is place and x.attrs[0] != ANYWHERE}.union(*map(_inside, nodes))


def _line(graph: Graph, n: Node) -> str:
    line = graph.lines.get(n)
    return f" (at {line[0]}:{line[1]})" if line else ""


# --- parts -----------------------------------------------------------------------------------------------------------


def parts(graph: Graph, where: Mapping[Node, str]) -> list[Part]:
    """The parts, in an order in which they can run. ``where`` gives the device of every node but leaves, which a part makes for itself; those that
    are results are a part of the CPU, and the graph's arguments and stored values are nobody's.

    The *level* of a node counts the changes of device on the way to it; nodes of one device and one level are a part. A part reads only parts of
    lower levels, so there is no cycle, and values of one device are split no more than the changes demand.
    """
    level: dict[Node, int] = {}
    members: dict[tuple[int, str], list[Node]] = {}
    for n in graph.nodes():
        if n in where:
            level[n] = max((level[x] + (where[x] != where[n]) for x in n.inputs if x in where), default=0)
            members.setdefault((level[n], where[n]), []).append(n)
    crossing = _crossing(graph, where, level)
    found = [_part(graph, device, nodes, [n for n in nodes if n in crossing]) for (_, device), nodes in sorted(members.items())]
    constants = list(dict.fromkeys(n for n in graph.outputs if n.op.kind == "leaf" and n.op not in (input_, leaf)))
    return [*found, _part(graph, CPU, [], constants)] if constants else found


def _crossing(graph: Graph, where: Mapping[Node, str], level: Mapping[Node, int]) -> set[Node]:
    """Nodes that another part reads, or the caller."""
    out = {n for n in graph.outputs if n in where}
    for n in level:
        out.update(x for x in n.inputs if x in where and (where[x], level[x]) != (where[n], level[n]))
    return out


def _part(graph: Graph, device: str, nodes: list[Node], outputs: list[Node]) -> Part:
    build = Builder()
    image: dict[Node, Node] = {}
    sources: list[Node] = []
    inside = set(nodes)

    def made(x: Node) -> Node:
        if x in image:
            return image[x]
        if x.op.kind == "leaf" and x.op is not input_:
            image[x] = build(x.op, (), x.attrs)
        else:
            assert x not in inside, "nodes come after what they read"
            image[x] = build(input_, (), (len(sources), x.shape, x.dtype.name, None))
            sources.append(x)
        return image[x]

    for n in nodes:
        inputs = tuple([made(x) for x in n.inputs])
        image[n] = inputs[0] if n.op is place else build(n.op, inputs, n.attrs)
    lines = {image[n]: graph.lines[n] for n in nodes if n in graph.lines}
    results = [made(n) for n in outputs]
    return Part(device, Graph([image[x] for x in sources], results, lines), sources, outputs)
