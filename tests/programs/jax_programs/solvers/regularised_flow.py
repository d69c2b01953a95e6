"""A neural ODE whose third derivatives are kept small, by Taylor mode; the Sinkhorn divergence of its end with a derivative of its own; checks."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import checkify
from jax.experimental.jet import jet
from jax.experimental.ode import odeint
from jax.scipy.special import logsumexp
from jax.tree_util import Partial, register_dataclass

POINTS, HIDDEN, EPSILON = 12, 8, 0.2


@functools.partial(register_dataclass, data_fields=["inner", "outer"], meta_fields=["name"])
class Field:
    def __init__(self, inner, outer, name="field"):
        self.inner, self.outer, self.name = inner, outer, name

    def __call__(self, y, t):
        return jnp.tanh(jnp.append(y, t) @ self.inner) @ self.outer


def numbers():
    rng = np.random.default_rng(3)
    start, end = rng.standard_normal((POINTS, 2)), rng.standard_normal((POINTS, 2)) * 0.3 + [1.0, 0.5]
    weights = rng.standard_normal((3, HIDDEN)), 0.3 * rng.standard_normal((HIDDEN, 2))
    return [x.astype(np.float32) for x in (start, end, *weights)]


def third_derivative(field, y, t):
    one, zero = jnp.ones_like(t), jnp.zeros_like(t)
    first = field(y, t)
    _, [second] = jet(field, (y, t), ([first], [one]))
    _, [_, third] = jet(field, (y, t), ([first, second], [one, zero]))
    return third


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def transport(cost, epsilon):
    return potentials(cost, epsilon)[0]


def potentials(cost, epsilon):
    n = cost.shape[0]

    def soft(x, axis):
        return -epsilon * (logsumexp(x / epsilon, axis=axis) - jnp.log(n))

    def step(state):
        f, g, count, _ = state
        new = soft(g[None, :] - cost, 1)
        return new, soft(new[:, None] - cost, 0), count + 1, jnp.max(jnp.abs(new - f))

    start = jnp.zeros(n), jnp.zeros(n), 0, jnp.inf
    f, g, _, _ = lax.while_loop(lambda s: (s[3] > 1e-6) & (s[2] < 500), step, start)
    return jnp.mean(f) + jnp.mean(g), f, g


def transport_forward(cost, epsilon):
    value, f, g = potentials(cost, epsilon)
    return value, (cost, f, g)


def transport_backward(epsilon, kept, cotangent):
    cost, f, g = kept
    return (cotangent * jnp.exp((f[:, None] + g[None] - cost) / epsilon) / cost.shape[0] ** 2,)


transport.defvjp(transport_forward, transport_backward)


def distances(x, y):
    return jnp.sum((x[:, None] - y[None]) ** 2, axis=-1)


def divergence(x, y):
    return transport(distances(x, y), EPSILON) - 0.5 * transport(distances(x, x), EPSILON) - 0.5 * transport(distances(y, y), EPSILON)


def loss(field, start, end):
    def flow(state, t, field):
        return field(state[0], t), jnp.sum(third_derivative(field, state[0], t) ** 2)

    def path(y):
        return odeint(flow, (y, jnp.zeros(())), jnp.array([0.0, 1.0]), field, rtol=1e-5, atol=1e-5)

    points, bent = jax.vmap(path)(start)
    return divergence(points[:, -1], end) + 1e-3 * jnp.mean(bent[:, -1])


def checked_roots(x):
    checkify.check(jnp.all(x >= 0), "no root of {}", x.min())
    return jnp.sqrt(x)


def main():
    start, end, inner, outer = numbers()
    field = Field(jnp.asarray(inner), jnp.asarray(outer))
    step = jax.jit(jax.value_and_grad(loss))
    losses = []
    for _ in range(4):
        value, slope = step(field, start, end)
        losses.append(value)
        field = jax.tree_util.tree_map(lambda p, g: p - 0.2 * g, field, slope)
    roots = jax.jit(checkify.checkify(checked_roots))
    held, failed = roots(jnp.array([1.0, 4.0])), roots(jnp.array([1.0, -4.0]))
    scaled = jax.jit(lambda f, x: f(x))(Partial(jnp.multiply, jnp.arange(3.0)), 2.0)
    return {
        "losses": jnp.stack(losses),
        "outer": field.outer,
        "third": third_derivative(field, jnp.asarray(start[0]), jnp.asarray(0.5)),
        "roots": held[1],
        "failed": jnp.array([held[0].get() is not None, failed[0].get() is not None]),
        "scaled": scaled,
    }
