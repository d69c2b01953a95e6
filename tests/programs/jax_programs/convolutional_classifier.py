"""A convolutional classifier of small images: convolutions, pooling by sliding windows, momentum, gradients by example clipped as for privacy."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

LAYOUT = ("NHWC", "HWIO", "NHWC")


def data():
    rng = np.random.default_rng(21)
    labels = rng.integers(0, 3, 24)
    images = 0.3 * rng.standard_normal((24, 10, 10, 1))
    for image, label in zip(images, labels, strict=True):
        image[2 + 2 * label : 4 + 2 * label, :, 0] += 1.0
    return images.astype(np.float32), labels


def parameters():
    rng = np.random.default_rng(22)
    normal = lambda *shape: (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)  # noqa: E731
    return {"conv": [(normal(3, 3, 1, 4), np.zeros(4, np.float32)), (normal(3, 3, 4, 6), np.zeros(6, np.float32))], "dense": normal(54, 3)}


def pooled(x):
    largest = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
    total = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
    return 0.5 * (largest + total / 4)


def logits(params, images):
    h = images
    for w, b in params["conv"]:
        h = pooled(jax.nn.gelu(lax.conv_general_dilated(h, w, (1, 1), "SAME", dimension_numbers=LAYOUT) + b))
    return h.reshape(h.shape[0], -1) @ params["dense"]


def loss(params, images, labels):
    scores = jax.nn.log_softmax(logits(params, images))
    return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()


def private_gradient(params, images, labels, limit):
    by_example = jax.vmap(jax.grad(loss), (None, 0, 0))(params, images[:, None], labels[:, None])
    norms = jnp.sqrt(sum(jnp.sum(g**2, axis=tuple(range(1, g.ndim))) for g in jax.tree_util.tree_leaves(by_example)))
    share = jnp.minimum(1.0, limit / norms)
    return jax.tree_util.tree_map(lambda g: jnp.einsum("n...,n->...", g, share) / len(images), by_example), norms


@partial(jax.jit, donate_argnums=(0,))
def step(state, images, labels):
    params, velocity = state
    grads, norms = private_gradient(params, images, labels, 0.5)
    velocity = jax.tree_util.tree_map(lambda v, g: 0.9 * v - 0.1 * g, velocity, grads)
    return (jax.tree_util.tree_map(jnp.add, params, velocity), velocity), norms


def main():
    images, labels = data()
    params = jax.tree_util.tree_map(jnp.asarray, parameters())
    first, grads = jax.value_and_grad(loss)(params, images, labels)
    state = params, jax.tree_util.tree_map(jnp.zeros_like, params)
    for _ in range(6):
        state, norms = step(state, images, jnp.asarray(labels))
    accuracy = jnp.mean(jnp.argmax(logits(state[0], images), -1) == labels)
    return {
        "first": first,
        "by_kernel": grads["conv"][1][0],
        "norms": norms,
        "dense": state[0]["dense"],
        "last": loss(state[0], images, labels),
        "accuracy": accuracy,
    }
