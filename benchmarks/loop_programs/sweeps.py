"""Sweeps along one axis of an array, all lines of the others at once: ADI, a recursive filter of images, vertical advection."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.loop_programs.program import Asked, Program, helper, prange

ASKED = Asked(jax=0.7, numba=1.0)

# --- ADI: an implicit step along each axis in turn, by Thomas's elimination --------------------------------------------------------------


def _coefficients(n: int, steps: int) -> tuple[float, float]:
    """Ratios of the time step to the square of the distance, along columns and along rows."""
    return 2.0 * n * n / steps / n, 1.0 * n * n / steps / n


def _adi(f: Any, u: Any, steps: int) -> Any:
    """Columns are eliminated one after another; the second half of a step does the same to the transpose."""
    n = u.shape[0]
    along, across = _coefficients(n, steps)

    def half(u: Any, along: float, across: float) -> Any:
        """Solves along columns of ``u``, with what the neighbouring rows give; the result is transposed."""
        a, b = -along / 2, 1 + along
        known = (across / 2) * (u[:, :-2] + u[:, 2:]) + (1 - across) * u[:, 1:-1]

        def eliminate(j: Any, carry: Any) -> Any:
            p, q = carry
            pivot = a * p[j - 1] + b
            return p.at[j].set(-a / pivot), q.at[j].set((known[j] - a * q[j - 1]) / pivot)

        p, q = f.fori_loop(1, n - 1, eliminate, (f.np.zeros(n, u.dtype), f.np.zeros_like(known).at[0].set(1.0)))

        def substitute(k: Any, v: Any) -> Any:
            j = n - 2 - k
            return v.at[j].set(p[j] * v[j + 1] + q[j])

        v = f.fori_loop(0, n - 2, substitute, f.np.ones_like(known))
        return f.np.ones_like(u).at[1:-1].set(v.T)

    return f.fori_loop(0, steps, lambda _, u: half(half(u, along, across), across, along), u)


@helper
def _adi_half(u: np.ndarray, along: float, across: float, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    n = u.shape[0]
    a, b = -along / 2, 1 + along
    out = np.ones((n, n))
    for i in range(1, n - 1):
        p[0], q[0] = 0.0, 1.0
        for j in range(1, n - 1):
            pivot = a * p[j - 1] + b
            p[j] = -a / pivot
            known = (across / 2) * (u[j, i - 1] + u[j, i + 1]) + (1 - across) * u[j, i]
            q[j] = (known - a * q[j - 1]) / pivot
        v = 1.0
        for k in range(n - 2):
            v = p[n - 2 - k] * v + q[n - 2 - k]
            out[i, n - 2 - k] = v
    return out


def _adi_numba(u: np.ndarray, steps: int) -> np.ndarray:
    n = u.shape[0]
    p, q = np.empty(n), np.empty(n)
    along, across = 2.0 * n * n / steps / n, 1.0 * n * n / steps / n
    for _ in range(steps):
        u = _adi_half(_adi_half(u, along, across, p, q), across, along, p, q)
    return u


def _adi_reference(u: np.ndarray, steps: int) -> np.ndarray:
    n = len(u)
    for _ in range(steps):
        for along, across in (_coefficients(n, steps), _coefficients(n, steps)[::-1]):
            matrix = (1 + along) * np.eye(n - 2) - along / 2 * (np.eye(n - 2, k=1) + np.eye(n - 2, k=-1))
            known = (across / 2) * (u[1:-1, :-2] + u[1:-1, 2:]) + (1 - across) * u[1:-1, 1:-1]
            known[0] += along / 2
            known[-1] += along / 2
            u = np.pad(np.linalg.solve(matrix, known).T, 1, constant_values=1.0)
    return u


# --- Deriche's recursive filter, along rows and then along columns, each way -------------------------------------------------------------

_K = (1 - np.exp(-0.25)) ** 2 / (1 + 0.5 * np.exp(-0.25) - np.exp(-0.5))
FORWARD = (float(_K), float(_K * np.exp(-0.25) * (0.25 - 1)))
BACKWARD = (float(_K * np.exp(-0.25) * (0.25 + 1)), float(-_K * np.exp(-0.5)))
FEEDBACK = (float(2 ** (-0.25)), float(-np.exp(-0.5)))


def _filter(f: Any, image: Any) -> Any:
    def along(x: Any) -> Any:
        """The sum of both passes along the first axis."""
        zero = f.np.zeros_like(x[0])

        def forward(carry: Any, x: Any) -> Any:
            before, y1, y2 = carry
            y = FORWARD[0] * x + FORWARD[1] * before + FEEDBACK[0] * y1 + FEEDBACK[1] * y2
            return (x, y, y1), y

        def backward(carry: Any, x: Any) -> Any:
            x1, x2, y1, y2 = carry
            y = BACKWARD[0] * x1 + BACKWARD[1] * x2 + FEEDBACK[0] * y1 + FEEDBACK[1] * y2
            return (x, x1, y, y1), y

        down = f.scan(forward, (zero,) * 3, x)[1]
        return down + f.scan(backward, (zero,) * 4, x, reverse=True)[1]

    return along(along(image.T).T)


BLOCK = 64  # columns


def _filter_numba(image: np.ndarray) -> np.ndarray:
    (m, n), rows, out = image.shape, np.empty_like(image), np.empty_like(image)
    for i in prange(m):
        _filter_row(image[i], rows[i])
    for block in prange((n + BLOCK - 1) // BLOCK):
        part = slice(block * BLOCK, min(n, (block + 1) * BLOCK))
        _filter_columns(rows[:, part], out[:, part])
    return out


@helper
def _filter_row(x: np.ndarray, out: np.ndarray) -> None:
    before = y1 = y2 = 0.0
    for j in range(len(x)):
        y = FORWARD[0] * x[j] + FORWARD[1] * before + FEEDBACK[0] * y1 + FEEDBACK[1] * y2
        before, y1, y2 = x[j], y, y1
        out[j] = y
    x1 = x2 = y1 = y2 = 0.0
    for j in range(len(x) - 1, -1, -1):
        y = BACKWARD[0] * x1 + BACKWARD[1] * x2 + FEEDBACK[0] * y1 + FEEDBACK[1] * y2
        x1, x2, y1, y2 = x[j], x1, y, y1
        out[j] += y


@helper
def _filter_columns(x: np.ndarray, out: np.ndarray) -> None:
    """The passes along columns, a row of all of them after another."""
    m, n = x.shape
    for i in range(m):
        for j in range(n):
            y = FORWARD[0] * x[i, j]
            if i > 0:
                y += FORWARD[1] * x[i - 1, j] + FEEDBACK[0] * out[i - 1, j]
            if i > 1:
                y += FEEDBACK[1] * out[i - 2, j]
            out[i, j] = y
    y1, y2 = np.zeros(n), np.zeros(n)
    for i in range(m - 1, -1, -1):
        for j in range(n):
            y = FEEDBACK[0] * y1[j] + FEEDBACK[1] * y2[j]
            if i < m - 1:
                y += BACKWARD[0] * x[i + 1, j]
            if i < m - 2:
                y += BACKWARD[1] * x[i + 2, j]
            y2[j], y1[j] = y1[j], y
            out[i, j] += y


def _filter_reference(image: np.ndarray) -> np.ndarray:
    for _ in range(2):  # along rows of what is there, then of its transpose, which comes back transposed
        x = image.T
        down, up = np.zeros((len(x) + 2, x.shape[1])), np.zeros((len(x) + 2, x.shape[1]))
        padded = np.pad(x, ((1, 2), (0, 0)))
        for i in range(len(x)):
            down[i + 2] = FORWARD[0] * x[i] + FORWARD[1] * padded[i] + FEEDBACK[0] * down[i + 1] + FEEDBACK[1] * down[i]
        for i in reversed(range(len(x))):
            up[i] = BACKWARD[0] * padded[i + 2] + BACKWARD[1] * padded[i + 3] + FEEDBACK[0] * up[i + 1] + FEEDBACK[1] * up[i + 2]
        image = down[2:] + up[:-2]
    return image


# --- vertical advection -----------------------------------------------------------------------------------------------------------------

TIME_RATE = 3.0 / 20.0


def _columns(rng: np.random.Generator, n: int, levels: int) -> tuple[Any, ...]:
    """Tendencies, velocity of the stage, vertical velocity, velocity before, other tendencies."""
    shape = (n, n, levels)
    return (*rng.uniform(-1, 1, (2, *shape)), 0.1 * rng.uniform(-1, 1, (n + 1, n, levels)), *rng.uniform(-1, 1, (2, *shape)))


def _advection(f: Any, stage: Any, u: Any, w: Any, before: Any, tendency: Any) -> Any:
    levels = u.shape[2]
    mean = 0.125 * (w[1:] + w[:-1])
    a, c = (-mean).at[:, :, 0].set(0.0), f.np.roll(mean, -1, 2).at[:, :, -1].set(0.0)
    upper, lower = f.np.roll(u, 1, 2) - u, f.np.roll(u, -1, 2) - u
    known = TIME_RATE * before + tendency + stage - a * upper - c * lower
    b = TIME_RATE - a - c

    def eliminate(k: Any, carry: Any) -> Any:
        p, q = carry
        pivot = 1 / (b[:, :, k] - p[:, :, k - 1] * a[:, :, k])
        q = q.at[:, :, k].set((known[:, :, k] - q[:, :, k - 1] * a[:, :, k]) * pivot)
        return p.at[:, :, k].set(c[:, :, k] * pivot), q

    first = 1 / b[:, :, 0]
    p, q = (f.np.zeros_like(u).at[:, :, 0].set(v[:, :, 0] * first) for v in (c, known))
    p, q = f.fori_loop(1, levels, eliminate, (p, q))

    def substitute(i: Any, x: Any) -> Any:
        k = levels - 2 - i
        return x.at[:, :, k].set(q[:, :, k] - p[:, :, k] * x[:, :, k + 1])

    x = f.fori_loop(0, levels - 1, substitute, f.np.zeros_like(u).at[:, :, -1].set(q[:, :, -1]))
    return TIME_RATE * (x - before)


def _advection_numba(stage: np.ndarray, u: np.ndarray, w: np.ndarray, before: np.ndarray, tendency: np.ndarray) -> np.ndarray:
    n, m, levels = u.shape
    out = np.empty_like(u)
    for i in prange(n):
        p, q = np.empty(levels), np.empty(levels)
        for j in range(m):
            above = last = 0.0
            for k in range(levels):
                a = -0.125 * (w[i + 1, j, k] + w[i, j, k]) if k > 0 else 0.0
                c = 0.125 * (w[i + 1, j, k + 1] + w[i, j, k + 1]) if k < levels - 1 else 0.0
                known = TIME_RATE * before[i, j, k] + tendency[i, j, k] + stage[i, j, k]
                if k > 0:
                    known -= a * (u[i, j, k - 1] - u[i, j, k])
                if k < levels - 1:
                    known -= c * (u[i, j, k + 1] - u[i, j, k])
                pivot = 1 / (TIME_RATE - a - c - above * a)
                above, last = c * pivot, (known - last * a) * pivot
                p[k], q[k] = above, last
            x = 0.0
            for back in range(levels):
                k = levels - 1 - back
                x = q[k] - p[k] * x
                out[i, j, k] = TIME_RATE * (x - before[i, j, k])
    return out


def _advection_reference(stage: np.ndarray, u: np.ndarray, w: np.ndarray, before: np.ndarray, tendency: np.ndarray) -> np.ndarray:
    levels, matrix = u.shape[2], np.zeros((*u.shape, u.shape[2]))
    mean = 0.125 * (w[1:] + w[:-1])
    known = TIME_RATE * before + tendency + stage
    matrix[..., range(levels), range(levels)] = TIME_RATE
    for k in range(levels):
        for other, rate in ((k - 1, -mean[:, :, k]), (k + 1, mean[:, :, min(k + 1, levels - 1)])):
            if 0 <= other < levels:
                matrix[:, :, k, other] += rate
                matrix[:, :, k, k] -= rate
                known[:, :, k] -= rate * (u[:, :, other] - u[:, :, k])
    return TIME_RATE * (np.linalg.solve(matrix, known[..., None])[..., 0] - before)


def _interior(rng: np.random.Generator, n: int, steps: int) -> tuple[np.ndarray, int]:
    return np.pad(rng.uniform(0, 1, (n - 2, n - 2)), 1, constant_values=1.0), steps


PROGRAMS = (
    Program("ADI", "stencils", _interior, _adi_reference, _adi, _adi_numba, asked=ASKED),
    Program(
        "recursive filter", "stencils", lambda rng, m, n: (rng.uniform(0, 1, (m, n)),), _filter_reference, _filter, _filter_numba,
        parallel=True, asked=ASKED,
    ),
    Program("vertical advection", "stencils", _columns, _advection_reference, _advection, _advection_numba, parallel=True, asked=ASKED),
)  # fmt: skip
