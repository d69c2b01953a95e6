"""The way of a graph to something that runs. Importing this module loads LLVM."""

from __future__ import annotations

from hologram.backends.cpu.executable import Executable
from hologram.graph.passes import canonicalise
from hologram.trace.node import Graph

PRECISIONS = ("exact", "standard", "fast")


def compile_graph(graph: Graph, *, precision: str = "standard") -> Executable:
    """Canonical reduction, fusion, planning and code generation for the CPU. Raises ValueError for an unknown precision."""
    if precision not in PRECISIONS:
        raise ValueError(f"precision {precision!r}: it is one of {', '.join(PRECISIONS)}")
    return Executable(graph, precision, canonicalise)
