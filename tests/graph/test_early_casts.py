"""Rounding before moving: which casts come first, and that no bit changes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hologram import dtypes
from hologram.graph.early_casts import round_before_moving
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.ir.node import Node
from tests.support.building import Draft


def _moved(d: Draft, x: Node) -> Node:
    return d("transpose", d("reshape", x, (4, 2, 3)), (2, 0, 1))


def _casts(graph: Graph) -> list[str]:
    return [n.inputs[0].op.name for n in graph.nodes() if n.op.name == "cast"]


def test_a_moved_sum_is_rounded_where_it_is_made() -> None:
    d = Draft()
    graph = Graph(d.inputs, [d("cast", _moved(d, d("reduce_sum", d.input(4, 6, 5), (2,))), "bfloat16")])
    assert _casts(graph) == ["transpose"] and _casts(round_before_moving(graph)) == ["reduce_sum"]


def test_what_others_read_is_left() -> None:
    d = Draft()
    total = d("reduce_sum", d.input(4, 6, 5), (2,))
    moved = _moved(d, total)
    rounded = d("cast", moved, "bfloat16")
    for others in (moved, d("exp", total), total):
        graph = Graph(d.inputs, [rounded, others])
        assert round_before_moving(graph) is graph
    for wide in ("float64", "float32"):
        graph = Graph(d.inputs, [d("cast", moved, wide)])
        assert round_before_moving(graph) is graph


@given(st.sampled_from(["reduce_sum", "reduce_max"]), st.sampled_from(["bfloat16", "float16", "int8"]), st.permutations(range(3)))
def test_no_bit_changes(op: str, dtype: str, perm: list[int]) -> None:
    d = Draft()
    moved = d("transpose", d("reshape", d(op, d.input(4, 6, 5), (2,)), (4, 2, 3)), tuple(perm))
    graph = Graph(d.inputs, [d("cast", moved, dtype)])
    x = np.random.default_rng(0).standard_normal((4, 6, 5)).astype(np.float32)
    changed = round_before_moving(graph)
    assert _casts(changed) == [op] and changed.outputs[0].dtype is dtypes.of(dtype)
    assert np.array_equal(evaluate(graph, [x])[0], evaluate(changed, [x])[0])
