"""Loop fusion: two scans of one length and direction become one scan.

Two scans of one length and direction run together where neither needs what the other only knows at its end. The second may read, step by step, what
the first stacks: inside one loop it reads the value itself, and the stack is dropped unless somebody else wants it. Carries that start
alike and change alike are one carry. So a function and its derivative, which rules for derivatives write as separate scans, become one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hologram.graph.bounded import rounds
from hologram.ir.graph import Body, Graph, close
from hologram.ir.node import Builder, Node
from hologram.ir.traversal import needs_among, post_order, topological
from hologram.primitives.control import progress_of, project, scan

MAX_SCANS = 64  # scans of one graph that are compared with one another
MAX_BODY_NODES = 2000  # nodes of a body that grows no further


def fuse_scans(graph: Graph, canonical: Callable[[Body], Body]) -> Graph:
    """``graph`` with scans put together; the graph itself where none can be."""
    for _ in rounds("fuse_scans", MAX_SCANS):  # each of which leaves a scan less
        pair = _pair(graph)
        if pair is None:
            break
        graph = _FusedScan(*pair, canonical).into(graph)
    return graph


def _pair(graph: Graph) -> tuple[Node, Node] | None:
    """Two scans that can run together and share something."""
    nodes = graph.nodes()
    scans = [n for n in nodes if n.op is scan]
    if not 2 <= len(scans) <= MAX_SCANS:
        return None
    behind = needs_among(nodes, scans)
    for j, b in enumerate(scans):
        for i, a in enumerate(scans[:j]):
            if a.attrs[3:5] == b.attrs[3:5] and _related(a, b) and not behind[a] >> j & 1 and _reads_stepwise(a, b, behind, i):
                return a, b
    return None


def _related(a: Node, b: Node) -> bool:
    """Whether fusing the two saves something: an input in common, or a stack between them."""
    if len(a.attrs[0].graph.nodes()) + len(b.attrs[0].graph.nodes()) > MAX_BODY_NODES:
        return False
    shared = {x for x in a.inputs if x.op.name != "const"}
    return any(x in shared or _stack_of(a, x) is not None for x in b.inputs)


def _stack_of(a: Node, x: Node) -> int | None:
    """Which stack of scan ``a`` the node ``x`` is."""
    return x.attrs[0] if x.op is project and x.inputs[0] is a and x.attrs[0] >= a.attrs[2] else None


def _reads_stepwise(a: Node, b: Node, behind: dict[Node, int], i: int) -> bool:
    """Whether scan ``b`` needs of scan ``a`` (number ``i``) only stacks, element by element."""
    first = b.attrs[1] + b.attrs[2]
    whole = [*b.inputs[:first], *[x for x in b.inputs[first:] if _stack_of(a, x) is None]]
    return not any(behind[x] >> i & 1 for x in whole)


class _FusedScan:
    """Scan ``a`` and scan ``b`` as one. ``result_of[which][k]`` is the result of the whole that result k of one of them has become."""

    def __init__(self, a: Node, b: Node, canonical: Callable[[Body], Body]) -> None:
        self.scans = (a, b)
        self.canonical = canonical
        alike = {j: i for j in range(b.attrs[2]) for i in range(a.attrs[2]) if self._start(b, j) is self._start(a, i)}
        for _ in rounds("fuse_scans", len(alike) + 1):  # carries that start alike are taken to be alike until they turn out not to be
            self._join(alike)
            stay = {j: i for j, i in alike.items() if self._same(i, j)}
            if stay == alike:
                break
            alike = stay

    @staticmethod
    def _start(s: Node, k: int) -> Node:
        return s.inputs[s.attrs[1] + k]

    def _join(self, alike: dict[int, int]) -> None:
        """The body of both, carries of ``b`` standing for those of ``a`` that are ``alike``."""
        a, b = self.scans
        build = Builder()
        self.argument: dict[tuple[str, object], Node] = {}
        order: dict[str, list[tuple[Node, Node]]] = {"const": [], "carry": [], "x": []}

        def argument(kind: str, key: object, given: Node, like: Node) -> Node:
            made = self.argument.get((kind, key))
            if made is None:
                made = self.argument[kind, key] = Node(like.op, (), (len(self.argument), *like.attrs[1:]), like.shape, like.dtype)
                order[kind].append((made, given))
            return made

        made: list[dict[Node, Node]] = []
        for which, s in enumerate(self.scans):
            inner, (_, consts, carries, *_rest) = s.attrs[0].graph, s.attrs
            image: dict[Node, Node] = {}
            for k, (x, given) in enumerate(zip(inner.inputs, s.inputs, strict=True)):
                if k < consts:
                    image[x] = argument("const", given, given, x)
                elif k < consts + carries:
                    j = k - consts
                    key = (0, alike[j]) if which and j in alike else (which, j)
                    image[x] = argument("carry", key, given, x)
                else:
                    stack = _stack_of(a, given) if which else None
                    image[x] = argument("x", given, given, x) if stack is None else made[0][a.attrs[0].graph.outputs[stack]]
            for n in topological(inner.outputs, stop=image.__contains__):
                if n not in image:
                    image[n] = build(n.op, tuple([image[x] for x in n.inputs]), n.attrs)
            made.append(image)
        outs = [[image[x] for x in s.attrs[0].graph.outputs] for image, s in zip(made, self.scans, strict=True)]
        mine, theirs = a.attrs[2], [j for j in range(b.attrs[2]) if j not in alike]
        outputs = [*outs[0][:mine], *[outs[1][j] for j in theirs], *outs[0][mine:], *outs[1][b.attrs[2] :]]
        carries = mine + len(theirs)
        stacks = len(outs[0]) - mine
        self.result_of: list[dict[int, int]] = [
            {k: k if k < mine else carries + k - mine for k in range(len(outs[0]))},
            {j: mine + theirs.index(j) if j in theirs else alike[j] for j in range(b.attrs[2])}
            | {k: carries + stacks + k - b.attrs[2] for k in range(b.attrs[2], len(outs[1]))},
        ]
        self.inputs = [given for kind in ("const", "carry", "x") for _, given in order[kind]]
        arguments = [x for kind in ("const", "carry", "x") for x, _ in order[kind]]
        checked = [*outputs, *[outs[1][j] for j in alike]]
        whole = self.canonical(close(arguments, checked, {}))
        self.repeated = dict(zip(alike, whole.graph.outputs[len(outputs) :], strict=True))
        self.body = self.canonical(close(whole.graph.inputs, whole.graph.outputs[: len(outputs)], whole.graph.lines))
        self.first = whole.graph.outputs
        self.attrs = (self.body, len(order["const"]), carries, *a.attrs[3:5], *(progress_of(a) or progress_of(b)))  # one bar

    def _same(self, i: int, j: int) -> bool:
        return self.repeated[j] is self.first[i]

    def into(self, graph: Graph) -> Graph:
        """``graph`` with the one scan in the place of the two."""
        build = Builder()
        image: dict[Node, Node] = {}
        a, b = self.scans

        def needs(n: Node) -> Sequence[Node]:
            if n is b:
                return (a,)
            return [*self.inputs] if n is a else n.inputs

        for n in post_order([*graph.inputs, *graph.outputs], needs):
            if n is a:
                image[a] = build(scan, tuple([image[x] for x in self.inputs]), self.attrs)
            elif n is b:
                image[b] = image[a]
            elif n.op is project and n.inputs[0] in self.scans:
                s = n.inputs[0]
                image[n] = build(project, (image[s],), (self.result_of[self.scans.index(s)][n.attrs[0]], *n.attrs[1:]))
            else:
                image[n] = build(n.op, tuple([image[x] for x in n.inputs]), n.attrs)
        return graph.mapped(image)
