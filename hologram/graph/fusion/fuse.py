"""Fusion: which values are computed together in one kernel.

A *materialized value* is one that some kernel computes as such: an output, a reduction, a scan, or a value worth keeping because it is expensive
and wanted more than once. Everything else is recomputed where it is wanted, in registers. A :class:`Group` is a set of materialized values that
share one iteration space ``shape``; if ``axes`` is set, its reductions and scans run along those neighbouring axes, and these live
either at full level (one value an element) or at row level (one value a row).

Values join a group greedily in topological order. The invariant: every materialized value that a member reads is in an earlier group, or in
the same group and read exactly at the reader's own element or row. So groups in order of creation are a schedule.
"""

from __future__ import annotations

import math

from hologram.graph.fusion.grouping import Grouping
from hologram.graph.fusion.groups import Call, Group
from hologram.graph.fusion.library_products import library_products
from hologram.graph.fusion.materialize import choose_materialized
from hologram.graph.fusion.rematerialize_rows import rematerialized_per_row
from hologram.ir.graph import Carries, Graph
from hologram.ir.traversal import topological


def fuse(graph: Graph, on_device: bool = False, library_flops: float = math.inf, carries: Carries = ()) -> list[Group | Call]:
    """Groups in an order in which they can run. ``on_device``: what is kept to be read as float32, but is made of narrow floats, is kept as these.
    Elsewhere streams of memory count: a launch costs less than too many of them. ``library_flops``: from how many on a matrix product is a library's.
    ``carries``: of the body of a loop.
    """
    nodes = topological(graph.outputs)
    products = library_products(nodes, library_flops)
    materialized = choose_materialized(nodes, graph.outputs, on_device, products, carries)
    grouping = Grouping(nodes, materialized, not on_device, products, carries)
    candidates = rematerialized_per_row(grouping, nodes, graph.outputs)
    return Grouping(nodes, grouping.materialized - candidates, not on_device, products, carries).groups if candidates else grouping.groups
