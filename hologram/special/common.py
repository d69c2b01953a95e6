"""What the incomplete functions share: logarithms without cancellation, the rest of Stirling's formula, loops until all elements are done."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, reduce
from typing import Any

from hologram.control.loops import while_loop
from hologram.numpy.along_axes.reductions import any as any_of
from hologram.numpy.elementwise.functions import FUNCTIONS, where
from hologram.special.basic import gammaln
from hologram.trace.tensor import Tensor

exp, log, log1p, expm1, sqrt, absolute = (FUNCTIONS[name] for name in ("exp", "log", "log1p", "expm1", "sqrt", "abs"))
isnan, isinf, floor, maximum, minimum = (FUNCTIONS[name] for name in ("isnan", "isinf", "floor", "maximum", "minimum"))

EPSILON = 2.0**-56  # a loop ends when its next term is smaller, relatively: derivatives of the terms are larger, so not at float64's last digit
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def series(x: Tensor, coefficients: Any) -> Tensor:
    """A polynomial, constant term first."""
    return reduce(lambda total, c: total * x + c, list(coefficients)[-2::-1], x * 0 + coefficients[-1])


def until_small(step: Callable[[Any, Any], tuple[Any, Tensor]], start: Any, most: int) -> Tensor:
    """The first element of the :func:`last_state`."""
    return last_state(step, start, most)[0]


def last_state(step: Callable[[Any, Any], tuple[Any, Tensor]], start: Any, most: int) -> tuple[Tensor, ...]:
    """The state, a tuple, after ``state, size = step(n, state)`` for n = 1, 2, …, until every element's ``size`` is below EPSILON; NaN where that
    needs more than ``most`` steps."""

    def go_on(loop: Any) -> Tensor:
        n, _, size = loop
        return any_of(size > EPSILON) & (n <= most)

    def body(loop: Any) -> Any:
        n, state, _ = loop
        return n + 1.0, *step(n, state)

    zero = start[0] * 0
    _, state, size = while_loop(go_on, body, (zero.sum() + 1.0, start, zero + 1.0))
    return tuple(where(size > EPSILON, math.nan, x) for x in state)


def continued_fraction(term: Callable[[Tensor], tuple[Tensor, Tensor, Tensor]], first: Tensor, most: int) -> Tensor:
    """``1 / (d + n1 / (d1 + n2 / (d2 + …)))`` by Steed's method, ``first`` being 1/d and ``term(k)`` the numerator, its size, and the denominator.

    The size is a bound of the numerator that is not 0 where that ends the fraction: derivatives by what makes it 0 go on.
    """

    def step(k: Tensor, state: Any) -> Any:
        total, change, inverse, bound = state
        numerator, size, denominator = term(k)
        new = 1.0 / (denominator + numerator * inverse)
        shrinks = inverse * new
        change, bound = -numerator * shrinks * change, absolute(size * shrinks) * bound
        total = total + change
        return (total, change, new, bound), bound / absolute(total)

    return until_small(step, (first, first, first, absolute(first)), most)


def log1p_rest(t: Tensor) -> Tensor:
    """``(t - log1p(t)) / t**2`` for |t| <= 1/2, all digits right; smooth at 0, where it is 1/2."""
    r = t / (t + 2.0)
    tail = series(r * r, [1 / (2 * k + 3) for k in range(18)])
    return (1.0 - 2.0 * r * tail / (t + 2.0)) / (t + 2.0)


def log_ratio_less(ratio: Tensor, t: Tensor) -> Tensor:
    """``log(ratio) - t`` where ``ratio = 1 + t``, without cancellation: all digits of ``t`` count near 0, all of ``ratio`` elsewhere."""
    near = absolute(t) < 0.5
    small = where(near, t, 0.0)
    return where(near, -small * small * log1p_rest(small), log(where(near, 1.0, ratio)) - t)


def log_complement(t: Tensor) -> Tensor:
    """``log(1 - exp(t))`` for t <= 0, all digits right."""
    near = t > -0.6931471805599453
    return where(near, log(-expm1(where(near, t, -0.5))), log1p(-exp(where(near, -1.0, t))))


def log_beta(a: Tensor, b: Tensor) -> Tensor:
    """``log(beta(a, b))`` of positive numbers, without the cancellation of logarithms of gamma functions."""
    high, low = maximum(a, b), minimum(a, b)
    n = a + b
    small = low * log(low / n) + high * log1p(-low / n)
    return small + 0.5 * log(2 * math.pi * (n / high) / low) + stirling_rest(a) + stirling_rest(b) - stirling_rest(n)


def stirling_rest(a: Tensor) -> Tensor:
    """``log(gamma(a))`` less Stirling's ``(a - 1/2) log(a) - a + log(2*pi) / 2``, a > 0."""
    far = a >= 10.0
    inverse = 1.0 / where(far, a, 10.0)
    near = where(far, 1.0, a)
    direct = gammaln(near) - (near - 0.5) * log(near) + near - 0.5 * math.log(2 * math.pi)
    return where(far, inverse * series(inverse * inverse, _STIRLING), direct)


@cache
def _zeta_less_one(k: int) -> float:
    """The sum of ``j**-k`` over j >= 2."""
    n = 60
    rest = n ** (1 - k) / (k - 1) + 0.5 * n**-k + k * n ** (-k - 1) / 12 - k * (k + 1) * (k + 2) * n ** (-k - 3) / 720
    rest += k * (k + 1) * (k + 2) * (k + 3) * (k + 4) * n ** (-k - 5) / 30240
    return math.fsum([*(float(j) ** -k for j in range(2, n)), rest])


def gammaln1p(a: Tensor) -> Tensor:
    """``log(gamma(1 + a))`` for a >= 0, all digits right next to 0."""
    near = a < 0.5
    small = where(near, a, 0.0)
    tail = series(-small, [0.0, 0.0, *(_zeta_less_one(k) / k for k in range(2, 30))])
    return where(near, small * (1 - 0.5772156649015328606) - log1p(small) + tail, gammaln(where(near, 1.0, a) + 1.0))
