"""Exchanged sums: which are found, that values stay, and that derivatives of attention need no pass for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.library.attention.exchanged_sums import exchange_sums
from hologram.graph.pipeline import canonicalise
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate

SIZES = {"b": 2, "q": 5, "k": 7, "d": 3}


def _traced(f: Any, *arrays: np.ndarray) -> Graph:
    return canonicalise(hg.make_graph(f)(*arrays), "standard")


def _values(*axes: str, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 2, [SIZES[a] for a in axes]).astype(np.float32)


def _close(graph: Graph, changed: Graph, arrays: list[np.ndarray]) -> None:
    for got, want in zip(evaluate(changed, arrays), evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5)


@st.composite
def orders(draw: st.DrawFn) -> dict[str, str]:
    """In which order the axes of each array lie; and whether all, some or none have the axis of a batch."""
    batched = draw(st.sampled_from(["wgvs", "wg", "wgs", ""]))
    axes = {"w": "qk", "g": "qd", "v": "kd", "s": "q"}
    return {name: "".join(draw(st.permutations(own + "b" * (name in batched)))) for name, own in axes.items()}


@given(orders(), st.booleans(), st.booleans(), st.sampled_from(["div", "mul", "none"]))
def test_values_stay_whichever_way_the_arrays_lie(of: dict[str, str], negated: bool, twice: bool, scaled: str) -> None:
    batch = "b" if "b" in of["w"] else ""

    def f(w: Any, g: Any, v: Any, s: Any) -> Any:
        c = hnp.einsum(f"{of['g']},{of['v']}->{batch}qk", g, v)
        e = hnp.exp(hnp.einsum(f"{of['w']}->{batch}qk", w))
        row = hnp.expand_dims(hnp.einsum(f"{of['s']}->{batch if 'b' in of['s'] else ''}q", s), -1)
        p = e / row if scaled == "div" else e * row if scaled == "mul" else e
        o = hnp.einsum(f"{batch}qk,{of['v']}->{batch}qd", p, v)
        x = p * c / row if twice else c * p
        return o, hnp.sum(-x if negated else x, axis=-1)

    arrays = [_values(*of[name], seed=i) for i, name in enumerate("wgvs")]
    graph = _traced(f, *arrays)
    changed = exchange_sums(graph)
    assert changed is not graph
    _close(graph, changed, arrays)


@settings(max_examples=40)
@given(st.sampled_from(["q", "k"]), st.sampled_from(["w", "g", "v"]), st.booleans())
def test_what_is_no_exchange_is_left_or_right(other: str, changed_array: str, squared: bool) -> None:
    """Other weights, another factor, or a sum along another axis: whatever the rule does, values stay."""

    def f(w: Any, g: Any, v: Any) -> Any:
        wide = {"w": w * 1.5 if squared else w, "g": g, "v": v}
        wide[changed_array] = wide[changed_array] * wide[changed_array] if squared else wide[changed_array] + 1.0
        o = hnp.einsum("qk,kd->qd", wide["w"], wide["v"])
        c = hnp.einsum("qd,kd->qk", g, v)
        return o, hnp.sum(w * c, axis="qk".index(other))

    arrays = [_values(*axes, seed=i) for i, axes in enumerate(("qk", "qd", "kd"))]
    graph = _traced(f, *arrays)
    _close(graph, exchange_sums(graph), arrays)


def _attention_graph(keep_output: bool) -> Graph:
    q = np.zeros((2, 4, 64, 16), np.float32)

    def loss(q: Any, k: Any, v: Any, g: Any) -> Any:
        y = hg.nn.dot_product_attention(q, k, v)
        return hnp.sum(g * (hnp.tanh(y) if keep_output else y))

    return _traced(hg.grad(loss, argnums=(0, 1, 2)), q, q, q, q)


def _sums_over_scores(graph: Graph) -> int:
    return sum(n.op.name == "reduce_sum" and n.inputs[0].shape == (2, 4, 64, 64) for n in graph.nodes())


def test_derivatives_of_attention_use_its_result() -> None:
    with_output, alone = _attention_graph(True), _attention_graph(False)
    assert _sums_over_scores(with_output) == _sums_over_scores(alone) == 2  # of exponentials, and of the derivative
    assert _sums_over_scores(exchange_sums(with_output)) == 1
    assert exchange_sums(alone) is alone  # the forward pass would have to be run for it


def test_derivatives_are_those_of_float64() -> None:
    arrays = [np.random.default_rng(i).standard_normal((2, 3, 40, 16)).astype(np.float32) for i in range(3)]

    def loss(q: Any, k: Any, v: Any) -> Any:
        return hnp.sum(hnp.tanh(hg.nn.dot_product_attention(q, k, v)))

    f = hg.jit(hg.grad(loss, argnums=(0, 1, 2)))
    for got, want in zip(f(*arrays), f(*(a.astype(np.float64) for a in arrays)), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-4, atol=1e-5)
