"""Complete elliptic integrals, by the arithmetic-geometric mean."""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

from hologram.numpy.elementwise.functions import where
from hologram.special.common import absolute, isinf, isnan, log, series, sqrt
from hologram.special.elementwise import Function, in_float64
from hologram.trace.tensor import Tensor

__all__ = ["ellipe", "ellipk", "ellipkm1"]

_MEANS = 14  # the logarithm of the quotient halves, then the difference squares: enough from 2**-1074 on
_SERIES = 16  # terms next to p = 0, up to 0.1


def _means(p: Tensor) -> tuple[Tensor, Tensor]:
    """The arithmetic-geometric mean of 1 and ``sqrt(p)``, and the sum of ``2**n c_n**2`` over n >= 1, ``c_n`` being half the differences."""
    a, b, total = p * 0 + 1.0, sqrt(p), p * 0
    for n in range(_MEANS):
        c = 0.5 * (a - b)
        a, b, total = 0.5 * (a + b), sqrt(a * b), total + 2.0 ** (n + 1) * c * c
    return a, total


def _inside(p: Tensor) -> Tensor:
    return (p > 0) & ~isinf(p)


def _k_complement(p: Tensor) -> Tensor:
    """K of the parameter ``1 - p``."""
    mean, _ = _means(where(_inside(p), p, 1.0))
    value = where(_inside(p), 0.5 * math.pi / mean, where(p == 0, math.inf, where(isinf(p) & (p > 0), 0.0, math.nan)))
    return where(isnan(p), math.nan, value)


def _small_e_terms() -> tuple[list[float], list[float]]:
    """What multiplies ``-log(p)``, and 1, in ``E - 1`` over p (DLMF 19.12.2)."""
    ratio, digamma, by_log, others = 1.0, 2 * math.log(2), [], []
    for m in range(_SERIES):
        by_log.append(0.25 * ratio)
        others.append(0.5 * ratio * (digamma - 1 / ((2 * m + 1) * (2 * m + 2))))
        ratio *= (m + 0.5) * (m + 1.5) / ((m + 2) * (m + 1))
        digamma += 1 / (m + 1) - 1 / (m + 0.5)
    return by_log, others


def _e_complement(p: Tensor) -> Tensor:
    """E of the parameter ``1 - p``: next to 0 its series, up to 1 K times ``(1 + p) / 2`` less the sum of the means, above by ``1 / p``."""
    above = _inside(p) & (p > 1.0)
    q = where(above, 1.0 / where(above, p, 1.0), where(_inside(p), p, 1.0))
    small = q < 0.1
    by_log, others = _small_e_terms()
    a = where(small & (q > 0), q, 0.05)
    near = where(q > 0, 1.0 + a * (series(a, others) - log(a) * series(a, by_log)), 1.0)
    b = where(small, 1.0, q)
    mean, total = _means(b)
    value = where(small, near, 0.25 * math.pi / mean * (1.0 + b - total)) * sqrt(where(above, p, 1.0))
    value = where(_inside(p), value, where(p == 0, 1.0, where(isinf(p) & (p > 0), math.inf, math.nan)))
    return where(isnan(p), math.nan, value)


# Of the series of K and E at 0: the squares of 1/2, 1·3/(2·4), …
_SQUARES = list(itertools.accumulate((((2 * n - 1) / (2 * n)) ** 2 for n in range(1, 12)), operator.mul))


def _k_slope(p: Tensor) -> Tensor:
    """Of K by ``p``: ``-(E - p K) / (2 p (1 - p))``, which is a hypergeometric function; next to p = 1 by its series."""
    near = absolute(p - 1.0) < 0.02
    m = where(near, 1.0 - p, 0.0)
    q = where(near, 0.5, p)
    coefficients = [0.5 * math.pi * n * c for n, c in enumerate(_SQUARES, 1)]
    return where(near, -series(m, coefficients), -(_e_function(q) - q * _k_function(q)) / (2.0 * q * (1.0 - q)))


def _e_slope(p: Tensor) -> Tensor:
    """Of E by ``p``: ``(K - E) / (2 (1 - p))``; next to p = 1 by its series."""
    near = absolute(p - 1.0) < 0.02
    m = where(near, 1.0 - p, 0.0)
    q = where(near, 0.5, p)
    coefficients = [0.5 * math.pi * n * c / (2 * n - 1) for n, c in enumerate(_SQUARES, 1)]
    return where(near, series(m, coefficients), (_k_function(q) - _e_function(q)) / (2.0 * (1.0 - q)))


_k_function: Function = Function(_k_complement, [_k_slope])
_e_function: Function = Function(_e_complement, [_e_slope])


def ellipk(m: Any) -> Tensor:
    """Complete elliptic integral of the first kind K, of the parameter ``m``, the square of the modulus; infinite at 1, NaN above.

    The result has the shape and float type of ``m``, float32 for integers. Raises DTypeError for complex numbers. See :func:`ellipkm1` next to 1.

    >>> hg.special.ellipk([0.0, 0.5])
    Tensor([1.5707964, 1.8540747], dtype=float32)
    """
    return in_float64("ellipk", lambda m: _k_function(1.0 - m), m)


def ellipkm1(p: Any) -> Tensor:
    """``ellipk(1 - p)``, with all digits next to ``p = 0``.

    >>> hg.special.ellipkm1([1e-30, 0.5])
    Tensor([35.92513 ,  1.854075], dtype=float32)
    """
    return in_float64("ellipkm1", _k_function, p)


def ellipe(m: Any) -> Tensor:
    """Complete elliptic integral of the second kind E, of the parameter ``m``; 1 at 1, NaN above. See :func:`ellipk`.

    >>> hg.special.ellipe([0.0, 0.5])
    Tensor([1.5707964, 1.3506439], dtype=float32)
    """
    return in_float64("ellipe", lambda m: _e_function(1.0 - m), m)
