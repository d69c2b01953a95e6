"""A recurrent network that reads sequences of several lengths: gates in a scan, checkpoints, Adam written over pytrees, a beam of guesses."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util

TOKENS, WIDTH = 7, 8


class Cell(NamedTuple):
    hidden: jax.Array
    memory: jax.Array


@tree_util.register_pytree_node_class
class Adam:
    def __init__(self, count, mean, square, rate=0.05):
        self.count, self.mean, self.square, self.rate = count, mean, square, rate

    def tree_flatten(self):
        return (self.count, self.mean, self.square), self.rate

    @classmethod
    def tree_unflatten(cls, rate, children):
        return cls(*children, rate)

    def update(self, params, grads):
        count = self.count + 1
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, self.mean, grads)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g**2, self.square, grads)
        scale = self.rate * jnp.sqrt(1 - 0.99**count) / (1 - 0.9**count)
        new = jax.tree.map(lambda p, m, s: p - scale * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
        return new, Adam(count, mean, square, self.rate)


def parameters():
    rng = np.random.default_rng(51)
    normal = lambda *shape: jnp.asarray((0.4 * rng.standard_normal(shape)).astype(np.float32))  # noqa: E731
    return {"embed": normal(TOKENS, WIDTH), "gates": normal(2 * WIDTH, 4 * WIDTH), "out": normal(WIDTH, TOKENS), "bias": jnp.zeros(4 * WIDTH)}


def cell(params, state, token):
    joined = jnp.concatenate([params["embed"][token], state.hidden]) @ params["gates"] + params["bias"]
    take, forget, new, give = jnp.split(joined, 4)
    memory = jax.nn.sigmoid(forget + 1) * state.memory + jax.nn.sigmoid(take) * jnp.tanh(new)
    return Cell(jax.nn.sigmoid(give) * jnp.tanh(memory), memory)


def start():
    return Cell(jnp.zeros(WIDTH), jnp.zeros(WIDTH))


def score(params, tokens, length):
    @jax.checkpoint
    def step(state, pair):
        now, following = pair
        state = cell(params, state, now)
        return state, jax.nn.log_softmax(state.hidden @ params["out"])[following]

    _, logs = lax.scan(step, start(), (tokens[:-1], tokens[1:]))
    return jnp.where(jnp.arange(len(logs)) < length - 1, logs, 0.0).sum()


@jax.jit
def train(params, optimizer, batch, lengths):
    loss = lambda p: -jax.vmap(score, (None, 0, 0))(p, batch, lengths).sum() / (lengths - 1).sum()  # noqa: E731
    value, grads = jax.value_and_grad(loss)(params)
    norm = jnp.sqrt(tree_util.tree_reduce(lambda a, g: a + jnp.vdot(g, g), grads, 0.0))
    grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / norm), grads)
    return *optimizer.update(params, grads), value


def greedy(params, first, steps):
    def go_on(carry):
        i, token, _, _ = carry
        return (i < steps) & (token != 0)

    def step(carry):
        i, token, state, written = carry
        state = cell(params, state, token)
        token = jnp.argmax(state.hidden @ params["out"]).astype(token.dtype)
        return i + 1, token, state, lax.dynamic_update_index_in_dim(written, token, i, 0)

    return lax.while_loop(go_on, step, (0, first, start(), jnp.full(steps, -1)))[3]


def beam(params, first, steps, wide):
    def step(carry, _):
        states, logs, tokens = carry
        states = jax.vmap(cell, (None, 0, 0))(params, states, tokens)
        total = logs[:, None] + jax.nn.log_softmax(states.hidden @ params["out"])
        logs, places = lax.top_k(total.ravel(), wide)
        chosen = places // TOKENS
        return (jax.tree.map(lambda x: x[chosen], states), logs, places % TOKENS), logs

    many = jax.tree.map(lambda x: jnp.broadcast_to(x, (wide, *x.shape)), start())
    logs = jnp.where(jnp.arange(wide) == 0, 0.0, -jnp.inf)
    return lax.scan(step, (many, logs, jnp.full(wide, first)), None, length=steps)[1]


def main():
    rng = np.random.default_rng(52)
    batch = (np.arange(9)[None] * rng.integers(1, 3, (6, 1)) + rng.integers(0, TOKENS, (6, 1))) % TOKENS
    lengths = jnp.asarray(rng.integers(4, 10, 6))
    params = parameters()
    zeros = jax.tree.map(jnp.zeros_like, params)
    optimizer, losses = Adam(0, zeros, zeros), []
    for _ in range(8):
        params, optimizer, value = train(params, optimizer, jnp.asarray(batch), lengths)
        losses.append(value)
    paths = [tree_util.keystr(p) for p, _ in tree_util.tree_flatten_with_path(params)[0]]
    return {
        "losses": jnp.stack(losses),
        "embed": params["embed"],
        "greedy": jax.jit(greedy, static_argnums=2)(params, jnp.asarray(3), 6),
        "beam": beam(params, 2, 4, 3),
        "paths": np.array([len(p) for p in paths]),
    }
