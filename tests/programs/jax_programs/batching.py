"""Batching: rules by the user, maps in pieces, collectives over the axes of stacks, functions of scalars over arrays, ragged rows."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap, sequential_vmap


@custom_vmap
def normalized(x):
    return x / jnp.sqrt(jnp.sum(x * x))


@normalized.def_vmap
def normalized_rule(size, batched, xs):
    norms = jnp.sqrt(jnp.einsum("ni,ni->n", xs, xs))
    return xs / norms[:, None], True


@sequential_vmap
def counted(x, limit):
    return lax.while_loop(lambda c: c[0] < limit, lambda c: (c[0] * 1.5 + 0.1, c[1] + 1), (x, 0))


def batch_norm(x, gain):
    mean = lax.pmean(x, "batch")
    variance = lax.pmean((x - mean) ** 2, "batch")
    return gain * (x - mean) * lax.rsqrt(variance + 1e-5)


@partial(jnp.vectorize, signature="(n),(m,n)->(m)")
def projected(x, w):
    return w @ x / jnp.linalg.norm(x)


def ragged(values, ids, count):
    total = jax.ops.segment_sum(values, ids, count)
    largest = jax.ops.segment_max(values, ids, count)
    shares = jnp.exp(values - largest[ids])
    return total, shares / jax.ops.segment_sum(shares, ids, count)[ids]


def main():
    rng = np.random.default_rng(81)
    x, w = rng.standard_normal((6, 4)).astype(np.float32), rng.standard_normal((5, 3, 4)).astype(np.float32)
    values, ids = rng.standard_normal(12).astype(np.float32), np.sort(rng.integers(0, 4, 12))
    difference = jnp.frompyfunc(lambda a, b: jnp.abs(a - b), 2, 1)
    pairs = jax.vmap(jax.vmap(lambda a, b: jnp.vdot(a, b) / (1 + jnp.sum((a - b) ** 2)), (None, 0)), (0, None))(x, x)
    total, shares = ragged(values, ids, 4)
    gathered = jax.vmap(lambda v: lax.all_gather(v, "i")[lax.axis_index("i") - 1], axis_name="i")(x)
    return {
        "normalized": jax.vmap(normalized)(x),
        "slope": jax.grad(lambda x: jnp.sum(jax.vmap(normalized)(x)[:, 0]))(x),
        "counted": jax.vmap(counted, (0, None))(jnp.abs(x[:, 0]), 3.0)[1],
        "norm": jax.vmap(batch_norm, (0, None), axis_name="batch")(x, 2.0),
        "by_norm": jax.grad(lambda x: jnp.sum(jax.vmap(batch_norm, (0, None), axis_name="batch")(x, 2.0) ** 3))(x),
        "pairs": pairs,
        "projected": projected(x[:, None], w),
        "outer": difference.outer(x[:2, 0], x[:3, 1]),
        "folded": difference.reduce(x, axis=1),
        "total": total,
        "shares": shares,
        "gathered": gathered,
        "mapped": lax.map(lambda r: jnp.sort(r)[::-1], x, batch_size=4),
        "axes": jax.vmap(lambda a, b: {"s": a + b, "c": 1.0}, in_axes=(1, None), out_axes={"s": -1, "c": None})(x, x[:, 0])["s"],
        "permuted": jax.vmap(lambda v: lax.ppermute(v, "i", [(k, (k + 2) % 6) for k in range(6)]), axis_name="i")(x),
        "diagonal": jax.vmap(lambda i: jnp.asarray(x).at[i, i % 4].get() * 2)(jnp.arange(6)),
        "scattered": jax.vmap(lambda r, i: r.at[i].set(9.0))(x, jnp.arange(6) % 4),
    }
