"""Early casts: what a reduction gives is rounded to a narrower type before it is moved, not after.

Canonical reduction sinks movements below elementwise ops, so that a head's queries are ``cast(transpose(reshape(product)))``. The kernel of the
product would then write float32, and another read, round and move it. Here the cast comes first: the product's own kernel rounds, and whoever reads
the value reads it through the movement. A cast commutes with movements: the same bits.
"""

from __future__ import annotations

from hologram.ir.graph import Graph
from hologram.ir.node import Builder, Node
from hologram.ir.traversal import users_of

_MOVES = ("reshape", "transpose")


def round_before_moving(graph: Graph) -> Graph:
    """``graph`` with the narrowing casts of moved reductions before the movements; the graph itself where there are none."""
    if not {"cast", *_MOVES} & graph.op_names() > {"cast"}:
        return graph
    nodes = graph.nodes()
    users, outputs = users_of(nodes), set(graph.outputs)
    moves = {n: found for n in nodes if (found := _moves(n, users, outputs))}
    if not moves:
        return graph
    b = Builder()
    made: dict[Node, Node] = {}
    for node in nodes:
        if node in moves:
            made[node] = _cast_first(b, node, moves[node], made)
        else:
            made[node] = b.with_inputs(node, tuple([made[x] for x in node.inputs]))
    return graph.mapped(made)


def _moves(cast: Node, users: dict[Node, list[Node]], outputs: set[Node]) -> list[Node]:
    """The movements, the last first, between a narrowing cast and the reduction that it rounds, if nothing else reads them or the reduction."""
    if cast.op.name != "cast" or cast.dtype.itemsize >= cast.inputs[0].dtype.itemsize:
        return []
    found: list[Node] = []
    x = cast.inputs[0]
    while x.op.name in _MOVES and len(users[x]) == 1 and x not in outputs:
        found.append(x)
        x = x.inputs[0]
    return found if x.op.kind == "reduce" and len(users[x]) == 1 and x not in outputs else []


def _cast_first(b: Builder, cast: Node, moves: list[Node], made: dict[Node, Node]) -> Node:
    x = b(cast.op, (made[moves[-1].inputs[0]],), cast.attrs)
    for m in reversed(moves):
        x = b(m.op, (x,), m.attrs)
    return x
