"""Streamed arrays: which arrays come from memory whenever they are read, not from a cache. Those of a program that reads much are, small ones too.

This decides how arrays are read. The order of sums is chosen by the sizes of what is summed alone: a value depends on the expression that it stands
for, not on what else a program computes.
"""

from __future__ import annotations

from hologram.ir.graph import Graph
from hologram.ir.symbolic import prod

UNCACHED_BYTES = 24 * 2**20  # from which what is read is far beyond the caches
MIN_PREFETCHED_BYTES = 8 * 2**20  # arrays from this size on are not in the second-level cache
MIN_STREAMED_BYTES = 2**18  # neither are those from this size on, where a program reads many
MIN_ROW_BLOCKED_ARRAY_BYTES = UNCACHED_BYTES  # of arrays whose long columns are reduced in blocks of rows; above, each size has a program of its own


def prefetched_bytes(graph: Graph) -> int:
    """The size from which on inputs of the graph's kernels are worth hints."""
    sizes = [prod(n.shape) * n.dtype.itemsize for n in graph.nodes() if n.op.kind == "leaf"]
    read = sum(n for n in sizes if isinstance(n, int))
    return MIN_PREFETCHED_BYTES if read < UNCACHED_BYTES else MIN_STREAMED_BYTES
