"""Residuals: what the linear part of a derivative reads of the rest."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hologram.graph.blocking.score_regions import rematerialized
from hologram.ir.leaves import leaf
from hologram.ir.node import Node
from hologram.ir.traversal import reachable, topological


def residuals_of(tangents: Sequence[Node | None], given: Collection[Node], there: Collection[Node]) -> list[Node]:
    """Values that ``tangents`` are made of beside the tangents ``given``: arguments of a body, and what it computes.

    Moved and cast values are rematerialized; so are indices made of numbers that are ``there`` without being kept, and scores of attention, much
    larger than what they are made of.
    """
    pushed = [x for x in tangents if x is not None]
    linear = set(given)
    order = topological(pushed, stop=linear.copy().__contains__)
    again = rematerialized(order) | _indices(order, there)
    for n in order:
        if any(x in linear for x in n.inputs):
            linear.add(n)
    read = [x for n in order if n in linear and n not in given for x in n.inputs if x not in linear]

    def is_rematerialized(n: Node) -> bool:
        return n.op.kind == "movement" or n.op.name == "cast" or n in again

    needed = reachable([*read, *(x for x in pushed if x not in linear)], lambda n: n.inputs if is_rematerialized(n) else ())
    return [n for n in needed if n.op.name not in ("const", "iota") and n.op is not leaf and not is_rematerialized(n)]


def _indices(order: Sequence[Node], there: Collection[Node]) -> set[Node]:
    """Scalar integers and bools that cheap arithmetic makes of numbers ``there``."""
    made = {x for x in there if not x.shape and x.dtype.kind in "biu"}
    found = set()
    for n in order:
        is_cheap = n.op.kind == "elementwise" and not n.shape and n.dtype.kind in "biu"
        if is_cheap and all(x in made or x.op.name == "const" for x in n.inputs):
            found.add(n)
            made.add(n)
    return found
