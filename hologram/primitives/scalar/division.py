"""Division of many numbers by one: one reciprocal, then two products a number.

``x / y = (x * s) * (1 / (y*s))`` with s the power of two that brings y into [0.5, 1). The reciprocal is then above 1, so ``x * s``
overflows only where the quotient does, and what it loses below the normal numbers the quotient, at most twice as large, has no bits for:
the quotient is within 2 ULP. Zeros, infinities and NaNs come out as division has them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.ir.op import Op, register
from hologram.primitives.scalar.elementwise import rounded, same_type

_LAYOUT = {dtypes.float32: (dtypes.uint32, 23, 8), dtypes.float64: (dtypes.uint64, 52, 11)}


def _lower(y: Any) -> Any:
    bits, mantissa, width = _LAYOUT[y.dtype]
    top = (1 << width) - 3  # so that the two largest biased exponents, infinity and NaN may stand for the one before
    exponent = (y.bitcast(bits) >> mantissa) & ((1 << width) - 1)
    return ((exponent.const(top) - exponent.min(top - 1)) << mantissa).bitcast(y.dtype)


def _reference(y: Any) -> Any:
    bits, mantissa, width = _LAYOUT[dtypes.of(y.dtype)]
    top = (1 << width) - 3
    exponent = (y.view(bits.np) >> bits.np.type(mantissa)) & bits.np.type((1 << width) - 1)
    return ((bits.np.type(top) - np.minimum(exponent, bits.np.type(top - 1))) << bits.np.type(mantissa)).view(y.dtype)


# 2**-e for y = m * 2**e with 0.5 <= m < 1; kept normal for every y
unit_scale = register(Op("unit_scale", "elementwise", 1, same_type("unit_scale", "f"), rounded(_reference), lower=_lower, kinds="f"))
