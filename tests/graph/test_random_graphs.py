"""Random graphs: the CPU against the reference in all three precisions, and canonical form as a fixpoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given

from hologram import dtypes
from hologram.backends.native.storage import copy_of
from hologram.ir.graph import Graph
from hologram.ir.leaves import input_, leaf
from hologram.ir.node import Builder, Node, const_attrs
from hologram.primitives import TABLE
from tests.support.graphs.random_graphs import arguments, error_bounds, exact_graphs, seeds, smooth_graphs, values_of
from tests.support.optable import compiler, mismatch

pytestmark = pytest.mark.usefixtures("fully_compiled")

PRECISIONS = ("exact", "standard", "fast")


@given(exact_graphs(), seeds)
def test_references_keep_their_type_rules_on_random_graphs(graph: Graph, seed: int) -> None:
    values_of(graph, arguments(graph, seed, special=True))


@given(smooth_graphs(), seeds)
def test_error_bounds_hold_for_float64(graph: Graph, seed: int) -> None:
    """The bounds themselves: the graph recomputed in float64 stays within them."""
    arrays = arguments(graph, seed, special=False)
    values = values_of(graph, arrays)
    with np.errstate(over="ignore", invalid="ignore"):
        assume(all(np.isfinite(v.astype(np.float64)).all() for v in values.values()))
    wide = widened(graph)
    precise = values_of(wide, [a.astype(n.dtype.np) for a, n in zip(arrays, wide.inputs, strict=True)])
    for out, wide_out, bound in zip(graph.outputs, wide.outputs, error_bounds(graph, values), strict=True):
        if out.dtype.is_float:
            assert (np.abs(values[out].astype(np.float64) - precise[wide_out]) <= bound * 1.01 + 1e-30).all()


def widened(graph: Graph) -> Graph:
    """The same graph with every float a float64."""
    build = Builder()
    wide: dict[Node, Node] = {}

    def widen(attribute: Any) -> Any:
        return "float64" if attribute in ("float32", "bfloat16") else attribute

    for node in graph.nodes():
        attrs = tuple(widen(a) for a in node.attrs)
        if node.op is TABLE["const"] and node.dtype.is_float:
            attrs = const_attrs(np.frombuffer(node.attrs[1], node.dtype.np)[0], dtypes.float64)
        wide[node] = build(node.op, tuple(wide[x] for x in node.inputs), attrs)
    return Graph([wide[x] for x in graph.inputs], [wide[x] for x in graph.outputs])


@given(exact_graphs(), seeds)
def test_cpu_gives_the_references_bits(graph: Graph, seed: int) -> None:
    compile_graph = compiler()
    arrays = arguments(graph, seed, special=True)
    values = values_of(graph, arrays)
    got = compile_graph(graph, precision="exact").run_numpy(arrays)
    for out, g in zip(graph.outputs, got, strict=True):
        assert g.dtype == out.dtype.np and g.shape == out.shape
        assert not mismatch(g, values[out], 0).any()


@given(exact_graphs(), seeds)
def test_constants_give_what_arguments_give(graph: Graph, seed: int) -> None:
    """All arguments but the first are closed over instead: what is made of them is computed once."""
    assume(len(graph.inputs) > 1)
    arrays = arguments(graph, seed, special=True)
    b, image = Builder(), {}
    for node in graph.nodes():
        if node.op is input_ and node.attrs[0] > 0:
            image[node] = b(leaf, (), (copy_of(arrays[node.attrs[0]]), node.shape, node.dtype.name))
        else:
            image[node] = b(node.op, tuple([image[x] for x in node.inputs]), node.attrs)
    closed = Graph([image[x] for x in graph.inputs[:1]], [image[x] for x in graph.outputs])
    want = compiler()(graph, precision="exact").run_numpy(arrays)
    for w, g in zip(want, compiler()(closed, precision="exact").run_numpy(arrays[:1]), strict=True):
        assert not mismatch(g, w, 0).any()


@pytest.mark.parametrize("precision", ["standard", "fast"])
@given(graph=smooth_graphs(), seed=seeds)
def test_cpu_stays_within_the_error_bounds(precision: str, graph: Graph, seed: int) -> None:
    compile_graph = compiler()
    arrays = arguments(graph, seed, special=False)
    values = values_of(graph, arrays)
    with np.errstate(over="ignore", invalid="ignore"):
        assume(all(np.isfinite(v.astype(np.float64)).all() for v in values.values()))
    got = compile_graph(graph, precision=precision).run_numpy(arrays)
    for out, g, bound in zip(graph.outputs, got, error_bounds(graph, values), strict=True):
        assert g.dtype == out.dtype.np and g.shape == out.shape
        assert (np.abs(g.astype(np.float64) - values[out].astype(np.float64)) <= 2 * bound + 1e-30).all()


@pytest.mark.parametrize("precision", PRECISIONS)
@given(graph=exact_graphs(), seed=seeds)
def test_canonicalising_twice_equals_once(precision: str, graph: Graph, seed: int) -> None:
    passes = pytest.importorskip("hologram.graph.pipeline", reason="the canonical passes are not there")
    once = passes.canonicalise(graph, precision)
    assert str(passes.canonicalise(once, precision)) == str(once)
    if precision == "exact":
        arrays = arguments(graph, seed, special=True)
        before, after = values_of(graph, arrays), values_of(once, arrays)
        for a, b in zip(graph.outputs, once.outputs, strict=True):
            assert not mismatch(after[b], before[a], 0).any()
