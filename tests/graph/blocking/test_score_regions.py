"""Attention and its derivatives in whatever form, computed by blocks: what is found, values, planned memory, and what is left as it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram import nn
from hologram.graph.blocking import blocked_loops
from hologram.graph.blocking.score_regions import has_symbolic_scores
from hologram.graph.pipeline import canonicalise
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from tests.support.attention_forms import eager
from tests.support.building import scheduled

Array = np.ndarray
Form = Callable[[Any, Any, Any], Any]
F32 = np.float32


def _transposed(x: Any) -> Any:
    return hnp.swapaxes(x, -1, -2)


def _softmax(s: Any) -> Any:
    e = hnp.exp(s - hnp.max(s, axis=-1, keepdims=True))
    return e / hnp.sum(e, axis=-1, keepdims=True)


def _causal(s: Any) -> Any:
    return hnp.where(hnp.arange(s.shape[-1]) <= hnp.arange(s.shape[-2])[:, None], s, -hnp.inf)


def _distances(s: Any) -> Any:
    return hnp.abs(hnp.arange(s.shape[-1]) - hnp.arange(s.shape[-2])[:, None]) * hnp.asarray(-0.1, dtype=s.dtype)


def _without_maximum(s: Any) -> Any:
    e = hnp.exp(s)
    return e / hnp.sum(e, axis=-1, keepdims=True)


FORMS: dict[str, Form] = {
    "softmax by hand": lambda q, k, v: _softmax(q @ _transposed(k) * 0.3) @ v,
    "scale before": lambda q, k, v: nn.softmax((q * 0.3) @ _transposed(k)) @ v,
    "scale by division": lambda q, k, v: nn.softmax(q @ _transposed(k) / 3) @ v,
    "einsum": lambda q, k, v: hnp.einsum("...rt,...td->...rd", nn.softmax(hnp.einsum("...re,...te->...rt", q, k)), v),
    "keys first": lambda q, k, v: _transposed(nn.softmax(k @ _transposed(q), axis=-2)) @ v,
    "causal": lambda q, k, v: _softmax(_causal(q @ _transposed(k) * 0.3)) @ v,
    "large negative numbers": lambda q, k, v: nn.softmax(hnp.maximum(_causal(q @ _transposed(k)), -1e9)) @ v,
    "biases": lambda q, k, v: nn.softmax(q @ _transposed(k) + _distances(q @ _transposed(k))) @ v,
    "cap": lambda q, k, v: nn.softmax(_causal(hnp.tanh(q @ _transposed(k) / 5) * 5)) @ v,
    "divided afterwards": lambda q, k, v: hnp.exp(q @ _transposed(k)) @ v / hnp.sum(hnp.exp(q @ _transposed(k)), axis=-1, keepdims=True),
    "without a maximum": lambda q, k, v: _without_maximum(q @ _transposed(k) * 0.3) @ v,
    "named": nn.dot_product_attention,
    "named, causal": lambda q, k, v: nn.dot_product_attention(q, k, v, is_causal=True),
    "checkpoint": hg.checkpoint(lambda q, k, v: _softmax(q @ _transposed(k) * 0.3) @ v),
}


def _gradients(form: Form) -> Callable[..., Any]:
    """Value and gradients of a loss that is not linear."""
    return hg.value_and_grad(lambda q, k, v: hnp.sum(hnp.sin(form(q, k, v))), argnums=(0, 1, 2))


def _arrays(*shapes: tuple[int, ...], dtype: Any = F32) -> list[Array]:
    rng = np.random.default_rng([len(s) + sum(s) for s in shapes])
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


def _canonical(f: Callable[..., Any], *args: Any) -> Graph:
    return canonicalise(hg.make_graph(f)(*args), "standard")


def _loops(graph: Graph) -> int:
    return sum(n.op.name == "scan" for n in graph.nodes())


def _largest(graph: Graph) -> int:
    """Elements of the largest reduction of a graph, outside of loops."""
    return max(int(n.size) for n in graph.nodes() if n.op.kind == "reduce")


# --- values ----------------------------------------------------------------------------------------------------------


@given(
    st.sampled_from(sorted(FORMS)),
    st.lists(st.integers(1, 3), max_size=2),
    st.integers(8, 21),
    st.integers(8, 21),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from([64, 700, 3000]),
)
def test_by_blocks_it_means_the_same(form: str, heads: list[int], rows: int, keys: int, depth: int, width: int, block: int) -> None:
    q, k, v = _arrays((*heads, rows, depth), (*heads, keys, depth), (*heads, keys, width), dtype=np.float64)
    graph = _canonical(_gradients(FORMS[form]), q, k, v)
    with eager(block):
        blocked = blocked_loops.block_regions(graph, partial(canonicalise, precision="standard"))
    for got, want in zip(evaluate(blocked, [q, k, v]), evaluate(graph, [q, k, v]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


@pytest.mark.crossed
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("heads", [(), (3, 2)], ids=str)
def test_nothing_large_is_left(form: str, heads: tuple[int, ...]) -> None:
    """Of value and gradients, by rows and by heads."""
    q, k, v = _arrays((*heads, 40, 2), (*heads, 48, 2), (*heads, 48, 2))
    graph = _canonical(_gradients(FORMS[form]), q, k, v)
    with eager(512):
        blocked = blocked_loops.block_regions(graph, partial(canonicalise, precision="standard"))
    assert _largest(graph) == q.size // 2 * 48 and _largest(blocked) <= 2 * max(q.size, k.size)


# --- compiled --------------------------------------------------------------------------------------------------------

HEADS, ROWS, KEYS, DEPTH = 12, 520, 600, 16  # 15 MB of scores


def _peak(f: Callable[..., Any], *args: Any, precision: str = "standard") -> int:
    """Bytes that are planned."""
    return scheduled(canonicalise(hg.make_graph(f)(*args), precision), precision).allocate({}).peak


def _many(dtype: Any = F32) -> list[Array]:
    return _arrays((HEADS, ROWS, DEPTH), (HEADS, KEYS, DEPTH), (HEADS, KEYS, DEPTH), dtype=dtype)


SCORES = HEADS * ROWS * KEYS * 4


@pytest.mark.parametrize("form", FORMS)
def test_planned_memory(form: str) -> None:
    """It is far below that of the scores, of which a derivative has several."""
    assert _peak(_gradients(FORMS[form]), *_many()) < 0.6 * SCORES


def _same_as_exact(f: Callable[..., Any]) -> None:
    args = _many()
    got, want = (hg.tree.flatten(hg.jit(f, precision=p)(*args))[0] for p in ("standard", "exact"))
    for x, y in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=5e-3, atol=1e-4)


@pytest.mark.parametrize("form", ["softmax by hand", "divided afterwards", "cap"])
def test_values(form: str) -> None:
    _same_as_exact(_gradients(FORMS[form]))


def test_exact_keeps_the_written_order() -> None:
    assert _peak(_gradients(FORMS["softmax by hand"]), *_many(), precision="exact") >= 2 * SCORES


def _second(q: Any, k: Any, v: Any) -> Any:
    loss = _gradients(FORMS["softmax by hand"])
    return hg.grad(lambda q: hnp.sum(loss(q, k, v)[1][1] ** 2))(q)


def _layers(step: Callable[..., Any]) -> Callable[..., Any]:
    return _gradients(lambda q, k, v: hg.scan(step(lambda x, _: (FORMS["causal"](x, k, v), None)), q, None, 3)[0])


def _one_query(q: Any, k: Any, v: Any) -> Any:
    """Of vmap over the rows, too."""
    return hg.vmap(lambda q, k, v: hg.vmap(lambda q: _softmax(q @ k.T) @ v)(q))(q, k, v)


TRANSFORMED: dict[str, Callable[..., Any]] = {
    "second derivatives": _second,
    "gradient of a jitted function": _gradients(hg.jit(FORMS["softmax by hand"])),
    "vmap over heads": _gradients(hg.vmap(lambda q, k, v: _softmax(_causal(q @ k.T)) @ v)),
    "vmap over rows": _gradients(_one_query),
    "layers in a loop": _layers(lambda step: step),
    "layers in a loop, computed again": _layers(hg.checkpoint),
    "two layers that share a mask": _gradients(lambda q, k, v: FORMS["causal"](FORMS["causal"](q, k, v), v, k)),
    "tangents": lambda q, k, v: hg.jvp(FORMS["causal"], (q, k, v), (k[:, :ROWS], v, k)),
}


@pytest.mark.parametrize("case", TRANSFORMED)
def test_transforms(case: str) -> None:
    assert _peak(TRANSFORMED[case], *_many()) < SCORES


@pytest.mark.parametrize("case", ["second derivatives", "layers in a loop"])
def test_values_of_transforms(case: str) -> None:
    _same_as_exact(TRANSFORMED[case])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bit_arguments(dtype: str) -> None:
    """Sums over rows are rounded once."""
    args = [hnp.astype(hg.tensor(x), dtype) for x in _many()]
    f = _gradients(FORMS["causal"])
    assert _peak(f, *args) < SCORES
    wide = [np.asarray(hnp.astype(x, "float32")) for x in args]
    for got, want in zip(hg.jit(f)(*args)[1], hg.jit(f)(*wide)[1], strict=True):
        difference = np.asarray(hnp.astype(got, "float32")) - np.asarray(want)
        assert np.linalg.norm(difference) < (0.005 if dtype == "float16" else 0.04) * np.linalg.norm(np.asarray(want))


GROUPED: dict[str, tuple[Form, tuple[int, ...], tuple[int, ...]]] = {
    "broadcast": (lambda q, k, v: FORMS["causal"](q, k[:, :, None], v[:, :, None]), (2, 3, 2, ROWS, DEPTH), (2, 3, KEYS, DEPTH)),
    "repeated": (lambda q, k, v: FORMS["causal"](q, hnp.repeat(k, 2, axis=1), hnp.repeat(v, 2, axis=1)), (2, 6, ROWS, DEPTH), (2, 3, KEYS, DEPTH)),
    "einsum": (
        lambda q, k, v: hnp.einsum("brhgt,bthd->brhgd", nn.softmax(hnp.einsum("brhgd,bthd->brhgt", q, k)), v),
        (2, ROWS, 3, 2, DEPTH),
        (2, KEYS, 3, DEPTH),
    ),
}


@pytest.mark.parametrize("case", GROUPED)
def test_heads_that_share_keys(case: str) -> None:
    form, of_queries, of_keys = GROUPED[case]
    assert _peak(_gradients(form), *_arrays(of_queries, of_keys, of_keys)) < SCORES


@pytest.mark.parametrize("mask", ["seen", "added", "padding"])
def test_masks_that_are_arguments(mask: str) -> None:
    q, k, v = _many()
    rng = np.random.default_rng(1)
    masks = {
        "seen": rng.random((ROWS, KEYS)) < 0.8,
        "added": rng.standard_normal((ROWS, KEYS)).astype(F32),
        "padding": rng.random((HEADS, 1, KEYS)) < 0.8,
    }
    f = hg.value_and_grad(lambda q, k, v, m: hnp.sum(hnp.sin(nn.dot_product_attention(q, k, v, mask=m))), argnums=(0, 1, 2))
    assert _peak(f, q, k, v, masks[mask]) < 0.6 * SCORES


# --- what is left as it is -------------------------------------------------------------------------------------------


def _weights_too(q: Any, k: Any, v: Any) -> Any:
    p = _softmax(q @ _transposed(k))
    return hnp.sum(hnp.sin(p @ v)), p


def _of_a_bias(q: Any, k: Any, v: Any) -> Any:
    """The derivative by the scores themselves."""
    return hg.grad(lambda bias: hnp.sum(hnp.sin(_softmax(q @ _transposed(k) + bias) @ v)))(hnp.zeros((q.shape[0], k.shape[0]), dtype=q.dtype))


def _across_rows(q: Any, k: Any, v: Any) -> Any:
    s = q @ _transposed(k)
    return _softmax(s - hnp.max(s, axis=-2, keepdims=True)) @ v


def _mlp(q: Any, k: Any, v: Any) -> Any:
    return nn.silu(q @ _transposed(k)) @ v


def _no_product_after(q: Any, k: Any, v: Any) -> Any:
    return hnp.sort(_softmax(q @ _transposed(k)), axis=-1) @ v


@pytest.mark.parametrize(
    "f",
    [
        hg.value_and_grad(_weights_too, argnums=(0, 1, 2), has_aux=True),
        _of_a_bias,
        _gradients(_across_rows),
        _gradients(_mlp),
        _gradients(_no_product_after),
        _no_product_after,
    ],
)
def test_what_is_wanted_whole_stays(f: Callable[..., Any]) -> None:
    q, k, v = _arrays((40, 2), (48, 2), (48, 2))
    graph = _canonical(f, q, k, v)
    with eager(512):
        assert blocked_loops.block_regions(graph, partial(canonicalise, precision="standard")) is graph


_X, _W = np.ones((300, 64), F32), np.ones((64, 8192), F32)
_HEADS = (np.ones((2, 4, 300, 64), F32),) * 3


@pytest.mark.parametrize(
    ("f", "arguments", "dynamic", "found"),
    [
        (nn.dot_product_attention, _HEADS, {0: 2, 1: 2, 2: 2}, True),
        (nn.dot_product_attention, _HEADS, {0: 2}, True),
        (nn.dot_product_attention, _HEADS, {1: 2, 2: 2}, True),
        (lambda q, k, v: hg.grad(lambda q: hnp.sum(nn.dot_product_attention(q, k, v)))(q), _HEADS, {0: 2, 1: 2, 2: 2}, True),
        (lambda x: hnp.exp(x @ x.T) @ x, (_X,), {0: 0}, True),
        (nn.dot_product_attention, _HEADS, {0: 0, 1: 0, 2: 0}, False),  # batches alone, which blocks do not cut
        (nn.dot_product_attention, (_HEADS[0][:, :, :1], *_HEADS[1:]), {1: 2, 2: 2}, False),  # one row
        (lambda x: x @ x.T @ x, (_X,), {0: 0}, False),
        (lambda x, w: hnp.log(hnp.sum(hnp.exp(x @ w), axis=1)), (_X, _W), {0: 0}, False),
        (lambda x, w: hnp.tanh(x @ w) @ w.T, (_X, _W), {0: 0}, False),
        (nn.dot_product_attention, _HEADS, False, False),
    ],
)
def test_attention_of_symbolic_rows_or_keys_is_seen(f: Any, arguments: Any, dynamic: Any, found: bool) -> None:
    graph = canonicalise(hg.jit(f, dynamic=dynamic).lower(*arguments).graph, "standard")
    assert has_symbolic_scores(graph) == found
