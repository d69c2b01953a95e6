"""Inverses of the regularized incomplete gamma functions.

Halley's method for the logarithm of the smaller one of P and Q as a function of ``log(x)``, in which both are concave: it converges from any start.
Starts
are those of DiDonato and Morris, "Computation of the incomplete gamma function ratios and their inverse", ACM TOMS 12 (1986), and of Wilson and
Hilferty. The derivative by the probability is one over the density; that by ``a`` is that of the implicit function.
"""

from __future__ import annotations

import math
from typing import Any

from hologram.numpy.elementwise.functions import where
from hologram.special.basic import gammaln, ndtri
from hologram.special.common import absolute, exp, gammaln1p, isinf, isnan, log, log1p, maximum, minimum, sqrt, until_small
from hologram.special.elementwise import Function, in_float64
from hologram.special.incomplete_gamma import both, density, lower_gamma
from hologram.trace.tensor import Tensor

__all__ = ["chdtri", "gammainccinv", "gammaincinv"]

_MAX_STEPS = 100


def _start(a: Tensor, p: Tensor, q: Tensor) -> Tensor:
    """A first guess of ``x``, where ``p + q = 1`` and the smaller one has all its digits."""
    low = p < q
    log_p = where(low, log(where(low, p, 0.5)), log1p(-where(low, 0.5, q)))
    power = exp(maximum((log_p + gammaln1p(a)) / a, -1000.0))  # P is at most x**a / gamma(a + 1)
    z = ndtri(minimum(p, q)) * where(low, 1.0, -1.0)
    root = 1.0 - 1.0 / (9.0 * a) + z / (3.0 * sqrt(a))
    bell = a * root * root * root
    log_tail = -log(q) - gammaln(a)  # Q is about x**(a - 1) * exp(-x) / gamma(a)
    tail = where(a < 1.0, log_tail, bell)
    for _ in range(3):
        tail = log_tail + (a - 1.0) * log(maximum(tail, 0.3))
    small = where(a < 1.0, log_tail < 0.8, root < 0.4)
    far = (a < 1.0) | (bell > 3.0 * a)
    return where(small, power, where(far, maximum(tail, 0.3), bell))


def _inverse(a: Tensor, p: Tensor, q: Tensor) -> Tensor:
    """Where P is ``p`` and Q is ``q``, of which the smaller one counts: Halley's method for its logarithm by that of ``x``."""
    low = p < q
    share = where(low, p, q)

    def step(_: Tensor, state: Any) -> Any:
        x = state[0]
        found = where(low, *both(a, x))
        error = (found - share) / share
        near = absolute(error) < 0.5
        excess = where(near, log1p(where(near, error, 0.0)), log(where(near, share, found)) - log(share))
        rate = x * density(a, x) / maximum(found, 1e-320)  # of the logarithm, without its sign
        sign = where(low, 1.0, -1.0)
        newton = sign * excess / rate
        bend = a - x - where(low, rate, -rate)
        change = newton / maximum(1.0 - 0.5 * newton * bend, 0.5)
        change = where(found == 0, -0.1 * sign, maximum(minimum(change, 1.0), -1.0))  # so far out that it underflows
        done = (absolute(change) * (1.0 + absolute(bend)) < 1e-6) | (absolute(excess) < 1e-15)
        settled = (x < 1e-300) | (a > 1e35)  # there the start is exact: nothing but a power, and nothing but ``a``
        return (where(settled, x, x * exp(-change)),), where(done | settled, x * 0, 1.0)

    return until_small(step, (_start(a, p, q),), _MAX_STEPS)


def _solution(a: Tensor, p: Tensor, q: Tensor) -> Tensor:
    inside = (a > 0) & (p > 0) & (q > 0) & ~isinf(a)
    x = _inverse(where(inside, a, 1.0), where(inside, p, 0.5), where(inside, q, 0.5))
    wrong = isnan(a) | isnan(p) | (a < 0) | (p < 0) | (q < 0)
    edge = where(p == 0, 0.0, where((q == 0), math.inf, math.nan))
    return where(inside, x, where(wrong, math.nan, edge))


def _by_parameter(a: Tensor, x: Tensor) -> Tensor:
    """Derivative by ``a`` of the ``x`` whose P is given."""
    return -lower_gamma.slope(0)(a, x) / density(a, x)


_lower_inverse: Function = Function(
    lambda a, p: _solution(a, p, 1.0 - p),
    [lambda a, p: _by_parameter(a, _lower_inverse(a, p)), lambda a, p: 1.0 / density(a, _lower_inverse(a, p))],
)
_upper_inverse: Function = Function(
    lambda a, q: _solution(a, 1.0 - q, q),
    [lambda a, q: _by_parameter(a, _upper_inverse(a, q)), lambda a, q: -1.0 / density(a, _upper_inverse(a, q))],
)


def gammaincinv(a: Any, y: Any) -> Tensor:
    """Inverse of :func:`gammainc`: the ``x`` with ``gammainc(a, x) == y``, the quantile of the gamma distribution of shape ``a``.

    The arguments broadcast; both have derivatives. NaN for ``y`` beyond 0 and 1 and for negative ``a``. Raises DTypeError for complex numbers.

    >>> hg.special.gammaincinv([0.5, 2.0], 0.75)
    Tensor([0.6616523, 2.6926346], dtype=float32)
    """
    return in_float64("gammaincinv", _lower_inverse, a, y)


def gammainccinv(a: Any, y: Any) -> Tensor:
    """Inverse of :func:`gammaincc`: the ``x`` with ``gammaincc(a, x) == y``, accurate for small ``y``; see :func:`gammaincinv`.

    >>> hg.special.gammainccinv([0.5, 2.0], 1e-20)
    Tensor([43.580868, 49.983196], dtype=float32)
    """
    return in_float64("gammainccinv", _upper_inverse, a, y)


def chdtri(v: Any, p: Any) -> Tensor:
    """Inverse of :func:`chdtrc`: the ``x`` that the chi-squared distribution of ``v`` degrees of freedom exceeds with probability ``p``.

    >>> hg.special.chdtri(2.0, [0.5, 0.05])
    Tensor([1.3862944, 5.9914646], dtype=float32)
    """
    return in_float64("chdtri", lambda v, p: 2.0 * _upper_inverse(0.5 * v, p), v, p)
