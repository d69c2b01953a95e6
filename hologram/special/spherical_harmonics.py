"""Spherical harmonics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import hologram.numpy as hnp
from hologram.errors import ArgumentError
from hologram.numpy.arguments import as_tensor
from hologram.numpy.elementwise.functions import where
from hologram.special.common import absolute, maximum, sqrt
from hologram.support.user_lines import located
from hologram.trace.checks import integer
from hologram.trace.tensor import Tensor

__all__ = ["sph_harm_y"]


def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, diff_n: int | None = None, n_max: int | None = None) -> Tensor:
    """Spherical harmonic of degree ``n`` and order ``m``, at the polar angle ``theta`` and the azimuth ``phi``, orthonormal on the sphere.

    The arguments broadcast; the result is complex. ``n_max`` bounds ``n``, and is needed where that is traced; degrees above are taken for it. Zero
    where ``abs(m) > n``. Raises ArgumentError for ``diff_n`` other than None and 0: use ``hg.jvp`` for derivatives.

    >>> hg.special.sph_harm_y(1, 0, 0.0, 0.0)
    Tensor(0.48860252+0.j, dtype=complex64)
    """
    if diff_n not in (None, 0):
        raise located(ArgumentError("sph_harm_y computes no derivatives by diff_n: use hologram.jvp"))
    degree, order = as_tensor(n, "sph_harm_y"), as_tensor(m, "sph_harm_y")
    if n_max is None:
        n_max = max(0, int(np.max(np.asarray(degree), initial=0)))
    most = integer(n_max, "sph_harm_y", "n_max")
    degree, size = hnp.minimum(degree, most), absolute(order)
    x, sine = hnp.cos(theta), hnp.sin(theta)
    sine = where(sine < 0, -sine, sine)  # sqrt(1 - x**2), with a derivative at the pole
    legendre = _normalized(degree, size.astype(x.dtype), x, sine, most)
    angle = order * hnp.asarray(phi)
    sign = where((order < 0) & (size % 2 == 1), -1.0, 1.0)
    size = legendre * sign
    return size * hnp.cos(angle) + 1j * (size * hnp.sin(angle))


def _normalized(n: Tensor, m: Tensor, x: Tensor, sine: Tensor, most: int) -> Tensor:
    """Normalised associated Legendre functions of ``x = cos(theta)`` for m >= 0, by recurrences in m, then in n."""
    zero = x * 0 + m * 0 + (n * 0).astype(x.dtype)
    current = zero + math.sqrt(0.25 / math.pi)
    for k in range(1, most + 1):
        current = where(k <= m, -math.sqrt((2 * k + 1) / (2 * k)) * sine * current, current)
    before = zero
    for k in range(1, most + 1):
        steps = (k > m) & (k <= n)
        rest = where(k > m, k * k - m * m, 1.0)
        rise = sqrt((4.0 * k * k - 1.0) / rest)
        fall = sqrt(maximum((k - 1) ** 2 - m * m, 0.0) / max(4.0 * (k - 1) ** 2 - 1.0, 1.0))
        before, current = where(steps, current, before), where(steps, rise * (x * current - fall * before), current)
    return where(m > n, 0.0, current)
