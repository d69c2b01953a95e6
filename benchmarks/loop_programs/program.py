"""What a program of the loop benchmarks is: arguments, a reference in NumPy, and the text that each framework runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_NUMBA: Any = sys.modules.get("numba")  # only Numba's own process imports it, before the programs
prange: Any = _NUMBA.prange if _NUMBA else range
helper: Any = _NUMBA.njit if _NUMBA else lambda function: function  # marks what a program's loops call


@dataclass(frozen=True)
class Asked:
    """The most that a call of Hologram may take: as a multiple of a peer's time or of the floor, or in seconds a step."""

    jax: float | None = None
    numba: float | None = None
    floor: float | None = None
    step: float | None = None


@dataclass(frozen=True)
class Program:
    """A program that each framework runs in its best idiom.

    - ``arguments(rng, *size)``: NumPy arrays and plain integers. Integers are static: programs of JAX and Hologram are compiled for their values.
    - ``reference(*arguments)``: the result by NumPy, an array or a tuple of them. Arguments keep their values.
    - ``traced(f, *arguments)``: the text for Hologram and JAX, against a namespace :class:`~benchmarks.loop_programs.frameworks.Traced`.
    - ``numba(*arguments)``: plain loops for ``njit``; None where Numba is no peer. ``parallel`` where ``prange`` may pay: both ways are measured.
    - ``donated``: so many leading arguments belong to the call, which may write into them; as many leading results replace them in the next call.
    - ``steps(*size)``: how many steps a call makes, where a step is the measure.
    - ``nbytes(*size)``: the bytes that a call must move, where the memory is the measure.
    - ``compared``: what of a result, given the arguments, is compared with the reference; None: all of it.
    """

    name: str
    group: str
    arguments: Callable[..., tuple[Any, ...]]
    reference: Callable[..., Any]
    traced: Callable[..., Any]
    numba: Callable[..., Any] | None = None
    parallel: bool = False
    donated: int = 0
    asked: Asked = Asked()
    steps: Callable[..., int] | None = None
    nbytes: Callable[..., int] | None = None
    compared: Callable[..., Any] | None = None
    eager: bool = False  # not compiled as a whole: each operation is realised
    tolerance: float = 1e-7
