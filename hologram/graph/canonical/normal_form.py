"""Which graphs canonical reduction leaves as they are, told by one look at each node. Small graphs that run once save the passes."""

from __future__ import annotations

from collections import Counter

from hologram.graph.rewrite.engine import count_users
from hologram.graph.rewrite.rewriter import Rewriter
from hologram.graph.rewrite.rule import RuleSet
from hologram.graph.rewrite.rules import ALL, TOP_DOWN
from hologram.graph.rewrite.rules.folding import commute, empty
from hologram.ir.graph import Graph

_KINDS = frozenset(("leaf", "elementwise", "movement", "gather", "reduce", "scan"))  # for the others there are passes of their own
RULES = RuleSet([r for r in ALL if r not in (commute, empty)])
USERS_FIRST = frozenset(TOP_DOWN)  # which see how many users a node has


def is_normal(graph: Graph, precision: str) -> bool:
    """Whether canonical reduction changes nothing in ``graph``, in which equal nodes are one, but the order of operands of commutative ops.

    The answer may be False where it does not.
    """
    if not graph.kinds() <= _KINDS or not all([x.attrs[3] is None for x in graph.inputs]):
        return False
    candidates = RULES.index(precision)
    b = Rewriter(candidates, Counter())
    nodes, table = graph.nodes(), b.table
    for n in nodes:
        if n.dtype.is_complex or 0 in n.shape:
            return False
        if "commutative" in n.op.algebra and (n.op, n.inputs[::-1], n.attrs) in table:
            return False  # the order of operands makes it the same node
        table[n.op, n.inputs, n.attrs] = n
        for r in candidates(n):
            if b.users is None and r in USERS_FIRST:
                b.users = count_users(nodes, graph.outputs)
            made = r.apply(n, b)
            if made is not None and b.fit(made, n.shape) is not n:
                return False
    return True


__all__ = ["RULES", "USERS_FIRST", "is_normal"]
