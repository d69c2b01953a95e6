"""Shared divisors: which quotients are products with a reciprocal is a fact of the graph, so kernels give the bits of the legalized graph's nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.shared_divisors import share_divisors
from hologram.ir.graph import Graph
from hologram.ir.node import Node
from tests.support.building import Draft
from tests.support.graphs.one_by_one import legalized, one_by_one, same
from tests.support.graphs.random_graphs import arguments, seeds
from tests.support.graphs.roundings import quotients
from tests.support.optable import compiler

SHAPE = (4, 6)

Make = Callable[[Draft, Node], Node]

SHARED: dict[str, Make] = {
    "by a scalar": lambda d, x: d("div", x, d.input(dtype=x.dtype.name)),
    "by a constant": lambda d, x: d("div", x, d.const(3.0, x.dtype.name)),
    "by one for each row": lambda d, x: d("div", x, d("broadcast", d.input(4, dtype=x.dtype.name), SHAPE, (0,))),
    "by what is made of those": lambda d, x: d("div", x, d("exp", d("broadcast", d.input(4, dtype=x.dtype.name), SHAPE, (0,)))),
    "by a row's sum": lambda d, x: d("div", d("exp", x), d("broadcast", d("reduce_sum", d("exp", x), (1,)), SHAPE, (0,))),
}


def _product(d: Draft, x: Node, perm: tuple[int, ...], axis: int) -> Node:
    """A product of two matrices, of the shape of ``x``: by a sum along ``axis`` of their products, in which axes are permuted."""
    name = x.dtype.name
    factors = (d("broadcast", d.input(4, 5, dtype=name), (4, 6, 5), (0, 2)), d("broadcast", d.input(6, 5, dtype=name), (4, 6, 5), (1, 2)))
    return d("reduce_sum", d("transpose", d("fused_mul", *factors), perm), (axis,))


SHARED["a product of matrices"] = lambda d, x: d("div", _product(d, x, (0, 1, 2), 2), d.input(dtype=x.dtype.name))
SHARED["a product of matrices, moved"] = lambda d, x: d("div", _product(d, x, (0, 2, 1), 1), d.input(dtype=x.dtype.name))
DIVIDED: dict[str, Make] = {
    "by one for each column": lambda d, x: d("div", x, d("broadcast", d.input(6, dtype=x.dtype.name), SHAPE, (1,))),
    "by an array": lambda d, x: d("div", x, d.input(*SHAPE, dtype=x.dtype.name)),
    "a scalar": lambda d, x: d("div", d("reduce_sum", x, (0, 1)), d.const(3.0, x.dtype.name)),
    "a mean": lambda d, x: d("div", d("reduce_sum", x, (1,)), d.const(3.0, x.dtype.name)),
    "a mean of squares": lambda d, x: d("div", d("reduce_sum", d("mul", x, x), (0,)), d.const(3.0, x.dtype.name)),
    "a weighted mean": lambda d, x: d("div", d("reduce_sum", d("mul", x, d("broadcast", d.input(4), SHAPE, (0,))), (0,)), d.const(3.0)),
    "the same for a row": lambda d, x: d("div", d("broadcast", d.input(4, dtype=x.dtype.name), SHAPE, (0,)), d.const(3.0, x.dtype.name)),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", SHARED)
def test_one_divisor_of_many_is_inverted(name: str, dtype: str) -> None:
    d = Draft()
    graph = share_divisors(d.graph(SHARED[name](d, d.input(*SHAPE, dtype=dtype))))
    quotients = [n for n in graph.nodes() if n.op.name == "div"]
    assert not quotients if name == "by a constant" else [n.inputs[0].op.name for n in quotients] == ["const"]
    assert graph.outputs[0].dtype.name == dtype


@pytest.mark.parametrize("name", DIVIDED)
def test_others_are_divided(name: str) -> None:
    d = Draft()
    before = d.graph(DIVIDED[name](d, d.input(*SHAPE)))
    assert [n.op.name for n in share_divisors(before).nodes()] == [n.op.name for n in before.nodes()]


def test_in_exact_all_are_divided() -> None:
    x = np.linspace(1, 2, 100, dtype=np.float32)
    np.testing.assert_array_equal(hg.jit(lambda x: x / x[3], precision="exact")(x), x / x[3])


@given(quotients(), seeds, st.booleans())
def test_kernels_give_the_bits_of_their_nodes_one_by_one(graph: Graph, seed: int, special: bool) -> None:
    arrays = arguments(graph, seed, special)
    legal = legalized(graph)
    note(str(legal))
    assert same(compiler()(graph, precision="standard").run_numpy(arrays), one_by_one(legal, arrays))


@pytest.mark.parametrize("axis", [0, 1])
def test_programs_of_symbolic_extents_have_the_bits_of_static_ones(axis: int) -> None:
    rng = np.random.default_rng(axis)

    def softmax(x: Any) -> Any:
        e = hnp.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    static, dynamic = hg.jit(softmax, dynamic=False), hg.jit(softmax, dynamic=True)
    for shape in ((5, 9), (40, 33), (3, 200)):
        x = rng.standard_normal(shape).astype(np.float32)
        np.testing.assert_array_equal(np.asarray(dynamic(x)), np.asarray(static(x)))
