"""Logarithms: x = m * 2**e with m in [sqrt(1/2), sqrt(2)), then a minimax polynomial of log1p(m - 1), m - 1 being exact."""

from __future__ import annotations

from hologram import dtypes
from hologram.primitives.vector_math.common import Format, Value, format_of, polynomial
from hologram.primitives.vector_math.exponential import LN2

# (log1p(f) - f + f**2/2) / f**3 on [sqrt(1/2) - 1, sqrt(2) - 1]
LOG1P = {
    dtypes.float32: (0.333333313, -0.250008225, 0.200012609, -0.166233376, 0.142009586, -0.131594837, 0.127668157, -0.0764296949),
}


def split_exponent(x: Value) -> tuple[Value, Value]:
    """``f, e`` (both floats) with ``x = (1 + f) * 2**e`` and 1 + f in [sqrt(1/2), sqrt(2)), for finite x > 0."""
    k = format_of(x)
    tiny = x < k.least_normal
    shift = float(k.mantissa + 2)
    bits = tiny.select(x * 2.0**shift, x).bitcast(k.integer) - _root_half(k)
    e = (bits >> k.mantissa).cast(k.float) - tiny.select(x.const(shift), x.const(0.0))
    m = (bits & ~k.exponent_mask) + _root_half(k)
    return m.bitcast(k.float) - 1.0, e


def _root_half(k: Format) -> int:
    return int.from_bytes(k.float.np.type(0.5**0.5).tobytes(), "little")


def _specials(x: Value, result: Value) -> Value:
    """``result`` for 0 < x < inf; log's -inf, NaN, inf elsewhere."""
    result = (x < float("inf")).select(result, x)
    result = x.eq(0.0).select(x.const(-float("inf")), result)
    return (x < 0.0).select(x.const(float("nan")), result)


def log(x: Value) -> Value:
    """The natural logarithm."""
    f, e = split_exponent(x)
    high, low = LN2[x.dtype]
    z = f * f
    tail = (f * z).mad(polynomial(f, LOG1P[x.dtype]), e * low)
    tail = z.mad(-0.5, tail)
    return _specials(x, e.mad(high, f + tail))
