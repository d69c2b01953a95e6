"""Signals: kernels in all layouts of convolutions, filters by hand, spectra, windows that overlap, and a blind filter found by gradients."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import signal


def wave():
    t = np.arange(128) / 128
    return (np.sin(2 * np.pi * 9 * t) + 0.4 * np.cos(2 * np.pi * 31 * t) + 0.1 * np.sin(40 * t**2)).astype(np.float32)


def smoothed(x):
    window = jnp.hanning(9) / jnp.hanning(9).sum()
    return jnp.convolve(jnp.pad(x, 4, mode="edge"), window, mode="valid")


def convolutions():
    rng = np.random.default_rng(71)
    lines, kernel = rng.standard_normal((2, 12, 3)).astype(np.float32), rng.standard_normal((3, 3, 4)).astype(np.float32)
    image, square = rng.standard_normal((1, 4, 9, 8)).astype(np.float32), rng.standard_normal((6, 2, 3, 3)).astype(np.float32)
    cube, block = rng.standard_normal((1, 5, 5, 4, 2)).astype(np.float32), rng.standard_normal((2, 3, 2, 2, 3)).astype(np.float32)
    return {
        "plain": lax.conv_general_dilated(lines, kernel, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")),
        "strided": lax.conv_general_dilated(lines, kernel, (2,), [(2, 1)], rhs_dilation=(2,), dimension_numbers=("NWC", "WIO", "NWC")),
        "grouped": lax.conv_general_dilated(image, square, (1, 2), "VALID", feature_group_count=2),
        "wide": lax.conv_general_dilated(image[:, :2], square, (1, 1), ((1, 1), (2, 0)), lhs_dilation=(2, 1)),
        "transposed": lax.conv_transpose(lines, kernel, (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")),
        "solid": lax.conv_general_dilated(cube, block, (1, 1, 1), "SAME", dimension_numbers=("NHWDC", "HWDIO", "NHWDC")),
        "complex": jnp.abs(lax.conv((image[:, :2] * (1 + 2j)).astype(np.complex64), (square * 1j + 1).astype(np.complex64), (1, 1), "SAME")),
        "counted": lax.reduce_window(image, 1.0, lax.add, (1, 1, 3, 2), (1, 1, 2, 2), "SAME"),
        "best": jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "SAME").sum())(image),
        "patches": lax.conv_general_dilated_patches(image, (2, 2), (2, 2), "VALID"),
    }


@jax.jit
def recursive(x, a, b):
    def step(state, now):
        out = b[0] * now + state[0]
        return jnp.stack([b[1] * now - a[0] * out + state[1], b[2] * now - a[1] * out]), out

    return lax.scan(step, jnp.zeros(2), x)[1]


def learned(x, y):
    loss = lambda k: jnp.mean((jnp.convolve(x, k, mode="same") - y) ** 2)  # noqa: E731
    body = lambda _, k: k - 0.3 * jax.grad(loss)(k)  # noqa: E731
    return lax.fori_loop(0, 60, body, jnp.zeros(5))


def main():
    x = jnp.asarray(wave())
    f, p = signal.welch(x, fs=128.0, nperseg=32)
    _, _, z = signal.stft(x, nperseg=32)
    _, back = signal.istft(z, nperseg=32)
    spectrum = jnp.fft.rfft(x)
    kept = jnp.where(jnp.abs(spectrum) > 10, spectrum, 0)
    frames = jax.vmap(lambda i: lax.dynamic_slice(x, (i,), (16,)))(jnp.arange(0, 112, 16))
    kernel = jnp.array([0.1, -0.3, 0.8, 0.2, -0.1])
    return convolutions() | {
        "smoothed": smoothed(x),
        "frequencies": f,
        "power": p,
        "back": back[:128],
        "cleaned": jnp.fft.irfft(kept),
        "recursive": recursive(x, jnp.array([-0.6, 0.2]), jnp.array([0.3, 0.4, 0.1])),
        "energy": jnp.linalg.norm(frames, axis=1),
        "correlated": signal.correlate(x, x[30:40], mode="valid"),
        "fft": signal.fftconvolve(x, kernel, mode="same"),
        "detrended": signal.detrend(x + x.size),
        "learned": learned(x, jnp.convolve(x, kernel, mode="same")),
        "slope": jax.grad(lambda a: jnp.sum(recursive(x, a, jnp.ones(3)) ** 2))(jnp.array([0.1, 0.2])),
    }
