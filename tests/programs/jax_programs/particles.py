"""Particles: a periodic system with forces between near ones and density on a grid, and a filter with systematic resampling."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

COUNT, NEAR, CELLS, STEPS, BOX = 60, 8, 6, 20, 6.0
PARTICLES, TIMES = 200, 12


def energy(x):
    apart = x[:, None] - x[None]
    apart = apart - BOX * lax.round(apart / BOX, lax.RoundingMethod.TO_NEAREST_EVEN)
    square = jnp.sum(apart**2, -1) + 100.0 * jnp.eye(COUNT)
    nearest, _ = lax.top_k(-square, NEAR)
    inverse = lax.rsqrt(-nearest + 0.1)
    return 0.5 * jnp.sum(lax.integer_pow(inverse, 6) - lax.integer_pow(inverse, 3))


def density(x):
    """Particles a cell, and their mean over windows of cells."""
    cells = lax.rem(jnp.floor(x / BOX * CELLS).astype(jnp.int32) + CELLS, jnp.full_like(x, CELLS, dtype=jnp.int32))
    numbers = lax.ScatterDimensionNumbers(update_window_dims=(), inserted_window_dims=(0, 1), scatter_dims_to_operand_dims=(0, 1))
    counted = lax.scatter_add(jnp.zeros((CELLS, CELLS), jnp.float32), cells, jnp.ones(COUNT, jnp.float32), numbers)
    again = jnp.zeros((CELLS, CELLS), jnp.float32).at[cells[:, 0], cells[:, 1]].add(1.0, mode="drop", unique_indices=False)
    mean = lax.reduce_window(counted, 0.0, lax.add, (3, 3), (1, 1), "SAME") / 9
    return counted, jnp.abs(counted - again).max(), mean


@jax.jit
def simulate(x, v):
    force = lambda x: -jax.grad(energy)(x)  # noqa: E731

    def step(i, state):
        x, v, f = state
        v = v + 0.005 * f
        x = jnp.mod(x + 0.01 * v, BOX)
        f = jnp.clip(force(x), -50.0, 50.0)
        return x, v + 0.005 * f, f

    return lax.fori_loop(0, STEPS, step, (x, v, force(x)))


def resampled(weights, offset):
    """Indices of systematic resampling."""
    places = (lax.iota(jnp.float32, PARTICLES) + offset) / PARTICLES
    return jnp.clip(jnp.searchsorted(lax.cumsum(weights), places), 0, PARTICLES - 1)


@partial(jax.jit, static_argnames="scale")
def filtered(observations, noise, offsets, scale=0.5):
    def step(carry, given):
        x, logs = carry
        y, z, u = given
        x = 0.9 * x + jnp.sin(x) + z
        logs = logs - 0.5 * ((y - x) / scale) ** 2
        total = jax.nn.logsumexp(logs)
        weights = jnp.exp(logs - total)
        few = 1 / jnp.sum(weights**2) < PARTICLES / 2
        even = jnp.full(PARTICLES, -jnp.log(float(PARTICLES)), jnp.float32)
        x, logs = lax.cond(few, lambda: (x[resampled(weights, u)], even), lambda: (x, logs - total))
        return (x, logs), (jnp.sum(weights * x), total, few)

    start = jnp.zeros(PARTICLES, jnp.float32), jnp.full(PARTICLES, -jnp.log(float(PARTICLES)), jnp.float32)
    return lax.scan(step, start, (observations, noise, offsets))[1]


def settled(x):
    """Steps of descent until the force is small."""
    slope = jax.grad(lambda x: jnp.sum((x - 1.0) ** 4 + x**2))
    go = lambda c: (jnp.abs(slope(c[0])).max() > 1e-3) & (c[1] < 500)  # noqa: E731
    return lax.while_loop(go, lambda c: (c[0] - 0.05 * slope(c[0]), c[1] + 1), (x, 0))


def main():
    rng = np.random.default_rng(2)
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    grid = np.stack(np.meshgrid(np.arange(10), np.arange(6)), -1).reshape(-1, 2)[:COUNT] * np.array([0.6, 1.0]) + 0.3
    x, v, f = simulate((grid + 0.05 * rng.standard_normal((COUNT, 2))).astype(np.float32), draw(COUNT, 2))
    counted, difference, mean = jax.jit(density)(x)
    observations, noise, offsets = 2 * draw(TIMES), 0.7 * draw(TIMES, PARTICLES), rng.random(TIMES).astype(np.float32)
    means, totals, few = filtered(observations, noise, offsets)
    point, steps = settled(jnp.array([3.0, -2.0], jnp.float32))
    return {
        "x": x, "v": v, "f": f, "energy": energy(x), "cells": counted, "difference": difference, "mean cells": mean, "means": means,
        "totals": totals, "few": few, "point": point, "steps": steps,
    }  # fmt: skip
