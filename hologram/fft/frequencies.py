"""Frequencies of transforms' elements, and the order in which they stand."""

from __future__ import annotations

from typing import Any

import hologram.numpy as hnp
from hologram import dtypes
from hologram.fft.transforms import elements
from hologram.numpy.arguments import array, axes_of
from hologram.trace.operators import wrap
from hologram.trace.tensor import Tensor

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def fftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Frequencies (n,) of the elements of :func:`fft` of ``n`` samples ``d`` apart: 0, 1, …, and then the negative ones, over ``n d``.

    In cycles per unit of ``d``; the default float unless ``dtype`` says otherwise. Raises ShapeError for fewer than one sample.

    >>> hg.fft.fftfreq(4, d=0.5)
    Tensor([ 0. ,  0.5, -1. , -0.5], dtype=float32)
    """
    n = elements(n, "fftfreq")
    steps = hnp.arange(n, dtype=dtype or dtypes.default_float, device=device)
    return hnp.where(steps < (n + 1) // 2, steps, steps - n) / (n * d)


def rfftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Frequencies (n // 2 + 1,) of the elements of :func:`rfft` of ``n`` real samples ``d`` apart: 0, 1, … over ``n d``.

    In cycles per unit of ``d``; the default float unless ``dtype`` says otherwise. Raises ShapeError for fewer than one sample.

    >>> hg.fft.rfftfreq(4, d=0.5)
    Tensor([0. , 0.5, 1. ], dtype=float32)
    """
    n = elements(n, "rfftfreq")
    return hnp.arange(n // 2 + 1, dtype=dtype or dtypes.default_float, device=device) / (n * d)


def _rolled(x: Any, axes: Any, what: str, inverse: bool) -> Tensor:
    a = wrap(array(x, what))
    chosen = axes_of(axes, a.ndim, what, lists=True)
    return hnp.roll(a, tuple(-(a.shape[i] // 2) if inverse else a.shape[i] // 2 for i in chosen), axis=chosen)


def fftshift(x: Any, /, axes: Any = None) -> Tensor:
    """Moves the frequency 0 to the middle of ``axes``, by default all. Shape and type are those of ``x``.

    >>> hg.fft.fftshift([0, 1, -2, -1])
    Tensor([-2, -1,  0,  1], dtype=int64)
    """
    return _rolled(x, axes, "fftshift", False)


def ifftshift(x: Any, /, axes: Any = None) -> Tensor:
    """Inverse of :func:`fftshift`: moves the frequency 0 from the middle to the front.

    >>> hg.fft.ifftshift([-2, -1, 0, 1])
    Tensor([ 0,  1, -2, -1], dtype=int64)
    """
    return _rolled(x, axes, "ifftshift", True)
