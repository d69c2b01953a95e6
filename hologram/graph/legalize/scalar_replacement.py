"""Scalar replacement in loops: an element that a step writes, or reads, and that a later step reads again goes there as a carry.

A recurrence over an array (``x[i] = f(x[i - 1])``, a table of which each element is made of its neighbours) finds in memory what the step before has
put there: the processor waits some cycles for each such element. As a carry it stays in a register.

A value that is read m steps later (:mod:`hologram.graph.legalize.loop_accesses`) passes through m carries. These begin with what the first m steps
find in memory, where the loop has written nothing yet. This is for targets whose loops keep small carries in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hologram.graph.legalize.loop_accesses import LoopAccesses
from hologram.ir.graph import Body, Graph, close, inlined, placeholder
from hologram.ir.node import Builder, Node, nbytes
from hologram.ir.symbolic import is_static
from hologram.primitives.control import progress_of, project, scan, while_

MAX_STEPS = 3  # from an access to the read that it is carried to
MAX_BYTES = 64  # of a carried value: larger ones are memory again


class Carried(NamedTuple):
    """A value that later steps read: ``readers``, by the number of steps from one to the other."""

    value: Node
    readers: dict[Node, int]

    @property
    def last(self) -> Node:
        """The reader that knows where all first values are."""
        return max(self.readers, key=self.readers.__getitem__)

    @property
    def steps(self) -> int:
        return self.readers[self.last]


def replace_elements(graph: Graph) -> Graph:
    """``graph`` with loops that carry what later steps read; the graph itself where there is nothing to carry."""
    nodes = graph.nodes()
    loops = {n: LoopAccesses(n) for n in nodes if n.op in (scan, while_) and _has_known_sizes(n)}
    found = {n: carried for n, loop in loops.items() if (carried := _carried(loop))}
    if not found:
        return graph
    build = Builder()
    image: dict[Node, Node] = {}
    for n in nodes:
        inputs = tuple([image[x] for x in n.inputs])
        if n in found:
            image[n] = _carrying(build, loops[n], inputs, found[n])
        elif n.op is project and n.inputs[0] in found:
            image[n] = build(project, inputs, (_number(loops[n.inputs[0]], n.attrs[0], found[n.inputs[0]]), *n.attrs[1:]))
        else:
            image[n] = build(n.op, inputs, n.attrs)
    return graph.mapped(image)


def _has_known_sizes(loop: Node) -> bool:
    """Whether distances between windows are known in numbers: no extent of the loop is symbolic."""
    body: Body = loop.attrs[0 if loop.op is scan else 1]
    is_known = loop.op is not scan or is_static(loop.attrs[3])
    return is_known and all(is_static(n) for x in body.graph.nodes() for n in x.shape)


def _carried(loop: LoopAccesses) -> list[Carried]:
    """What steps of a loop hand to later ones. A scan makes the steps that say what the first values are."""
    found: dict[Node, Carried] = {}
    most = min(MAX_STEPS, loop.node.attrs[3]) if loop.is_scan else MAX_STEPS
    for k in range(loop.carries):
        states = loop.states(k)
        for at, state in enumerate(states if len(states) > 1 else ()):
            for read in loop.reads(state):
                source = loop.source(states, at, read, most) if nbytes(read) <= MAX_BYTES else None
                if source is not None:
                    found.setdefault(source[0], Carried(source[0], {})).readers[read] = source[1]
    return list(found.values())


def _number(loop: LoopAccesses, result: int, found: Sequence[Carried]) -> int:
    """The number of a result behind which carries came to the loop's own."""
    return result if result < loop.carries else result + sum(c.steps for c in found)


def _carrying(build: Builder, loop: LoopAccesses, inputs: Sequence[Node], found: Sequence[Carried]) -> Node:
    """The loop on ``inputs`` with the carries that ``found`` takes."""
    graph, end = loop.graph, loop.consts + loop.carries
    starts, following, more = list[Node](), list[Node](), list[Node]()
    instead = dict[Node, Node]()
    for c in found:
        held = [placeholder(c.value) for _ in range(c.steps)]  # what the value was 1, 2, … steps before
        instead.update({read: held[steps - 1] for read, steps in c.readers.items()})
        starts += [_first(build, loop, inputs, c.last, step) for step in reversed(range(c.steps))]
        following += [c.value, *held[:-1]]
        more += held
    outputs = [*graph.outputs[: loop.carries], *following, *graph.outputs[loop.carries :]]
    body = close([*graph.inputs[:end], *more, *graph.inputs[end:]], outputs, graph.lines, instead)
    attrs: tuple[object, ...] = body, loop.consts, loop.carries + len(more), *loop.node.attrs[3:]
    if not loop.is_scan:
        cond: Body = loop.node.attrs[0]
        attrs = close([*cond.graph.inputs, *more], cond.graph.outputs, cond.graph.lines), body, loop.consts, *progress_of(loop.node)
    return build(loop.node.op, (*inputs[:end], *starts, *inputs[end:]), attrs)


def _first(build: Builder, loop: LoopAccesses, inputs: Sequence[Node], read: Node, step: int) -> Node:
    """What ``read`` finds in step number ``step`` in the array from before the loop."""
    given = list(inputs)
    for k, x in enumerate(loop.arguments, loop.consts):
        if x in loop.counters and step:
            given[k] = build.make("add", given[k], build.const(step * loop.counters[x], x.dtype))
    (axes, sizes, _), shape = read.attrs, read.inputs[0].shape
    places = inlined(build, loop.graph, given, read.inputs[1:])
    if not loop.is_scan:  # which may make no step
        places = [_clamped(build, p, int(shape[a]) - int(n)) for p, a, n in zip(places, axes, sizes, strict=True)]
    array = read.inputs[0]
    while array.op.kind == "scatter":
        (array, *_) = array.inputs
    return build(read.op, (inputs[loop.graph.inputs.index(array)], *places), read.attrs)


def _clamped(build: Builder, place: Node, most: int) -> Node:
    """``place`` between 0 and ``most``."""
    limit = build.const(min(most, int(np.iinfo(place.dtype.np).max)), place.dtype)
    return build.make("min", build.make("max", place, build.const(0, place.dtype)), limit)
