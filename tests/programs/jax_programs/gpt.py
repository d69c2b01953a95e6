"""A small GPT: causal attention in a scan over rematerialized layers, Adam on a registered state, norms of gradients by their paths."""

import dataclasses
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util

LAYERS, WIDTH, HEADS, LENGTH, VOCABULARY, BATCH = 3, 32, 4, 16, 20, 4


@tree_util.register_dataclass
@dataclasses.dataclass
class State:
    params: dict
    mean: dict
    square: dict
    step: jax.Array


def initial():
    rng = np.random.default_rng(0)
    draw = lambda *shape: (rng.standard_normal(shape) / np.sqrt(shape[-2])).astype(np.float32)  # noqa: E731
    block = {
        "norm1": {"scale": np.ones((LAYERS, WIDTH), np.float32)},
        "attention": {"qkv": draw(LAYERS, WIDTH, 3 * WIDTH), "out": draw(LAYERS, WIDTH, WIDTH)},
        "norm2": {"scale": np.ones((LAYERS, WIDTH), np.float32)},
        "mlp": [draw(LAYERS, WIDTH, 4 * WIDTH), draw(LAYERS, 4 * WIDTH, WIDTH)],
    }
    params = {"tokens": 0.1 * draw(VOCABULARY, WIDTH), "places": 0.1 * draw(LENGTH, WIDTH), "blocks": block}
    data = rng.integers(0, VOCABULARY, (BATCH, LENGTH + 1)).astype(np.int32)
    zeros = tree_util.tree_map(jnp.zeros_like, params)
    return State(params, zeros, zeros, jnp.zeros((), jnp.int32)), data


def normalized(x, scale):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5) * scale


@partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)
def block(x, p):
    h = normalized(x, p["norm1"]["scale"])
    q, k, v = jnp.split(jnp.einsum("btd,de->bte", h, p["attention"]["qkv"], precision=lax.Precision.HIGHEST), 3, axis=-1)
    heads = lambda y: y.reshape(*y.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)  # noqa: E731
    scores = lax.dot_general(heads(q), heads(k), (((3,), (3,)), ((0, 1), (0, 1)))) / math.sqrt(WIDTH // HEADS)
    rows = lax.broadcasted_iota(jnp.int32, scores.shape, 2)
    masked = lax.select(rows >= lax.broadcasted_iota(jnp.int32, scores.shape, 3), scores, jnp.full_like(scores, -1e9))
    mixed = jnp.einsum("bhqk,bhkd->bqhd", jax.nn.softmax(masked), heads(v)).reshape(x.shape)
    x = x + mixed @ p["attention"]["out"]
    up, down = p["mlp"]
    return x + jax.nn.gelu(normalized(x, p["norm2"]["scale"]) @ up) @ down


def loss(params, data):
    x = params["tokens"][data[:, :-1]] + params["places"]
    x, _ = lax.scan(lambda x, p: (block(x, p), None), x, params["blocks"])
    logits = jnp.dot(x, params["tokens"].T)
    targets = jax.nn.one_hot(data[:, 1:], num_classes=VOCABULARY)
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * targets, axis=-1))


@partial(jax.jit, donate_argnames="state")
def train(state, data):
    value, gradient = jax.value_and_grad(loss)(state.params, data)
    step = state.step + 1
    mean = tree_util.tree_map(lambda m, g: 0.9 * m + 0.1 * g, state.mean, gradient)
    square = tree_util.tree_map(lambda s, g: 0.999 * s + 0.001 * g * g, state.square, gradient)
    rate = 1e-2 * jnp.sqrt(1 - 0.999 ** step.astype(jnp.float32)) / (1 - 0.9 ** step.astype(jnp.float32))
    params = tree_util.tree_map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), state.params, mean, square)
    norms = tree_util.tree_map(lambda g: jnp.sqrt(jnp.vdot(g, g)), gradient)
    return State(params, mean, square, step), value, norms


def main():
    state, data = initial()
    state = tree_util.tree_map(jnp.array, state)
    results = {}
    for i in range(4):
        state, value, norms = train(state, data)
        results[f"loss {i}"] = value
    for path, norm in tree_util.tree_leaves_with_path(norms):
        results["norm" + tree_util.keystr(path)] = norm
    return results
