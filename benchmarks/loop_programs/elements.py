"""One element and one row of a large carry, read and set in each step."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.loop_programs.program import Asked, Program

STEPS = 10_000  # whatever the size


def _square(rng: np.random.Generator, n: int) -> tuple[np.ndarray]:
    return (rng.standard_normal((n, n)),)


# --- one element a step: rows in turn, one column read and another one set ------------------------------------------------------------


def _element(f: Any, a: Any) -> Any:
    n = a.shape[0]

    def step(_: Any, carry: Any) -> Any:
        a, i = carry
        return a.at[i, 3].set(a[i, 2] + 1), f.np.where(i + 1 < n, i + 1, 0)

    return f.fori_loop(0, STEPS, step, (a, 0))[0]


def _element_numba(a: np.ndarray) -> np.ndarray:
    i = 0
    for _ in range(STEPS):
        a[i, 3] = a[i, 2] + 1
        i = i + 1 if i + 1 < a.shape[0] else 0
    return a


def _element_reference(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    a[:STEPS, 3] = a[:STEPS, 2] + 1
    return a


# --- the same with an argument that the caller keeps: a copy comes on top --------------------------------------------------------------


def _kept(f: Any, a: Any) -> Any:
    return f.fori_loop(0, a.shape[0], lambda i, a: a.at[i, 3].set(a[i, 2] + 1), a)


def _kept_numba(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    for i in range(a.shape[0]):
        a[i, 3] = a[i, 2] + 1
    return a


# --- a row from the two rows above it ---------------------------------------------------------------------------------------------------


def _row(f: Any, a: Any) -> Any:
    return f.fori_loop(2, a.shape[0], lambda i, a: a.at[i].set(0.5 * (a[i - 1] + a[i - 2])), a)


def _row_numba(a: np.ndarray) -> np.ndarray:
    for i in range(2, a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = 0.5 * (a[i - 1, j] + a[i - 2, j])
    return a


def _row_reference(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    for i in range(2, len(a)):
        a[i] = 0.5 * (a[i - 1] + a[i - 2])
    return a


PROGRAMS = (
    Program(
        "element of a donated carry", "elements", _square, _element_reference, _element, _element_numba,
        donated=1, steps=lambda n: STEPS, asked=Asked(step=12e-9),
    ),
    Program(
        "element of a kept argument", "elements", _square, _element_reference, _kept, _kept_numba,
        steps=lambda n: n, nbytes=lambda n: 16 * n * n, asked=Asked(jax=1.0),
    ),
    Program(
        "row from two rows", "elements", _square, _row_reference, _row, _row_numba,
        donated=1, steps=lambda n: n - 2, nbytes=lambda n: 16 * n * n, asked=Asked(floor=1.1),
    ),
)  # fmt: skip
