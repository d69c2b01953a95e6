"""The way of a graph to something that runs: placement on devices, then for each device the pipeline, code generation and loading.

Importing this module loads LLVM.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hologram import dtypes
from hologram.backends.build import build
from hologram.graph.pipeline import canonicalise
from hologram.graph.placement.device_parts import by_hand, is_placed, parts
from hologram.graph.placement.min_cut import is_placeable, place
from hologram.ir.devices import AUTO, CPU, accelerator, backend, find
from hologram.ir.graph import Graph
from hologram.ir.node import Node
from hologram.support.precision import PRECISIONS, guarantee


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


def compile_graph(graph: Graph, *, precision: str = "standard", device: str = CPU, homes: Sequence[str] = (), blocked: bool = False) -> Any:
    """Canonical reduction, fusion, planning and code generation for ``device``, and for those that the graph itself names. ``auto`` stands for what
    costs least; ``homes`` are the devices on which the arguments then are, by default all the CPU.

    Raises ValueError for an unknown precision, DeviceError and UnsupportedError for what cannot run where it should, with ``blocked`` also for
    attention that devices do not compute block by block, because its extents are symbols.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision {precision!r}: it is one of {', '.join(PRECISIONS)}")
    with _collected_later():
        if is_placed(graph.nodes()):
            where = by_hand(graph, next((h for h in homes if h != CPU), CPU) if device == AUTO else device)
            if set(where.values()) <= {CPU}:  # as arrays that a client asks for on the device of others
                return build(backend(CPU), graph, precision, blocked=blocked)
            return _split(graph, graph, where, precision, "placed by hand", blocked)
        return _placed(graph, precision, homes) if device == AUTO else build(backend(device), graph, precision, blocked=blocked)


def _split(traced: Graph, graph: Graph, where: Mapping[Node, str], precision: str, why: str, blocked: bool = False) -> Any:
    from hologram.backends.split import Split  # placed programs alone need it

    found = parts(graph, where)
    return Split(traced, graph, found, [build(backend(p.device), p.graph, precision, blocked=blocked) for p in found], why)


def _placed(graph: Graph, precision: str, homes: Sequence[str]) -> Any:
    """A graph where it costs least: on the CPU, on the device where some of its arguments are or else the best there is, or on both."""
    homes = homes or [CPU] * len(graph.inputs)
    device = next((h for h in homes if h != CPU), None) or accelerator()
    if device is None or not is_placeable(graph):
        return build(backend(device if device is not None and device in homes else CPU), graph, precision)
    from hologram.backends.rates import rates  # loads the runtime of devices

    canonical = canonicalise(graph, guarantee(precision))
    if find(device).why_not(precision, any(n.dtype in (dtypes.float64, dtypes.complex128) for n in canonical.nodes())) is not None:
        return build(backend(CPU), graph, precision)
    found = place(canonical, [h == device for h in homes], rates(CPU), rates(device))
    why = f"{device} or the CPU: {found}"
    sides = set(found.where.values())
    if len(sides) == 2:
        return _split(graph, canonical, {n: device if there else CPU for n, there in found.where.items()}, precision, why)
    return build(backend(device if sides == {True} else CPU), graph, precision, why)
