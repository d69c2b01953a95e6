"""A hidden Markov model: forward and backward passes, expected counts as a gradient, the best path, and steps of Baum and Welch."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn, ops

STATES, SYMBOLS, LENGTH, SEQUENCES = 4, 6, 25, 5


def initial():
    rng = np.random.default_rng(1)
    rows = lambda *shape: np.log(rng.dirichlet(np.ones(shape[-1]), shape[:-1]).reshape(shape)).astype(np.float32)  # noqa: E731
    return (rows(STATES), rows(STATES, STATES), rows(STATES, SYMBOLS)), rng.integers(0, SYMBOLS, (SEQUENCES, LENGTH)).astype(np.int32)


def forward(model, symbols):
    start, move, emit = model

    def step(alpha, symbol):
        new = nn.logsumexp(alpha[:, None] + move, axis=0) + emit[:, symbol]
        return new, new

    first = start + emit[:, symbols[0]]
    last, rest = lax.scan(step, first, symbols[1:])
    return jnp.concatenate([first[None], rest]), nn.logsumexp(last)


def backward(model, symbols):
    _, move, emit = model

    def step(beta, symbol):
        new = nn.logsumexp(move + emit[:, symbol] + beta, axis=1)
        return new, new

    last = jnp.zeros(STATES, jnp.float32)
    _, rest = lax.scan(step, last, symbols[1:], reverse=True)
    return jnp.concatenate([rest, last[None]])


def by_associative_scan(model, symbols):
    start, move, emit = model
    first = jnp.broadcast_to((start + emit[:, symbols[0]])[None, :], (STATES, STATES))
    matrices = jnp.concatenate([first[None], move[None] + emit.T[symbols[1:]][:, None, :]])
    product = jax.vmap(lambda a, b: nn.logsumexp(a[:, :, None] + b[None, :, :], axis=1))
    return nn.logsumexp(lax.associative_scan(product, matrices)[-1, 0])


def best_path(model, symbols):
    start, move, emit = model

    def step(score, symbol):
        candidates = score[:, None] + move
        return candidates.max(0) + emit[:, symbol], jnp.argmax(candidates, axis=0)

    last, pointers = lax.scan(step, start + emit[:, symbols[0]], symbols[1:])
    end = jnp.argmax(last)
    _, path = lax.scan(lambda state, back: (back[state], state), end, pointers, reverse=True)
    first = lax.fori_loop(0, LENGTH - 1, lambda i, s: lax.dynamic_index_in_dim(pointers, LENGTH - 2 - i, keepdims=False)[s], end)
    return jnp.concatenate([first[None], path]), last.max()


@jax.jit
def improved(model, data):
    """A step of Baum and Welch; the likelihood before it."""
    likelihood = lambda model: jnp.sum(jax.vmap(lambda s: forward(model, s)[1])(data))  # noqa: E731
    value, counts = jax.value_and_grad(likelihood)(model)
    posterior = jax.vmap(lambda s: nn.softmax(forward(model, s)[0] + backward(model, s), axis=-1))(data)
    seen = ops.segment_sum(posterior.reshape(-1, STATES), data.reshape(-1), num_segments=SYMBOLS).T
    normal = lambda c: jnp.log(c / c.sum(-1, keepdims=True))  # noqa: E731
    return (normal(counts[0]), normal(counts[1]), normal(seen)), value, jnp.abs(seen - counts[2]).max()


def main():
    model, data = jax.tree.map(jnp.asarray, initial())
    paths, scores = jax.jit(jax.vmap(best_path, in_axes=(None, 0)))(model, data)
    results = {"associative": jax.vmap(by_associative_scan, (None, 0))(model, data), "paths": paths, "scores": scores}
    for i in range(3):
        model, results[f"likelihood {i}"], difference = improved(model, data)
        results[f"counts agree {i}"] = difference < 1e-3
    return results | {"start": model[0], "move": model[1], "emit": model[2]}
