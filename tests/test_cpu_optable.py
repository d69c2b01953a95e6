"""Every row of the op table on the CPU backend against the reference: bitwise for exact rows, within 2 ULP for the others."""

from __future__ import annotations

import itertools

import pytest

from hologram import dtypes
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.ir.leaves import input_
from hologram.ir.node import Builder, Node
from hologram.primitives import Op
from tests.support.optable import Case, assert_agree, cases_of, compiler, rows

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


@pytest.mark.parametrize("row", [r for k in KINDS for r in rows(k) if runs_alone(r)], ids=lambda r: r.name)
def test_cpu_gives_the_reference(row: Op, everything: bool) -> None:
    compile_graph = compiler()
    remaining = cases_of(row, everything)
    while batch := tuple(itertools.islice(remaining, BATCH)):
        graph = batch_graph(batch)
        arrays = [a for case in batch for a in case[2]]
        got = compile_graph(graph, precision="exact").run_numpy(arrays)
        for case, g, w in zip(batch, got, evaluate(graph, arrays), strict=True):
            assert_agree(case, g, w)
