"""A training step of a transformer in one call: planned memory near the least, the state updated where it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import nn

WIDTH, HEADS, LENGTH, LAYERS, BATCH, SYMBOLS = 32, 2, 24, 2, 3, 40

State = dict[str, Any]


def _parameters(seed: int) -> State:
    rng = np.random.default_rng(seed)

    def weights(*shape: int) -> np.ndarray:
        return rng.normal(0, shape[-2] ** -0.5, shape).astype(np.float32)

    def layer() -> State:
        norms = {name: np.ones(WIDTH, np.float32) for name in ("before attention", "before the network")}
        return norms | {
            "mix": weights(WIDTH, 3 * WIDTH),
            "out": weights(WIDTH, WIDTH),
            "up": weights(WIDTH, 4 * WIDTH),
            "down": weights(4 * WIDTH, WIDTH),
        }

    return {"symbols": weights(SYMBOLS, WIDTH), "places": weights(LENGTH, WIDTH), "layers": [layer() for _ in range(LAYERS)]}


def _loss(p: State, tokens: Any) -> Any:
    x = hnp.take(p["symbols"], tokens, axis=0) + p["places"]
    for layer in p["layers"]:
        mixed = nn.layer_norm(x, layer["before attention"]) @ layer["mix"]
        q, k, v = hnp.moveaxis(mixed.reshape((BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)), (2, 3), (0, 2))
        seen = hnp.swapaxes(nn.dot_product_attention(q, k, v, is_causal=True), 1, 2)
        x = x + seen.reshape((BATCH, LENGTH, WIDTH)) @ layer["out"]
        x = x + nn.gelu(nn.layer_norm(x, layer["before the network"]) @ layer["up"]) @ layer["down"]
    return nn.cross_entropy((x @ p["symbols"].T)[:, :-1], tokens[:, 1:])


def _step(state: tuple[State, State, State], tokens: Any) -> tuple[tuple[State, State, State], Any]:
    """Adam, without the correction of its means."""
    parameters, mean, square = state
    value, slope = hg.value_and_grad(_loss)(parameters, tokens)
    mean = hg.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slope)
    square = hg.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, slope)
    return (hg.tree.map(lambda p, m, s: p - 0.01 * m / (hnp.sqrt(s) + 1e-6), parameters, mean, square), mean, square), value


def _state() -> tuple[State, State, State]:
    p = _parameters(0)
    state = p, hg.tree.map(np.zeros_like, p), hg.tree.map(np.zeros_like, p)
    return hg.tree.map(hg.tensor, state)


TOKENS = np.random.default_rng(1).integers(0, SYMBOLS, (BATCH, LENGTH))


def test_planned_memory_is_near_the_least() -> None:
    memory = hg.jit(_step, donate_argnums=0).lower(_state(), TOKENS).compile().memory_analysis()
    assert memory.lower_bound > 0 and memory.peak <= 1.05 * memory.lower_bound


def test_the_donated_state_is_updated_where_it_is() -> None:
    step = hg.jit(_step, donate_argnums=0)
    state, _ = step(_state(), TOKENS)

    def places() -> set[int]:
        """Of all but the vectors: one may be read after its successor is computed, and these few bytes do not matter."""
        return {x._storage.data for x in hg.tree.leaves(state) if x.ndim > 1}

    before = places()
    for _ in range(3):
        state, _ = step(state, TOKENS)
        assert places() == before


def test_a_donated_state_learns_the_same() -> None:
    step, kept = hg.jit(_step, donate_argnums=0), hg.jit(_step)
    a, b = _state(), _state()
    losses = []
    for _ in range(4):
        (a, x), (b, y) = step(a, TOKENS), kept(b, TOKENS)
        assert float(x) == float(y)
        losses.append(float(x))
    assert losses[-1] < losses[0]
    for x, y in zip(hg.tree.leaves(a), hg.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


# What may be computed in a donated argument's memory: the shapes leave rows over in every tile.
UPDATES = {
    "product and expensive work": (lambda w, x, y: hnp.tanh(w + 1e-2 * (x.T @ y)), (97, 70)),
    "product and cheap work": (lambda w, x, y: w - 1e-2 * (x.T @ y), (97, 70)),
    "product of whole tiles": (lambda w, x, y: w - 1e-2 * (x.T @ y), (96, 96)),
    "product with its own rows": (lambda w, x, y: w @ (x.T @ y)[:70] + w, (70, 70)),
    "sums of columns": (lambda w, x, y: w - 1e-2 * hnp.sum(x, axis=0), (97,)),
    "sums of rows": (lambda w, x, y: hnp.sqrt(w * w + hnp.sum(x, axis=1)[:40]), (40,)),
    "two passes over a row": (lambda w, x, y: nn.softmax(w, axis=-1) + w, (61, 50)),
    "two results": (lambda w, x, y: (nn.softmax(w, axis=-1), w + 1), (61, 50)),
    "from another place": (lambda w, x, y: w + hnp.flip(w, axis=1), (61, 50)),
}


@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("threads", [1, 2])
def test_results_in_donated_memory_are_right(name: str, threads: int) -> None:
    update, shape = UPDATES[name]
    rng = np.random.default_rng(2)
    columns = shape[-1]
    w, x, y = rng.random(shape), rng.random((41, max(97, columns))), rng.random((41, columns))
    if len(shape) == 2:
        x = x[:, : shape[0]]
    w, x, y = (np.ascontiguousarray(a, np.float32) for a in (w, x, y))
    hg.set_num_threads(threads)
    try:
        want = hg.jit(update)(w, x, y)
        f = hg.jit(update, donate_argnums=0)
        f(hg.tensor(w), x, y)  # the call that compiles takes no memory
        got = f(hg.tensor(w) + 0, x, y)
    finally:
        hg.set_num_threads(2)
    for a, b in zip(hg.tree.leaves(got), hg.tree.leaves(want), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("name", ["product and expensive work", "product of whole tiles", "sums of columns", "sums of rows", "two passes over a row"])
def test_donated_memory_is_used_by_kernels_that_sum(name: str) -> None:
    update, shape = UPDATES[name]
    w = hg.tensor(np.ones(shape, np.float32))
    x, y = np.ones((41, shape[0] if len(shape) > 1 else 97), np.float32), np.ones((41, shape[-1]), np.float32)
    f = hg.jit(update, donate_argnums=0)
    w = f(w, x, y)  # the call that compiles takes no memory
    place = w._storage.data
    assert f(w, x, y)._storage.data == place


def test_cheap_values_are_computed_anew_rather_than_kept() -> None:
    """The derivative of GELU needs its argument and a hyperbolic tangent; the powers and factors between are not kept from forward to backward."""
    layers, weight, x = 16, np.ones((64, 64), np.float32), np.ones((256, 64), np.float32)

    def total(weights: list[Any], x: Any) -> Any:
        for w in weights:
            x = nn.gelu(x @ w)
        return hnp.sum(x)

    memory = hg.jit(hg.grad(total)).lower([weight] * layers, x).compile().memory_analysis()
    assert memory.peak <= 3 * layers * x.nbytes
