"""networkx: graphs of adjacency matrices that are Tensors, and what Hologram computes of graphs."""

from __future__ import annotations

import numpy as np

import hologram as hg
import hologram.numpy as hnp
from tests.support.runner.libraries import library

networkx = library("networkx")
W = (np.random.default_rng(0).uniform(size=(8, 8)) < 0.4).astype(float)


def test_graphs_of_matrices() -> None:
    found = networkx.from_numpy_array(hg.tensor(W), create_using=networkx.DiGraph)
    assert networkx.utils.graphs_equal(found, networkx.from_numpy_array(W, create_using=networkx.DiGraph))
    graph = networkx.Graph()
    graph.add_weighted_edges_from(zip(hnp.arange(3).tolist(), [1, 2, 3], hg.tensor([0.5, 0.25, 2.0]), strict=True))
    assert float(networkx.shortest_path_length(graph, 0, 3, weight="weight")) == 2.75


def test_page_rank() -> None:
    def ranks(w: hg.Tensor) -> hg.Tensor:
        out = w.sum(1, keepdims=True)
        steps = hnp.where(out > 0, w / hnp.where(out > 0, out, 1), 1 / len(w))
        return hg.fori_loop(0, 200, lambda _, p: 0.85 * (p @ steps) + 0.15 / len(w), hnp.full(len(w), 1 / len(w), dtype="float64"))

    wanted = networkx.pagerank(networkx.from_numpy_array(W, create_using=networkx.DiGraph))
    np.testing.assert_allclose(hg.jit(ranks)(W), list(wanted.values()), atol=1e-5)


def test_layouts_from_positions_that_are_tensors() -> None:
    """networkx computes them in place."""
    graph = networkx.from_numpy_array(W)
    start = {i: np.array([float(i), float(i % 3)]) for i in graph}
    for layout in (networkx.spring_layout, networkx.kamada_kawai_layout):
        options = {"seed": 0, "iterations": 5} if layout is networkx.spring_layout else {}
        wanted = layout(graph, pos=start, **options)
        found = layout(graph, pos={i: hg.tensor(p) for i, p in start.items()}, **options)
        for i in graph:
            np.testing.assert_allclose(found[i], wanted[i], rtol=1e-6, atol=1e-9)
