"""Loop prepacking: operands of products that a loop reads in panels are packed once, before the loop begins.

A body reads its loop's constants in each step. Where they are factors of products, the step would pack them each time; so they are packed once, by
work of the graph around the loop, and the loop takes the panels instead. Where these constants are the same in all calls, the panels are as well,
and so :mod:`hologram.graph.constants.fold` packs them once for the program. A while loop that makes no step packs in vain: how many it
makes is known too late. A branch that is chosen is not run again, so what choices read is packed before
them only if it is the same in all calls, or in all steps of a loop around them.

This works on legalized graphs, and legalizes the bodies inside of them, the innermost first: panels move out of nested loops one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from hologram.graph.constants.fold import Folded, prepacked
from hologram.graph.schedule.tiles import TileConfig
from hologram.ir.graph import Body, Graph, bodies, inlined, placeholder
from hologram.ir.leaves import input_, leaf
from hologram.ir.node import Builder, Node
from hologram.ir.symbolic import symbols_of, typical
from hologram.ir.traversal import topological
from hologram.primitives.control import scan, switch, while_, with_bodies

MAX_PACKED_BYTES = 2**28  # for one body
MIN_PACKED_STEPS = 4  # that pay for packing

Legalize = Callable[[Graph, Collection[int]], Graph]


def pack_before_loops(graph: Graph, constants: Collection[int], legalize: Legalize, tile: TileConfig | None, exact: bool) -> Graph:
    """``graph`` with legalized bodies in its loops and branches, whose panels it packs. ``constants``: which of its inputs are the same in all
    calls or steps; ``legalize(body, constants)`` legalizes a body, as the caller does the graph."""
    nodes = graph.nodes()
    if not any(n.op.kind == "control" for n in nodes):
        return graph
    build, image = Builder(), {x: x for x in graph.inputs}
    fixed = {graph.inputs[i] for i in constants}
    for n in nodes:
        if n.op is leaf or (n.inputs and n.op.kind != "control" and not symbols_of(n.attrs) and all(x in fixed for x in n.inputs)):
            fixed.add(n)
        if n.op.kind == "control":
            image[n] = _Packed(n, fixed, legalize, tile, exact).node(build, [image[x] for x in n.inputs])
        elif n not in image:
            image[n] = build(n.op, tuple([image[x] for x in n.inputs]), n.attrs)
    return graph.mapped(image)


class _Packed:
    """A loop or choice whose bodies, all of which take the same arguments, read panels: ``found`` says of each body which, ``start`` is where they
    come among its arguments."""

    def __init__(self, node: Node, fixed: Collection[Node], legalize: Legalize, tile: TileConfig | None, exact: bool) -> None:
        self.old = node
        self.first = 1 if node.op is switch else 0  # operand that is the bodies' first argument
        operands = node.inputs[self.first :]
        self.start = len(operands) if node.op is switch else node.attrs[1] if node.op is scan else node.attrs[2]
        self.graphs: list[Graph] = []
        self.found: list[Folded | None] = []
        for body in bodies(node):
            constants = [i for i, x in enumerate(operands[: self.start]) if x in fixed or self._repeats()]
            graph = legalize(body.graph, constants)
            given = [graph.inputs[i] for i in constants]
            self.graphs.append(graph)
            self.found.append(prepacked(graph, given, MAX_PACKED_BYTES, tile, exact) if given else None)

    def _repeats(self) -> bool:
        return self.old.op is while_ or (self.old.op is scan and typical(self.old.attrs[3]) >= MIN_PACKED_STEPS)

    def node(self, build: Builder, operands: list[Node]) -> Node:
        """The node, on ``operands`` and panels of them. Loops do not take what they read in panels alone."""
        panels: list[Node] = []
        made: list[Graph] = []
        sizes = [0 if found is None else len(found.values.outputs) for found in self.found]
        placeholders = [placeholder(x, i) for i, x in enumerate(x for found in self.found if found is not None for x in found.values.outputs)]
        for graph, found, own in zip(self.graphs, self.found, sizes, strict=True):
            done = len(panels)
            if found is not None:
                panels += inlined(build, graph, operands[self.first :], found.values.outputs)
                graph = found.graph
            count = len(graph.inputs) - own
            taken = [*placeholders[:done], *graph.inputs[count:], *placeholders[done + own :]]
            made.append(Graph([*graph.inputs[: self.start], *taken, *graph.inputs[self.start : count]], graph.outputs, graph.lines))
        end = self.first + self.start
        operands = [*operands[:end], *panels, *operands[end:]]
        unread = [] if self.old.op is switch else _unread(made, self.start)
        for i in unread:
            del operands[i]
            for g in made:
                del g.inputs[i]
        return build(self.old.op, tuple(operands), self._attrs([Body(_numbered(g)) for g in made], len(panels) - len(unread)))

    def _attrs(self, made: list[Body], more: int) -> tuple[object, ...]:
        """Those of the node with other bodies, which take so many ``more`` constants."""
        attrs = list(with_bodies(self.old, made))
        if self.old.op is not switch:
            attrs[len(made)] += more
        return tuple(attrs)


def _unread(graphs: Sequence[Graph], count: int) -> list[int]:
    """Which of the first ``count`` arguments no graph reads, the last first."""
    read = [set(topological(g.outputs)) for g in graphs]
    return [i for i in reversed(range(count)) if all(g.inputs[i] not in r for g, r in zip(graphs, read, strict=True))]


def _numbered(graph: Graph) -> Graph:
    """``graph`` with its inputs numbered in their order; those that hold panels stay marked."""
    if all(x.attrs[0] == i for i, x in enumerate(graph.inputs)):
        return graph
    build = Builder()
    image = {x: build(input_, (), (i, *x.attrs[1:])) for i, x in enumerate(graph.inputs)}
    for n in graph.nodes():
        if n not in image:
            image[n] = build(n.op, tuple([image[x] for x in n.inputs]), n.attrs)
    return graph.mapped(image)
