"""Minimum cut: which values a differentiated function saves for its backward pass.

The backward pass recomputes what it needs from the values that are saved. So any set of values that separates the arguments from the backward pass is
enough; the set of the fewest bytes is a minimum cut of the graph. (The trade of memory for computation is that of Chen et al., Training deep nets
with sublinear memory cost, 2016. PyTorch's compiler uses a minimum cut too.)

Arguments cost nothing, since their owner usually keeps them. Elementwise work and movement may be recomputed; expensive ops are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hologram.ir.node import Node
from hologram.ir.op import MULTI_RESULT
from hologram.ir.symbolic import prod
from hologram.ir.traversal import topological

RECOMPUTED = ("elementwise", "movement", "leaf", "mark", "gather")  # kinds of ops that the backward half may do again


def kept_values(arguments: Sequence[Node], cotangents: Sequence[Node], results: Sequence[Node], gradients: Sequence[Node]) -> list[Node]:
    """The nodes to save so that ``gradients`` can be computed from them and from ``cotangents``.

    ``results`` and ``gradients`` are nodes of one trace, whose inputs are ``arguments`` and ``cotangents``.
    """
    order = topological([*results, *gradients])
    backward, variable = _reached(order, cotangents), _reached(order, arguments)
    read = [x for n in order if n in backward for x in n.inputs] + list(gradients)
    wanted = [x for x in dict.fromkeys(read) if x in variable and x not in backward]
    forward = [n for n in topological(wanted) if n in variable]
    cut = _minimum_cut(forward, wanted, set(arguments))
    return [n for n in topological(wanted, stop=cut.__contains__) if n in cut]


def _reached(order: Sequence[Node], sources: Sequence[Node]) -> set[Node]:
    """All nodes that depend on ``sources``, including these; ``order`` is topological."""
    reached = set(sources)
    for n in order:
        if any(x in reached for x in n.inputs):
            reached.add(n)
    return reached


def _minimum_cut(forward: Sequence[Node], wanted: Sequence[Node], arguments: set[Node]) -> set[Node]:
    """The nodes of ``forward`` of the fewest bytes that separate ``arguments`` and expensive results from ``wanted``."""
    import networkx

    if not wanted:
        return set()
    network = networkx.DiGraph()
    number = {n: i for i, n in enumerate(forward)}
    for n, i in number.items():
        network.add_edge((i, "in"), (i, "out"), capacity=0 if n in arguments else _bytes(n))
        if n in arguments or n.op.kind not in RECOMPUTED:
            network.add_edge("source", (i, "in"), capacity=math.inf)
        network.add_edges_from((((number[x], "out"), (i, "in")) for x in n.inputs if x in number), capacity=math.inf)
    network.add_edges_from((((number[n], "out"), "sink") for n in wanted), capacity=math.inf)
    _, (near, _) = networkx.minimum_cut(network, "source", "sink")
    return {n for n, i in number.items() if (i, "in") in near and (i, "out") not in near}


def _bytes(n: Node) -> float:
    """The bytes of a saved node. A node that stands for several values has no bytes of its own: the values picked from it are saved."""
    size = prod(n.shape)
    return math.inf if n.op.kind in MULTI_RESULT or not isinstance(size, int) else float(size * n.dtype.itemsize)
