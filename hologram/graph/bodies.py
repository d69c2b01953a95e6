"""Canonical reduction of control flow: bodies in canonical form, and nothing in them that nobody wants.

- Bodies are canonical graphs themselves.
- A sequence whose elements are all the same is a constant of the loop.
- Results, carries and arguments that no wanted result needs are dropped. A carry that comes back as it went in is a constant of the loop; so is,
  inside, a scalar constant that comes from outside.
- A choice whose index is known is the branch; a scan of no steps gives its carries back.
- Work that is the same in each step is done before the loop: see :mod:`hologram.graph.invariants`.
- Scans that run side by side become one: see :mod:`hologram.graph.merging`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hologram.control.body import Body, close
from hologram.graph.invariants import invariant_work
from hologram.graph.merging import merge_scans
from hologram.primitives.control import bodies, project, scan, switch
from hologram.primitives.leaves import input_
from hologram.primitives.movement import broadcast
from hologram.trace.node import Builder, Graph, Node, const_value, topological
from hologram.trace.recent import Recent

Canonical = Callable[[Graph], Graph]
ROUNDS = 8  # of a body's simplification; what one leaves the next canonicalisation of the graph takes up
_known = Recent(256)


def canonical_body(body: Body, canonicalise: Canonical, key: Any) -> Body:
    """``body`` in canonical form; ``key`` says which."""
    found = _known.get((body, key))
    if found is None:
        graph = canonicalise(body.graph)
        found = body if graph is body.graph else Body(graph)
        _known.put((body, key), found)
        _known.put((found, key), found)
    result: Body = found
    return result


def simplify_control(graph: Graph, canonical: Callable[[Body], Body], fired: Counter[str]) -> Graph:
    """``graph`` with simpler control nodes; the graph itself where nothing changed."""
    if not any(n.op.kind == "control" for n in graph.nodes()):
        return graph
    merged = merge_scans(graph, canonical)
    if merged is not graph:
        fired["merge-scans"] += 1
        return merged
    nodes = graph.nodes()
    wanted: dict[Node, set[int]] = {}
    for n in nodes:
        if n.op is project:
            wanted.setdefault(n.inputs[0], set()).add(n.attrs[0])
    run = _Run(canonical)
    for n in nodes:
        if n.op.kind == "control":
            run.results[n] = run.simplify(n, wanted.get(n, set()))
        elif n.op is project and n.inputs[0] in run.results:
            run.image[n] = run.results[n.inputs[0]][n.attrs[0]]
        else:
            run.image[n] = run.build(n.op, tuple([run.image[x] for x in n.inputs]), n.attrs)
    if not run.changed:
        return graph
    fired.update(run.fired)
    lines = {run.image[n]: line for n, line in graph.lines.items() if n in run.image}
    return Graph([run.image[x] for x in graph.inputs], [run.image[x] for x in graph.outputs], lines)


class _Run:
    """One walk over a graph: the images of its nodes, and of each control node's results."""

    def __init__(self, canonical: Callable[[Body], Body]) -> None:
        self.canonical = canonical
        self.build = Builder()
        self.image: dict[Node, Node] = {}
        self.results: dict[Node, dict[int, Node]] = {}
        self.fired: Counter[str] = Counter()
        self.changed = False

    def fire(self, name: str) -> None:
        self.fired[name] += 1
        self.changed = True

    def simplify(self, node: Node, wanted: set[int]) -> dict[int, Node]:
        inputs = [self.image[x] for x in node.inputs]
        if node.op is switch:
            return self.choice(node, inputs, wanted)
        return self.loop(node, inputs, wanted)

    def canonical_bodies(self, node: Node) -> list[Body]:
        old = bodies(node)
        new = [self.canonical(b) for b in old]
        if new != old:
            self.fire("bodies")
        return new

    def emit(self, node: Node, inputs: Iterable[Node], attrs: tuple[Any, ...], results: dict[int, tuple[int, Node]]) -> dict[int, Node]:
        """The control node, and its results: ``results[old index] = (new index, one of that type)``."""
        if not results:
            return {}
        made = self.build(node.op, tuple(inputs), attrs)
        return {i: self.build(project, (made,), (k, like.shape, like.dtype.name)) for i, (k, like) in results.items()}

    # --- branches ------------------------------------------------------------------------------------------------------

    def choice(self, node: Node, inputs: list[Node], wanted: set[int]) -> dict[int, Node]:
        index, operands = inputs[0], inputs[1:]
        branches = self.canonical_bodies(node)
        if index.op.name == "const":
            self.fire("known-branch")
            return self.inlined(branches[int(const_value(index))].graph, operands, wanted)
        keep = sorted(wanted)
        graphs = [b.graph for b in branches]
        used = {i for g in graphs for i in _positions(g, _reached([g.outputs[k] for k in keep]))}
        arguments, instead = _arguments(operands, used)
        if len(keep) < len(graphs[0].outputs) or len(arguments) < len(operands):
            self.fire("dead-results")
            branches = [self.canonical(_cut(g, arguments, [g.outputs[k] for k in keep], instead)) for g in graphs]
        made = tuple(branches)
        return self.emit(node, [index, *[operands[i] for i in arguments]], (made,), {k: (i, made[0].graph.outputs[i]) for i, k in enumerate(keep)})

    def inlined(self, graph: Graph, operands: Sequence[Node], wanted: set[int]) -> dict[int, Node]:
        keep = sorted(wanted)
        return dict(zip(keep, inlined(self.build, graph, operands, [graph.outputs[k] for k in keep]), strict=True))

    # --- loops ---------------------------------------------------------------------------------------------------------

    def loop(self, node: Node, inputs: list[Node], wanted: set[int]) -> dict[int, Node]:
        made = _Loop(node, self.canonical_bodies(node), inputs, wanted, self.build)
        results: dict[int, Node] = {}
        if node.op is scan and node.attrs[3] == 0:
            self.fire("no-steps")
            results = {k: made.starts[k] for k in wanted if k < len(made.starts)}
            wanted = {k for k in wanted if k >= len(made.starts)}
            return results | self.emit(node, inputs, (made.bodies[0], *node.attrs[1:]), made.positions(wanted))
        if made.spread():
            self.fire("fixed-sequence")
            made.bodies = [self.canonical(b) for b in made.bodies]
        for _ in range(ROUNDS):
            invariant = made.invariant()
            if invariant:
                self.fire("fixed-carry")
                for k in invariant:
                    results[made.names[k]] = made.starts[k]
                made.fix(invariant)
            if made.prune():
                self.fire("dead-carry")
            elif not invariant:
                break
            made.bodies = [self.canonical(b) for b in made.bodies]
        if made.hoist():
            self.fire("invariant-work")
            made.prune()
            made.bodies = [self.canonical(b) for b in made.bodies]
        wanted = {k for k in wanted if k not in results}
        return results | self.emit(node, made.inputs(), made.attrs(), made.positions(wanted))


