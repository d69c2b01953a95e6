"""Hypergeometric functions of real arguments: Kummer's (confluent) and Gauss's.

Both are power series where these converge fast and cancel little. Kummer's is continued by its asymptotic series, Gauss's by Taylor series of its
differential equation around points ever nearer to its singularity, which needs no case for parameters that differ by integers.
"""

from __future__ import annotations

import math
from typing import Any

from hologram.control.loops import while_loop
from hologram.numpy.along_axes.reductions import any as any_of
from hologram.numpy.elementwise.functions import FUNCTIONS, where
from hologram.special.common import EPSILON, absolute, exp, isinf, isnan, log, log1p, maximum, minimum, until_small
from hologram.special.elementwise import Function, in_float64
from hologram.special.gamma_functions import rgamma
from hologram.trace.tensor import Tensor

__all__ = ["hyp1f1", "hyp2f1"]

floor = FUNCTIONS["floor"]
_MAX_TERMS = 5000
_MAX_PARTS = 1100  # steps towards the singularity, each of which halves the distance


def _ends(a: Tensor) -> Tensor:
    """Whether a series with the parameter ``a`` above ends: it is 0, -1, -2, …"""
    return (a <= 0) & (floor(a) == a)


def _sum(ratio: Any, like: Tensor) -> Tensor:
    """The sum of a series that begins with 1, from the quotient of term n and the one before it. It goes on past terms that happen to be 0."""

    def step(n: Tensor, state: Any) -> Any:
        total, term = state
        by = ratio(n)
        term = term * by
        size = where(absolute(by) < 0.9, absolute(term), where(term == 0, 0.0, math.inf))
        return (total + term, term), size / maximum(absolute(total), 1e-300)

    return until_small(step, (like * 0 + 1.0, like * 0 + 1.0), _MAX_TERMS)


# --- Kummer's -------------------------------------------------------------------------------------------------------------


def _asymptotic(p: Tensor, q: Tensor, x: Tensor) -> Tensor:
    """The sum of ``(p)_n (q)_n / n! / x**n``, down to its smallest term."""

    def step(n: Tensor, state: Any) -> Any:
        total, term = state
        new = term * (p + (n - 1.0)) * (q + (n - 1.0)) / (n * x)
        new = where((absolute(new) < absolute(term)) | (n < absolute(p) + absolute(q)), new, 0.0)
        return (total + new, new), absolute(new) / absolute(total)

    return until_small(step, (x * 0 + 1.0, x * 0 + 1.0), 400)


