"""Bessel functions of the orders 0 and 1, and Spence's function.

Integrals over a period, or of what falls off like a Gaussian, are sums over evenly spaced points: these converge exponentially.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from hologram.numpy.elementwise.functions import FUNCTIONS, where
from hologram.special.common import absolute, exp, isinf, isnan, log, log1p, log1p_rest, series, sqrt
from hologram.special.elementwise import Function, in_float64
from hologram.trace.tensor import Tensor

__all__ = ["j0", "j1", "k0", "k0e", "k1", "k1e", "spence", "y0", "y1"]

cos, sin = FUNCTIONS["cos"], FUNCTIONS["sin"]
_EULER = 0.5772156649015328606
_STEP, _POINTS = 0.22, 28  # of the Gaussian integral: exp(-(28 * 0.22)**2) < 2**-54
_NEAR = 25.0  # up to which j and y are sums over a period
_ANGLES, _HARMONICS = 40, 70  # points of a quarter of the period; Bessel functions of higher orders vanish up to _NEAR
_TERMS = 12  # of each asymptotic series, from _NEAR on


# --- modified, of the second kind -----------------------------------------------------------------------------------------


def _small_k(order: int, x: Tensor) -> Tensor:
    """K for 0 < x <= 1, by its power series around the logarithm."""
    q = 0.25 * x * x
    if order == 0:
        bessel = series(q, [1 / math.factorial(k) ** 2 for k in range(12)])
        rest = series(q, [math.fsum(1 / j for j in range(1, k + 1)) / math.factorial(k) ** 2 for k in range(12)])
        return rest - (log(0.5 * x) + _EULER) * bessel
    bessel = 0.5 * x * series(q, [1 / (math.factorial(k) * math.factorial(k + 1)) for k in range(12)])
    digammas = [math.fsum([-2 * _EULER, 1 / (k + 1), *(2 / j for j in range(1, k + 1))]) for k in range(12)]
    rest = series(q, [d / (math.factorial(k) * math.factorial(k + 1)) for k, d in enumerate(digammas)])
    return 1.0 / x + log(0.5 * x) * bessel - 0.25 * x * rest


def _large_k(order: int, x: Tensor) -> Tensor:
    """``exp(x)`` K for x >= 1: the integral of ``exp(-s*s) * (1 + s*s/x)**order / sqrt(2*x + s*s)`` over all s."""
    s2 = (np.arange(1, _POINTS + 1) * _STEP) ** 2
    a = x.reshape((*x.shape, 1))
    terms = np.exp(-s2) / sqrt(2.0 * a + s2)
    total = 0.5 / sqrt(2.0 * x) + (terms * (1.0 + s2 / a) if order else terms).sum(axis=-1)
    return 2.0 * _STEP * total


def _k(order: int, scaled: bool, x: Tensor) -> Tensor:
    small = (x > 0) & (x <= 1.0)
    large = (x > 1.0) & ~isinf(x)
    a, b = where(small, x, 1.0), where(large, x, 1.0)
    near, far = _small_k(order, a), _large_k(order, b)
    value = where(small, near * exp(a) if scaled else near, far if scaled else far * exp(-b))
    return where(small | large, value, where(x == 0, math.inf, where(isinf(x) & (x > 0), 0.0, math.nan)))


_k0: Function = Function(lambda x: _k(0, False, x), [lambda x: -_k1(x)])
_k1: Function = Function(lambda x: _k(1, False, x), [lambda x: -_k0(x) - _k1(x) / x])
_k0e: Function = Function(lambda x: _k(0, True, x), [lambda x: _k0e(x) - _k1e(x)])
_k1e: Function = Function(lambda x: _k(1, True, x), [lambda x: _k1e(x) - _k0e(x) - _k1e(x) / x])


def k0(x: Any) -> Tensor:
    """Modified Bessel function of the second kind, of order 0; infinite at 0, NaN below.

    The result has the shape and float type of ``x``, float32 for integers. Raises DTypeError for complex numbers.

    >>> hg.special.k0([0.0, 1.0])
    Tensor([       inf, 0.42102443], dtype=float32)
    """
    return in_float64("k0", _k0, x)


def k1(x: Any) -> Tensor:
    """Modified Bessel function of the second kind, of order 1; see :func:`k0`.

    >>> hg.special.k1([0.0, 1.0])
    Tensor([      inf, 0.6019072], dtype=float32)
    """
    return in_float64("k1", _k1, x)


def k0e(x: Any) -> Tensor:
    """``exp(x) * k0(x)``, which does not vanish for large ``x``.

    >>> hg.special.k0e([1.0, 1000.0])
    Tensor([1.1444631 , 0.03962832], dtype=float32)
    """
    return in_float64("k0e", _k0e, x)


def k1e(x: Any) -> Tensor:
    """``exp(x) * k1(x)``, which does not vanish for large ``x``.

    >>> hg.special.k1e([1.0, 1000.0])
    Tensor([1.6361535 , 0.03964813], dtype=float32)
    """
    return in_float64("k1e", _k1e, x)


# --- of the first and second kind -----------------------------------------------------------------------------------------


@cache
def _periodic_weights(order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sines of angles t, and the weights of ``cos(x sin t)``, or ``sin(x sin t)``, in J and in the series of J of all orders that Y is besides."""
    t = (np.arange(_ANGLES) + 0.5) * (math.pi / (2 * _ANGLES))
    k = np.arange(1, _HARMONICS // 2)
    signs, angles = (-1.0) ** k, t[:, None]
    if order == 0:  # 4/pi * sum of (-1)**(k+1) / k * J_2k
        weights = -4 / math.pi * (signs / k * np.cos(2 * k * angles)).sum(1)
        return np.sin(t), np.full(_ANGLES, 1.0 / _ANGLES), weights / _ANGLES
    # -2/pi * (J_1 + sum of (-1)**k (2k+1) / (k (k+1)) * J_(2k+1)), and 2/pi * (1 - J_0) / x, the sum of (J_(2k-1) + J_(2k+1)) / (pi k)
    odd = np.sin((2 * k + 1) * angles)
    terms = signs * (2 * k + 1) / (k * (k + 1)) * odd - (np.sin((2 * k - 1) * angles) + odd) / (2 * k)
    return np.sin(t), np.sin(t) / _ANGLES, -2 / math.pi * (np.sin(t) + terms.sum(1)) / _ANGLES


def _periodic(order: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """J, and what Y has beside ``2/pi * (log(x/2) + gamma) * J`` and, of order 1, ``-2 / (pi x)``, for 0 <= x <= 25."""
    sines, first, second = _periodic_weights(order)
    waves = (sin if order else cos)(x.reshape((*x.shape, 1)) * sines)
    return (waves * first).sum(axis=-1), (waves * second).sum(axis=-1)


def _asymptotic(order: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """J and Y for x >= 25, by Hankel's expansions."""
    terms = [1.0]
    for k in range(1, 2 * _TERMS):
        terms.append(terms[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
    inverse = 1.0 / x
    q2 = inverse * inverse
    p = series(q2, [(-1) ** k * terms[2 * k] for k in range(_TERMS)])
    q = series(q2, [(-1) ** k * terms[2 * k + 1] for k in range(_TERMS)]) * inverse
    c, s = cos(x), sin(x)
    even, odd = ((s - c), -(s + c)) if order else ((c + s), (s - c))  # cosine and sine of the phase, times sqrt(2)
    scale = sqrt(1.0 / math.pi * inverse)
    return scale * (p * even - q * odd), scale * (p * odd + q * even)


def _j(order: int, x: Tensor) -> Tensor:
    size = absolute(x)
    near = size <= _NEAR
    first, _ = _periodic(order, where(near, size, 1.0))
    far, _ = _asymptotic(order, where(near | isinf(x), 30.0, size))
    value = where(near, first, where(isinf(x), 0.0, far))
    return where(isnan(x), math.nan, where(x < 0, -value, value) if order else value)


def _y(order: int, x: Tensor) -> Tensor:
    near = (x > 0) & (x <= _NEAR)
    a = where(near, x, 1.0)
    first, rest = _periodic(order, a)
    logarithmic = 2 / math.pi * (log(0.5 * a) + _EULER) * first + rest
    if order:
        logarithmic = logarithmic - 2 / math.pi / a
    _, far = _asymptotic(order, where(near | isinf(x) | (x <= 0) | isnan(x), 30.0, x))
    beyond = where(isinf(x), 0.0, far)
    return where(near, logarithmic, where(x > 0, beyond, where(x == 0, -math.inf, math.nan)))


def _mean_slope(f: Callable[[Tensor], Tensor], g: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The derivative of a function of order 1, of those of the orders 0 and 1."""
    return lambda x: f(x) - where(x == 0, 0.5, g(x) / where(x == 0, 1.0, x))


_j0: Function = Function(lambda x: _j(0, x), [lambda x: -_j1(x)])
_j1: Function = Function(lambda x: _j(1, x), [_mean_slope(lambda x: _j0(x), lambda x: _j1(x))])
_y0: Function = Function(lambda x: _y(0, x), [lambda x: -_y1(x)])
_y1: Function = Function(lambda x: _y(1, x), [lambda x: _y0(x) - _y1(x) / x])


def j0(x: Any) -> Tensor:
    """Bessel function of the first kind, of order 0.

    The result has the shape and float type of ``x``, float32 for integers. Raises DTypeError for complex numbers.

    >>> hg.special.j0([0.0, 1.0])
    Tensor([1.       , 0.7651977], dtype=float32)
    """
    return in_float64("j0", _j0, x)


def j1(x: Any) -> Tensor:
    """Bessel function of the first kind, of order 1; see :func:`j0`.

    >>> hg.special.j1([0.0, 1.0])
    Tensor([0.       , 0.4400506], dtype=float32)
    """
    return in_float64("j1", _j1, x)


def y0(x: Any) -> Tensor:
    """Bessel function of the second kind, of order 0; minus infinity at 0, NaN below. See :func:`j0`.

    >>> hg.special.y0([0.0, 1.0])
    Tensor([       -inf, 0.08825696], dtype=float32)
    """
    return in_float64("y0", _y0, x)


def y1(x: Any) -> Tensor:
    """Bessel function of the second kind, of order 1; minus infinity at 0, NaN below. See :func:`j0`.

    >>> hg.special.y1([0.0, 1.0])
    Tensor([      -inf, -0.7812128], dtype=float32)
    """
    return in_float64("y1", _y1, x)


# --- Spence's function ------------------------------------------------------------------------------------------------------

# Bernoulli's numbers over factorials: of u**(n+1) in the dilogarithm of 1 - exp(-u)
_BERNOULLI = {0: 1.0, 1: -0.5, 2: 1 / 6, 4: -1 / 30, 6: 1 / 42, 8: -1 / 30, 10: 5 / 66, 12: -691 / 2730, 14: 7 / 6, 16: -3617 / 510, 18: 43867 / 798}
_DILOGARITHM = [0.0, *(_BERNOULLI.get(n, 0.0) / math.factorial(n + 1) for n in range(19))]


def _middle_spence(z: Tensor) -> Tensor:
    """For z from 1/2 to 2."""
    return series(-log(z), _DILOGARITHM)


def _spence(x: Tensor) -> Tensor:
    large = x > 2.0
    z = where(large, 1.0 / where(large, x, 1.0), where(x > 0, x, 1.0))  # up to 2
    small = z < 0.5
    a = where(small, z, 0.25)
    reflected = math.pi**2 / 6 - log(a) * log1p(-a) - series(-log1p(-a), _DILOGARITHM)
    value = where(small, reflected, _middle_spence(where(small, 1.0, z)))
    logarithm = log(z)
    value = where(large, -0.5 * logarithm * logarithm - value, value)
    return where(isinf(x) & (x > 0), -math.inf, where(x == 0, math.pi**2 / 6, where(x > 0, value, math.nan)))


def _spence_slope(x: Tensor) -> Tensor:
    near = absolute(x - 1.0) < 0.5
    t = where(near, x - 1.0, 0.25)
    z = where(near, 2.0, x)
    return where(near, t * log1p_rest(t) - 1.0, log(z) / (1.0 - z))


_spence_function = Function(_spence, [_spence_slope])


def spence(x: Any) -> Tensor:
    """Spence's function, the dilogarithm of ``1 - x``: the integral of ``log(t) / (1 - t)`` from 1 to ``x``; NaN below 0.

    The result has the shape and float type of ``x``, float32 for integers. Raises DTypeError for complex numbers.

    >>> hg.special.spence([0.0, 2.0])
    Tensor([ 1.6449341, -0.822467 ], dtype=float32)
    """
    return in_float64("spence", _spence_function, x)
