"""Hamiltonian Monte Carlo for a regression with unknown scales: numbers that are handed over, leapfrog steps, dual averaging, and diagnostics."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.scipy import stats

CHAINS, DRAWS, LEAPS = 3, 40, 8


class State(NamedTuple):
    position: jax.Array
    value: jax.Array
    slope: jax.Array


class Averaging(NamedTuple):
    log_step: jax.Array
    log_mean: jax.Array
    error: jax.Array


def regression():
    rng = np.random.default_rng(7)
    x = np.c_[np.ones(30), rng.standard_normal((30, 2))].astype(np.float32)
    return x, (x @ [0.5, -1.0, 2.0] + 0.3 * rng.standard_normal(30)).astype(np.float32)


def numbers(size):
    rng = np.random.default_rng(8)
    return rng.standard_normal((CHAINS, DRAWS, size)).astype(np.float32), np.log(rng.uniform(size=(CHAINS, DRAWS))).astype(np.float32)


def log_density(unravel, data, flat):
    params = unravel(flat)
    x, y = data
    noise, spread = jnp.exp(params["log_noise"]), jnp.exp(params["log_spread"])
    fit = stats.norm.logpdf(y, x @ params["weights"], noise).sum()
    prior = stats.norm.logpdf(params["weights"], scale=spread).sum() + stats.gamma.logpdf(spread, 2.0) + stats.cauchy.logpdf(params["log_noise"])
    return fit + prior + params["log_spread"]


def leapfrog(density, step, state, momentum):
    def leap(_, carry):
        q, p, _, g = carry
        p = p + 0.5 * step * g
        q = q + step * p
        value, g = density(q)
        return q, p + 0.5 * step * g, value, g

    q, p, value, g = lax.fori_loop(0, LEAPS, leap, (state.position, momentum, state.value, state.slope))
    return State(q, value, g), p


def draw(density, carry, given):
    state, averaging, index = carry
    momentum, log_uniform = given
    new, p = leapfrog(density, jnp.exp(averaging.log_step), state, momentum)
    energy = lambda s, m: s.value - 0.5 * jnp.vdot(m, m)  # noqa: E731
    ratio = energy(new, p) - energy(state, momentum)
    ratio = jnp.where(jnp.isnan(ratio), -jnp.inf, ratio)
    accept = log_uniform < ratio
    state = jax.tree.map(partial(jnp.where, accept), new, state)
    rate = jnp.exp(jnp.minimum(ratio, 0.0))
    error = averaging.error + (0.8 - rate - averaging.error) / (index + 10.0)
    log_step = jnp.log(0.1) * 1.0 - jnp.sqrt(index + 1.0) / 0.5 * error
    weight = (index + 1.0) ** -0.75
    averaging = Averaging(log_step, weight * log_step + (1 - weight) * averaging.log_mean, error)
    return (state, averaging, index + 1), (state.position, rate)


@partial(jax.jit, static_argnums=0)
def sample(unravel, data, start, momenta, uniforms):
    density = jax.value_and_grad(partial(log_density, unravel, data))

    def chain(start, momenta, uniforms):
        zero = jnp.zeros(())
        carry = State(start, *density(start)), Averaging(jnp.log(jnp.float32(0.05)), zero, zero), 0
        (_, averaging, _), found = lax.scan(partial(draw, density), carry, (momenta, uniforms))
        return *found, jnp.exp(averaging.log_mean)

    return jax.vmap(chain)(start, momenta, uniforms)


def split_r_hat(draws):
    halves = draws.reshape(2 * CHAINS, -1, draws.shape[-1])
    within, between = halves.var(1, ddof=1).mean(0), halves.mean(1).var(0, ddof=1)
    n = halves.shape[1]
    return jnp.sqrt(((n - 1) / n * within + between) / within)


def main():
    params = {"weights": jnp.zeros(3), "log_noise": jnp.zeros(()), "log_spread": jnp.zeros(())}
    flat, unravel = ravel_pytree(params)
    momenta, uniforms = numbers(flat.size)
    start = flat + jnp.linspace(-0.2, 0.2, CHAINS)[:, None]
    draws, rates, steps = sample(unravel, regression(), start, momenta, uniforms)
    return {
        "first": draws[:, :6],
        "rates": rates[:, :6],
        "moves": jnp.abs(jnp.diff(draws[:, :8], axis=1)).max(-1),
        "ok": split_r_hat(draws) < 2.5,
        "sane": steps > 0,
    }
