"""Polynomials as vectors of coefficients, the highest power first."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, ShapeError
from hologram.numpy.analysis.calculus import convolve
from hologram.numpy.arguments import array, array_as, wrap
from hologram.numpy.arrangement.padding import pad
from hologram.numpy.creation import full, zeros
from hologram.numpy.shaping.joining import concat
from hologram.support.user_lines import located
from hologram.trace.checks import integer
from hologram.trace.convert import tensor
from hologram.trace.operators import promoted
from hologram.trace.tensor import Tensor

__all__ = ["poly", "polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub", "roots"]


def _coefficients(what: str, *args: Any, inexact: bool = False) -> list[Tensor]:
    arrays = [wrap(array(x, what)) if isinstance(x, (tuple, list)) else x for x in args]
    nodes, _, _ = promoted(what, arrays, dtypes.to_inexact if inexact else None)
    if any(len(n.shape) > 1 for n in nodes):
        raise located(ShapeError(f"{what} takes coefficients along one axis, not of shapes {' and '.join(str(list(n.shape)) for n in nodes)}"))
    return [wrap(n).reshape(-1) for n in nodes]


def _aligned(what: str, p: Any, q: Any) -> list[Tensor]:
    """Both with as many coefficients as the longer one."""
    parts = _coefficients(what, p, q)
    n = max(operator.index(t.shape[0]) for t in parts)
    return [pad(t, (n - operator.index(t.shape[0]), 0)) for t in parts]


def polyadd(p: Any, q: Any, /) -> Tensor:
    """Sum of two polynomials, given by coefficients with the highest power first.

    >>> hnp.polyadd([1, 2, 3], [10, 0])
    Tensor([ 1, 12,  3], dtype=int64)
    """
    a, b = _aligned("polyadd", p, q)
    return a + b


def polysub(p: Any, q: Any, /) -> Tensor:
    """Difference of two polynomials, given by coefficients with the highest power first.

    >>> hnp.polysub([1, 2, 3], [10, 0])
    Tensor([ 1, -8,  3], dtype=int64)
    """
    a, b = _aligned("polysub", p, q)
    return a - b


def polymul(p: Any, q: Any, /) -> Tensor:
    """Product of two polynomials, given by coefficients with the highest power first.

    Leading zeros stay, since the shape does not depend on values.

    >>> hnp.polymul([1, 1], [1, -1])
    Tensor([ 1,  0, -1], dtype=int64)
    """
    a, b = _coefficients("polymul", p, q)
    return convolve(a, b)


def polydiv(p: Any, q: Any, /) -> tuple[Tensor, Tensor]:
    """Quotient and remainder of two polynomials, given by coefficients with the highest power first; floats.

    The first coefficient of ``q`` is not zero. The remainder has one coefficient fewer than ``q``, or as many as ``p`` where those are fewer, and at
    least one. Raises ShapeError for polynomials without coefficients.

    >>> hnp.polydiv([1, 0, -1], [1, 1])
    (Tensor([ 1., -1.], dtype=float32), Tensor([0.], dtype=float32))
    """
    a, b = _coefficients("polydiv", p, q, inexact=True)
    n, m = operator.index(a.shape[0]), operator.index(b.shape[0])
    if n == 0 or m == 0:
        raise located(ShapeError("polydiv: a polynomial without coefficients"))
    quotient: list[Tensor] = []
    rest = a
    for _ in range(n - m + 1):
        factor = rest[0] / b[0]
        quotient.append(factor)
        rest = concat([rest[1:m] - factor * b[1:], rest[m:]])
    whole = concat([f.reshape(1) for f in quotient]) if quotient else zeros(1, dtype=a.dtype)
    return whole, rest if rest.shape[0] != 0 else zeros(1, dtype=a.dtype)


def polyder(p: Any, m: int = 1) -> Tensor:
    """``m``-th derivative of a polynomial, given by coefficients with the highest power first. Narrow integers become those of the default type.

    Raises ArgumentError for a negative ``m``.

    >>> hnp.polyder([1, 0, -2, 5])
    Tensor([ 3,  0, -2], dtype=int64)
    """
    (a,) = _coefficients("polyder", p)
    if integer(m, "polyder", "a number of times") < 0:
        raise located(ArgumentError(f"polyder: derivative number {m}"))
    kept = a.dtype
    for _ in range(m):
        n = operator.index(a.shape[0])
        a = a[:-1] * tensor(np.arange(n - 1, 0, -1)).astype(kept if kept == np.uint64 or kept.kind not in "biu" else dtypes.default_int)
    return a


def polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    """``m``-th antiderivative of a polynomial, given by coefficients with the highest power first; floats.

    ``k`` are the constants: one for all, or one for each integration, 0 for None. Raises ArgumentError for a negative ``m``, ShapeError for
    constants of another number.

    >>> hnp.polyint([3, 0], k=1)
    Tensor([1.5, 0. , 1. ], dtype=float32)
    """
    (a,) = _coefficients("polyint", p, inexact=True)
    if integer(m, "polyint", "a number of times") < 0:
        raise located(ArgumentError(f"polyint: antiderivative number {m}"))
    constants = wrap(array_as(0.0 if k is None else k, a._aval()[1], "polyint")).reshape(-1)
    if constants.shape[0] not in (1, m):
        raise located(ShapeError(f"polyint: {constants.shape[0]} constants for {m} integrations"))
    for i in range(m):
        n = operator.index(a.shape[0])
        raised = a / tensor(np.arange(n, 0, -1)).astype(a.dtype)
        last = constants[min(i, constants.shape[0] - 1)].reshape(1)
        a = concat([raised, last])
    return a


def poly(zeros_: Any, /) -> Tensor:
    """Coefficients, the highest power first, of the polynomial with these zeros whose leading coefficient is 1.

    >>> hnp.poly([1.0, 2.0])
    Tensor([ 1., -3.,  2.], dtype=float32)
    """
    (z,) = _coefficients("poly", zeros_, inexact=True)
    one = full((1,), 1.0, dtype=z.dtype)
    product = one
    for i in range(operator.index(z.shape[0])):
        product = convolve(product, concat([one, -z[i].reshape(1)]))
    return product


def roots(p: Any, /) -> Tensor:
    """Zeros of a polynomial, given by coefficients with the highest power first; complex where one is.

    They are the eigenvalues of the companion matrix. Reads values, so it raises TracedValueError while tracing.

    >>> hnp.sort(hnp.roots([1.0, 0.0, -4.0]))
    Tensor([-2.,  2.], dtype=float32)
    """
    (a,) = _coefficients("roots", p)
    return tensor(np.roots(a._view("roots, whose result's size depends on the values,")))
