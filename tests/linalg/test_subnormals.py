"""Functions of ordinary numbers compute no subnormal ones on the way: processors take a hundred times as long for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.ir.node import Node

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "norm": hnp.linalg.norm,
    "norms of rows": lambda x: hnp.linalg.norm(x, axis=1),
    "norms of columns": lambda x: hg.linalg.vector_norm(x, axis=0),
    "norms of complex numbers": lambda x: hnp.linalg.norm(x + 1j * x[::-1], axis=1),
    "other orders": lambda x: hnp.linalg.norm(x, axis=1, ord=3),
    "hypot": lambda x: hnp.hypot(x, x[::-1]),
    "magnitudes": lambda x: hnp.abs(x + 1j * x[::-1]),
    "quotients": lambda x: (x + 1j) / (x[::-1] - 2j),
    "var": lambda x: hnp.var(x, axis=0),
    "corrcoef": hnp.corrcoef,
    "softmax": hg.nn.softmax,
    "logsumexp": lambda x: hg.nn.logsumexp(x, axis=0),
    "logaddexp": lambda x: hnp.logaddexp(x, x[::-1]),
    "slogdet": lambda x: hnp.linalg.slogdet(x)[1],
}


@pytest.mark.parametrize("derivative", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_value_on_the_way_is_subnormal(dtype: type, name: str, derivative: bool) -> None:
    def f(x: Any) -> Any:
        return hnp.real(FUNCTIONS[name](x)).sum()

    x = np.random.default_rng(0).standard_normal((20, 20)).astype(dtype)
    graph = hg.make_graph(hg.grad(f) if derivative else f)(x)
    computed = [n for n in graph.nodes() if n.dtype.is_float and _is_evaluated(n)]
    assert computed
    with np.errstate(all="ignore"):
        for node, value in zip(computed, evaluate(Graph(graph.inputs, computed), [x]), strict=True):
            size = np.abs(value[value != 0])
            assert not (size < np.finfo(dtype).smallest_normal).any(), f"{node.op.name} of {[n.op.name for n in node.inputs]}"


def _is_evaluated(node: Node) -> bool:
    return node.op.kind not in ("control", "host", "leaf")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_reach_as_far_as_their_type(dtype: type) -> None:
    """Numbers whose squares are beyond the type's range, among ordinary and tiny ones; infinities and NaN."""
    limits = np.finfo(dtype)
    huge, tiny = float(limits.max) / 8, float(limits.smallest_normal)
    rows = [[3 * huge, 4 * huge, 1.0], [3 * tiny, 4 * tiny, 0], [3, 4, tiny], [3 * huge**0.5, 4 * huge**0.5, 0], [0, 0, 0]]
    x = np.array(rows, dtype)
    got = np.asarray(hnp.linalg.norm(x, axis=1))
    want = np.array([5 * huge, 5 * tiny, 5, 5 * huge**0.5, 0])
    np.testing.assert_allclose(got, want.astype(dtype), rtol=4 * limits.eps)
    odd = np.array([[np.inf, 1], [-np.inf, np.nan], [np.nan, huge], [np.inf, huge]], dtype)
    np.testing.assert_array_equal(np.asarray(hnp.linalg.norm(odd, axis=1)), np.array([np.inf, np.nan, np.nan, np.inf], dtype))
