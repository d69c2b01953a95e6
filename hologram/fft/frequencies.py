"""Frequencies of transforms' elements, and the order in which they stand."""

from __future__ import annotations

import operator
from typing import Any

import hologram.numpy as hnp
from hologram.errors import ArgumentError, ShapeError
from hologram.numpy.arguments import array, axes_of
from hologram.trace.apply import wrap
from hologram.trace.recorder import located
from hologram.trace.tensor import Tensor

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def _count(n: Any, what: str) -> int:
    try:
        found = operator.index(n)
    except TypeError:
        raise located(ArgumentError(f"{what}: a number of elements is an integer, not {type(n).__name__}")) from None
    if found < 1:
        raise located(ShapeError(f"{what}: no transform of {found} elements"))
    return found


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies (n,) of the elements of a transform of ``n`` samples ``d`` apart: 0, 1, …, and then the negative ones, over ``n d``."""
    n = _count(n, "fftfreq")
    steps = hnp.arange(n, dtype=dtype or hnp.float32, device=device)
    return hnp.where(steps < (n + 1) // 2, steps, steps - n) / (n * d)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies (n // 2 + 1,) of the elements of a transform of ``n`` real samples ``d`` apart."""
    n = _count(n, "rfftfreq")
    return hnp.arange(n // 2 + 1, dtype=dtype or hnp.float32, device=device) / (n * d)


def _rolled(x: Any, axes: Any, what: str, inverse: bool) -> Tensor:
    a = wrap(array(x, what))
    chosen = axes_of(axes, a.ndim, what)
    return hnp.roll(a, tuple(-(a.shape[i] // 2) if inverse else a.shape[i] // 2 for i in chosen), axis=chosen)


def fftshift(x: Any, /, *, axes: Any = None) -> Tensor:
    """``x`` with the frequency 0 in the middle of ``axes``, by default all."""
    return _rolled(x, axes, "fftshift", False)


def ifftshift(x: Any, /, *, axes: Any = None) -> Tensor:
    """The inverse of :func:`fftshift`."""
    return _rolled(x, axes, "ifftshift", True)
