"""Floats taken apart: significand, exponent, distance to the next one."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError
from hologram.numpy.arguments import array, wrap
from hologram.numpy.elementwise.functions import FUNCTIONS, where
from hologram.primitives.scalar import elementwise as ew
from hologram.support.user_lines import located
from hologram.trace.operators import stretched
from hologram.trace.recorder import cast_node, record
from hologram.trace.tensor import Tensor

__all__ = ["frexp", "ldexp", "spacing"]


def _float(x: Any, what: str) -> tuple[Tensor, DType]:
    """``x`` in the type that computes, and the type of a result; integers become the default float."""
    node = array(x, what)
    if node.dtype.is_complex:
        raise located(DTypeError(f"{what} does not take {node.dtype}"))
    result = dtypes.to_inexact(node.dtype)
    return wrap(cast_node(node, dtypes.compute_type(result))), result


def _power_of_two(n: Tensor, dtype: DType) -> Tensor:
    """2**n of integers; exact, and 0 or infinity out of range."""
    return FUNCTIONS["exp2"](n.astype(dtype))


def _exponent(x: Tensor) -> Tensor:
    """The integer e with ``0.5 <= |x| * 2**-e < 1``; 0 for zeros, infinities and NaN. Read from the bits, after subnormals are scaled up."""
    single = x._aval()[1] is dtypes.float32
    word, mantissa, bias = (dtypes.int32, 23, 126) if single else (dtypes.int64, 52, 1022)
    tiny = FUNCTIONS["abs"](x) < float(np.finfo(x.dtype).tiny)
    scaled = array(where(tiny, x * 2.0**64, x), "frexp")
    bits = wrap(record(ew.bitcast, (scaled,), (word.name,)))
    e = ((bits >> mantissa) & (2 * bias + 3)) - bias - where(tiny, 64, 0)
    return where(FUNCTIONS["isfinite"](x) & (x != 0), e, 0).astype(dtypes.int32)


def _apart(x: Tensor) -> tuple[Tensor, Tensor]:
    """Significand and exponent. Two factors, neither of which leaves the range."""
    e = _exponent(x)
    half = e // 2
    d = x._aval()[1]
    return x * _power_of_two(-half, d) * _power_of_two(half - e, d), e


def frexp(x: Any, /) -> tuple[Tensor, Tensor]:
    """Significand and exponent: ``m, e`` with ``x = m * 2**e`` and ``0.5 <= |m| < 1``.

    ``m`` has the float type of ``x``, ``e`` is int32. Zeros, infinities and NaN are themselves, with exponent 0. Raises DTypeError for complex
    numbers.

    >>> hnp.frexp([8.0, 0.75])
    (Tensor([0.5 , 0.75], dtype=float32), Tensor([4, 0], dtype=int32))
    """
    t, result = _float(x, "frexp")
    m, e = _apart(t)
    return m.astype(result), e


def ldexp(x1: Any, x2: Any, /) -> Tensor:
    """``x1 * 2**x2`` for integers ``x2``, rounded once; the operands broadcast.

    The result has the float type of ``x1``. Raises DTypeError for an ``x2`` of floats, and for complex numbers.

    >>> hnp.ldexp([0.5, 1.5], [4, 1])
    Tensor([8., 3.], dtype=float32)
    """
    t, result = _float(x1, "ldexp")
    by = array(x2, "ldexp")
    if by.dtype.kind not in "biu":
        raise located(DTypeError(f"ldexp takes an integer exponent, not {by.dtype}"))
    a, n = (wrap(v) for v in stretched("ldexp", (array(t, "ldexp"), by)))
    m, e = _apart(a)
    d = t._aval()[1]
    bound = FUNCTIONS["maximum"](FUNCTIONS["minimum"](n.astype(dtypes.int64), 5000), -5000)  # beyond it every product is 0 or infinity
    low, high = (-170, 140) if d is dtypes.float32 else (-1150, 1100)  # half of it is the exponent of a normal number, so infinity stays
    total = FUNCTIONS["maximum"](FUNCTIONS["minimum"](bound + e, high), low)
    half = total // 2
    return (m * _power_of_two(half, d) * _power_of_two(total - half, d)).astype(result)


def spacing(x: Any, /) -> Tensor:
    """Distance to the next representable number away from zero, with the sign of ``x``; float32 or float64.

    >>> hnp.spacing([1.0, -1024.0])
    Tensor([ 1.1920929e-07, -1.2207031e-04], dtype=float32)
    """
    node = array(x, "spacing")
    t = wrap(cast_node(node, dtypes.to_inexact(node.dtype)))
    return FUNCTIONS["nextafter"](t, where(t < 0, -np.inf, np.inf).astype(t.dtype)) - t
