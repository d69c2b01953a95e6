"""A loop in parts (constants, carries, sequences, bodies), from which parts can be moved or removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from hologram.graph.bounded import rounds
from hologram.graph.canonical.licm import invariant_work
from hologram.graph.canonical.loop_distribution import Steps, work_after_loop, work_before_loop
from hologram.ir.graph import Body, Graph, close, inlined, placeholder
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE
from hologram.ir.symbolic import is_static
from hologram.ir.traversal import topological
from hologram.primitives.control import progress_of, scan
from hologram.primitives.movement import broadcast

_FIRST_OWN = 1 << 20  # name of a result that only what is computed after the loop reads


class Loop:
    """A scan or while loop in parts: constants, starts of carries and sequences outside; the bodies' graphs inside.

    ``names[k]`` is the index of the result that output k of the body stood for at first.
    """

    def __init__(self, node: Node, found: list[Body], inputs: list[Node], wanted: set[int], build: Builder) -> None:
        self.node, self.bodies, self.build = node, found, build
        self.is_scan = node.op is scan
        count = node.attrs[1] if self.is_scan else node.attrs[2]
        outputs = found[-1].graph.outputs
        carries = node.attrs[2] if self.is_scan else len(outputs)
        self.fixed, self.starts, self.xs = inputs[:count], inputs[count : count + carries], inputs[count + carries :]
        self.names = list(range(len(outputs)))
        self.wanted = set(wanted)

    @property
    def body(self) -> Graph:
        return self.bodies[-1].graph

    def inputs(self) -> list[Node]:
        return [*self.fixed, *self.starts, *self.xs]

    def attrs(self) -> tuple[Any, ...]:
        if self.is_scan:
            return (self.bodies[0], len(self.fixed), len(self.starts), *self.node.attrs[3:])
        return (*self.bodies, len(self.fixed), *progress_of(self.node))

    def positions(self, wanted: Iterable[int]) -> dict[int, tuple[int, Node]]:
        """Of each wanted result its index now, and a node of its type."""
        found = {}
        for old in sorted(wanted):
            k = self.names.index(old)
            like = self.body.outputs[k]
            if self.is_scan and k >= len(self.starts):
                like = _Stack(self.node.attrs[3], like)  # type: ignore[assignment]
            found[old] = (k, like)
        return found

    def spread(self) -> bool:
        """Makes constants of sequences whose elements are all the same."""
        same = [k for k, x in enumerate(self.xs) if x.op is broadcast and 0 not in x.attrs[1]]
        if not same:
            return False
        first = len(self.fixed) + len(self.starts)
        order = [*range(len(self.fixed)), *[first + k for k in same], *range(len(self.fixed), first)]
        order += [first + k for k in range(len(self.xs)) if k not in same]
        self._cut(order, list(range(len(self.body.outputs))), {})
        for k in same:
            x, (shape, dims) = self.xs[k].inputs[0], self.xs[k].attrs
            self.fixed.append(self.build(broadcast, (x,), (shape[1:], tuple(d - 1 for d in dims))) if shape[1:] else x)
        self.xs = [x for k, x in enumerate(self.xs) if k not in same]
        return True

    def invariant(self) -> list[int]:
        """Carries that the body gives back as they came; not the last of a while loop, which must have one."""
        arguments = self.body.inputs[len(self.fixed) :]
        found = [k for k in range(len(self.starts)) if self.body.outputs[k] is arguments[k]]
        return found if self.is_scan or len(found) < len(self.starts) else found[:-1]

    def fix(self, which: list[int]) -> None:
        """Makes constants of some carries."""
        count, carries = len(self.fixed), len(self.starts)
        moved = [count + k for k in which]
        stay = [count + k for k in range(carries) if k not in which]
        order = [*range(count), *moved, *stay, *range(count + carries, len(self.body.inputs))]
        keep = [k for k in range(len(self.body.outputs)) if k not in which]
        self._cut(order, keep, {})
        self.fixed = [*self.fixed, *[self.starts[k] for k in which]]
        self.starts = [s for k, s in enumerate(self.starts) if k not in which]
        self.names = [self.names[k] for k in keep]

    def hoist(self) -> bool:
        """Computes before the loop what is the same in each step."""
        count = len(self.fixed)
        length = self.node.attrs[3] if self.is_scan else None
        runs = [length if isinstance(length, int) else None] if self.is_scan else [1, None]  # a condition is asked at least once
        found = [invariant_work(b.graph, count, steps) for b, steps in zip(self.bodies, runs, strict=True)]
        if not any(found):
            return False
        for b, values in zip(self.bodies, found, strict=True):
            self.fixed += inlined(self.build, b.graph, self.fixed[:count], values)
        added = [x for values in found for x in values]
        for k, (g, values) in enumerate(zip([b.graph for b in self.bodies], found, strict=True)):
            taken = [x if x in values else placeholder(x) for x in added]
            self.bodies[k] = close([*g.inputs[:count], *taken, *g.inputs[count:]], g.outputs, g.lines)
        return True

    @property
    def steps(self) -> Steps:
        return Steps(self.body, len(self.fixed), len(self.starts), self.node.attrs[3])

    def distribute_before(self) -> bool:
        """Computes for all steps at once what needs no carry."""
        found = work_before_loop(self.steps)
        if found is None:
            return False
        values, stacks = found
        self.xs += inlined(self.build, stacks, [*self.fixed, *self.xs], stacks.outputs)
        self.bodies = [close([*self.body.inputs, *values], self.body.outputs, self.body.lines)]
        return True

    def distribute_after(self, reorder: bool) -> DistributedWork | None:
        """Leaves out what is computed after the loop, and stacks what that takes. ``reorder``: floats may be added in another order."""
        found = work_after_loop(self.steps, reorder)
        if found is None:
            return None
        body, carries = self.body, len(self.starts)
        gone = {*found.ys, *found.sums}
        there = {x: self.names[k] for k, x in enumerate(body.outputs) if k >= carries and k not in gone}
        new = [x for x in found.given if x not in there]
        there |= {x: max(_FIRST_OWN, *[n + 1 for n in self.names]) + i for i, x in enumerate(new)}
        given, names = [there[x] for x in found.given], [self.names[k] for k in [*found.ys, *found.sums]]
        late = DistributedWork(found.graph, [*self.fixed, *self.xs], given, names, [self.starts[k] for k in found.sums])
        self.bodies = [close(body.inputs, [*body.outputs, *new], body.lines)]
        self.names += [there[x] for x in new]
        self.wanted = (self.wanted - set(names)) | set(given)
        self._drop(gone)
        return late

    def _drop(self, results: set[int]) -> None:
        """Leaves out results of a scan, with the carries among them, which nothing else reads."""
        count, carries = len(self.fixed), len(self.starts)
        order = [i for i in range(len(self.body.inputs)) if i - count not in results or not count <= i < count + carries]
        keep = [k for k in range(len(self.names)) if k not in results]
        self._cut(order, keep, {})
        self.starts = [x for k, x in enumerate(self.starts) if k not in results]
        self.names = [self.names[k] for k in keep]

    def prune(self) -> bool:
        """Drops what no wanted result needs."""
        count, carries, body = len(self.fixed), len(self.starts), self.body
        needed = {k for k in range(len(self.names)) if self.names[k] in self.wanted}
        test = self.bodies[0].graph
        used = set() if self.is_scan else positions_of(test, reached(test.outputs))
        for _ in rounds("bodies", carries + 1):
            used |= positions_of(body, reached([body.outputs[k] for k in sorted(needed)]))
            more = {i - count for i in used if count <= i < count + carries} - needed
            if not more:
                break
            needed |= more
        if not self.is_scan and not needed:
            needed = {0}
        kept = sorted(k for k in needed if k < carries)
        fixed, instead = distinct(self.fixed, {i for i in used if i < count})
        xs = [i for i in range(count + carries, len(body.inputs)) if i in used]
        keep = kept + sorted(k for k in needed if k >= carries)
        order = [*fixed, *[count + k for k in kept], *xs]
        if len(order) == len(body.inputs) and len(keep) == len(body.outputs):
            return False
        self._cut(order, keep, instead)
        self.xs = [self.xs[i - count - carries] for i in xs]
        self.fixed = [self.fixed[i] for i in fixed]
        self.starts = [self.starts[k] for k in kept]
        self.names = [self.names[k] for k in keep]
        return True

    def _cut(self, order: list[int], keep: list[int], instead: dict[int, Any]) -> None:
        body = cut(self.body, order, [self.body.outputs[k] for k in keep], instead)
        if self.is_scan:
            self.bodies = [body]
        else:
            test = self.bodies[0].graph
            self.bodies = [cut(test, order, test.outputs, instead), body]


class DistributedWork(NamedTuple):
    """Results ``names`` of a loop, which ``graph`` computes of ``operands`` and of the loop's results ``given``; the last of them are to be added to
    ``starts``."""

    graph: Graph
    operands: list[Node]
    given: list[int]
    names: list[int]
    starts: list[Node]

    def into(self, results: dict[int, Node], build: Builder) -> dict[int, Node]:
        """``results`` with these, and without what was given for them alone."""
        made = inlined(build, self.graph, [*self.operands, *[results[k] for k in self.given]], self.graph.outputs)
        first = len(made) - len(self.starts)
        made[first:] = [build(TABLE["add"], (start, x)) for start, x in zip(self.starts, made[first:], strict=True)]
        return {k: x for k, x in results.items() if k < _FIRST_OWN} | dict(zip(self.names, made, strict=True))


class _Stack:
    """The type of stacked results."""

    __slots__ = ("shape", "dtype")

    def __init__(self, length: int, element: Node) -> None:
        self.shape, self.dtype = (length, *element.shape), element.dtype


def reached(outputs: Sequence[Node]) -> set[Node]:
    return set(topological(outputs))


def positions_of(graph: Graph, reached: set[Node]) -> set[int]:
    """Which arguments of a graph are in ``reached``."""
    return {i for i, x in enumerate(graph.inputs) if x in reached}


def distinct(given: Sequence[Node], used: set[int]) -> tuple[list[int], dict[int, Any]]:
    """Which of the ``used`` arguments to keep, and what stands for the others: the node of a constant or of indices, which are found sooner than
    read, or the index of an equal argument."""
    keep: list[int] = []
    instead: dict[int, Any] = {}
    first: dict[Node, int] = {}
    for i in sorted(used):
        x = given[i]
        if x.op.name == "const" or (x.op.name == "iota" and is_static(x.size)):
            instead[i] = x
        elif x in first:
            instead[i] = first[x]
        else:
            first[x] = i
            keep.append(i)
    return keep, instead


def cut(graph: Graph, order: Sequence[int], outputs: Sequence[Node], instead: dict[int, Any]) -> Body:
    """``graph`` with other arguments and fewer results."""
    same = {graph.inputs[i]: x if isinstance(x, Node) else graph.inputs[x] for i, x in instead.items()}
    return close([graph.inputs[i] for i in order], outputs, graph.lines, same)
