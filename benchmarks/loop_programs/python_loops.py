"""Updates in a loop of Python, realised one by one.

The caller holds the array that a call starts with, so the first of its steps copies it, in every framework whose arrays are constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.loop_programs.program import Asked, Program

ASKED = Asked(step=15e-6)
MAX_UPDATES = 1000  # of a call


def _updates(n: int) -> int:
    return min(MAX_UPDATES, n // 2)


def _vector(rng: np.random.Generator, n: int) -> tuple[np.ndarray, int]:
    """A vector, and where the next updates start: no call meets the indices of another one."""
    return rng.standard_normal(n), 0


def _indices(x: Any, start: int) -> tuple[range, int]:
    updates = _updates(len(x))
    return range(start, start + updates), (start + updates) % (len(x) - updates)


def _at(f: Any, x: Any, start: int) -> Any:
    indices, after = _indices(x, start)
    for i in indices:
        x = x.at[i].set(0.5)
        f.wait(x)  # when nothing has the old value any more
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
    return Program(name, "python loops", _vector, _reference, traced, _assigned_numba, donated=2, eager=True, steps=_updates, asked=ASKED)


PROGRAMS = (_made("x = x.at[i].set(v)", _at), _made("x[i] = v", _assigned))
