"""Gradients of the programs that have one, and of updates of a small window in arrays of any size."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.loop_programs.program import Asked, Program

ASKED = Asked(jax=0.7)
DIRECTIONS, DISTANCE = 4, 1e-7  # farther apart, particles pass cells between the two
WINDOW, UPDATES = 8, 1000


def gradient_of(program: Program) -> Program:
    """The gradient of a weighted sum of the program's results by its first argument. NumPy's part is derivatives along random directions."""

    def traced(f: Any, first: Any, *rest: Any) -> Any:
        return f.grad(lambda x: _loss(f.np, program.traced(f, x, *rest)))(first)

    def reference(first: np.ndarray, *rest: Any) -> np.ndarray:
        def value(x: np.ndarray) -> float:
            return _loss(np, program.reference(x, *rest))

        return np.array([(value(first + DISTANCE * d) - value(first - DISTANCE * d)) / (2 * DISTANCE) for d in _directions(first)])

    def compared(result: np.ndarray, first: np.ndarray, *rest: Any) -> np.ndarray:
        return np.array([(result * d).sum() for d in _directions(first)])

    name = f"gradient of {program.name}"
    return Program(name, "gradients", program.arguments, reference, traced, asked=ASKED, compared=compared, tolerance=1e-4)


def _loss(xp: Any, results: Any) -> Any:
    results = results if isinstance(results, (list, tuple)) else (results,)
    return sum((r * _weights(xp, r.shape)).sum() for r in results if np.issubdtype(np.dtype(str(r.dtype)), np.floating))


def _weights(xp: Any, shape: tuple[int, ...]) -> Any:
    return xp.cos(xp.arange(int(np.prod(shape)), dtype=np.float64)).reshape(shape)


def _directions(x: np.ndarray) -> np.ndarray:
    return np.random.default_rng(7).standard_normal((DIRECTIONS, *x.shape))


# --- a window at a computed place, replaced in each step ----------------------------------------------------------------------------------


def _places(rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    return rng.standard_normal(n), rng.uniform(0.5, 1.5, WINDOW), rng.integers(0, n - WINDOW, UPDATES)


def _windows(f: Any, x: Any, factors: Any, starts: Any) -> Any:
    """The array with its updates, and the gradient by ``factors`` of the sum of all that was written."""

    def loss(factors: Any) -> Any:
        def step(carry: Any, start: Any) -> Any:
            x, total = carry
            new = f.np.tanh(factors * f.window(x, (start,), (WINDOW,)))
            return (f.update(x, new, (start,)), total + new.sum()), None

        (after, total), _ = f.scan(step, (x, 0.0), starts)
        return total, after

    gradient, after = f.grad(loss, has_aux=True)(factors)
    return after, gradient


def _windows_reference(x: np.ndarray, factors: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, old = x.copy(), []
    for s in starts:
        old.append(x[s : s + WINDOW].copy())
        x[s : s + WINDOW] = np.tanh(factors * old[-1])
    later, gradient = np.zeros_like(x), np.zeros_like(factors)
    for s, before in zip(starts[::-1], old[::-1], strict=True):
        inner = (later[s : s + WINDOW] + 1) / np.cosh(factors * before) ** 2
        gradient += inner * before
        later[s : s + WINDOW] = inner * factors
    return x, gradient


def programs(all_others: dict[str, Program], names: tuple[str, ...]) -> tuple[Program, ...]:
    windows = Program(
        "gradient of window updates", "gradients", _places, _windows_reference, _windows, donated=1, steps=lambda n: UPDATES, asked=ASKED,
    )  # fmt: skip
    return *(gradient_of(all_others[name]) for name in names), windows
