"""Fusion: which values are computed together in one kernel.

A *root* is a value that some kernel computes as such: an output, a reduction, a scan, or a value worth keeping because it is dear
and wanted more than once. Everything else is recomputed where it is wanted, in registers. A :class:`Group` is a set of roots that
share one iteration space ``shape``; if ``axes`` is set, its reductions and scans run along those neighbouring axes, and roots live
either at full level (one value an element) or at row level (one value a row).

Roots join a group greedily in topological order. The invariant: every root that a member reads is in an earlier group, or in
the same group and read exactly at the reader's own element or row. So groups in order of creation are a schedule.
"""

from __future__ import annotations

from hologram.graph.fusion.grouping import Grouping
from hologram.graph.fusion.groups import Call, Group
from hologram.graph.fusion.materialize import find_roots
from hologram.graph.fusion.rematerialize_rows import row_heads
from hologram.ir.graph import Graph
from hologram.ir.node import topological


def fuse(graph: Graph, halves: bool = False) -> list[Group | Call]:
    """Groups in an order in which they can run. ``halves``: what is kept to be read as float32, but is made of narrow floats, is kept as these."""
    nodes = topological(graph.outputs)
    grouping = Grouping(nodes, find_roots(nodes, graph.outputs, halves))
    heads = row_heads(grouping, nodes, graph.outputs)
    return Grouping(nodes, grouping.roots - heads).groups if heads else grouping.groups
