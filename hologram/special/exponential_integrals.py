"""Exponential integrals, and quotients and powers of exponentials."""

from __future__ import annotations

import math
from typing import Any

from hologram.errors import ArgumentError
from hologram.numpy.elementwise.functions import where
from hologram.special.common import EPSILON, absolute, continued_fraction, exp, expm1, isinf, isnan, log, until_small
from hologram.special.elementwise import Function, in_float64
from hologram.support.user_lines import located
from hologram.trace.checks import integer
from hologram.trace.tensor import Tensor

__all__ = ["exp1", "expi", "expn", "exprel"]

_EULER = 0.5772156649015328606
_MAX_STEPS = 500
_ASYMPTOTIC = 40.0


def _entire(x: Tensor) -> Tensor:
    """The sum of ``x**k / (k k!)``: Ein with its sign, for x from -1 to 40."""

    def step(n: Tensor, state: Any) -> Any:
        total, power = state
        power = power * x / n
        return (total + power / n, power), absolute(power / n) / absolute(where(total == 0, 1.0, total))

    return until_small(step, (x * 0, x * 0 + 1.0), _MAX_STEPS)


def _scaled_fraction(n: int, x: Tensor) -> Tensor:
    """``exp(x) * E_n(x)`` for x >= 1, by its continued fraction."""

    def term(i: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        numerator = -i * (i + (n - 1.0))
        return numerator, numerator, x + float(n) + 2.0 * i

    return continued_fraction(term, 1.0 / (x + float(n)), _MAX_STEPS)


def _asymptotic(x: Tensor) -> Tensor:
    """``x exp(-x) Ei(x)`` for x >= 40: terms up to the smallest one, or to float64's last digit."""

    def step(n: Tensor, state: Any) -> Any:
        total, term = state
        new = term * n / x
        keep = (absolute(new) < absolute(term)) & (absolute(new) > EPSILON)
        new = where(keep, new, 0.0)
        return (total + new, new), absolute(new)

    return until_small(step, (x * 0 + 1.0, x * 0 + 1.0), 60)


def _expi(x: Tensor) -> Tensor:
    far, below, above = x >= _ASYMPTOTIC, x < -1.0, ~(x < -1.0) & (x < _ASYMPTOTIC)
    middle = where(above & (x != 0), x, 1.0)
    near = _EULER + log(absolute(middle)) + _entire(middle)
    y = where(below & ~isinf(x), -x, 50.0)
    negative = where(isinf(x), -0.0, -exp(-y) * _scaled_fraction(1, y))
    z = where(far & ~isinf(x), x, 100.0)
    half = exp(0.5 * z)
    positive = where(isinf(x), math.inf, half / z * _asymptotic(z) * half)
    return where(isnan(x), math.nan, where(x == 0, -math.inf, where(far, positive, where(below, negative, near))))


_expi_function = Function(_expi, [lambda x: where(x == 0, -math.inf, exp(x) / where(x == 0, 1.0, x))])


def expi(x: Any) -> Tensor:
    """Exponential integral Ei: the principal value of the integral of ``exp(t) / t`` from minus infinity to ``x``.

    Minus infinity at 0. The result has the shape and float type of ``x``, float32 for integers. Raises DTypeError for complex numbers.

    >>> hg.special.expi([1.0, -1.0])
    Tensor([ 1.8951178 , -0.21938394], dtype=float32)
    """
    return in_float64("expi", _expi_function, x)


def exp1(x: Any) -> Tensor:
    """Exponential integral E1: the integral of ``exp(-t) / t`` from ``x`` to infinity, ``x >= 0``; NaN below 0.

    >>> hg.special.exp1([0.5, 1.0])
    Tensor([0.5597736 , 0.21938394], dtype=float32)
    """
    return in_float64("exp1", lambda x: where(x < 0, math.nan, -_expi_function(-where(x < 0, 1.0, x))), x)


def expn(n: int, x: Any) -> Tensor:
    """Exponential integral E_n: the integral of ``exp(-x t) / t**n`` over t from 1 to infinity, for a known ``n >= 0`` and ``x >= 0``.

    Infinite at 0 for n < 2, NaN below 0. Raises ArgumentError for a negative ``n``.

    >>> hg.special.expn(2, [0.0, 1.0])
    Tensor([1.        , 0.14849551], dtype=float32)
    """
    order = integer(n, "expn", "an order")
    if order < 0:
        raise located(ArgumentError(f"expn takes an order from 0 up, not {order}"))
    return in_float64("expn", _expn(order), x)


def _expn(n: int) -> Function:
    """E_n, whose derivative is -E_{n-1}; that of E_0 = exp(-x)/x is known."""
    if n == 0:
        return Function(_exponential_over, [None])
    return Function(lambda x: _expn_at(n, x), [lambda x: -_expn(n - 1)(x)])


def _exponential_over(x: Tensor) -> Tensor:
    return where(x < 0, math.nan, where(x == 0, math.inf, exp(-x) / where(x == 0, 1.0, x)))


def _expn_at(n: int, x: Tensor) -> Tensor:
    small = (x > 0) & (x <= 1)
    y = where(small, x, 0.5)
    harmonic = math.fsum(1.0 / k for k in range(1, n)) - _EULER
    logarithmic = (-1) ** (n - 1) / math.factorial(n - 1) * y ** (n - 1) * (harmonic - log(y)) if n < 170 else 0.0 * y
    terms = [-((-1) ** k) / (math.factorial(k) * (k - n + 1)) for k in range(22) if k != n - 1]
    powers = [k for k in range(22) if k != n - 1]
    total = sum((c * y**k for k, c in reversed(list(zip(powers, terms, strict=True)))), logarithmic)
    z = where((x > 1) & ~isinf(x), x, 2.0)
    large = where(isinf(x), 0.0, exp(-z) * _scaled_fraction(n, z))
    at_0 = math.inf if n == 1 else 1.0 / (n - 1)
    return where(x == 0, at_0, where(small, total, where(x > 1, large, math.nan)))


def exprel(x: Any) -> Tensor:
    """Relative error exponential: ``(exp(x) - 1) / x``, 1 at 0.

    >>> hg.special.exprel([0.0, 1.0])
    Tensor([1.       , 1.7182819], dtype=float32)
    """
    return in_float64("exprel", _exprel, x)


def _exprel(x: Tensor) -> Tensor:
    """By its series next to 0, so that derivatives hold there, too."""
    near = absolute(x) < 0.25
    y = where(near, x, 0.0)
    total = y * 0 + 1 / math.factorial(15)
    for k in reversed(range(1, 15)):
        total = total * y + 1 / math.factorial(k)
    z = where(near | isinf(x), 1.0, x)
    return where(near, total, where(isinf(x), where(x > 0, math.inf, 0.0), expm1(z) / z))
