"""Grids that are updated in steps: shortest paths, Gauss–Seidel, Jacobi, heat, and Maxwell's equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.loop_programs.program import Asked, Program, prange

ASKED = Asked(jax=0.7, numba=1.0)


def _grid(axes: int) -> Any:
    """Arguments: a grid of ``n`` points along each of ``axes``, and a number of steps."""
    return lambda rng, n, steps: (rng.uniform(0, 1, (n,) * axes), steps)


# --- Floyd–Warshall ---------------------------------------------------------------------------------------------------------------------


def _floyd(f: Any, d: Any) -> Any:
    return f.fori_loop(0, d.shape[0], lambda k, d: f.np.minimum(d, d[:, k, None] + d[k]), d)


def _floyd_numba(d: np.ndarray) -> np.ndarray:
    d, n = d.copy(), d.shape[0]
    for k in range(n):
        for i in prange(n):
            through = d[i, k]
            for j in range(n):
                d[i, j] = min(d[i, j], through + d[k, j])
    return d


def _floyd_reference(d: np.ndarray) -> np.ndarray:
    for k in range(len(d)):
        d = np.minimum(d, d[:, k, None] + d[k])
    return d


# --- Gauss–Seidel, nine points ----------------------------------------------------------------------------------------------------------


def _gauss_seidel(f: Any, a: Any, steps: int) -> Any:
    def row(i: Any, a: Any) -> Any:
        above, here, below = a[i - 1], a[i], a[i + 1]
        known = here[1:-1] + here[2:] + above[:-2] + above[1:-1] + above[2:] + below[:-2] + below[1:-1] + below[2:]

        def element(left: Any, of_others: Any) -> Any:
            new = (left + of_others) / 9
            return new, new

        return a.at[i, 1:-1].set(f.scan(element, here[0], known)[1])

    return f.fori_loop(0, steps, lambda _, a: f.fori_loop(1, a.shape[0] - 1, row, a), a)


def _gauss_seidel_numba(a: np.ndarray, steps: int) -> np.ndarray:
    a = a.copy()
    for _ in range(steps):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                total = a[i, j - 1] + a[i, j] + a[i, j + 1] + a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1]
                a[i, j] = (total + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]) / 9
    return a


def _gauss_seidel_reference(a: np.ndarray, steps: int) -> np.ndarray:
    a = a.copy()
    for _ in range(steps):
        for i in range(1, len(a) - 1):
            rows = a[i - 1, :-2] + a[i - 1, 1:-1] + a[i - 1, 2:] + a[i + 1, :-2] + a[i + 1, 1:-1] + a[i + 1, 2:]
            left = a[i, 0]
            for j, known in enumerate((rows + a[i, 1:-1] + a[i, 2:]).tolist(), 1):
                a[i, j] = left = (left + known) / 9
    return a


# --- Jacobi: two grids in turn ----------------------------------------------------------------------------------------------------------


def _jacobi(f: Any, a: Any, steps: int) -> Any:
    def step(_: Any, a: Any) -> Any:
        return a.at[1:-1, 1:-1].set(0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]))

    return f.fori_loop(0, steps, step, a)


def _jacobi_numba(a: np.ndarray, steps: int) -> np.ndarray:
    a, b = a.copy(), a.copy()
    for _ in range(steps):
        for i in prange(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                b[i, j] = 0.2 * (a[i, j] + a[i, j - 1] + a[i, j + 1] + a[i + 1, j] + a[i - 1, j])
        a, b = b, a
    return a


def _jacobi_reference(a: np.ndarray, steps: int) -> np.ndarray:
    a = a.copy()
    for _ in range(steps):
        a[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
    return a


# --- heat in three dimensions -----------------------------------------------------------------------------------------------------------


def _heat_step(a: Any) -> Any:
    """The new values of the inner points."""
    c = a[1:-1, 1:-1, 1:-1]
    x = a[2:, 1:-1, 1:-1] - 2 * c + a[:-2, 1:-1, 1:-1]
    y = a[1:-1, 2:, 1:-1] - 2 * c + a[1:-1, :-2, 1:-1]
    z = a[1:-1, 1:-1, 2:] - 2 * c + a[1:-1, 1:-1, :-2]
    return c + 0.125 * (x + y + z)


def _heat(f: Any, a: Any, steps: int) -> Any:
    return f.fori_loop(0, steps, lambda _, a: a.at[1:-1, 1:-1, 1:-1].set(_heat_step(a)), a)


def _heat_numba(a: np.ndarray, steps: int) -> np.ndarray:
    a, b = a.copy(), a.copy()
    for _ in range(steps):
        for i in prange(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                for k in range(1, a.shape[2] - 1):
                    c = a[i, j, k]
                    x = a[i + 1, j, k] - 2 * c + a[i - 1, j, k]
                    y = a[i, j + 1, k] - 2 * c + a[i, j - 1, k]
                    z = a[i, j, k + 1] - 2 * c + a[i, j, k - 1]
                    b[i, j, k] = c + 0.125 * (x + y + z)
        a, b = b, a
    return a


def _heat_reference(a: np.ndarray, steps: int) -> np.ndarray:
    a = a.copy()
    for _ in range(steps):
        a[1:-1, 1:-1, 1:-1] = _heat_step(a)
    return a


# --- FDTD in two dimensions -------------------------------------------------------------------------------------------------------------


def _fields(rng: np.random.Generator, n: int, steps: int) -> tuple[Any, ...]:
    return *rng.standard_normal((3, n, n)), rng.standard_normal(steps)


def _fdtd(f: Any, ex: Any, ey: Any, hz: Any, source: Any) -> Any:
    def step(t: Any, fields: Any) -> Any:
        ex, ey, hz = fields
        ey = ey.at[0].set(source[t])
        ey = ey.at[1:].add(-0.5 * (hz[1:] - hz[:-1]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        return ex, ey, hz.at[:-1, :-1].add(-0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]))

    return f.fori_loop(0, source.shape[0], step, (ex, ey, hz))


def _fdtd_numba(ex: np.ndarray, ey: np.ndarray, hz: np.ndarray, source: np.ndarray) -> tuple[np.ndarray, ...]:
    ex, ey, hz, (n, m) = ex.copy(), ey.copy(), hz.copy(), hz.shape
    for t in range(len(source)):
        for i in prange(n):
            for j in range(m):
                ey[i, j] = source[t] if i == 0 else ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
            for j in range(1, m):
                ex[i, j] -= 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in prange(n - 1):
            for j in range(m - 1):
                hz[i, j] -= 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])
    return ex, ey, hz


def _fdtd_reference(ex: np.ndarray, ey: np.ndarray, hz: np.ndarray, source: np.ndarray) -> tuple[np.ndarray, ...]:
    ex, ey, hz = ex.copy(), ey.copy(), hz.copy()
    for of_source in source:
        ey[0] = of_source
        ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex, ey, hz


def _paths(rng: np.random.Generator, n: int) -> tuple[np.ndarray]:
    return (rng.uniform(0, 1, (n, n)) ** 3,)


PROGRAMS = (
    Program("Floyd-Warshall", "stencils", _paths, _floyd_reference, _floyd, _floyd_numba, parallel=True, asked=ASKED),
    Program("Gauss-Seidel", "stencils", _grid(2), _gauss_seidel_reference, _gauss_seidel, _gauss_seidel_numba, asked=ASKED),
    Program("Jacobi", "stencils", _grid(2), _jacobi_reference, _jacobi, _jacobi_numba, parallel=True, asked=ASKED),
    Program("heat", "stencils", _grid(3), _heat_reference, _heat, _heat_numba, parallel=True, asked=ASKED),
    Program("FDTD", "stencils", _fields, _fdtd_reference, _fdtd, _fdtd_numba, parallel=True, asked=ASKED),
)
