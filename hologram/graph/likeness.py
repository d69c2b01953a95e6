"""Whether two graphs that differ in numbers, constants in one and arguments in the other, are computed in the same way.

Sums keep their order, and products the sums that take them unrounded, where legalization finds the same ops for the same shapes. Signs may stand
elsewhere: a constant takes them up, an argument cannot.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from hologram.graph.pass_manager import Context, run_passes
from hologram.graph.pipeline import LEGALIZE, canonicalise
from hologram.graph.schedule.tiles import TileConfig
from hologram.ir.graph import Graph
from hologram.ir.leaves import const, input_
from hologram.ir.node import Node


def are_alike(by_value: Graph, with_arguments: Graph, precision: str, tile: TileConfig | None, hold: int) -> bool:
    """Whether programs of both graphs compute the same. ``with_arguments`` has further inputs, behind those of ``by_value``, for some constants."""
    inputs = len(by_value.inputs)
    return _work(by_value, inputs, precision, tile, hold) == _work(with_arguments, inputs, precision, tile, hold)


def _work(graph: Graph, inputs: int, precision: str, tile: TileConfig | None, hold: int) -> Counter[Any]:
    """What a legalized graph computes of more than numbers: constants, and inputs behind the first ``inputs``."""
    legalized: Graph = run_passes(canonicalise(graph, precision), LEGALIZE, Context(precision, tile, hold))
    numbers: set[Node] = set()
    found: Counter[Any] = Counter()
    for x in legalized.nodes():
        if x.op is const or (x.op is input_ and x.attrs[0] >= inputs) or (x.inputs and numbers.issuperset(x.inputs)):
            numbers.add(x)
        elif x.op.name != "neg" and x.op is not input_:
            found["add" if x.op.name == "sub" else x.op.name, x.attrs, x.shape, x.dtype] += 1
    return found
