"""Inverses of the regularized incomplete beta function, and quantiles of distributions that are made of it.

Halley's method for the logarithm of the smaller one of I and its complement as a function of ``u = log(x / (1 - x))``, in which both are concave. It
starts from the power of x that I is near 0, which is below the solution, or from the normal approximation of Abramowitz and Stegun (26.5.22).
``x`` and ``1 - x`` go side by side, so that both have all their digits. The derivative by the probability is one over the density; those by the
parameters are that of the implicit function.
"""

from __future__ import annotations

import math
from typing import Any

from hologram.numpy.elementwise.functions import where
from hologram.special.basic import ndtri
from hologram.special.common import absolute, exp, isinf, last_state, log, log1p, log_beta, maximum, minimum, sqrt
from hologram.special.elementwise import Function, in_float64
from hologram.special.incomplete_beta import NORMAL_FROM, density, lower_beta, lower_with_rate, student, student_density
from hologram.trace.tensor import Tensor

__all__ = ["betainccinv", "betaincinv", "fdtri", "stdtrit"]

_MAX_STEPS = 100
_FAR = -660.0  # of u: from here on x is the power alone, and about to underflow
_LEAST = 1e-300  # of 1 - x


def _start(a: Tensor, b: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
    """A first guess of ``u``; the ``u`` at which ``x**a / (a beta(a, b))``, which is never below I, is ``p``."""
    power = (log(p) + log(a) + log_beta(a, b)) / a
    wide = (a > 1.0) & (b > 1.0)
    m, n = 1.0 / (2.0 * where(wide, a, 2.0) - 1.0), 1.0 / (2.0 * where(wide, b, 2.0) - 1.0)
    h, z = 2.0 / (m + n), -ndtri(p)
    bend = (z * z - 3.0) / 6.0
    w = z * sqrt(maximum(h + bend, 0.0)) / h - (n - m) * (bend + 5.0 / 6.0 - 2.0 / (3.0 * h))
    return where(wide, maximum(power, log(a / b) - 2.0 * w), power), power


def _lower_solution(a: Tensor, b: Tensor, p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """``x``, ``1 - x`` and ``log(x)`` where I is ``p``, at most 1/2."""
    start, power = _start(a, b, p)
    far = power < _FAR

    def step(_: Tensor, state: Any) -> Any:
        x, y = state
        found, log_found, rate = lower_with_rate(a, b, x, y)
        error = (found - p) / p
        near = absolute(error) < 0.5
        excess = where(near, log1p(where(near, error, 0.0)), log_found - log(p))
        newton = -excess / rate
        bend = a * y - b * x - rate
        change = newton / maximum(1.0 + 0.5 * newton * bend, 0.5)
        done = (absolute(change) * (1.0 + absolute(bend)) < 1e-6) | (absolute(excess) < 1e-15) | far | ((y <= _LEAST) & (change > 0))
        change = where(far, 0.0, maximum(minimum(change, 600.0), -30.0))
        up, down = exp(-maximum(change, 0.0)), exp(minimum(change, 0.0))
        whole = x * down + y * up
        return (x * down / whole, maximum(y * up / whole, _LEAST)), where(done, x * 0, 1.0)

    x, y = last_state(step, (1.0 / (1.0 + exp(-start)), maximum(1.0 / (1.0 + exp(start)), _LEAST)), _MAX_STEPS)
    return where(far, exp(power), x), y, where(far, power, log(where(far, 1.0, x)))


def _solution(a: Tensor, b: Tensor, p: Tensor, q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """``x``, ``1 - x`` and ``log(x)`` where I is ``p`` and its complement ``q``, of which the smaller one counts. An infinite parameter puts
    everything at one end."""
    inside = (a > 0) & (b > 0) & (p > 0) & (q > 0) & ~isinf(a) & ~isinf(b)
    swap = inside & (q < p)
    a_, b_ = where(inside, a, 1.0), where(inside, b, 1.0)
    x, y, log_x = _lower_solution(where(swap, b_, a_), where(swap, a_, b_), where(inside, minimum(p, q), 0.5))
    valid = (a > 0) & (b > 0) & (p >= 0) & (q >= 0) & ~(isinf(a) & isinf(b))
    low, high = valid & ((p == 0) | (isinf(b) & (q > 0))), valid & ((q == 0) | (isinf(a) & (p > 0)))

    def with_edges(found: Tensor, at_0: float, at_1: float) -> Tensor:
        return where(inside, found, where(low, at_0, where(high, at_1, math.nan)))

    log_x = where(swap, log(where(swap, y, 1.0)), log_x)
    return with_edges(where(swap, y, x), 0.0, 1.0), with_edges(where(swap, x, y), 1.0, 0.0), with_edges(log_x, -math.inf, 0.0)


# --- x and 1 - x as functions of a probability -----------------------------------------------------------------------


def _side(upper: bool, rest: bool) -> Function:
    """The ``x``, or for ``rest`` 1 - x, whose I, or for ``upper`` whose complement, is given."""

    def shares(p: Tensor) -> tuple[Tensor, Tensor]:
        return (1.0 - p, p) if upper else (p, 1.0 - p)

    def both(a: Tensor, b: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        return _inverses[upper, False](a, b, p), _inverses[upper, True](a, b, p)

    def by_parameter(i: int, a: Tensor, b: Tensor, p: Tensor) -> Tensor:
        x, y = both(a, b, p)
        return (1.0 if rest else -1.0) * lower_beta.slope(i)(a, b, x, y) / density(a, b, x, y)

    def by_probability(a: Tensor, b: Tensor, p: Tensor) -> Tensor:
        return (1.0 if rest == upper else -1.0) / density(a, b, *both(a, b, p))

    slopes = [lambda *args: by_parameter(0, *args), lambda *args: by_parameter(1, *args), by_probability]
    return Function(lambda a, b, p: _solution(a, b, *shares(p))[rest], slopes)


_inverses = {(upper, rest): _side(upper, rest) for upper in (False, True) for rest in (False, True)}


def betaincinv(a: Any, b: Any, y: Any) -> Tensor:
    """Inverse of :func:`betainc`: the ``x`` with ``betainc(a, b, x) == y``, the quantile of the beta distribution of parameters ``a`` and ``b``.

    The arguments broadcast; all have derivatives. NaN for ``y`` beyond 0 and 1 and where ``a`` or ``b`` is not positive. Raises DTypeError for
    complex numbers.

    >>> hg.special.betaincinv(2.0, 3.0, [0.26171875, 0.6875])
    Tensor([0.25, 0.5 ], dtype=float32)
    """
    return in_float64("betaincinv", _inverses[False, False], a, b, y)


def betainccinv(a: Any, b: Any, y: Any) -> Tensor:
    """Inverse of :func:`betaincc`: the ``x`` with ``betaincc(a, b, x) == y``, accurate for small ``y``; see :func:`betaincinv`.

    >>> hg.special.betainccinv(2.0, 3.0, [0.73828125, 1e-6])
    Tensor([0.25     , 0.9936885], dtype=float32)
    """
    return in_float64("betainccinv", _inverses[True, False], a, b, y)


def fdtri(dfn: Any, dfd: Any, p: Any) -> Tensor:
    """Inverse of :func:`fdtr`: the ``x`` that the F distribution of ``dfn`` and ``dfd`` degrees of freedom does not exceed with probability ``p``.

    >>> hg.special.fdtri(2.0, 4.0, [0.5, 0.95])
    Tensor([0.8284271, 6.944272 ], dtype=float32)
    """
    return in_float64("fdtri", lambda m, n, p: _ratio(False, m, n, p), dfn, dfd, p)


def fdtrci(dfn: Any, dfd: Any, p: Any) -> Tensor:
    """Inverse of :func:`fdtrc`, accurate for small ``p``."""
    return in_float64("fdtrci", lambda m, n, p: _ratio(True, m, n, p), dfn, dfd, p)


def _ratio(upper: bool, m: Tensor, n: Tensor, p: Tensor) -> Tensor:
    x, rest = (_inverses[upper, i](0.5 * m, 0.5 * n, p) for i in (False, True))
    return n / m * (x / rest)


# --- Student's t distribution ----------------------------------------------------------------------------------------


def _student_quantile(df: Tensor, p: Tensor) -> Tensor:
    """From the share of ``df`` in ``df + t**2``, which is that outside of -t and t."""
    normal = df > NORMAL_FROM
    n = where((df > 0) & ~normal, df, 1.0)
    x, y, log_x = _solution(0.5 * n, n * 0 + 0.5, 2.0 * minimum(p, 1.0 - p), 2.0 * absolute(p - 0.5))
    root = where(x > _LEAST, sqrt(y / where(x > _LEAST, x, 1.0)), exp(-0.5 * log_x))
    found = where(normal, _from_normal(df, ndtri(p)), where(p < 0.5, -1.0, 1.0) * sqrt(n) * root)
    return where((df > 0) & (p >= 0) & (p <= 1), found, math.nan)


def _from_normal(df: Tensor, z: Tensor) -> Tensor:
    """The quantile for many degrees of freedom, from that of the normal distribution (Abramowitz & Stegun 26.7.8)."""
    inverse = 1.0 / where(df > NORMAL_FROM, df, NORMAL_FROM)
    finite = where(isinf(z), 0.0, z)
    scale = 1.0 - 0.25 * inverse
    return where(isinf(z), z, finite / sqrt(scale * scale - 0.5 * finite * finite * inverse))


_student: Function = Function(student, [None, student_density])
_quantile: Function = Function(
    _student_quantile,
    [
        lambda df, p: -_student.slope(0)(df, _quantile(df, p)) / student_density(df, _quantile(df, p)),
        lambda df, p: 1.0 / student_density(df, _quantile(df, p)),
    ],
)


def stdtrit(df: Any, p: Any) -> Tensor:
    """Inverse of :func:`stdtr`: the ``t`` that Student's t distribution of ``df`` degrees of freedom does not exceed with probability ``p``.

    Both arguments have derivatives. NaN for ``p`` beyond 0 and 1, and where ``df`` is not positive.

    >>> hg.special.stdtrit(3.0, [0.1955011, 0.5, 0.975])
    Tensor([-0.9999999,  0.       ,  3.182446 ], dtype=float32)
    """
    return in_float64("stdtrit", _quantile, df, p)
