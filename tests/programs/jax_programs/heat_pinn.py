"""A physics-informed network for the heat equation: derivatives of derivatives of a network, by points, and natural steps by conjugate gradients."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random  # noqa: F401 - programs of this kind import it
from jax.flatten_util import ravel_pytree
from jax.scipy.sparse.linalg import cg

WIDTH, POINTS = 10, 16


def parameters():
    rng = np.random.default_rng(11)
    sizes = [2, WIDTH, WIDTH, 1]
    return [((rng.standard_normal((n, m)) / np.sqrt(n)).astype(np.float32), np.zeros(m, np.float32)) for n, m in itertools.pairwise(sizes)]


def points():
    rng = np.random.default_rng(12)
    inside, edge = rng.uniform(0, 1, (POINTS, 2)), rng.uniform(0, 1, (POINTS, 2))
    edge[: POINTS // 2, 0] = 0.0
    edge[POINTS // 2 :, 1] = rng.integers(0, 2, POINTS // 2)
    return inside.astype(np.float32), edge.astype(np.float32)


def network(params, t, x):
    h = jnp.stack([t, x])
    for w, b in params[:-1]:
        h = jnp.tanh(h @ w + b)
    w, b = params[-1]
    return jnp.squeeze(h @ w + b)


def residual(params, point):
    t, x = point
    u = partial(network, params)
    u_t = jax.grad(u, argnums=0)(t, x)
    u_xx = jax.jvp(lambda y: jax.jvp(lambda z: u(t, z), (y,), (jnp.ones_like(y),))[1], (x,), (jnp.ones_like(x),))[1]
    return u_t - 0.1 * u_xx


def known(point):
    t, x = point
    return jnp.exp(-0.1 * jnp.pi**2 * t) * jnp.sin(jnp.pi * x)


def residuals(params, inside, edge):
    rest = jax.vmap(partial(residual, params))(inside)
    border = jax.vmap(lambda p: network(params, *p) - known(p))(edge)
    return jnp.concatenate([rest, 3.0 * border])


@jax.jit
def gauss_newton(params, inside, edge):
    flat, unravel = ravel_pytree(params)
    f = lambda v: residuals(unravel(v), inside, edge)  # noqa: E731
    value, pull = jax.vjp(f, flat)
    push = partial(jax.jvp, f, (flat,))
    damped = lambda v: pull(push((v,))[1])[0] + 1e-1 * v  # noqa: E731
    step, _ = cg(damped, pull(value)[0], maxiter=15, tol=1e-3)
    rates = 0.5 ** jnp.arange(6.0)
    losses = lax.map(lambda r: jnp.sum(f(flat - r * step) ** 2), rates)
    return unravel(flat - rates[jnp.argmin(losses)] * step), jnp.vdot(value, value)


def main():
    inside, edge = points()
    params = jax.tree.map(jnp.asarray, parameters())
    first = jax.jit(residuals)(params, inside, edge)
    hessian = jax.vmap(jax.hessian(lambda p: network(params, *p)))(inside)
    third = jax.grad(jax.grad(jax.grad(network, 2), 2), 2)(params, 0.3, 0.6)
    value, slope = jax.value_and_grad(lambda p: jnp.mean(residuals(p, inside, edge) ** 2))(params)
    losses = []
    for _ in range(4):
        params, loss = gauss_newton(params, inside, edge)
        losses.append(loss)
    falling = jnp.diff(jnp.stack(losses)) < 0
    return {
        "first": first, "hessian": hessian, "third": third, "value": value, "slope": ravel_pytree(slope)[0], "loss": losses[0], "falling": falling,
    }  # fmt: skip
