"""Algorithms with state: solvers, particles, automata, samples and queues."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.loop_programs.program import Asked, Program, helper

ASKED = Asked(jax=0.7)

# --- conjugate gradients on the five-point Laplacian -------------------------------------------------------------------------------------

RESIDUAL = 1e-12  # its square, against that of the right-hand side


def _source(rng: np.random.Generator, n: int) -> tuple[np.ndarray]:
    return (rng.standard_normal((n, n)),)


def _laplacian(xp: Any, x: Any) -> Any:
    p = xp.pad(x, 1)
    return 4.1 * x - p[:-2, 1:-1] - p[2:, 1:-1] - p[1:-1, :-2] - p[1:-1, 2:]


def _gradients(f: Any, b: Any) -> Any:
    def step(carry: Any) -> Any:
        x, r, p, square = carry
        image = _laplacian(f.np, p)
        alpha = square / (p * image).sum()
        x, r = x + alpha * p, r - alpha * image
        new = (r * r).sum()
        return x, r, r + new / square * p, new

    square = (b * b).sum()
    return f.while_loop(lambda carry: carry[3] > RESIDUAL * square, step, (f.np.zeros_like(b), b, b, square))[0]


@helper
def _laplacian_loops(p: np.ndarray, image: np.ndarray) -> float:
    """Writes the image of ``p``; gives their scalar product."""
    (n, m), total = p.shape, 0.0
    for i in range(n):
        for j in range(m):
            value = 4.1 * p[i, j]
            if i > 0:
                value -= p[i - 1, j]
            if i < n - 1:
                value -= p[i + 1, j]
            if j > 0:
                value -= p[i, j - 1]
            if j < m - 1:
                value -= p[i, j + 1]
            image[i, j] = value
            total += value * p[i, j]
    return total


def _gradients_numba(b: np.ndarray) -> np.ndarray:
    x, r, p, image = np.zeros_like(b), b.copy(), b.copy(), np.empty_like(b)
    square = (b * b).sum()
    end = RESIDUAL * square
    while square > end:
        alpha = square / _laplacian_loops(p, image)
        new = 0.0
        for i in range(b.shape[0]):
            for j in range(b.shape[1]):
                x[i, j] += alpha * p[i, j]
                r[i, j] -= alpha * image[i, j]
                new += r[i, j] * r[i, j]
        for i in range(b.shape[0]):
            for j in range(b.shape[1]):
                p[i, j] = r[i, j] + new / square * p[i, j]
        square = new
    return x


def _gradients_reference(b: np.ndarray) -> np.ndarray:
    """By sine transforms, which diagonalise the Laplacian."""
    n = np.arange(1, len(b) + 1)
    basis = np.sqrt(2 / (len(b) + 1)) * np.sin(np.pi * np.outer(n, n) / (len(b) + 1))
    values = 2 - 2 * np.cos(np.pi * n / (len(b) + 1))
    return basis @ (basis @ b @ basis / (values[:, None] + values + 0.1)) @ basis


# --- L-BFGS: a ring of the last pairs, read by two loops in each step ---------------------------------------------------------------------

HISTORY, DESCENTS = 10, 30


def _curvatures(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal(n), np.geomspace(1, 100, n)


def _lbfgs(f: Any, target: Any, curvatures: Any) -> Any:
    """Minimises the sum of curvatures · (x - target)²/2 with steps of length one."""

    def direction(t: Any, g: Any, ss: Any, ys: Any, rhos: Any) -> Any:
        def first(k: Any, carry: Any) -> Any:
            q, alphas = carry
            i = (t - 1 - k) % HISTORY
            alpha = rhos[i] * (ss[i] @ q)
            return q - alpha * ys[i], alphas.at[i].set(alpha)

        def second(k: Any, q: Any) -> Any:
            i = (t + k) % HISTORY
            return q + ss[i] * (alphas[i] - rhos[i] * (ys[i] @ q))

        q, alphas = f.fori_loop(0, HISTORY, first, (g, f.np.zeros_like(rhos)))
        last = (t - 1) % HISTORY
        scale = f.np.where(t > 0, (ss[last] @ ys[last]) / f.np.maximum(ys[last] @ ys[last], 1e-300), 0.01)
        return f.fori_loop(0, HISTORY, second, q * scale)

    def step(t: Any, carry: Any) -> Any:
        x, g, ss, ys, rhos = carry
        s = -direction(t, g, ss, ys, rhos)
        y = curvatures * s
        i = t % HISTORY
        return x + s, g + y, ss.at[i].set(s), ys.at[i].set(y), rhos.at[i].set(1 / f.np.maximum(s @ y, 1e-300))

    pairs, rhos = f.np.zeros((HISTORY, len(target)), target.dtype), f.np.zeros(HISTORY, target.dtype)
    start = f.np.zeros_like(target), -curvatures * target, pairs, pairs, rhos
    return f.fori_loop(0, DESCENTS, step, start)[0]


def _lbfgs_numba(target: np.ndarray, curvatures: np.ndarray) -> np.ndarray:
    n = len(target)
    x, g = np.zeros(n), -curvatures * target
    ss, ys, rhos, alphas = np.zeros((HISTORY, n)), np.zeros((HISTORY, n)), np.zeros(HISTORY), np.zeros(HISTORY)
    for t in range(DESCENTS):
        q = g.copy()
        for k in range(HISTORY):
            i = (t - 1 - k) % HISTORY
            alphas[i] = rhos[i] * (ss[i] * q).sum()
            q -= alphas[i] * ys[i]
        last = (t - 1) % HISTORY
        q *= (ss[last] * ys[last]).sum() / max((ys[last] * ys[last]).sum(), 1e-300) if t > 0 else 0.01
        for k in range(HISTORY):
            i = (t + k) % HISTORY
            q += ss[i] * (alphas[i] - rhos[i] * (ys[i] * q).sum())
        i = t % HISTORY
        ss[i] = -q
        ys[i] = -curvatures * q
        rhos[i] = 1 / max((ss[i] * ys[i]).sum(), 1e-300)
        x += ss[i]
        g += ys[i]
    return x


# --- particles in a cell: deposit, field, push ------------------------------------------------------------------------------------------

CELLS, PUSH = 128, 0.05


def _plasma(rng: np.random.Generator, n: int, steps: int) -> tuple[Any, ...]:
    return rng.uniform(0, CELLS, n), rng.choice([-1.0, 1.0], n) + 0.1 * rng.standard_normal(n), steps


def _particles(f: Any, positions: Any, velocities: Any, steps: int) -> Any:
    n = len(positions)

    def step(_: Any, carry: Any) -> Any:
        x, v = carry
        cell = x.astype(f.np.int64)
        part, right = x - cell, (cell + 1) % CELLS
        density = f.np.zeros(CELLS, x.dtype).at[cell].add(1 - part).at[right].add(part)
        field = f.np.cumsum(density * (CELLS / n) - 1)
        field = field - field.mean()
        v = v - PUSH * ((1 - part) * field[cell] + part * field[right])
        return (x + PUSH * v) % CELLS, v

    return f.fori_loop(0, steps, step, (positions, velocities))


def _particles_numba(positions: np.ndarray, velocities: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    x, v, n = positions.copy(), velocities.copy(), len(positions)
    for _ in range(steps):
        density = np.zeros(CELLS)
        for i in range(n):
            cell = int(x[i])
            density[cell] += 1 - (x[i] - cell)
            density[(cell + 1) % CELLS] += x[i] - cell
        field = np.cumsum(density * (CELLS / n) - 1)
        field -= field.mean()
        for i in range(n):
            cell = int(x[i])
            part = x[i] - cell
            v[i] -= PUSH * ((1 - part) * field[cell] + part * field[(cell + 1) % CELLS])
            x[i] = (x[i] + PUSH * v[i]) % CELLS
    return x, v


def _particles_reference(positions: np.ndarray, velocities: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    x, v = positions, velocities
    for _ in range(steps):
        cell = x.astype(np.int64)
        part, right = x - cell, (cell + 1) % CELLS
        density = np.bincount(cell, 1 - part, CELLS) + np.bincount(right, part, CELLS)
        field = np.cumsum(density * (CELLS / len(x)) - 1)
        field -= field.mean()
        v = v - PUSH * ((1 - part) * field[cell] + part * field[right])
        x = (x + PUSH * v) % CELLS
    return x, v


# --- cellular automata: rule 30 into a table of all rows, and life in place ----------------------------------------------------------------


def _first_row(rng: np.random.Generator, n: int) -> tuple[np.ndarray]:
    return (rng.integers(0, 2, n, np.uint8),)


def _rule30(f: Any, first: Any) -> Any:
    n = len(first)

    def step(i: Any, table: Any) -> Any:
        row = table[i]
        return table.at[i + 1].set(f.np.roll(row, 1) ^ (row | f.np.roll(row, -1)))

    return f.fori_loop(0, n - 1, step, f.np.zeros((n, n), f.np.uint8).at[0].set(first))


def _rule30_numba(first: np.ndarray) -> np.ndarray:
    n = len(first)
    table = np.zeros((n, n), np.uint8)
    table[0] = first
    for i in range(n - 1):
        table[i + 1, 0] = table[i, n - 1] ^ (table[i, 0] | table[i, 1])
        for j in range(1, n - 1):
            table[i + 1, j] = table[i, j - 1] ^ (table[i, j] | table[i, j + 1])
        table[i + 1, n - 1] = table[i, n - 2] ^ (table[i, n - 1] | table[i, 0])
    return table


def _rule30_reference(first: np.ndarray) -> np.ndarray:
    rows = [first]
    for _ in range(len(first) - 1):
        rows.append(np.roll(rows[-1], 1) ^ (rows[-1] | np.roll(rows[-1], -1)))
    return np.stack(rows)


def _soup(rng: np.random.Generator, n: int, steps: int) -> tuple[np.ndarray, int]:
    return rng.integers(0, 2, (n, n), np.uint8), steps


def _life_step(xp: Any, grid: Any) -> Any:
    p = xp.pad(grid, 1)
    rows = p[:-2] + p[1:-1] + p[2:]
    around = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:] - grid
    return ((around == 3) | ((around == 2) & (grid == 1))).astype(xp.uint8)


def _life(f: Any, grid: Any, steps: int) -> Any:
    return f.fori_loop(0, steps, lambda _, grid: _life_step(f.np, grid), grid)


def _life_numba(grid: np.ndarray, steps: int) -> np.ndarray:
    n, m = grid.shape
    old, new = np.zeros((n + 2, m + 2), np.uint8), np.zeros((n + 2, m + 2), np.uint8)
    old[1:-1, 1:-1] = grid
    for _ in range(steps):
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                around = old[i - 1, j - 1] + old[i - 1, j] + old[i - 1, j + 1] + old[i, j - 1]
                around += old[i, j + 1] + old[i + 1, j - 1] + old[i + 1, j] + old[i + 1, j + 1]
                new[i, j] = (around == 3) | ((around == 2) & (old[i, j] == 1))
        old, new = new, old
    return old[1:-1, 1:-1].copy()


def _life_reference(grid: np.ndarray, steps: int) -> np.ndarray:
    for _ in range(steps):
        grid = _life_step(np, grid)
    return grid


# --- reservoir sampling: element i of a stream takes the place that was drawn for it, if there is one ---------------------------------------


def _stream(rng: np.random.Generator, n: int, kept: int) -> tuple[Any, ...]:
    return rng.standard_normal(n), (rng.uniform(0, 1, n) * np.arange(1, n + 1)).astype(np.int64), kept


def _reservoir(f: Any, stream: Any, drawn: Any, kept: int) -> Any:
    def step(i: Any, sample: Any) -> Any:
        j = drawn[i]
        return f.cond(j < kept, lambda s: s.at[j].set(stream[i]), lambda s: s, sample)

    return f.fori_loop(kept, len(stream), step, stream[:kept])


def _reservoir_numba(stream: np.ndarray, drawn: np.ndarray, kept: int) -> np.ndarray:
    sample = stream[:kept].copy()
    for i in range(kept, len(stream)):
        if drawn[i] < kept:
            sample[drawn[i]] = stream[i]
    return sample


def _reservoir_reference(stream: np.ndarray, drawn: np.ndarray, kept: int) -> np.ndarray:
    sample, taken = stream[:kept].copy(), np.nonzero(drawn[kept:] < kept)[0] + kept
    sample[drawn[taken]] = stream[taken]  # the last of several wins
    return sample


# --- a queue of the smallest elements of a stream, sorted, by insertion ---------------------------------------------------------------------


def _inserted(f: Any, stream: Any, kept: int) -> Any:
    places = f.np.arange(kept)

    def step(queue: Any, x: Any) -> Any:
        place = f.np.searchsorted(queue, x)
        shifted = f.np.concatenate([queue[:1], queue[:-1]])
        return f.np.where(places < place, queue, f.np.where(places == place, x, shifted)), None

    return f.scan(step, f.np.full(kept, f.np.inf, stream.dtype), stream)[0]


def _inserted_numba(stream: np.ndarray, kept: int) -> np.ndarray:
    queue = np.full(kept, np.inf)
    for x in stream:
        if x < queue[-1]:
            place = np.searchsorted(queue, x)
            for i in range(kept - 1, place, -1):
                queue[i] = queue[i - 1]
            queue[place] = x
    return queue


def _made(name: str, arguments: Any, reference: Any, traced: Any, numba: Any, **options: Any) -> Program:
    return Program(name, "methods", arguments, reference, traced, numba, asked=ASKED, **options)


def _numbers(rng: np.random.Generator, n: int, kept: int) -> tuple[np.ndarray, int]:
    return rng.standard_normal(n), kept


PROGRAMS = (
    _made("conjugate gradients", _source, _gradients_reference, _gradients, _gradients_numba, tolerance=1e-5),
    _made("L-BFGS", _curvatures, _lbfgs_numba, _lbfgs, _lbfgs_numba),
    _made("particles in a cell", _plasma, _particles_reference, _particles, _particles_numba),
    _made("rule 30", _first_row, _rule30_reference, _rule30, _rule30_numba, steps=lambda n: n - 1),
    _made("life", _soup, _life_reference, _life, _life_numba, steps=lambda n, steps: steps),
    _made("reservoir", _stream, _reservoir_reference, _reservoir, _reservoir_numba, steps=lambda n, kept: n - kept),
    _made("sorted insert", _numbers, lambda stream, kept: np.sort(stream)[:kept], _inserted, _inserted_numba, steps=lambda n, kept: n),
)
