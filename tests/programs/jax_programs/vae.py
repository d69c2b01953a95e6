"""A variational autoencoder trained by Adam: parameters as pytrees, noise that is handed over, losses of binary pixels, and samples."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import nn
from jax.tree_util import Partial, tree_map

PIXELS, HIDDEN, LATENT, BATCH, STEPS = 16, 24, 3, 20, 25


def data():
    rng = np.random.default_rng(5)
    centre = rng.uniform(0, PIXELS, (STEPS, BATCH, 1))
    images = np.exp(-((np.arange(PIXELS) - centre) ** 2) / 4)
    return (images > 0.5).astype(np.float32), rng.standard_normal((STEPS, BATCH, LATENT)).astype(np.float32)


def layer(rng, n, m):
    return {"w": (rng.standard_normal((n, m)) / np.sqrt(n)).astype(np.float32), "b": np.zeros(m, np.float32)}


def parameters():
    rng = np.random.default_rng(6)
    return {
        "encoder": [layer(rng, PIXELS, HIDDEN), layer(rng, HIDDEN, 2 * LATENT)],
        "decoder": [layer(rng, LATENT, HIDDEN), layer(rng, HIDDEN, PIXELS)],
    }


def network(layers, x, activation=nn.gelu):
    *inner, last = layers
    for p in inner:
        x = activation(x @ p["w"] + p["b"])
    return x @ last["w"] + last["b"]


def negative_elbo(params, image, noise):
    mean, log_scale = jnp.split(network(params["encoder"], image), 2, axis=-1)
    scale = nn.softplus(log_scale) + 1e-4
    logits = network(params["decoder"], mean + scale * noise)
    nats = -jnp.sum(image * nn.log_sigmoid(logits) + (1 - image) * nn.log_sigmoid(-logits))
    divergence = 0.5 * jnp.sum(scale**2 + mean**2 - 1 - 2 * jnp.log(scale))
    return nats + divergence, {"nats": nats, "divergence": divergence}


def loss(params, images, noise):
    values, parts = jax.vmap(negative_elbo, in_axes=(None, 0, 0))(params, images, noise)
    return values.mean(), tree_map(jnp.mean, parts)


class Adam:
    def __init__(self, rate, b1=0.9, b2=0.999, eps=1e-8):
        self.rate, self.b1, self.b2, self.eps = rate, b1, b2, eps

    def init(self, params):
        mu, nu = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
        return {"mu": mu, "nu": nu, "count": jnp.zeros([], jnp.int32)}

    def update(self, grads, state):
        count = state["count"] + 1
        mu = jax.tree.map(lambda m, g: self.b1 * m + (1 - self.b1) * g, state["mu"], grads)
        nu = jax.tree.map(lambda v, g: self.b2 * v + (1 - self.b2) * jnp.square(g), state["nu"], grads)
        right = [1 - b ** count.astype(jnp.float32) for b in (self.b1, self.b2)]
        steps = jax.tree.map(lambda m, v: -self.rate * (m / right[0]) / (jnp.sqrt(v / right[1]) + self.eps), mu, nu)
        return steps, {"mu": mu, "nu": nu, "count": count}


def clipped(grads, most):
    norm = jnp.sqrt(jax.tree.reduce(lambda a, g: a + jnp.vdot(g, g), grads, 0.0))
    return jax.tree.map(lambda g: g * jnp.minimum(1.0, most / norm), grads), norm


@functools.partial(jax.jit, donate_argnums=(1, 2))
def train(update, params, state, images, noise):
    (value, parts), grads = jax.value_and_grad(loss, has_aux=True)(params, images, noise)
    grads, norm = clipped(grads, 5.0)
    steps, state = update(grads, state)
    return jax.tree.map(jnp.add, params, steps), state, {"loss": value, "norm": norm, **parts}


def main():
    images, noise = data()
    adam = Adam(3e-3)
    params = jax.tree.map(jnp.asarray, parameters())
    state, update, history = adam.init(params), Partial(adam.update), []
    for x, z in zip(images, noise, strict=True):
        params, state, seen = train(update, params, state, x, z)
        history.append(seen)
    history = jax.tree.map(lambda *xs: jnp.stack(xs), *history)
    samples = nn.sigmoid(jax.jit(network)(params["decoder"], noise[0, :4]))
    shapes = jax.eval_shape(lambda p: network(p["encoder"], jnp.zeros(PIXELS)), params)
    return history | {"samples": samples, "count": state["count"], "shape": np.array(shapes.shape)}
