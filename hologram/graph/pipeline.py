"""The way of a graph to something that runs. Importing this module loads LLVM."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

from hologram.backends.cpu.executable import Executable
from hologram.backends.devices import CPU
from hologram.graph.passes import canonicalise
from hologram.trace.node import Graph

PRECISIONS = ("exact", "standard", "fast")


@contextlib.contextmanager
def _collected_later() -> Iterator[None]:
    """Puts the cyclic garbage collector off: a compiler makes many objects at once, nearly all of which live, and scanning them over and over
    would make its time grow faster than the program."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def compile_graph(graph: Graph, *, precision: str = "standard", device: str = CPU) -> Any:
    """Canonical reduction, fusion, planning and code generation for ``device``. Raises ValueError for an unknown precision."""
    if precision not in PRECISIONS:
        raise ValueError(f"precision {precision!r}: it is one of {', '.join(PRECISIONS)}")
    with _collected_later():
        if device == CPU:
            return Executable(graph, precision, canonicalise)
        from hologram.backends.devices import runtime

        return runtime(device).compile(graph, precision, canonicalise)
