"""Cases of the op table that are compiled together, as one graph."""

from __future__ import annotations

from hologram import dtypes
from hologram.ir.graph import Graph
from hologram.ir.leaves import input_
from hologram.ir.node import Builder, Node
from hologram.primitives import Op
from tests.support.optable import Case

BATCH = 16  # cases compiled together, each an output of its own: most of a compile's time is per compile
KINDS = ("elementwise", "movement", "reduce", "scan", "gather", "scatter", "sort", "leaf", "contraction")


def runs_alone(row: Op) -> bool:
    """Not an argument or a storage, and without a precondition that the unused lanes of a vector would break: 0 / 0 traps."""
    return not {"storage", "token"} & set(row.attrs) and row.tests.get("guard") not in ("divisor", "count")


def batch_graph(batch: tuple[Case, ...]) -> Graph:
    build = Builder()
    inputs: list[Node] = []
    outputs: list[Node] = []
    for row, attrs, arrays in batch:
        mine = [build(input_, (), (len(inputs) + i, a.shape, dtypes.of(a.dtype).name, None)) for i, a in enumerate(arrays)]
        inputs += mine
        outputs.append(build(row, tuple(mine), attrs))
    return Graph(inputs, outputs)
