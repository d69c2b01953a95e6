"""Faddeeva's function, the complex error function, by modified trapezoidal and midpoint rules (Al Azah and Chandler-Wilde, Computation of the complex
error function using modified trapezoidal rules, 2021)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import hologram.numpy as hnp
from hologram import dtypes
from hologram.numpy.arguments import as_tensor
from hologram.numpy.elementwise.functions import FUNCTIONS, where
from hologram.special.common import absolute, exp, floor, maximum
from hologram.trace.tensor import Tensor
from hologram.transform.custom import custom_jvp

__all__ = ["wofz"]

cos, sin = FUNCTIONS["cos"], FUNCTIONS["sin"]
_POINTS = 11
_STEP = math.sqrt(math.pi / (_POINTS + 1))
_FAR = 1e8  # beyond which w(z) is i / (sqrt(pi) z)


def wofz(z: Any) -> Tensor:
    """Faddeeva's function ``exp(-z**2) erfc(-i z)`` of complex numbers: complex64, or complex128 for float64 and complex128.

    >>> hg.special.wofz(1.0)
    Tensor(0.36787945+0.6071577j, dtype=complex64)
    """
    given = as_tensor(z, "wofz")
    wide = dtypes.of(given.dtype).name in ("float64", "complex128")
    found: Tensor = _wofz(given.astype("complex128")).astype("complex128" if wide else "complex64")
    return found


@custom_jvp
def _wofz(z: Tensor) -> Tensor:
    """From the first quadrant: ``w(-conj(z)) = conj(w(z))``, and ``w(z) = 2 exp(-z**2) - w(-z)`` below the real axis."""
    x, y = hnp.real(z), hnp.imag(z)
    u, v = absolute(x), absolute(y)
    below = y < 0
    endless = ((u == math.inf) | (v == math.inf)) & (u == u) & (v == v)
    re, im = (where(endless, 0.0, part) for part in _first_quadrant(where(endless, 1.0, u), where(endless, 1.0, v)))
    im = where((x < 0) ^ below, -im, im)  # of w(-z) below the axis
    size = exp(where(below, (v - u) * (v + u), 0.0)) * 2.0
    angle = 2.0 * x * y
    re, im = where(below, size * cos(angle) - re, re), where(below, -size * sin(angle) - im, im)
    return re + im * 1j


def _ratio(sign: float, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """``2 exp(-z**2) q / (q + sign)`` for ``q = exp(2 pi i z / h)``: what the rule leaves out, as the residue of a pole."""
    size = exp(-2 * math.pi / _STEP * y)
    c, s = size * cos(2 * math.pi / _STEP * x), size * sin(2 * math.pi / _STEP * x)
    norm = (c + sign) ** 2 + s * s
    re, im = (c * (c + sign) + s * s) / norm, sign * s / norm
    wave = 2.0 * exp((y - x) * (y + x))
    a, b = wave * cos(2.0 * x * y), -wave * sin(2.0 * x * y)
    return a * re - b * im, a * im + b * re


def _rule(nodes: np.ndarray, weights: np.ndarray, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """``i z`` times the sum of ``weights / (z**2 - nodes**2)``."""
    u, v = x.reshape((*x.shape, 1)), y.reshape((*y.shape, 1))
    re, im = (u - nodes) * (u + nodes) - v * v, 2.0 * u * v
    share = weights / (re * re + im * im)
    a, b = (re * share).sum(axis=-1), -(im * share).sum(axis=-1)
    return -(x * b + y * a), x * a - y * b


def _first_quadrant(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    far = maximum(x, y) > _FAR
    a, b = where(far, 1.0, x), where(far, 1.0, y)
    high = b >= maximum(a, math.pi / _STEP)
    fraction = a / _STEP - floor(a / _STEP)
    at_whole = ~high & (b < a) & (fraction >= 0.25) & (fraction <= 0.75)
    k = np.arange(_POINTS + 1)
    half, whole = _STEP * (k + 0.5), _STEP * k
    scale = 2 * _STEP / math.pi
    re, im = _rule(half, scale * np.exp(-half * half), where(at_whole, 3.0, a), b)
    by_pole = _ratio(1.0, where(at_whole | high, 0.0, a), where(high, 1.0, b))
    re, im = re + where(high, 0.0, by_pole[0]), im + where(high, 0.0, by_pole[1])
    c, d = where(at_whole, a, 0.5 * _STEP), where(at_whole, b, 0.0)
    trapezoid = _rule(whole, scale * np.exp(-whole * whole) * np.where(k == 0, 0.5, 1.0), c, d)
    by_pole = _ratio(-1.0, c, d)
    re, im = where(at_whole, trapezoid[0] + by_pole[0], re), where(at_whole, trapezoid[1] + by_pole[1], im)
    larger = maximum(x, y)
    p, q = where(far, x / larger, 0.0), where(far, y / larger, 1.0)
    norm = math.sqrt(math.pi) * (p * p + q * q) * where(far, larger, 1.0)
    return where(far, q / norm, re), where(far, p / norm, im)


@_wofz.defjvp
def _wofz_jvp(primals: tuple[Tensor], tangents: tuple[Tensor]) -> tuple[Tensor, Tensor]:
    (z,), (by_z,) = primals, tangents
    value = _wofz(z)
    return value, (2j / math.sqrt(math.pi) - 2.0 * z * value) * by_z
