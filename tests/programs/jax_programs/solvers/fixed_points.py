"""Rules of derivatives by the user: an implicit layer by its fixed point, a clipped gradient, a stable logarithm, the transpose of a linear map."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def fixed_point(f, a, start):
    def go_on(carry):
        before, now = carry
        return jnp.max(jnp.abs(before - now)) > 1e-6

    return lax.while_loop(go_on, lambda c: (c[1], f(a, c[1])), (start, f(a, start)))[1]


def fixed_point_fwd(f, a, start):
    found = fixed_point(f, a, start)
    return found, (a, found)


def rewound(f, packed, u):
    a, found, cotangent = packed
    _, pull = jax.vjp(lambda x: f(a, x), found)
    return cotangent + pull(u)[0]


def fixed_point_bwd(f, residuals, cotangent):
    a, found = residuals
    _, pull = jax.vjp(lambda a: f(a, found), a)
    (by_a,) = pull(fixed_point(partial(rewound, f), (a, found, cotangent), cotangent))
    return by_a, jnp.zeros_like(found)


fixed_point.defvjp(fixed_point_fwd, fixed_point_bwd)


@jax.custom_jvp
def log1pexp(x):
    return jnp.log(1.0 + jnp.exp(x))


@log1pexp.defjvp
def log1pexp_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * t


@jax.custom_vjp
def clipped(low, high, x):
    return x


clipped.defvjp(lambda low, high, x: (x, (low, high)), lambda bounds, g: (None, None, jnp.clip(g, *bounds)))


@jax.custom_gradient
def straight_through(x):
    return jnp.round(x), lambda g: (g,)


def layer(params, x):
    w, bias = params
    return jnp.tanh(w @ x + bias)


def newton_root(a):
    step = lambda x: 0.5 * (x + a / x)  # noqa: E731
    return lax.custom_root(lambda x: x * x - a, 1.0, lambda f, x: lax.fori_loop(0, 8, lambda _, x: step(x), x), lambda g, y: y / g(1.0))


def main():
    rng = np.random.default_rng(31)
    w, bias = (0.3 * rng.standard_normal((5, 5)).astype(np.float32), rng.standard_normal(5).astype(np.float32))
    loss = lambda params: jnp.sum(fixed_point(layer, params, jnp.zeros(5)) ** 2)  # noqa: E731
    value, (by_w, by_bias) = jax.jit(jax.value_and_grad(loss))((w, bias))
    wave = lambda t: jnp.sin(clipped(-0.75, 0.75, t))  # noqa: E731
    forward = lambda x: lax.scan(lambda c, a: (0.5 * c + a, c - a), jnp.zeros(()), x)  # noqa: E731
    transposed = jax.linear_transpose(forward, jnp.zeros(6))
    converted, values = jax.closure_convert(lambda x: jnp.sum(bias) * x, 1.0)
    return {
        "value": value,
        "by_w": by_w,
        "by_bias": by_bias,
        "many": jax.vmap(lambda b: fixed_point(layer, (w, b), jnp.zeros(5)))(np.stack([bias, -bias])),
        "log1pexp": jax.vmap(jax.grad(log1pexp))(jnp.array([-50.0, 0.0, 100.0])),
        "wave": jax.vmap(jax.grad(wave))(jnp.linspace(0, 3, 7)),
        "rounded": jax.grad(lambda x: jnp.sum(straight_through(x) ** 2))(jnp.array([0.4, 1.6])),
        "root": jax.grad(newton_root)(9.0),
        "second": jax.grad(jax.grad(newton_root))(4.0),
        "transposed": transposed((jnp.ones(()), jnp.arange(6.0)))[0],
        "converted": converted(2.0, *values),
    }
