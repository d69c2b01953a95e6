"""Recomputation: blocks that are cheap to make are made again for each use, and not kept between their uses.

``(x - x.mean(0)) ** 2`` needs each block of x twice: for the mean, and once the mean is there. Dask keeps them all in between, on disk where memory
ends. Here each *consumer* (a reduction, a product, whatever rearranges blocks, a result) gets copies of the layers before it that compute blocks
from nothing, from what is read, or elementwise from such blocks and smaller arrays; fusion then makes one task of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from dask._task_spec import TaskRef
from dask.base import tokenize
from dask.blockwise import Blockwise
from dask.core import reverse_dict
from dask.highlevelgraph import HighLevelGraph, Layer

SMALLER = 2  # an operand with so many times fewer elements than the result may be kept: the result is not worth its place


def recompute(graph: HighLevelGraph, outputs: Iterable[str]) -> HighLevelGraph:
    """``graph`` with layers that are cheap to compute copied for each of their consumers. Layers named in ``outputs`` are kept as they are."""
    layers, dependents = graph.layers, reverse_dict(graph.dependencies)
    kept = set(outputs)
    cheap: set[str] = set()
    for name in graph._toposort_layers():
        layer = layers[name]
        if name not in kept and dependents[name] and _is_cheap(name, layer, graph, cheap) and all(_takes(layers[d], name) for d in dependents[name]):
            cheap.add(name)
    cones = {name: _cone(name, graph.dependencies, cheap) for name in layers if name not in cheap}
    users: dict[str, int] = dict.fromkeys(cheap, 0)
    for cone in cones.values():
        for name in cone:
            users[name] += 1
    out, dependencies = dict(layers), {name: set(found) for name, found in graph.dependencies.items()}
    for consumer, cone in cones.items():
        names = {name: f"{name}-{tokenize(consumer)}" for name in cone if users[name] > 1}
        for name in (*cone, consumer) if names else ():
            layer = layers[name]
            new = names.get(name, name)
            if isinstance(layer, Blockwise):
                out[new] = _renamed(layer, new, names)
            dependencies[new] = {names.get(d, d) for d in graph.dependencies[name]}
    for name in (n for n in cheap if users[n] > 1):
        del out[name], dependencies[name]
    return HighLevelGraph(out, dependencies)


def _cone(consumer: str, dependencies: Mapping[str, Any], cheap: set[str]) -> list[str]:
    """The cheap layers that are computed for a layer alone, if none is kept."""
    found: dict[str, None] = {}
    waiting = [consumer]
    while waiting:
        for name in sorted(dependencies[waiting.pop()] & cheap):
            if name not in found:
                found[name] = None
                waiting.append(name)
    return list(found)


def _is_cheap(name: str, layer: Layer, graph: HighLevelGraph, cheap: set[str]) -> bool:
    """Whether each block of a layer is computed from blocks of the same place, all of which are computed as cheaply, or small."""
    if not isinstance(layer, Blockwise) or layer.output_blocks is not None:
        return False
    if any(axes is not None and not set(axes) <= set(layer.output_indices) for _, axes in layer.indices):
        return False
    size = _elements(layer)
    sizes = [(d in cheap, _elements(graph.layers[d])) for d in graph.dependencies[name]]
    return size is not None and all(n is not None and (n < SMALLER * size if is_cheap else SMALLER * n <= size) for is_cheap, n in sizes)


def _elements(layer: Layer) -> int | None:
    """How many elements the array of a layer has; None where that is not known."""
    shape = (layer.collection_annotations or {}).get("shape")
    return None if shape is None or any(math.isnan(n) for n in shape) else math.prod(shape)


def _takes(layer: Layer, name: str) -> bool:
    """Whether a consumer takes the blocks of the layer ``name`` one by one, so that another layer can stand in its place."""
    if not isinstance(layer, Blockwise):
        return False
    whole = {source.key for source, axes in layer.indices if axes is None and isinstance(source, TaskRef)}
    return name not in whole and any(source == name for source, axes in layer.indices if axes is not None)


def _renamed(layer: Blockwise, name: str, names: Mapping[Any, str]) -> Blockwise:
    """The layer as ``name``, which reads other layers."""
    new = Blockwise(
        name,
        layer.output_indices,
        layer.task.substitute({}, key=name) if name != layer.output else layer.task,
        [(source if axes is None else names.get(source, source), axes) for source, axes in layer.indices],
        {names.get(source, source): blocks for source, blocks in layer.numblocks.items()},
        concatenate=layer.concatenate,
        new_axes=dict(layer.new_axes),
        annotations=layer.annotations,
        io_deps=layer.io_deps,
    )
    new.collection_annotations = layer.collection_annotations
    return new
