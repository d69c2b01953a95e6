"""A Gaussian process: hyperparameters by gradient steps on the marginal likelihood, predictions, and the probability of exceeding a level.

Written for JAX; ported by its imports alone.
"""

import numpy as np

import hologram.numpy as jnp
from hologram import jit, value_and_grad, vmap
from hologram.scipy.linalg import cho_factor, cho_solve, solve_triangular
from hologram.scipy.special import xlogy
from hologram.scipy.stats import gamma, multivariate_normal, norm

generator = np.random.default_rng(1)
x = np.sort(generator.uniform(-3, 3, 30))
y = np.sin(2 * x) + 0.1 * generator.standard_normal(30)
grid = np.linspace(-3.5, 3.5, 15)


def kernel(p, a, b):
    def of_pair(s, t):
        return jnp.exp(2 * p["amplitude"] - 0.5 * ((s - t) / jnp.exp(p["length"])) ** 2)

    return vmap(lambda s: vmap(lambda t: of_pair(s, t))(b))(a)


def covariance(p):
    return kernel(p, x, x) + jnp.exp(2 * p["noise"]) * jnp.eye(30)


def loss(p):
    fit = multivariate_normal.logpdf(y, jnp.zeros(30), covariance(p))
    prior = gamma.logpdf(jnp.exp(p["length"]), 2.0) + norm.logpdf(p["amplitude"]) + norm.logpdf(p["noise"], -2.0, 1.0)
    return -fit - prior


@jit
def step(p, velocity):
    value, slope = value_and_grad(loss)(p)
    velocity = {k: 0.9 * velocity[k] - 0.002 * slope[k] for k in p}
    return {k: p[k] + velocity[k] for k in p}, velocity, value


@jit
def predicted(p):
    factor = cho_factor(covariance(p), lower=True)
    across = kernel(p, grid, x)
    mean = across @ cho_solve(factor, y)
    white = solve_triangular(factor[0], across.T, lower=True)
    deviation = jnp.sqrt(jnp.exp(2 * p["amplitude"]) - jnp.sum(white**2, axis=0))
    above = norm.sf(0.5, mean, deviation)
    return mean, deviation, above, -xlogy(above, above) - xlogy(1 - above, 1 - above)


def program():
    p = {"amplitude": jnp.asarray(0.0 * x[0]), "length": jnp.asarray(0.0 * x[0]), "noise": jnp.asarray(0.0 * x[0] - 1.0)}
    velocity = {k: 0 * v for k, v in p.items()}
    losses = []
    for _ in range(40):
        p, velocity, value = step(p, velocity)
        losses.append(value)
    mean, deviation, above, surprise = predicted(p)
    return {"losses": jnp.stack(losses), **p, "mean": mean, "deviation": deviation, "above": above, "surprise": surprise}
