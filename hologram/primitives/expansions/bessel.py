"""The modified Bessel functions of the first kind, of order 0 and 1, times exp(-|x|).

Up to 7.75 the power series in (x/2)**2, made minimax, times an exponential; then a polynomial in 1/x over the square root. float32 is computed in
float64. float64 errs by at most 4 ULP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hologram import dtypes
from hologram.dtypes import DType
from hologram.primitives.expansions.coefficients.bessel import I0_FAR, I0_FAR_LOW, I0_NEAR, I1_FAR, I1_FAR_LOW, I1_NEAR
from hologram.primitives.expansions.common import Value, at_most, polynomial
from hologram.primitives.expansions.exponential import exp

_NEAR = 7.75
_CENTER = 1 / 16  # of the variable of the far polynomials
Table = Mapping[DType, Sequence[float]]


def _far(a: Value, table: Table, low: Mapping[DType, float], d: DType) -> Value:
    t = 1.0 / a - _CENTER
    first, *others = table[d]
    return (t.mad(polynomial(t, others), low[d]) + first) / a.sqrt()


def _near(a: Value, table: Table, d: DType) -> Value:
    """``1 + z*P(z)``, z = (a/2)**2."""
    z = at_most(a, _NEAR) * 0.5
    z = z * z
    return z.mad(polynomial(z, table[d]), 1.0)


def i0e(x: Value) -> Value:
    """``exp(-|x|) * I0(x)``."""
    a = x.cast(dtypes.float64).abs()
    near = _near(a, I0_NEAR, x.dtype) * exp(-a)
    return (a > _NEAR).select(_far(a, I0_FAR, I0_FAR_LOW, x.dtype), near).cast(x.dtype)


def i1e(x: Value) -> Value:
    """``exp(-|x|) * I1(x)``, an odd function."""
    wide = x.cast(dtypes.float64)
    a = wide.abs()
    near = (a * 0.5) * _near(a, I1_NEAR, x.dtype) * exp(-a)
    return (a > _NEAR).select(_far(a, I1_FAR, I1_FAR_LOW, x.dtype), near).copysign(wide).cast(x.dtype)
