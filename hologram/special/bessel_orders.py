"""Bessel functions of the first kind of all whole orders up to one."""

from __future__ import annotations

from typing import Any

import hologram.numpy as hnp
from hologram.errors import ArgumentError
from hologram.numpy.elementwise.functions import where
from hologram.special.bessel import j0, j1
from hologram.special.common import absolute
from hologram.special.elementwise import Function, in_float64
from hologram.support.user_lines import located
from hologram.trace.checks import integer
from hologram.trace.tensor import Tensor

__all__ = ["bessel_jn"]

_BEYOND = 50  # orders above the last, where the recurrence for quotients of neighbours begins


def bessel_jn(z: Any, *, v: int, n_iter: int = _BEYOND) -> Tensor:
    """Bessel functions of the first kind of the orders 0 to ``v``: an array (v + 1, …) of the float type of ``z``.

    Orders below ``abs(z)`` come from those before, the others from the quotients of neighbours, which are computed from ``n_iter`` orders (at least
    50) above the last one down. Raises ArgumentError for a negative ``v``, DTypeError for complex numbers.

    >>> hg.special.bessel_jn(1.5, v=2)
    Tensor([0.5118277 , 0.5579365 , 0.23208766], dtype=float32)
    """
    last, more = integer(v, "bessel_jn", "v"), max(_BEYOND, integer(n_iter, "bessel_jn", "n_iter"))
    if last < 0:
        raise located(ArgumentError(f"bessel_jn takes an order v from 0 up, not {last}"))
    return hnp.stack([in_float64("bessel_jn", _order(n, more), z) for n in range(last + 1)])


def _order(n: int, more: int) -> Any:
    if n < 2:
        return (j0, j1)[n]
    slope = lambda z: 0.5 * (_order(n - 1, more)(z) - _order(n + 1, more)(z))  # noqa: E731
    return Function(lambda z: _value(n, more, z), [slope])


def _value(n: int, more: int, z: Tensor) -> Tensor:
    """By ``J_{k+1} = 2k/z J_k - J_{k-1}`` up to k = abs(z), which is stable there, and by quotients from then on."""
    quotients: dict[int, Tensor] = {}
    small = absolute(z) <= n
    inner = where(small, z, 0.0)
    quotient = z * 0
    for k in range(n + more, 1, -1):
        quotient = inner / (2.0 * k - inner * quotient)
        quotients[k] = quotient
    before, value = j0(z), j1(z)
    divisor = where(z == 0, 1.0, z)
    for k in range(2, n + 1):
        upwards = (2.0 * (k - 1)) / divisor * value - before
        before, value = value, where(k > absolute(z), value * quotients[k], upwards)
    return value
