"""Late products: in a loop, a sum of two products takes that one unrounded whose factors come later in a step.

``c * a + f(c) * b`` waits for ``f(c)``. Taken by the sum (:mod:`hologram.graph.multiply_add`), the late product costs the loop nothing more than the
sum; rounded by itself, it comes between two steps. The sum takes the first of its operands that is a product, so operands change their places: a
sum commutes, and a difference is a sum of what is negated.

How late a value is depends on the body alone: it is the longest way from a carry, as the op table counts costs. So every target takes the same one.
"""

from __future__ import annotations

from hologram.graph.legalize.loop_steps import with_changed_steps
from hologram.graph.multiply_add import product_of
from hologram.ir.graph import Graph
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE
from hologram.primitives.control import scan

_EARLY = -1  # of what no carry is needed for
_CONTROL_COST = 1000  # of a loop or branch, which is later than arithmetic beside it


def put_late_products_first(graph: Graph) -> Graph:
    """``graph`` with loops whose sums have the later of two products first; the graph itself where there are none."""
    return with_changed_steps(graph, _changed)


def _changed(loop: Node) -> Graph | None:
    """The body of a loop with other operands first; None where none is."""
    body: Graph = loop.attrs[0 if loop.op is scan else 1].graph
    sums = [n for n in body.nodes() if n.op.name in ("add", "sub") and all(product_of(x) is not None for x in n.inputs)]
    if not sums:
        return None
    consts, carries = (loop.attrs[1], loop.attrs[2]) if loop.op is scan else (loop.attrs[2], len(body.outputs))
    late = _lateness(body, body.inputs[consts : consts + carries])
    turned = {n for n in sums if late[n.inputs[1]] > late[n.inputs[0]]}
    if not turned:
        return None
    build = Builder()
    image: dict[Node, Node] = {}
    for n in body.nodes():
        inputs = [image[x] for x in n.inputs]
        if n not in turned:
            image[n] = build(n.op, tuple(inputs), n.attrs)
            continue
        first, second = inputs
        image[n] = build(TABLE["add"], (build.make("neg", second) if n.op.name == "sub" else second, first))
    return body.mapped(image)


def _lateness(body: Graph, carries: list[Node]) -> dict[Node, int]:
    late = dict.fromkeys(carries, 0)
    for n in body.nodes():
        if n not in late:
            before = max([late[x] for x in n.inputs], default=_EARLY)
            late[n] = before if before == _EARLY else before + _cost(n)
    return late


def _cost(n: Node) -> int:
    return {"movement": 0, "control": _CONTROL_COST}.get(n.op.kind, max(1, n.op.cost))
