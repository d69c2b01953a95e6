"""Branch fusion: two choices by one index become one choice.

The second may read what the first gives: inside one branch it reads the value itself. So a choice and its derivative, which rules for derivatives
write as separate choices, compute a branch once, and update in place what both would read.
"""

from __future__ import annotations

from collections.abc import Sequence

from hologram.graph.bounded import rounds
from hologram.graph.canonical.scan_fusion import MAX_BODY_NODES
from hologram.ir.graph import Body, Graph, bodies, close, inlined, placeholder
from hologram.ir.node import Builder, Node
from hologram.ir.traversal import needs_among, post_order
from hologram.primitives.control import project, switch

MAX_SWITCHES = 64  # of one graph that are compared with one another


def fuse_branches(graph: Graph) -> Graph:
    """``graph`` with choices put together; the graph itself where none can be."""
    for _ in rounds("fuse_branches", MAX_SWITCHES):  # each of which leaves a choice less
        pair = _pair(graph)
        if pair is None:
            break
        graph = _fused(graph, *pair)
    return graph


def _pair(graph: Graph) -> tuple[Node, Node] | None:
    """Two choices by one index that share something, of which the second needs nothing that is made of the first outside of them."""
    nodes = graph.nodes()
    switches = [n for n in nodes if n.op is switch]
    if not 2 <= len(switches) <= MAX_SWITCHES:
        return None
    behind = needs_among(nodes, switches)
    for j, b in enumerate(switches):
        for i, a in enumerate(switches[:j]):
            if _related(a, b) and not any(behind[x] >> i & 1 for x in b.inputs if not _is_result(a, x)):
                return a, b
    return None


def _related(a: Node, b: Node) -> bool:
    """Whether fusing the two saves something: an operand in common, or a result that goes from one to the other."""
    if a.inputs[0] is not b.inputs[0] or len(bodies(a)) != len(bodies(b)):
        return False
    if sum(len(body.graph.nodes()) for n in (a, b) for body in bodies(n)) > MAX_BODY_NODES:
        return False
    shared = {x for x in a.inputs[1:] if x.op.name != "const"}
    return any(x in shared or _is_result(a, x) for x in b.inputs[1:])


def _is_result(a: Node, x: Node) -> bool:
    return x.op is project and x.inputs[0] is a


def _branches(a: Node, b: Node, given: Sequence[Node]) -> tuple[Body, ...]:
    """The branches of both, on operands ``given``."""
    made, count = [], len(a.inputs) - 1
    for first, second in zip(bodies(a), bodies(b), strict=True):
        build = Builder()
        arguments = [placeholder(x) for x in given]
        results = inlined(build, first.graph, arguments[:count], first.graph.outputs)
        rest = iter(arguments[count:])
        read = [results[x.attrs[0]] if _is_result(a, x) else next(rest) for x in b.inputs[1:]]
        made.append(close(arguments, [*results, *inlined(build, second.graph, read, second.graph.outputs)], {}))
    return tuple(made)


def _fused(graph: Graph, a: Node, b: Node) -> Graph:
    """``graph`` with one choice in the place of the two."""
    given = [*a.inputs[1:], *[x for x in b.inputs[1:] if not _is_result(a, x)]]
    branches, first = _branches(a, b, given), len(bodies(a)[0].graph.outputs)
    build = Builder()
    image: dict[Node, Node] = {}

    def needs(n: Node) -> Sequence[Node]:
        return (a,) if n is b else [a.inputs[0], *given] if n is a else n.inputs

    for n in post_order([*graph.inputs, *graph.outputs], needs):
        if n is a:
            image[a] = build(switch, tuple([image[x] for x in needs(a)]), (branches,))
        elif n is b:
            image[b] = image[a]
        elif n.op is project and n.inputs[0] is b:
            image[n] = build(project, (image[b],), (first + n.attrs[0], *n.attrs[1:]))
        else:
            image[n] = build(n.op, tuple([image[x] for x in n.inputs]), n.attrs)
    return graph.mapped(image)
