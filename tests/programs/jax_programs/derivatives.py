"""What a tour of automatic differentiation shows: Jacobians, Hessians and their products, complex derivatives, checkpoints, passes as functions."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap


def predictions(w, b, x):
    return jax.nn.sigmoid(x @ w + b)


def loss(params, x, y):
    p = predictions(*params, x)
    return -jnp.sum(jnp.log(p * y + (1 - p) * (1 - y)))


def hvp(f, primals, tangents):
    return jvp(grad(f), primals, tangents)[1]


def vmj(f, x, ms):
    out, pull = vjp(f, x)
    return out, vmap(pull)(ms)[0]


def deep(x):
    for k in range(4):
        x = jax.checkpoint(lambda v, k=k: jnp.sin(v) * (k + 1) + jnp.cos(v**2))(x)
    return jnp.sum(x)


def wavy(z):
    u, v = jnp.real(z), jnp.imag(z)
    return u**2 * v + 1j * (v - jnp.exp(-u))


def parts(z):
    return jnp.stack([jnp.real(z), jnp.imag(z)])


def main():
    rng = np.random.default_rng(41)
    x, y = rng.standard_normal((6, 3)).astype(np.float32), np.array([1, 0, 1, 1, 0, 0], bool)
    w, b = rng.standard_normal(3).astype(np.float32), np.float32(0.3)
    f = lambda w: predictions(w, b, x)  # noqa: E731
    both = jacrev(lambda p: predictions(p["w"], p["b"], x))({"w": w, "b": b})
    out, products = vmj(f, w, jnp.eye(6))
    value, push = linearize(f, w)
    fwd, bwd = jax.fwd_and_bwd(lambda w, x: jnp.tanh(x @ w), argnums=(0, 1))
    hidden, residuals = fwd(w, x)
    tangent_out = jvp(lambda t: jnp.stack([jnp.cos(t), t**3]), (2.0,), (1.0,))[1]
    z = jnp.array(0.4 + 1.2j)
    cubic = lambda t: jnp.tanh(t) ** 3  # noqa: E731
    scalar = lambda v: jnp.sum(jnp.prod(v) ** 2 + jnp.sin(v))  # noqa: E731
    return {
        "gradient": grad(loss)((w, b), x, y)[0],
        "jacobian": jacfwd(f)(w),
        "both": both["b"],
        "hessian": hessian(lambda w: loss((w, b), x, y))(w),
        "hvp": hvp(lambda w: loss((w, b), x, y), (w,), (jnp.ones(3),)),
        "out": out,
        "products": products,
        "value": value,
        "push": push(jnp.ones(3)),
        "backward": bwd(residuals, hidden)[1],
        "tangent": tangent_out,
        "deep": grad(deep)(x[0]),
        "third": grad(grad(grad(cubic)))(0.7),
        "holomorphic": parts(grad(jnp.sin, holomorphic=True)(z)),
        "to_real": parts(grad(lambda z: jnp.abs(z) ** 2)(z)),
        "wavy": parts(vjp(wavy, z)[1](z)[0]),
        "mixed": jacfwd(jacrev(scalar))(x[1]),
        "stopped": grad(lambda v: jnp.sum(v * jax.lax.stop_gradient(v)))(w),
        "aux": grad(lambda v: (v**2, v), has_aux=True)(3.0)[1],
    }
