"""Dawson's, Fresnel's, sine and cosine integrals, and Owen's T function.

Where a function oscillates, it is an amplitude and a phase: the amplitudes are integrals of what falls off like an exponential or a Gaussian. Sums
over evenly spaced points, of positive terms, converge to these exponentially (Trefethen and Weideman, The exponentially convergent trapezoidal rule).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hologram.numpy.elementwise.functions import FUNCTIONS, where
from hologram.special.basic import erf, erfc
from hologram.special.common import absolute, exp, isinf, isnan, log, minimum, series
from hologram.special.elementwise import Function, in_float64
from hologram.trace.tensor import Tensor

__all__ = ["dawsn", "fresnel", "owens_t", "sici"]

cos, sin, floor = FUNCTIONS["cos"], FUNCTIONS["sin"], FUNCTIONS["floor"]
_EULER = 0.5772156649015328606


def _column(x: Tensor) -> Tensor:
    return x.reshape((*x.shape, 1))


# --- Dawson's integral ------------------------------------------------------------------------------------------------------

_DAWSON_STEP, _DAWSON_POINTS = 0.25, 27  # Rybicki's sum errs by exp(-(pi / 2h)**2); points are odd multiples of h up to 27 h = 6.75
_DAWSON_SERIES = [1 / (math.factorial(k) * (2 * k + 1)) for k in range(30)]  # of exp(x*x) F(x) / x up to x = 1.5
_DAWSON_TERMS = [math.prod(range(1, 2 * k, 2)) / 2.0**k for k in range(14)]  # of 2 x F(x), by 1 / x**2, from x = 12 on


def _dawson(x: Tensor) -> Tensor:
    size = absolute(x)
    small, far = size < 1.5, size > 12.0
    a = where(small, x, 0.0)
    near = a * exp(-a * a) * series(a * a, _DAWSON_SERIES)
    b = where(small | far | isnan(x), 3.0, size)
    middle = 2.0 * floor(0.5 * b / _DAWSON_STEP + 0.5)  # the even multiple of the step next to b
    odd = np.arange(-_DAWSON_POINTS, _DAWSON_POINTS + 1, 2)
    distance = _column(b - middle * _DAWSON_STEP) - odd * _DAWSON_STEP
    between = (exp(-distance * distance) / (_column(middle) + odd)).sum(axis=-1) / math.sqrt(math.pi)
    c = where(far & ~isinf(x), size, 20.0)
    inverse = 1.0 / c
    beyond = where(isinf(x), 0.0, 0.5 * inverse * series(inverse * inverse, _DAWSON_TERMS))
    value = where(far, beyond, between)
    return where(isnan(x), math.nan, where(small, near, where(x < 0, -value, value)))


def _dawson_slope(x: Tensor) -> Tensor:
    """``1 - 2 x F(x)``, without its cancellation for large x."""
    far = absolute(x) > 12.0
    inverse = 1.0 / where(far, x, 20.0)
    return where(far, -series(inverse * inverse, [0.0, *_DAWSON_TERMS[1:]]), 1.0 - 2.0 * x * _dawson_function(x))


_dawson_function: Function = Function(_dawson, [_dawson_slope])


def dawsn(x: Any) -> Tensor:
    """Dawson's integral: ``exp(-x**2)`` times the integral of ``exp(t**2)`` from 0 to ``x``.

    The result has the shape and float type of ``x``, float32 for integers. Raises DTypeError for complex numbers.

    >>> hg.special.dawsn([0.5, 10.0])
    Tensor([0.4244364 , 0.05025385], dtype=float32)
    """
    return in_float64("dawsn", _dawson_function, x)


# --- Fresnel's integrals ----------------------------------------------------------------------------------------------------

_GAUSS_STEP, _GAUSS_POINTS = 0.22, 28  # exp(-(28 * 0.22)**2) < 2**-54
_FRESNEL_NEAR = 1.6
_COSINE_TERMS = [(-1) ** k / (math.factorial(2 * k) * (4 * k + 1)) for k in range(16)]
_SINE_TERMS = [(-1) ** k / (math.factorial(2 * k + 1) * (4 * k + 3)) for k in range(16)]


def _phase(x: Tensor) -> Tensor:
    """``pi x**2 / 2`` less whole periods, which are taken off ``x**2`` without rounding."""
    square = x * x
    return 0.5 * math.pi * (square - 4.0 * floor(0.25 * square))


def _fresnel(is_sine: bool, x: Tensor) -> Tensor:
    size = absolute(x)
    small = size <= _FRESNEL_NEAR
    a = where(small, x, 0.0)
    angle = 0.5 * math.pi * a * a
    near = a * angle * series(angle * angle, _SINE_TERMS) if is_sine else a * series(angle * angle, _COSINE_TERMS)
    b = where(small | isinf(x) | isnan(x), 2.0, size)
    u2 = (np.arange(_GAUSS_POINTS + 1) * _GAUSS_STEP) ** 2
    weights = np.exp(-u2) * np.where(u2 == 0, 0.5, 1.0) * (_GAUSS_STEP * math.sqrt(2) / math.pi)
    half = 0.5 * math.pi * b * b
    inverse = 1.0 / half
    poles = 1.0 + u2 * u2 * _column(inverse * inverse)
    root = inverse * b * math.sqrt(0.5 * math.pi)  # half**-0.5
    f, g = root * (weights / poles).sum(axis=-1), root * inverse * (weights * u2 / poles).sum(axis=-1)
    c, s = cos(_phase(b)), sin(_phase(b))
    far = 0.5 - f * c - g * s if is_sine else 0.5 + f * s - g * c
    value = where(isinf(x), 0.5, far)
    return where(isnan(x), math.nan, where(small, near, where(x < 0, -value, value)))


_fresnel_wave: Function = Function(lambda x: sin(_phase(x)), [lambda x: math.pi * x * _fresnel_cowave(x)])
_fresnel_cowave: Function = Function(lambda x: cos(_phase(x)), [lambda x: -math.pi * x * _fresnel_wave(x)])
_fresnel_sine = Function(lambda x: _fresnel(True, x), [_fresnel_wave])
_fresnel_cosine = Function(lambda x: _fresnel(False, x), [_fresnel_cowave])


def fresnel(x: Any) -> tuple[Tensor, Tensor]:
    """Fresnel's integrals S and C: of the sine and the cosine of ``pi t**2 / 2`` from 0 to ``x``.

    The results have the shape and float type of ``x``, float32 for integers. Raises DTypeError for complex numbers.

    >>> hg.special.fresnel(1.0)
    (Tensor(0.43825915, dtype=float32), Tensor(0.7798934, dtype=float32))
    """
    return in_float64("fresnel", _fresnel_sine, x), in_float64("fresnel", _fresnel_cosine, x)


# --- sine and cosine integrals ----------------------------------------------------------------------------------------------

_SICI_NEAR = 4.0
_SI_TERMS = [(-1) ** k / (math.factorial(2 * k + 1) * (2 * k + 1)) for k in range(17)]
_CI_TERMS = [0.0, *((-1) ** k / (math.factorial(2 * k) * 2 * k) for k in range(1, 17))]
_V = np.arange(-19, 19.5) * 0.2  # u = exp(v - exp(-v)) makes the integral of exp(-u) one over all v that falls off doubly exponentially
_U = np.exp(_V - np.exp(-_V))
_U_WEIGHTS = 0.2 * np.exp(-_U) * _U * (1.0 + np.exp(-_V))


def _sici(is_sine: bool, x: Tensor) -> Tensor:
    size = absolute(x)
    small = size <= _SICI_NEAR
    a = where(small, x, 1.0)
    near = a * series(a * a, _SI_TERMS) if is_sine else _EULER + log(absolute(where(a == 0, 1.0, a))) + series(a * a, _CI_TERMS)
    b = where(small | isinf(x) | isnan(x), 10.0, size)
    inverse = 1.0 / b
    ratios = _U * _column(inverse)
    poles = 1.0 + ratios * ratios
    f, g = inverse * (_U_WEIGHTS / poles).sum(axis=-1), inverse * inverse * (_U_WEIGHTS * _U / poles).sum(axis=-1)
    c, s = cos(b), sin(b)
    if is_sine:
        far = where(isinf(x), 0.5 * math.pi, 0.5 * math.pi - f * c - g * s)
        far = where(x < 0, -far, far)
    else:
        near = where(x == 0, -math.inf, near)
        far = where(isinf(x), where(x > 0, 0.0, math.nan), f * s - g * c)
    return where(isnan(x), math.nan, where(small, near, far))


def _sine_over(x: Tensor) -> Tensor:
    """``sin(x) / x``, by its series next to 0: derivatives hold there, too."""
    small = absolute(x) < 0.5
    a = where(small, x, 0.0)
    b = where(small, 1.0, x)
    return where(small, series(a * a, [(-1) ** k / math.factorial(2 * k + 1) for k in range(9)]), sin(b) / b)


_sine_integral = Function(lambda x: _sici(True, x), [_sine_over])
_cosine_integral = Function(lambda x: _sici(False, x), [lambda x: cos(x) / x])


def sici(x: Any) -> tuple[Tensor, Tensor]:
    """Sine and cosine integrals: Si, of ``sin(t) / t`` from 0 to ``x``, and Ci, minus that of ``cos(t) / t`` from ``abs(x)`` to infinity.

    The results have the shape and float type of ``x``, float32 for integers. Raises DTypeError for complex numbers.

    >>> hg.special.sici(1.0)
    (Tensor(0.94608307, dtype=float32), Tensor(0.33740393, dtype=float32))
    """
    return in_float64("sici", _sine_integral, x), in_float64("sici", _cosine_integral, x)


# --- Owen's T function ------------------------------------------------------------------------------------------------------

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(40)
_OWEN_RANGE = 9.0  # beyond x = 9 / h what is integrated is below exp(-40)


def _owen_inside(h: Tensor, a: Tensor) -> Tensor:
    """For h >= 0 and 0 <= a <= 1: the integral, over its range or as far as it counts, by Gauss and Legendre."""
    to = minimum(a, _OWEN_RANGE / where(h > _OWEN_RANGE, h, _OWEN_RANGE))
    x = _column(0.5 * to) * (_NODES + 1.0)
    terms = _NODE_WEIGHTS * exp(-0.5 * _column(h * h) * x * x) / (1.0 + x * x)
    return exp(-0.5 * h * h) * to * terms.sum(axis=-1) * (0.25 / math.pi)


def _owen(h: Tensor, a: Tensor) -> Tensor:
    """T is even in h and odd in a; above a = 1 it comes from ``T(a h, 1 / a)``, and complements, so that no digits cancel."""
    h, size = absolute(h), absolute(a)
    big = size > 1.0
    inverse = where(isinf(size), 0.0, 1.0 / where(big, size, 1.0))
    far = where(big & (h > 0), h * where(isinf(size), 1.0, size), 0.0)
    far = where(isinf(size) & (h > 0), math.inf, far)
    q, q_far = 0.5 * erfc(h * math.sqrt(0.5)), 0.5 * erfc(far * math.sqrt(0.5))
    finite = where(isinf(far), 50.0, far)
    reflected = 0.5 * (q + q_far) - q * q_far - where(isinf(far), 0.0, _owen_inside(finite, inverse))
    near = _owen_inside(where(isinf(h), 50.0, h), where(big, 1.0, size))
    value = where(isinf(h), 0.0, where(big, reflected, near))
    return where(isnan(h) | isnan(a), math.nan, where(a < 0, -value, value))


def _owen_by_h(h: Tensor, a: Tensor) -> Tensor:
    return -exp(-0.5 * h * h) * erf(a * h * math.sqrt(0.5)) * (0.5 / math.sqrt(2 * math.pi))


def _owen_by_a(h: Tensor, a: Tensor) -> Tensor:
    return exp(-0.5 * h * h * (1.0 + a * a)) / (2 * math.pi * (1.0 + a * a))


_owen_function = Function(_owen, [_owen_by_h, _owen_by_a])


def owens_t(h: Any, a: Any) -> Tensor:
    """Owen's T function: the integral of ``exp(-h**2 (1 + x**2) / 2) / (1 + x**2) / (2 pi)`` over x from 0 to ``a``.

    The result has the arguments' common shape and float type, float32 for integers. Raises DTypeError for complex numbers.

    >>> hg.special.owens_t(1.0, [0.5, 2.0])
    Tensor([0.04306469, 0.0784682 ], dtype=float32)
    """
    return in_float64("owens_t", _owen_function, h, a)
