"""A graph on its way to an executable of one backend: the pipeline, code generation, loading."""

from __future__ import annotations

from typing import Any

from hologram.graph.compilation import Compilation
from hologram.ir.devices import Backend
from hologram.ir.graph import Graph


def build(backend: Backend, graph: Graph, precision: str, placement: str | None = None, tiled: bool = False) -> Any:
    """The executable of ``graph``. ``placement`` says why it runs there, if Hologram chose; ``tiled``: products on devices are to have tiles."""
    return backend.load(backend.generate(Compilation(graph, precision, backend.tile, placement, tiled)))