def _kummer(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """By Kummer's transformation ``exp(x) M(b - a, b, -x)`` below 0, but for polynomials."""
    wrong = _ends(b) | isnan(a) | isnan(b) | isnan(x) | isinf(x)
    x, b = where(wrong, 1.0, x), where(wrong, 1.0, b)
    turned = (x < 0) & ~_ends(a)
    p, z = where(turned, b - a, a), where(turned, -x, x)
    far = (z > 60.0 + 0.6 * (absolute(a) + absolute(b)) ** 2) & ~_ends(p)
    c, y = where(far, 0.5, p), where(far, 1.0, z)
    near = _sum(lambda n: (c + (n - 1.0)) * y / ((b + (n - 1.0)) * n), y) * exp(where(turned, -y, 0.0))
    w = where(far, z, 100.0)
    scale = rgamma(where(far, p, 1.0)) / rgamma(b)
    beyond = scale * exp(where(turned, 0.0, w) + (p - b) * log(w)) * _asymptotic(where(far, b - p, 0.0), where(far, 1.0 - p, 0.0), w)
    return where(wrong, math.nan, where(far, beyond, near))


_kummer_function: Function = Function(_kummer, [None, None, lambda a, b, x: a / b * _kummer_function(a + 1.0, b + 1.0, x)])


def hyp1f1(a: Any, b: Any, x: Any) -> Tensor:
    """Confluent hypergeometric function 1F1, Kummer's: the sum of ``(a)_n / (b)_n x**n / n!``; NaN where ``b`` is 0 or a negative integer.

    The result has the arguments' common shape and float type, float32 for integers. Raises DTypeError for complex numbers.

    >>> hg.special.hyp1f1(1.0, 2.0, [0.0, 1.0])
    Tensor([1.       , 1.7182819], dtype=float32)
    """
    return in_float64("hyp1f1", _kummer_function, a, b, x)


# --- Gauss's --------------------------------------------------------------------------------------------------------------


def _gauss_series(a: Tensor, b: Tensor, c: Tensor, z: Tensor) -> Tensor:
    return _sum(lambda n: (a + (n - 1.0)) * (b + (n - 1.0)) / ((c + (n - 1.0)) * n) * z, z)


def _moved(a: Tensor, b: Tensor, c: Tensor, w: Tensor, value: Tensor, slope: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """The function of ``w = 1 - z`` and its derivative by w at ``w + t``, from those at ``w``: a Taylor series."""
    s, lower = a + b + 1.0, a + b + 1.0 - c
    quotient = t / (w * (1.0 - w))

    def step(n: Tensor, state: Any) -> Any:
        total, gradient, before, term = state  # the latter two are terms n - 1 and n
        k = n - 1.0
        bent = ((k + a) * (k + b) * before * t - n * (k * (1.0 - 2.0 * w) + lower - s * w) * term) * quotient / ((n + 1.0) * n)
        change = bent * (n + 1.0)
        return (total + bent, gradient + change, term, bent), (absolute(change) + absolute(term)) / maximum(absolute(total), 1e-300)

    moved = where(t == 0, 1.0, t)
    first = slope * t
    total, gradient = _both_until_small(step, (value + first, first, value, first))
    return total, where(t == 0, slope, gradient / moved)


def _both_until_small(step: Any, start: Any) -> tuple[Tensor, Tensor]:
    def go_on(loop: Any) -> Tensor:
        return any_of(loop[2] > EPSILON) & (loop[0] <= _MAX_TERMS)

    def body(loop: Any) -> Any:
        return loop[0] + 1.0, *step(loop[0], loop[1])

    zero = start[0] * 0
    _, state, _ = while_loop(go_on, body, (zero.sum() + 1.0, start, zero + 1.0))
    return state[0], state[1]


def _towards_1(a: Tensor, b: Tensor, c: Tensor, w: Tensor) -> Tensor:
    """At ``z = 1 - w`` for 0 < w <= 1/2 and c > a + b: from z = 1/2 on, each step halves w."""
    half = w * 0 + 0.5
    start = _gauss_series(a, b, c, half), -a * b / c * _gauss_series(a + 1.0, b + 1.0, c + 1.0, half)

    def go_on(loop: Any) -> Tensor:
        return any_of(loop[1] > w) & (loop[0] < _MAX_PARTS)

    def body(loop: Any) -> Any:
        count, at, value, slope = loop
        following = maximum(w, 0.5 * at)
        return count + 1.0, following, *_moved(a, b, c, at, value, slope, following - at)

    found: Tensor = while_loop(go_on, body, (half.sum() * 0, half, *start))[2]
    return found


def _at_1(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Gauss's theorem."""
    return rgamma(c - a) * rgamma(c - b) / (rgamma(c) * rgamma(c - a - b))


def _gauss(a: Tensor, b: Tensor, c: Tensor, x: Tensor) -> Tensor:
    """Polynomials term by term; else Pfaff's transformation below 0, and Euler's where the function is infinite at 1."""
    polynomial = _ends(a) | _ends(b)
    wrong = isnan(a) | isnan(b) | isnan(c) | isnan(x) | isinf(x) | (_ends(c) | (x > 1)) & ~polynomial
    wrong = wrong | _ends(c) & (maximum(where(_ends(a), a, -math.inf), where(_ends(b), b, -math.inf)) <= c)
    p, q = minimum(a, b), maximum(a, b)
    c, x = where(wrong, 1.0, c), where(wrong, 0.0, x)
    direct = _gauss_series(a, b, c, where(polynomial, x, 0.0))
    below, y = x < 0, where(polynomial, 0.0, x)
    safe = where(y < 1, y, 0.0)
    z, w = where(below, safe / (safe - 1.0), y), where(below, 1.0 / (1.0 - safe), 1.0 - y)
    factor = where(below, -p * log1p(-safe), 0.0)
    q = where(below, c - q, q)
    growth = c - p - q
    vanishing = (_ends(c - p) | _ends(c - q)) & (growth > 0)  # at 1, like the power: what Euler's leaves is a polynomial
    turned = vanishing | (growth < 0)
    factor = where(turned & (w > 0), factor + growth * log(where(w > 0, w, 1.0)), factor)
    p, q = where(turned, c - p, p), where(turned, c - q, q)
    near = (w >= 0.5) | vanishing
    inner = _gauss_series(p, q, c, where(near, z, 0.0))
    outer = _towards_1(where(near, 1.0, p), where(near, 1.0, q), where(near, 3.0, c), where(near | (w <= 0), 0.5, w))
    at_1 = where(growth > 0, _at_1(p, q, where(growth > 0, c, p + q + 1.0)), math.inf)
    value = where(w <= 0, at_1, exp(factor) * where(near, inner, outer))
    return where(wrong, math.nan, where(polynomial, direct, value))


_gauss_function: Function = Function(_gauss, [None, None, None, lambda a, b, c, x: a * b / c * _gauss_function(a + 1.0, b + 1.0, c + 1.0, x)])


def hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Tensor:
    """Gauss's hypergeometric function 2F1: the sum of ``(a)_n (b)_n / (c)_n x**n / n!``, and what continues it below -1.

    NaN above 1 but for polynomials (``a`` or ``b`` 0 or a negative integer), and where ``c`` is 0 or a negative integer at which terms divide by 0.
    The result has the arguments' common shape and float type, float32 for integers. Raises DTypeError for complex numbers.

    >>> hg.special.hyp2f1(1.0, 1.0, 2.0, [-1.0, 0.5])
    Tensor([0.6931472, 1.3862944], dtype=float32)
    """
    return in_float64("hyp2f1", _gauss_function, a, b, c, x)
