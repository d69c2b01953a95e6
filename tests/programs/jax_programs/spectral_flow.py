"""Decaying two-dimensional turbulence: vorticity in Fourier space, dealiased products, Runge and Kutta's steps, spectra, a gradient."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

N, VISCOSITY = 32, 1e-3
DT = 5e-3


def wavenumbers():
    k = jnp.fft.fftfreq(N, 1 / N)[:, None]
    m = jnp.fft.rfftfreq(N, 1 / N)[None, :]
    square = k**2 + m**2
    inverse = jnp.where(square == 0, 0.0, 1.0 / jnp.where(square == 0, 1.0, square))
    return k, m, square, inverse, (jnp.abs(k) < N / 3) & (m < N / 3)


def start():
    x = np.linspace(0, 2 * np.pi, N, endpoint=False)
    rng = np.random.default_rng(13)
    waves = [rng.standard_normal() * np.cos(i * x[:, None] + j * x[None, :] + rng.uniform(0, 6)) for i in range(-4, 5) for j in range(5)]
    return jnp.asarray(sum(waves) / 3, dtype=jnp.float32)


def tendency(w_hat):
    k, m, square, inverse, kept = wavenumbers()
    psi = w_hat * inverse
    fields = jnp.stack([1j * m * psi, -1j * k * psi, 1j * k * w_hat, 1j * m * w_hat])
    u, v, w_x, w_y = jnp.fft.irfft2(fields, s=(N, N))
    return jnp.where(kept, -jnp.fft.rfft2(u * w_x + v * w_y), 0) - VISCOSITY * square * w_hat


def rk4(w, _):
    k1 = tendency(w)
    k2 = tendency(w + 0.5 * DT * k1)
    k3 = tendency(w + 0.5 * DT * k2)
    k4 = tendency(w + DT * k3)
    new = w + DT / 6 * (k1 + 2 * (k2 + k3) + k4)
    return new, energy(new)


def energy(w_hat):
    _, m, _, inverse, _ = wavenumbers()
    weight = jnp.where((m == 0) | (m == N // 2), 1.0, 2.0)
    return 0.5 * jnp.sum(weight * inverse * jnp.abs(w_hat) ** 2) / N**4


@partial(jax.jit, static_argnums=1)
def evolved(w, steps):
    last, energies = lax.scan(rk4, jnp.fft.rfft2(w), xs=None, length=steps)
    return jnp.fft.irfft2(last, s=(N, N)), energies


def spectrum(w):
    k, m, square, inverse, _ = wavenumbers()
    shell = jnp.round(jnp.sqrt(square)).astype(int)
    density = jnp.abs(jnp.fft.rfft2(w)) ** 2 * inverse / N**4
    return jnp.bincount(shell.ravel(), weights=density.ravel(), length=N // 2)


def main():
    w = start()
    last, energies = evolved(w, 40)
    slope = jax.jit(jax.grad(lambda v: evolved(v, 4)[1][-1]))(w) * N**2
    shift = jnp.fft.fftshift(jnp.abs(jnp.fft.fft2(last)))
    return {
        "vorticity": last[::4, ::4],
        "energies": energies,
        "spectrum": jax.jit(spectrum)(last),
        "slope": slope[::4, ::4],
        "largest": jnp.stack(jnp.unravel_index(jnp.argmax(shift.ravel()[: N * N // 2]), (N, N))),
        "enstrophy": jnp.trapezoid(jnp.mean(last**2, axis=1), dx=2 * jnp.pi / N),
    }
