"""Loop-invariant code motion: work that is the same in each step of a loop moves in front of it.

A value is *invariant* if it is made of what the loop takes as constants, of numbers and of counters. Those that take work, and that something
else reads, may as well be computed once, before the loop, which then takes them as constants. Nothing is computed otherwise than before, so this
is exact. It costs memory and, where the body never runs, work in vain. So a value is computed before the loop if

- it is no larger than what it is made of; or, if computing it is expensive, no larger than :data:`MAX_VALUE_BYTES`, and all of these
  :data:`MAX_HOISTED_BYTES`;
- in all steps together its work is worth a kernel;
- what it is made of need not be read beside it, unless the work is expensive or the value small: memory is slower than cheap arithmetic;
- the body certainly runs, or its work is light.

Nothing that may fail is moved: routines of the host and control flow stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hologram.graph.bounded import rounds
from hologram.graph.fusion.materialize import MATERIALIZE_COST
from hologram.ir.graph import Graph
from hologram.ir.node import Node
from hologram.ir.symbolic import typical
from hologram.ir.traversal import reachable

MOVABLE = ("elementwise", "movement", "reduce", "scan", "gather", "scatter", "contraction", "native")  # kinds that cannot fail
MAX_VALUE_BYTES = 2**24  # of a value that is larger than what it is made of
MAX_HOISTED_BYTES = 2**26  # of all such values of one loop
SMALL_BYTES = 2**12  # which stay in the first-level cache
MIN_HOISTED_WORK = 4096  # scalar operations in all steps that are worth a kernel
MAX_VAIN_WORK = 64  # scalar operations for each element read, up to which work may be in vain
_MAX_WORK = 2**62  # more is not told apart


class _Made(NamedTuple):
    """The loop's constants that a value is made of, and the scalar operations that it takes."""

    sources: frozenset[Node]
    work: int

    @property
    def nbytes(self) -> int:
        return sum(map(_bytes, self.sources))


def invariant_work(graph: Graph, constants: int, steps: int | None) -> list[Node]:
    """The values of a body, whose first ``constants`` arguments no step changes, that are computed before the loop. It makes ``steps`` steps; None:
    perhaps none at all."""
    nodes = graph.nodes()
    made = _invariant(nodes, graph.inputs[:constants])
    wanted = _candidates(graph, nodes, made)
    chosen, left = [], MAX_HOISTED_BYTES
    for x in wanted:
        if _pays(x, made[x], steps):
            larger = _bytes(x) if _bytes(x) > made[x].nbytes else 0
            if larger <= left:
                chosen.append(x)
                left -= larger
    return _worth_reading(graph, chosen, made)


def _invariant(nodes: Iterable[Node], constants: Iterable[Node]) -> dict[Node, _Made]:
    made = {x: _Made(frozenset([x]), 0) for x in constants}
    for n in nodes:
        if n.op.kind == "leaf" and n.op.name != "input":
            made[n] = _Made(frozenset(), 0)
        elif n.op.kind in MOVABLE and all(x in made for x in n.inputs):
            sources = frozenset[Node]().union(*(made[x].sources for x in n.inputs))
            made[n] = _Made(sources, min(_MAX_WORK, _operations(n) + sum(made[x].work for x in set(n.inputs))))
    return made


def _operations(n: Node) -> int:
    """Scalar operations of the node itself."""
    if n.op.kind == "movement":
        return elements(n) if len(n.inputs) > 1 else 0
    return max(1, n.op.cost) * max(elements(n), *[elements(x) for x in n.inputs], 1)


def _candidates(graph: Graph, nodes: Iterable[Node], made: dict[Node, _Made]) -> list[Node]:
    """Invariant values that take work and that the rest of the body reads, below movement that makes them no smaller."""
    found: dict[Node, None] = {}
    read = [x for n in nodes if n not in made for x in n.inputs]
    for x in [*read, *graph.outputs]:
        while x in made and x.op.kind == "movement" and len(x.inputs) == 1 and elements(x.inputs[0]) <= elements(x):
            (x,) = x.inputs
        if x in made and made[x].work:
            found[x] = None
    return list(found)


def _pays(x: Node, made: _Made, steps: int | None) -> bool:
    if made.work * (1 if steps is None else steps) < MIN_HOISTED_WORK:
        return False
    if steps is None and made.work > MAX_VAIN_WORK * (elements(x) + sum(map(elements, made.sources))):
        return False
    return _bytes(x) <= made.nbytes or (_is_expensive(x, made) and _bytes(x) <= MAX_VALUE_BYTES)


def _is_expensive(x: Node, made: _Made) -> bool:
    return made.work >= MATERIALIZE_COST * elements(x)


def _worth_reading(graph: Graph, chosen: list[Node], made: dict[Node, _Made]) -> list[Node]:
    """``chosen`` without large values of cheap work whose sources the body reads even so."""
    for _ in rounds("bodies", len(chosen) + 1):
        read = _reached(graph, set(chosen))
        beside = {x for x in chosen if any(elements(s) > 1 and s in read for s in made[x].sources)}
        stay = [x for x in chosen if x not in beside or _is_expensive(x, made[x]) or _bytes(x) <= SMALL_BYTES]
        if stay == chosen:
            break
        chosen = stay
    return chosen


def _reached(graph: Graph, stop: set[Node]) -> set[Node]:
    """What the results need, if the values ``stop`` are given."""
    return set(reachable((x for x in graph.outputs if x not in stop), lambda n: (x for x in n.inputs if x not in stop)))


def elements(n: Node) -> int:
    """How many elements a value has, or would have where symbolic extents are typical ones."""
    return typical(n.size)


def _bytes(n: Node) -> int:
    return elements(n) * n.dtype.itemsize
