"""Short compositions under SciPy's names: power transformations, losses, trigonometry in degrees, and elementwise functions that NumPy has too."""

from __future__ import annotations

import math
from typing import Any

from hologram.numpy.elementwise.functions import FUNCTIONS, sinc, where
from hologram.special.common import absolute, exp, expm1, isnan, log, log1p, sqrt
from hologram.special.elementwise import in_float64
from hologram.special.exponential_integrals import _exprel
from hologram.trace.tensor import Tensor

__all__ = [
    "boxcox", "boxcox1p", "cbrt", "cosm1", "exp10", "exp2", "expm1", "huber", "inv_boxcox", "inv_boxcox1p", "log1p", "log_expit", "pseudo_huber",
    "sinc",
]  # fmt: skip

cbrt, exp2 = FUNCTIONS["cbrt"], FUNCTIONS["exp2"]


def exp10(x: Any) -> Tensor:
    """``10 ** x``.

    >>> hg.special.exp10([0.0, 2.0])
    Tensor([  1., 100.], dtype=float32)
    """
    return in_float64("exp10", lambda x: 10.0**x, x)


def cosm1(x: Any) -> Tensor:
    """``cos(x) - 1``, accurate next to 0.

    >>> hg.special.cosm1([0.0, 1e-4])
    Tensor([-0.0000000e+00, -4.9999995e-09], dtype=float32)
    """
    return in_float64("cosm1", lambda x: -2.0 * FUNCTIONS["sin"](0.5 * x) ** 2, x)


def boxcox(x: Any, lmbda: Any) -> Tensor:
    """Box-Cox transformation: ``(x**lmbda - 1) / lmbda``, ``log(x)`` for 0; the arguments broadcast, and both have derivatives.

    >>> hg.special.boxcox([1.0, 4.0], 0.5)
    Tensor([0., 2.], dtype=float32)
    """
    return in_float64("boxcox", lambda x, k: _scaled_power(log(x), k), x, lmbda)


def boxcox1p(x: Any, lmbda: Any) -> Tensor:
    """Box-Cox transformation of ``1 + x``, accurate next to 0.

    >>> hg.special.boxcox1p([0.0, 3.0], 0.5)
    Tensor([0., 2.], dtype=float32)
    """
    return in_float64("boxcox1p", lambda x, k: _scaled_power(log1p(x), k), x, lmbda)


def _scaled_power(logarithm: Tensor, k: Tensor) -> Tensor:
    """``(exp(k l) - 1) / k``."""
    ends = FUNCTIONS["isinf"](logarithm)
    inner = where(ends, 0.0, logarithm)
    limit = where(logarithm > 0, where(k < 0, -1.0 / where(k == 0, 1.0, k), math.inf), where(k > 0, -1.0 / where(k == 0, 1.0, k), -math.inf))
    return where(ends, limit, inner * _exprel(k * inner))


def inv_boxcox(y: Any, lmbda: Any) -> Tensor:
    """Inverse of :func:`boxcox`: ``(1 + lmbda * y) ** (1 / lmbda)``, ``exp(y)`` for 0.

    >>> hg.special.inv_boxcox([0.0, 2.0], 0.5)
    Tensor([1., 4.], dtype=float32)
    """
    return in_float64("inv_boxcox", lambda y, k: exp(_inner_logarithm(y, k)), y, lmbda)


def inv_boxcox1p(y: Any, lmbda: Any) -> Tensor:
    """Inverse of :func:`boxcox1p`.

    >>> hg.special.inv_boxcox1p([0.0, 2.0], 0.5)
    Tensor([0., 3.], dtype=float32)
    """
    return in_float64("inv_boxcox1p", lambda y, k: expm1(_inner_logarithm(y, k)), y, lmbda)


def _inner_logarithm(y: Tensor, k: Tensor) -> Tensor:
    """``log(1 + k y) / k``."""
    zero = k == 0
    product = k * y
    beyond = (product == math.inf) & ~FUNCTIONS["isinf"](k) & ~FUNCTIONS["isinf"](y)
    logarithm = where(beyond, log(absolute(where(zero, 1.0, k))) + log(absolute(where(y == 0, 1.0, y))), log1p(where(beyond, 0.0, product)))
    return where(zero, y, logarithm / where(zero, 1.0, k))


def huber(delta: Any, r: Any) -> Tensor:
    """Huber loss: ``r**2 / 2`` up to ``|r| = delta``, from there on a line; infinite for a negative ``delta``.

    >>> hg.special.huber(1.0, [0.5, 3.0])
    Tensor([0.125, 2.5  ], dtype=float32)
    """

    def loss(d: Tensor, r: Tensor) -> Tensor:
        inner = absolute(r) <= d
        return where(d < 0, math.inf, where(inner, 0.5 * r * r, d * (absolute(r) - 0.5 * d)))

    return in_float64("huber", loss, delta, r)


def pseudo_huber(delta: Any, r: Any) -> Tensor:
    """Smooth Huber loss: ``delta**2 * (sqrt(1 + (r/delta)**2) - 1)``, without cancellation for small ``r``; infinite for a negative ``delta``.

    >>> hg.special.pseudo_huber(1.0, [0.0, 3.0])
    Tensor([0.       , 2.1622777], dtype=float32)
    """

    def loss(d: Tensor, r: Tensor) -> Tensor:
        none = d <= 0
        size = absolute(r)
        far = size > 1e8 * d
        v = where(far, 1.0, r) / where(none, 1.0, d)
        return where(d < 0, math.inf, where((d == 0) & ~isnan(r), 0.0, where(far, (size - d) * d, r * v / (sqrt(1.0 + v * v) + 1.0) * d)))

    return in_float64("pseudo_huber", loss, delta, r)


def log_expit(x: Any) -> Tensor:
    """Logarithm of the logistic function, without overflow.

    >>> hg.special.log_expit([0.0, -1000.0])
    Tensor([-6.931472e-01, -1.000000e+03], dtype=float32)
    """
    return in_float64("log_expit", lambda x: where(x < 0, x - log1p(exp(where(x < 0, x, 0.0))), -log1p(exp(-where(x < 0, 0.0, x)))), x)
