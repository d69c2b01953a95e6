"""Images resized, moved, warped and filtered, and an unknown shift found by the derivative of the resampling."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.ndimage import map_coordinates
from jax.scipy.signal import convolve2d


def picture():
    y, x = np.mgrid[0:18, 0:24] / 6.0
    return (np.sin(2 * x) * np.cos(y) + 0.5 * (np.hypot(x - 2, y - 1) < 1)).astype(np.float32)


def rotated(image, angle):
    h, w = image.shape
    y, x = jnp.meshgrid(jnp.arange(h) - (h - 1) / 2, jnp.arange(w) - (w - 1) / 2, indexing="ij")
    c, s = jnp.cos(angle), jnp.sin(angle)
    return map_coordinates(image, [c * y - s * x + (h - 1) / 2, s * y + c * x + (w - 1) / 2], order=1, mode="nearest")


def moved(image, shift):
    return jax.image.scale_and_translate(image, image.shape, (0, 1), jnp.ones(2), shift, "cubic")


@jax.jit
def registered(image, target):
    def step(_, shift):
        inner = lambda s: (moved(image, s) - target)[4:-4, 4:-4].ravel()  # noqa: E731
        error, slopes = inner(shift), jax.jacfwd(inner)(shift)
        return shift - jnp.linalg.solve(slopes.T @ slopes, slopes.T @ error)

    return jax.lax.fori_loop(0, 5, step, jnp.zeros(2))


def edges(image):
    sobel = jnp.array([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])
    return jnp.hypot(convolve2d(image, sobel, mode="same"), convolve2d(image, sobel.T, mode="same"))


def main():
    image = jnp.asarray(picture())
    stack = jnp.stack([image, image[::-1], image.T.T * 2])
    found = {f"resized_{m}": jax.image.resize(image, (9, 31), m) for m in ("nearest", "linear", "cubic", "lanczos3", "lanczos5")}
    batch = jax.vmap(lambda x: jax.image.resize(x, (6, 8), jax.image.ResizeMethod.LINEAR, antialias=False))(stack)
    pyramid = jax.image.resize(stack, (3, 5, 6), method="bicubic")
    turned = jax.vmap(rotated, (None, 0))(image, jnp.array([0.1, -0.4]))
    slope = jax.grad(lambda a: jnp.sum(rotated(image, a) * image))(0.2)
    target = moved(image, jnp.array([0.6, -0.9]))
    pulled = jax.vjp(lambda x: jax.image.resize(x, (5, 7), "lanczos3"), image)[1](jnp.ones((5, 7)))[0]
    return found | {
        "batch": batch,
        "pyramid": pyramid,
        "turned": turned,
        "slope": slope,
        "shift": registered(image, target),
        "pulled": pulled,
        "edges": edges(image),
    }
