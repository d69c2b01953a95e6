"""Control-flow simplification: canonical bodies, dead results and carries removed, known branches inlined.

- Bodies are canonical graphs themselves.
- A sequence whose elements are all the same is a constant of the loop.
- Results, carries and arguments that no wanted result needs are dropped. A carry that comes back as it went in is a constant of the loop; so is,
  inside, a scalar constant, or an array of indices, that comes from outside.
- A choice whose index is known is the branch; a scan of no steps gives its carries back, and arrays of no elements.
- Work that is the same in each step is done before the loop: see :mod:`hologram.graph.canonical.licm`; products that do not depend on the carry
  are those of all steps at once: see :mod:`hologram.graph.canonical.loop_distribution`.
- Scans of one length become one: see :mod:`hologram.graph.canonical.scan_fusion`; so do choices by one index: see
  :mod:`hologram.graph.canonical.branch_fusion`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hologram.graph.canonical.branch_fusion import fuse_branches
from hologram.graph.canonical.loop_splitting import DistributedWork, Loop, cut, distinct, positions_of, reached
from hologram.graph.canonical.scan_fusion import fuse_scans
from hologram.ir.graph import Body, Graph, bodies, inlined
from hologram.ir.node import Builder, Node, const_value
from hologram.primitives.control import project, scan, switch
from hologram.support.lru_cache import Recent

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


def simplify_control(graph: Graph, canonical: Callable[[Body], Body], fired: Counter[str], reorder: bool) -> Graph:
    """``graph`` with simpler control nodes; the graph itself where nothing changed. ``reorder``: floats may be added in another order."""
    if not any(n.op.kind == "control" for n in graph.nodes()):
        return graph
    fused = fuse_scans(graph, canonical)
    if fused is not graph:
        fired["fuse-scans"] += 1
        return fused
    fused = fuse_branches(graph)
    if fused is not graph:
        fired["fuse-branches"] += 1
        return fused
    nodes = graph.nodes()
    wanted: dict[Node, set[int]] = {}
    for n in nodes:
        if n.op is project:
            wanted.setdefault(n.inputs[0], set()).add(n.attrs[0])
    run = _Run(canonical, reorder)
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
    return graph.mapped(run.image)


class _Run:
    """One walk over a graph: the images of its nodes, and of each control node's results."""

    def __init__(self, canonical: Callable[[Body], Body], reorder: bool) -> None:
        self.canonical, self.reorder = canonical, reorder
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
        used = {i for g in graphs for i in positions_of(g, reached([g.outputs[k] for k in keep]))}
        arguments, instead = distinct(operands, used)
        if len(keep) < len(graphs[0].outputs) or len(arguments) < len(operands):
            self.fire("dead-results")
            branches = [self.canonical(cut(g, arguments, [g.outputs[k] for k in keep], instead)) for g in graphs]
        made = tuple(branches)
        return self.emit(node, [index, *[operands[i] for i in arguments]], (made,), {k: (i, made[0].graph.outputs[i]) for i, k in enumerate(keep)})

    def inlined(self, graph: Graph, operands: Sequence[Node], wanted: set[int]) -> dict[int, Node]:
        keep = sorted(wanted)
        return dict(zip(keep, inlined(self.build, graph, operands, [graph.outputs[k] for k in keep]), strict=True))

    # --- loops ---------------------------------------------------------------------------------------------------------

    def loop(self, node: Node, inputs: list[Node], wanted: set[int]) -> dict[int, Node]:
        made = Loop(node, self.canonical_bodies(node), inputs, wanted, self.build)
        results: dict[int, Node] = {}
        if node.op is scan and node.attrs[3] == 0:
            self.fire("no-steps")
            return {k: made.starts[k] if k < len(made.starts) else self.nothing(like) for k, (_, like) in made.positions(wanted).items()}
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
        late = self.distribute(made) if made.is_scan else None
        wanted = {k for k in made.wanted if k not in results}
        results |= self.emit(node, made.inputs(), made.attrs(), made.positions(wanted))
        return results if late is None else late.into(results, self.build)

    def nothing(self, like: Node) -> Node:
        """An array of no elements, of the shape and type of ``like``."""
        return self.build.full(0, like.dtype, like.shape)

    def distribute(self, made: Loop) -> DistributedWork | None:
        """Takes products for all steps at once out of a scan; what is to be computed after it."""
        early, late = made.distribute_before(), made.distribute_after(self.reorder)
        if early or late is not None:
            self.fire("products-of-steps")
            made.prune()
            made.bodies = [self.canonical(b) for b in made.bodies]
        return late
