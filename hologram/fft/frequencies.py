"""Frequencies of transforms' elements, and the order in which they stand."""

from __future__ import annotations

from typing import Any

import hologram.numpy as hnp
from hologram.fft.transforms import elements
from hologram.numpy.arguments import array, axes_of
from hologram.trace.apply import wrap
from hologram.trace.tensor import Tensor

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def fftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies (n,) of the elements of a transform of ``n`` samples ``d`` apart: 0, 1, …, and then the negative ones, over ``n d``."""
    n = elements(n, "fftfreq")
    steps = hnp.arange(n, dtype=dtype or hnp.float32, device=device)
    return hnp.where(steps < (n + 1) // 2, steps, steps - n) / (n * d)


def rfftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies (n // 2 + 1,) of the elements of a transform of ``n`` real samples ``d`` apart."""
    n = elements(n, "rfftfreq")
    return hnp.arange(n // 2 + 1, dtype=dtype or hnp.float32, device=device) / (n * d)


def _rolled(x: Any, axes: Any, what: str, inverse: bool) -> Tensor:
    a = wrap(array(x, what))
    chosen = axes_of(axes, a.ndim, what)
    return hnp.roll(a, tuple(-(a.shape[i] // 2) if inverse else a.shape[i] // 2 for i in chosen), axis=chosen)


def fftshift(x: Any, /, axes: Any = None) -> Tensor:
    """``x`` with the frequency 0 in the middle of ``axes``, by default all."""
    return _rolled(x, axes, "fftshift", False)


def ifftshift(x: Any, /, axes: Any = None) -> Tensor:
    """The inverse of :func:`fftshift`."""
    return _rolled(x, axes, "ifftshift", True)
