"""The way of a graph to something that runs. Importing this module loads LLVM."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hologram import dtypes
from hologram.backends.cpu.executable import Executable
from hologram.graph.pass_manager import canonicalise
from hologram.graph.placement.device_parts import by_hand, is_placed
from hologram.graph.placement.min_cut import is_placeable, place
from hologram.ir.devices import AUTO, CPU, accelerator, find, runtime
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


def compile_graph(graph: Graph, *, precision: str = "standard", device: str = CPU, homes: Sequence[str] = ()) -> Any:
    """Canonical reduction, fusion, planning and code generation for ``device``, and for those that the graph itself names. ``auto`` stands for what
    costs least; ``homes`` are the devices on which the arguments then are, by default all the CPU.

    Raises ValueError for an unknown precision, DeviceError and UnsupportedError for what cannot run where it should.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision {precision!r}: it is one of {', '.join(PRECISIONS)}")
    with _collected_later():
        if is_placed(graph.nodes()):
            where = by_hand(graph, next((h for h in homes if h != CPU), CPU) if device == AUTO else device)
            return _split(graph, graph, where, precision, "placed by hand")
        return _placed(graph, precision, homes) if device == AUTO else _compiled(graph, precision, device)


def _split(traced: Graph, graph: Graph, where: Mapping[Node, str], precision: str, why: str) -> Any:
    from hologram.backends.split import Split

    return Split(traced, graph, where, lambda part: _compiled(part.graph, precision, part.device), why)


def _placed(graph: Graph, precision: str, homes: Sequence[str]) -> Any:
    """A graph where it costs least: on the CPU, on the device where some of its arguments are or else the best there is, or on both."""
    homes = homes or [CPU] * len(graph.inputs)
    device = next((h for h in homes if h != CPU), None) or accelerator()
    if device is None or not is_placeable(graph):
        return _compiled(graph, precision, device if device in homes else CPU)  # type: ignore[arg-type]
    from hologram.backends.rates import rates

    canonical = canonicalise(graph, guarantee(precision))
    if find(device).why_not(precision, any(n.dtype in (dtypes.float64, dtypes.complex128) for n in canonical.nodes())) is not None:
        return _compiled(graph, precision, CPU)
    found = place(canonical, [h == device for h in homes], rates(CPU), rates(device))
    sides = set(found.where.values())
    if len(sides) == 2:
        return _split(graph, canonical, {n: device if there else CPU for n, there in found.where.items()}, precision, f"{device} or the CPU: {found}")
    made = _compiled(graph, precision, device if sides == {True} else CPU)
    made.placement = f"{device} or the CPU: {found}"
    return made


def _compiled(graph: Graph, precision: str, device: str) -> Any:
    """A graph for one device."""
    return Executable(graph, guarantee(precision), canonicalise) if device == CPU else runtime(device).compile(graph, precision, canonicalise)
