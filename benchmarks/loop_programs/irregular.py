"""Loops over what the data says: sparse rows, histograms, pairs of bodies, pixels that end early, windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.loop_programs.program import Asked, Program, prange

ASKED = Asked(jax=0.7, numba=1.2)

# --- sparse matrix–vector product by rows -----------------------------------------------------------------------------------------------


def _sparse(rng: np.random.Generator, n: int, in_a_row: int) -> tuple[np.ndarray, ...]:
    """CSR: where rows start, columns, values; and a vector."""
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 2 * in_a_row, n))])
    return starts, rng.integers(0, n, starts[-1]), rng.standard_normal(starts[-1]), rng.standard_normal(n)


def _spmv(f: Any, starts: Any, columns: Any, values: Any, x: Any) -> Any:
    def row(i: Any, y: Any) -> Any:
        return y.at[i].set(f.fori_loop(starts[i], starts[i + 1], lambda k, total: total + values[k] * x[columns[k]], 0.0))

    return f.fori_loop(0, len(starts) - 1, row, f.np.zeros_like(x))


def _spmv_numba(starts: np.ndarray, columns: np.ndarray, values: np.ndarray, x: np.ndarray) -> np.ndarray:
    y = np.empty_like(x)
    for i in prange(len(starts) - 1):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * x[columns[k]]
        y[i] = total
    return y


def _spmv_reference(starts: np.ndarray, columns: np.ndarray, values: np.ndarray, x: np.ndarray) -> np.ndarray:
    rows = np.repeat(np.arange(len(x)), np.diff(starts))
    return np.bincount(rows, values * x[columns], len(x))


# --- histogram with weights -------------------------------------------------------------------------------------------------------------

BINS = 256


def _weighted(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.uniform(0, 1, n), rng.standard_normal(n)


def _histogram(f: Any, x: Any, weights: Any) -> Any:
    return f.np.zeros(BINS, weights.dtype).at[(x * BINS).astype(f.np.int32)].add(weights)


def _histogram_loop(f: Any, x: Any, weights: Any) -> Any:
    def step(bins: Any, each: Any) -> Any:
        x, weight = each
        return bins.at[(x * BINS).astype(f.np.int32)].add(weight), None

    return f.scan(step, f.np.zeros(BINS, weights.dtype), (x, weights))[0]


def _histogram_numba(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    bins = np.zeros(BINS)
    for i in range(len(x)):
        bins[int(x[i] * BINS)] += weights[i]
    return bins


def _histogram_reference(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.bincount((x * BINS).astype(np.int64), weights, BINS)


# --- N bodies: leapfrog -----------------------------------------------------------------------------------------------------------------

TIME, SOFTENING = 0.01, 0.01


def _bodies(rng: np.random.Generator, n: int, steps: int) -> tuple[Any, ...]:
    return rng.standard_normal((n, 3)), rng.standard_normal((n, 3)), rng.uniform(0, 1 / n, n), steps


def _pull(xp: Any, positions: Any, masses: Any) -> Any:
    """Accelerations by all pairs."""
    apart = positions[None] - positions[:, None]
    inverse = ((apart**2).sum(-1) + SOFTENING) ** -1.5
    return xp.einsum("ijk,ij,j->ik", apart, inverse, masses)


def _n_body(f: Any, positions: Any, velocities: Any, masses: Any, steps: int) -> Any:
    def step(_: Any, carry: Any) -> Any:
        x, v, pull = carry
        v = v + TIME / 2 * pull
        x = x + TIME * v
        pull = _pull(f.np, x, masses)
        return x, v + TIME / 2 * pull, pull

    return f.fori_loop(0, steps, step, (positions, velocities, _pull(f.np, positions, masses)))[:2]


def _n_body_numba(positions: np.ndarray, velocities: np.ndarray, masses: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    x, v, pull, n = positions.copy(), velocities.copy(), np.zeros_like(positions), len(masses)
    for step in range(steps + 1):
        if step > 0:
            for i in range(n):
                for k in range(3):
                    v[i, k] += TIME / 2 * pull[i, k]
                    x[i, k] += TIME * v[i, k]
        for i in prange(n):
            a0 = a1 = a2 = 0.0
            for j in range(n):
                d0, d1, d2 = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
                square = d0 * d0 + d1 * d1 + d2 * d2 + SOFTENING
                factor = masses[j] / (square * np.sqrt(square))
                a0, a1, a2 = a0 + factor * d0, a1 + factor * d1, a2 + factor * d2
            pull[i, 0], pull[i, 1], pull[i, 2] = a0, a1, a2
        if step > 0:
            for i in range(n):
                for k in range(3):
                    v[i, k] += TIME / 2 * pull[i, k]
    return x, v


def _n_body_reference(positions: np.ndarray, velocities: np.ndarray, masses: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    x, v = positions, velocities
    pull = _pull(np, x, masses)
    for _ in range(steps):
        v = v + TIME / 2 * pull
        x = x + TIME * v
        pull = _pull(np, x, masses)
        v = v + TIME / 2 * pull
    return x, v


# --- Mandelbrot: each pixel ends when it escapes ----------------------------------------------------------------------------------------

LIMIT = 200


def _plane(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.linspace(-2.0, 0.6, n), np.linspace(-1.2, 1.2, n)


def _escape(f: Any, x: Any, y: Any) -> Any:
    """How many steps until the point escapes."""

    def goes_on(carry: Any) -> Any:
        n, a, b = carry
        return (a * a + b * b <= 4) & (n < LIMIT)

    def step(carry: Any) -> Any:
        n, a, b = carry
        return n + 1, a * a - b * b + x, 2 * a * b + y

    return f.while_loop(goes_on, step, (f.np.zeros((), f.np.int64), 0.0 * x, 0.0 * y))[0]


def _mandelbrot_pixels(f: Any, xs: Any, ys: Any) -> Any:
    """A pixel after another."""

    def row(y: Any) -> Any:
        return f.scan(lambda _, x: (None, _escape(f, x, y)), None, xs)[1]

    return f.scan(lambda _, y: (None, row(y)), None, ys)[1]


def _mandelbrot_rows(f: Any, xs: Any, ys: Any) -> Any:
    """A row of pixels at a time, until all of them have escaped."""
    return f.scan(lambda _, y: (None, f.vmap(lambda x: _escape(f, x, y))(xs)), None, ys)[1]


def _mandelbrot_numba(xs: np.ndarray, ys: np.ndarray) -> np.ndarray:
    counts = np.empty((len(ys), len(xs)), np.int64)
    for i in prange(len(ys)):
        for j in range(len(xs)):
            n, a, b = 0, 0.0, 0.0
            while a * a + b * b <= 4 and n < LIMIT:
                a, b = a * a - b * b + xs[j], 2 * a * b + ys[i]
                n += 1
            counts[i, j] = n
    return counts


def _mandelbrot_reference(xs: np.ndarray, ys: np.ndarray) -> np.ndarray:
    x, y = np.broadcast_arrays(xs, ys[:, None])
    a, b, counts = np.zeros(x.shape), np.zeros(x.shape), np.zeros(x.shape, np.int64)
    for _ in range(LIMIT):
        on = a * a + b * b <= 4
        counts += on
        a, b = np.where(on, a * a - b * b + x, a), np.where(on, 2 * a * b + y, b)
    return counts


# --- direct convolution, a window at a time ---------------------------------------------------------------------------------------------


def _images(rng: np.random.Generator, n: int, channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Images (batch, row, column, channel) and weights (row, column, channel, new channel)."""
    return rng.standard_normal((4, n, n, channels)), rng.standard_normal((3, 3, channels, 2 * channels))


