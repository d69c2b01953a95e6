"""Factorizations and solvers of dense matrices, by loops over elements and over rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.loop_programs.program import Asked, Program

ASKED = Asked(jax=0.5, numba=2.0)  # Numba's loops are triangular, ours run over whole rows under a mask


def _positive(rng: np.random.Generator, n: int) -> tuple[np.ndarray]:
    m = rng.standard_normal((n, n))
    return (m @ m.T / n + 2 * np.eye(n),)


# --- Cholesky ---------------------------------------------------------------------------------------------------------------------------


def _cholesky_elements(f: Any, a: Any) -> Any:
    columns = f.np.arange(a.shape[0])

    def product(a: Any, i: Any, j: Any) -> Any:
        """The product of the parts of rows i and j before column j."""
        return f.np.where(columns < j, a[i] * a[j], 0.0).sum()

    def element(j: Any, a: Any, i: Any) -> Any:
        return a.at[i, j].set((a[i, j] - product(a, i, j)) / a[j, j])

    def row(i: Any, a: Any) -> Any:
        a = f.fori_loop(0, i, lambda j, a: element(j, a, i), a)
        return a.at[i, i].set(f.np.sqrt(a[i, i] - product(a, i, i)))

    return f.np.tril(f.fori_loop(0, a.shape[0], row, a))


def _cholesky_columns(f: Any, a: Any) -> Any:
    rows = f.np.arange(a.shape[0])

    def column(j: Any, l: Any) -> Any:  # noqa: E741
        v = a[:, j] - l @ l[j]
        return l.at[:, j].set(f.np.where(rows >= j, v / f.np.sqrt(v[j]), 0.0))

    return f.fori_loop(0, a.shape[0], column, f.np.zeros_like(a))


def _cholesky_numba(a: np.ndarray) -> np.ndarray:
    n = a.shape[0]
    l = np.zeros((n, n))  # noqa: E741
    for i in range(n):
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= l[i, k] * l[j, k]
            l[i, j] = np.sqrt(total) if i == j else total / l[j, j]
    return l


# --- LU without pivots ------------------------------------------------------------------------------------------------------------------


def _lu_elements(f: Any, a: Any) -> Any:
    n = a.shape[0]
    indices = f.np.arange(n)

    def reduced(a: Any, i: Any, j: Any, k: Any) -> Any:
        """Element (i, j) less the product of row and column before k."""
        return a[i, j] - f.np.where(indices < k, a[i] * a[:, j], 0.0).sum()

    def row(i: Any, a: Any) -> Any:
        a = f.fori_loop(0, i, lambda j, a: a.at[i, j].set(reduced(a, i, j, j) / a[j, j]), a)
        return f.fori_loop(i, n, lambda j, a: a.at[i, j].set(reduced(a, i, j, i)), a)

    return f.fori_loop(0, n, row, a)


def _lu_rows(f: Any, a: Any) -> Any:
    n = a.shape[0]
    indices = f.np.arange(n)

    def eliminate(k: Any, a: Any) -> Any:
        below = f.np.where(indices > k, a[:, k] / a[k, k], 0.0)
        right = f.np.where(indices > k, a[k], 0.0)
        a = a - below[:, None] * right
        return a.at[:, k].set(f.np.where(indices > k, below, a[:, k]))

    return f.fori_loop(0, n, eliminate, a)


def _lu_numba(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return a


def _lu_reference(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    for k in range(len(a)):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


# --- forward substitution ---------------------------------------------------------------------------------------------------------------


def _triangular(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.tril(rng.standard_normal((n, n)) / n) + 2 * np.eye(n), rng.standard_normal(n)


def _solve(f: Any, l: Any, b: Any) -> Any:  # noqa: E741
    return f.fori_loop(0, l.shape[0], lambda i, x: x.at[i].set((b[i] - l[i] @ x) / l[i, i]), f.np.zeros_like(b))


def _solve_reference(l: np.ndarray, b: np.ndarray) -> np.ndarray:  # noqa: E741
    return np.linalg.solve(np.tril(l), b)


def _solve_numba(l: np.ndarray, b: np.ndarray) -> np.ndarray:  # noqa: E741
    x = np.zeros_like(b)
    for i in range(len(b)):
        total = b[i]
        for j in range(i):
            total -= l[i, j] * x[j]
        x[i] = total / l[i, i]
    return x


# --- modified Gram–Schmidt --------------------------------------------------------------------------------------------------------------


def _gram_schmidt(f: Any, a: Any) -> Any:
    n = a.shape[1]
    columns = f.np.arange(n)

    def step(k: Any, carry: Any) -> Any:
        a, q, r = carry
        norm = f.np.sqrt(a[:, k] @ a[:, k])
        unit = a[:, k] / norm
        row = f.np.where(columns > k, unit @ a, 0.0)
        return a - unit[:, None] * row, q.at[:, k].set(unit), r.at[k].set(row).at[k, k].set(norm)

    return f.fori_loop(0, n, step, (a, f.np.zeros_like(a), f.np.zeros((n, n), a.dtype)))[1:]


def _gram_schmidt_numba(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, (m, n) = a.copy(), a.shape
    q, r = np.zeros((m, n)), np.zeros((n, n))
    for k in range(n):
        for i in range(m):
            r[k, k] += a[i, k] * a[i, k]
        r[k, k] = np.sqrt(r[k, k])
        for i in range(m):
            q[i, k] = a[i, k] / r[k, k]
        for i in range(m):
            for j in range(k + 1, n):
                r[k, j] += q[i, k] * a[i, j]
        for i in range(m):
            for j in range(k + 1, n):
                a[i, j] -= q[i, k] * r[k, j]
    return q, r


def _gram_schmidt_reference(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    q, r = np.linalg.qr(a)
    signs = np.sign(np.diag(r))
    return q * signs, r * signs[:, None]


# --- Durbin: a Toeplitz system ----------------------------------------------------------------------------------------------------------


def _toeplitz(rng: np.random.Generator, n: int) -> tuple[np.ndarray]:
    return (rng.uniform(-1, 1, n) * 0.5 ** np.arange(1, n + 1),)


def _durbin(f: Any, r: Any) -> Any:
    n = r.shape[0]
    indices = f.np.arange(n)

    def step(k: Any, carry: Any) -> Any:
        y, alpha, beta = carry
        mirrored, before = f.np.maximum(k - 1 - indices, 0), indices < k
        beta = beta * (1 - alpha * alpha)
        alpha = -(r[k] + f.np.where(before, r[mirrored] * y, 0.0).sum()) / beta
        return f.np.where(before, y + alpha * y[mirrored], y).at[k].set(alpha), alpha, beta

    return f.fori_loop(1, n, step, (f.np.zeros_like(r).at[0].set(-r[0]), -r[0], f.np.ones_like(r[0])))[0]


def _durbin_numba(r: np.ndarray) -> np.ndarray:
    y, z = np.zeros_like(r), np.zeros_like(r)
    y[0], alpha, beta = -r[0], -r[0], 1.0
    for k in range(1, len(r)):
        beta *= 1 - alpha * alpha
        total = r[k]
        for i in range(k):
            total += r[k - 1 - i] * y[i]
        alpha = -total / beta
        for i in range(k):
            z[i] = y[i] + alpha * y[k - 1 - i]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha
    return y


def _durbin_reference(r: np.ndarray) -> np.ndarray:
    """The system that Durbin's recursion solves: T y = -r, T of 1 and the first elements of r."""
    first = np.concatenate([[1.0], r[:-1]])
    return np.linalg.solve(first[np.abs(np.subtract.outer(np.arange(len(r)), np.arange(len(r))))], -r)


def _made(name: str, arguments: Any, reference: Any, traced: Any, numba: Any) -> Program:
    return Program(name, "factorizations", arguments, reference, traced, numba, asked=ASKED)


PROGRAMS = (
    _made("cholesky by elements", _positive, np.linalg.cholesky, _cholesky_elements, _cholesky_numba),
    _made("cholesky by columns", _positive, np.linalg.cholesky, _cholesky_columns, _cholesky_numba),
    _made("LU by elements", _positive, _lu_reference, _lu_elements, _lu_numba),
    _made("LU by rows", _positive, _lu_reference, _lu_rows, _lu_numba),
    _made("triangular solve", _triangular, _solve_reference, _solve, _solve_numba),
    _made("Gram-Schmidt", lambda rng, n: (rng.standard_normal((n, n)),), _gram_schmidt_reference, _gram_schmidt, _gram_schmidt_numba),
    _made("Durbin", _toeplitz, _durbin_reference, _durbin, _durbin_numba),
)
