"""Every row of the op table on the CPU backend against the reference: bitwise for exact rows, within 2 ULP for the others."""

from __future__ import annotations

import itertools

import pytest

from hologram.ir.interpreter import evaluate
from hologram.primitives import Op
from tests.support.op_batches import BATCH, KINDS, batch_graph, runs_alone
from tests.support.optable import assert_agree, cases_of, compiler, rows

pytestmark = pytest.mark.usefixtures("fully_compiled")


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
