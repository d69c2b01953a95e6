"""Updates in a loop of Python, realised one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.loop_programs.program import Asked, Program

ASKED = Asked(step=15e-6)
UPDATES = 10


def _vector(rng: np.random.Generator, n: int) -> tuple[np.ndarray, int]:
    """A vector, and where the next updates start: no call meets the indices of another one."""
    return rng.standard_normal(n), 0


def _indices(x: Any, start: int) -> tuple[range, int]:
    return range(start, start + UPDATES), (start + UPDATES) % (len(x) - UPDATES)


def _at(f: Any, x: Any, start: int) -> Any:
    indices, after = _indices(x, start)
    for i in indices:
        x = f.wait(x.at[i].set(0.5))
    return x, after


def _assigned(f: Any, x: Any, start: int) -> Any:
    indices, after = _indices(x, start)
    for i in indices:
        x = f.wait(f.assign(x, i, 0.5))
    return x, after


def _assigned_numba(x: np.ndarray, start: int) -> tuple[np.ndarray, int]:
    """Numba's users have NumPy's arrays."""
    indices, after = _indices(x, start)
    for i in indices:
        x[i] = 0.5
    return x, after


def _reference(x: np.ndarray, start: int) -> tuple[np.ndarray, int]:
    indices, after = _indices(x, start)
    x = x.copy()
    x[list(indices)] = 0.5
    return x, after


def _made(name: str, traced: Any) -> Program:
    return Program(name, "python loops", _vector, _reference, traced, _assigned_numba, donated=2, eager=True, steps=lambda n: UPDATES, asked=ASKED)


PROGRAMS = (_made("x = x.at[i].set(v)", _at), _made("x[i] = v", _assigned))