def _convolution(f: Any, images: Any, weights: Any) -> Any:
    batch, n, _, channels = images.shape
    k, new = weights.shape[0], weights.shape[-1]

    def element(i: Any, j: Any, out: Any) -> Any:
        window = f.window(images, (0, i, j, 0), (batch, k, k, channels))
        return out.at[:, i, j].set(f.np.tensordot(window, weights, 3))

    def row(i: Any, out: Any) -> Any:
        return f.fori_loop(0, n - k + 1, lambda j, out: element(i, j, out), out)

    return f.fori_loop(0, n - k + 1, row, f.np.zeros((batch, n - k + 1, n - k + 1, new), images.dtype))


def _convolution_numba(images: np.ndarray, weights: np.ndarray) -> np.ndarray:
    (batch, n, _, channels), (k, _, _, new) = images.shape, weights.shape
    out = np.zeros((batch, n - k + 1, n - k + 1, new))
    for row in prange(batch * (n - k + 1)):
        b, i = row // (n - k + 1), row % (n - k + 1)
        for j in range(n - k + 1):
            for p in range(k):
                for q in range(k):
                    for c in range(channels):
                        x = images[b, i + p, j + q, c]
                        for o in range(new):
                            out[b, i, j, o] += x * weights[p, q, c, o]
    return out


def _convolution_reference(images: np.ndarray, weights: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(images, weights.shape[:2], (1, 2))
    return np.einsum("bijcpq,pqco->bijo", windows, weights, optimize=True)


def _made(name: str, arguments: Any, reference: Any, traced: Any, numba: Any, parallel: bool = True, **options: Any) -> Program:
    return Program(name, "irregular", arguments, reference, traced, numba, parallel=parallel, asked=ASKED, **options)


PROGRAMS = (
    _made("sparse product by rows", _sparse, _spmv_reference, _spmv, _spmv_numba),
    _made("histogram", _weighted, _histogram_reference, _histogram, _histogram_numba, parallel=False),
    _made("histogram by a loop", _weighted, _histogram_reference, _histogram_loop, _histogram_numba, parallel=False, steps=lambda n: n),
    _made("N-body", _bodies, _n_body_reference, _n_body, _n_body_numba),
    _made("Mandelbrot by pixels", _plane, _mandelbrot_reference, _mandelbrot_pixels, _mandelbrot_numba),
    _made("Mandelbrot by rows", _plane, _mandelbrot_reference, _mandelbrot_rows, _mandelbrot_numba),
    _made("convolution by windows", _images, _convolution_reference, _convolution, _convolution_numba),
)