class _Loop:
    """A scan or while loop taken apart: constants, starts of carries and sequences outside; the bodies' graphs inside.

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
        return (*self.bodies, len(self.fixed))

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
        runs = [self.node.attrs[3]] if self.is_scan else [1, None]  # a condition is asked at least once
        found = [invariant_work(b.graph, count, steps) for b, steps in zip(self.bodies, runs, strict=True)]
        if not any(found):
            return False
        for b, values in zip(self.bodies, found, strict=True):
            self.fixed += inlined(self.build, b.graph, self.fixed[:count], values)
        added = [x for values in found for x in values]
        for k, (g, values) in enumerate(zip([b.graph for b in self.bodies], found, strict=True)):
            taken = [x if x in values else _stranger(x) for x in added]
            self.bodies[k] = close([*g.inputs[:count], *taken, *g.inputs[count:]], g.outputs, g.lines)
        return True

    def prune(self) -> bool:
        """Drops what no wanted result needs."""
        count, carries, body = len(self.fixed), len(self.starts), self.body
        needed = {k for k in range(len(self.names)) if self.names[k] in self.wanted}
        test = self.bodies[0].graph
        used = set() if self.is_scan else _positions(test, _reached(test.outputs))
        while True:
            used |= _positions(body, _reached([body.outputs[k] for k in sorted(needed)]))
            more = {i - count for i in used if count <= i < count + carries} - needed
            if not more:
                break
            needed |= more
        if not self.is_scan and not needed:
            needed = {0}
        kept = sorted(k for k in needed if k < carries)
        fixed, instead = _arguments(self.fixed, {i for i in used if i < count})
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
        body = _cut(self.body, order, [self.body.outputs[k] for k in keep], instead)
        if self.is_scan:
            self.bodies = [body]
        else:
            test = self.bodies[0].graph
            self.bodies = [_cut(test, order, test.outputs, instead), body]


class _Stack:
    """The type of stacked results."""

    __slots__ = ("shape", "dtype")

    def __init__(self, length: int, element: Node) -> None:
        self.shape, self.dtype = (length, *element.shape), element.dtype


def inlined(build: Builder, graph: Graph, operands: Sequence[Node], values: Sequence[Node]) -> list[Node]:
    """``values`` of a graph whose first arguments are ``operands``, made with ``build``; they need no other arguments."""
    made = dict(zip(graph.inputs, operands, strict=False))
    for n in topological(values, stop=made.__contains__):
        if n not in made:
            made[n] = build(n.op, tuple([made[x] for x in n.inputs]), n.attrs)
    return [made[x] for x in values]


def _stranger(like: Node) -> Node:
    """An argument that nothing reads."""
    return Node(input_, (), (0, like.shape, like.dtype.name, None), like.shape, like.dtype)


def _reached(outputs: Sequence[Node]) -> set[Node]:
    return set(topological(outputs))


def _positions(graph: Graph, reached: set[Node]) -> set[int]:
    """Which arguments of a graph are in ``reached``."""
    return {i for i, x in enumerate(graph.inputs) if x in reached}


def _arguments(given: Sequence[Node], used: set[int]) -> tuple[list[int], dict[int, Any]]:
    """Which of the ``used`` arguments to keep, and what stands for the others: a constant's node, or the index of an equal argument."""
    keep: list[int] = []
    instead: dict[int, Any] = {}
    first: dict[Node, int] = {}
    for i in sorted(used):
        x = given[i]
        if x.op.name == "const":
            instead[i] = x
        elif x in first:
            instead[i] = first[x]
        else:
            first[x] = i
            keep.append(i)
    return keep, instead


def _cut(graph: Graph, order: Sequence[int], outputs: Sequence[Node], instead: dict[int, Any]) -> Body:
    """``graph`` with other arguments and fewer results."""
    same = {graph.inputs[i]: x if isinstance(x, Node) else graph.inputs[x] for i, x in instead.items()}
    return close([graph.inputs[i] for i in order], outputs, graph.lines, same)
