"""A linear Gaussian state space model: Kalman's filter, Rauch, Tung and Striebel's smoother, and gradients of the likelihood by its parameters."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax

LENGTH, BATCH, DT = 40, 3, 0.1


class Model(NamedTuple):
    log_q: jax.Array
    log_r: jax.Array
    damping: jax.Array


class Gaussian(NamedTuple):
    mean: jax.Array
    cov: jax.Array


def observations():
    rng = np.random.default_rng(3)
    t = np.arange(LENGTH) * DT
    phase = rng.uniform(0, 2 * np.pi, (BATCH, 1))
    track = np.stack([np.cos(3 * t + phase), np.sin(2 * t + phase)], -1)
    return jnp.asarray(track + 0.1 * rng.standard_normal(track.shape), dtype=jnp.float32)


def matrices(model):
    block = jnp.array([[1.0, DT], [0.0, 1.0]]) - model.damping * jnp.array([[0.0, 0.0], [0.0, DT]])
    noise = jnp.exp(model.log_q) * jnp.array([[DT**3 / 3, DT**2 / 2], [DT**2 / 2, DT]])
    a, q = jsp.linalg.block_diag(block, block), jnp.kron(jnp.eye(2), noise)
    return a, q, jnp.zeros((2, 4)).at[[0, 1], [0, 2]].set(1.0), jnp.exp(model.log_r) * jnp.eye(2)


def filtered(model, ys):
    a, q, h, r = matrices(model)

    def step(carry, y):
        prior, loglik = carry
        innovation = y - h @ prior.mean
        factor = jsp.linalg.cho_factor(h @ prior.cov @ h.T + r, lower=True)
        gain = jsp.linalg.cho_solve(factor, h @ prior.cov).T
        mean = prior.mean + gain @ innovation
        shrink = jnp.eye(4) - gain @ h
        cov = shrink @ prior.cov @ shrink.T + gain @ r @ gain.T
        loglik += jsp.stats.multivariate_normal.logpdf(y, h @ prior.mean, h @ prior.cov @ h.T + r)
        ahead = Gaussian(a @ mean, a @ cov @ a.T + q)
        return (ahead, loglik), (Gaussian(mean, cov), ahead)

    start = Gaussian(jnp.zeros(4), jnp.eye(4))
    (_, loglik), found = lax.scan(step, (start, jnp.float32(0.0)), ys)
    return loglik, found


def smoothed(model, ys):
    a = matrices(model)[0]
    _, (posterior, ahead) = filtered(model, ys)

    def step(later, now):
        here, predicted = now
        gain = jnp.linalg.solve(predicted.cov, a @ here.cov).T
        made = Gaussian(here.mean + gain @ (later.mean - predicted.mean), here.cov + gain @ (later.cov - predicted.cov) @ gain.T)
        return made, made

    last = jax.tree.map(lambda x: x[-1], posterior)
    rest = jax.tree.map(lambda x: x[:-1], (posterior, ahead))
    _, earlier = lax.scan(step, last, rest, reverse=True)
    return jax.tree.map(lambda xs, x: jnp.concatenate([xs, x[None]]), earlier, last)


@partial(jax.jit, static_argnames="steps")
def fitted(model, ys, *, steps):
    loss = lambda m: -jax.vmap(partial(filtered, m))(ys)[0].mean()  # noqa: E731

    def step(m, _):
        value, slope = jax.value_and_grad(loss)(m)
        return jax.tree.map(lambda p, g: p - 0.02 * jnp.clip(g, -5, 5), m, slope), value

    return lax.scan(step, model, None, length=steps)


def main():
    ys = observations()
    model = Model(jnp.float32(0.0), jnp.float32(-2.0), jnp.float32(0.1))
    smooth = jax.jit(jax.vmap(smoothed, in_axes=(None, 0)))(model, ys)
    found, losses = fitted(model, ys, steps=15)
    bend = jax.hessian(lambda m: filtered(m, ys[0])[0])(model)
    return {
        "means": smooth.mean,
        "deviations": jnp.sqrt(jnp.diagonal(smooth.cov, axis1=-2, axis2=-1)),
        "losses": losses,
        "parameters": jnp.stack(found),
        "curvature": jnp.array(jax.tree.leaves(bend)) / 10,
    }
