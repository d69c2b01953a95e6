"""Streamed arrays: which arrays come from memory whenever they are read, not from a cache. Those of a program that reads much are, small ones too."""

from __future__ import annotations

from typing import NamedTuple

from hologram.ir.graph import Graph
from hologram.ir.symbolic import Int, prod

UNCACHED_BYTES = 24 * 2**20  # from which what is read is far beyond the caches
MIN_PREFETCHED_BYTES = 8 * 2**20  # arrays from this size on are not in the second-level cache
MIN_STREAMED_BYTES = 2**18  # neither are those from this size on, where a program reads many
MIN_STREAMED_ROW_BLOCKED_BYTES = 2**19  # of columns, where a program reads many


class Streams(NamedTuple):
    """Bytes of arrays: from ``prefetched`` on they are worth hints, from ``row_blocked`` on long columns are reduced row block by row block."""

    prefetched: int
    row_blocked: int

    @classmethod
    def of(cls, graph: Graph | None = None) -> Streams:
        """Those of the arrays that a graph reads, as far as their sizes are known; of None those of a graph that reads little."""
        known = 0 if graph is None else sum(n for n in _sizes(graph) if isinstance(n, int))
        if known < UNCACHED_BYTES:
            return cls(MIN_PREFETCHED_BYTES, UNCACHED_BYTES)
        return cls(MIN_STREAMED_BYTES, MIN_STREAMED_ROW_BLOCKED_BYTES)


def bytes_read(graph: Graph) -> Int:
    """Bytes of all arrays that a graph reads, an expression where extents are symbols."""
    return sum(_sizes(graph))


def _sizes(graph: Graph) -> list[Int]:
    return [prod(n.shape) * n.dtype.itemsize for n in graph.nodes() if n.op.kind == "leaf"]
