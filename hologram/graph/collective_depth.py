"""Collective depth: how many collectives, each of which needs the one before, must have ended before a value can be computed.

What is computed together waits for what any part of it needs. So work that a collective may run beside is kept apart from work of greater depth.
"""

from __future__ import annotations

from collections.abc import Iterable

from hologram.ir.node import Node
from hologram.primitives.host.collectives import COLLECTIVES, axis_index


def is_exchange(node: Node) -> bool:
    """Whether a node exchanges data between ranks."""
    return node.op.kind == "host" and node.op in COLLECTIVES and node.op is not axis_index and bool(node.attrs[-2])


def collective_depths(nodes: Iterable[Node]) -> dict[Node, int]:
    """The depth of each of ``nodes``, in topological order. Those of other nodes that they read count as 0."""
    depth: dict[Node, int] = {}
    for n in nodes:
        depth[n] = max((depth.get(x, 0) for x in n.inputs), default=0) + is_exchange(n)
    return depth
