"""A fit of a differential equation to observations: rates of prey and predators, by BFGS through the solver's adjoint.

Written for JAX; ported by its imports alone.
"""

import numpy as np

import hologram.numpy as jnp
from hologram import grad, jit
from hologram.experimental.ode import odeint
from hologram.scipy.optimize import minimize
from hologram.scipy.stats import norm

times = np.linspace(0.0, 4.0, 9)
start = np.array([1.0, 0.6])
true = np.array([1.2, 0.8, 0.7, 0.9])


def rates(y, t, p):
    prey, predators = y
    return jnp.array([p[0] * prey - p[1] * prey * predators, p[2] * prey * predators - p[3] * predators])


def solution(log_p):
    return odeint(rates, start, times, jnp.exp(log_p), rtol=1e-8, atol=1e-8)


noise = np.random.default_rng(0).standard_normal((9, 2))
observed = np.asarray(jit(solution)(np.log(true))) * np.exp(0.02 * noise)


def loss(log_p):
    residual = jnp.log(observed) - jnp.log(solution(log_p))
    return -jnp.sum(norm.logpdf(residual, 0.0, 0.05)) - jnp.sum(norm.logpdf(log_p, 0.0, 2.0))


def program():
    first = np.zeros(4)
    slope = jit(grad(loss))(first)
    found = jit(lambda x: minimize(loss, x, method="BFGS", options={"gtol": 1e-6, "maxiter": 100}).x)(first)
    return {"slope": slope, "rates": jnp.exp(found), "loss": jit(loss)(found), "end": jit(solution)(found)[-1]}
