"""Elementwise ops that decompose into those of :mod:`hologram.primitives.scalar.elementwise`.

Integer ops are guarded here: whatever the operands, no trap and no poison value can be reached. Where NumPy defines a result, it
is the result; the op's comment says what holds where NumPy does not (negative integer exponents).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError
from hologram.ir.op import Op, Shape, register
from hologram.primitives.scalar.elementwise import quiet, rounded, same_type


def _define(name: str, arity: int, reference: Any, kinds: str, lower: Any, *, test: bool = False, infer: Any = None, **more: Any) -> Op:
    """Defines an op that is decomposed; ``test``: it answers with a bool."""
    rule = infer or same_type(name, kinds, dtypes.bool_ if test else None)
    return register(Op(name, "elementwise", arity, rule, (quiet if test else rounded)(reference), lower=lower, kinds=kinds, **more))


# --- division --------------------------------------------------------------------------------------------------------


def _safe_divisor(y: Any) -> Any:
    """``y`` with the divisors that can trap, 0 and -1, replaced by 1."""
    traps = y.eq(0)
    if y.dtype.kind == "i":
        traps = traps | y.eq(-1)
    return traps.select(y.const(1), y)


def _lower_floordiv(x: Any, y: Any) -> Any:
    if x.dtype.is_float:
        return _floor_quotient(x, y)
    divisor = _safe_divisor(y)
    q = x.op("div_trunc", divisor)
    if x.dtype.kind == "i":
        r = x - q * divisor
        q = (r.ne(0) & ((r ^ divisor) < 0)).select(q - 1, q)
        q = y.eq(-1).select(-x, q)
    return y.eq(0).select(x.const(0), q)


def _lower_rem(x: Any, y: Any) -> Any:
    if x.dtype.is_float:
        r, wrong = _fmod_and_sign(x, y)
        return r.eq(0).select(x.const(0.0).copysign(y), wrong.select(r + y, r))
    divisor = _safe_divisor(y)
    r = x.op("rem_trunc", divisor)
    return (r.ne(0) & ((r ^ divisor) < 0)).select(r + divisor, r) if x.dtype.kind == "i" else r


def _lower_fmod(x: Any, y: Any) -> Any:
    return _exact_fmod(x, y) if x.dtype.is_float else x.op("rem_trunc", _safe_divisor(y))


def _exact_fmod(x: Any, y: Any) -> Any:
    """C's ``fmod``: exact, with the sign of ``x``.

    For float32, quotients below 2**28 are found in float64: two 24-bit significands whose quotient is no integer keep it 2**-24 away from
    one, so truncation is right, and quotient * y and the difference are exact.
    """
    if x.dtype is not dtypes.float32:
        return x.op("rem_trunc", y)
    wide_x, wide_y = x.cast(dtypes.float64), y.cast(dtypes.float64)
    quotient = (wide_x / wide_y).trunc()
    near = (wide_x - quotient * wide_y).cast(dtypes.float32).copysign(x)
    far = ~((quotient.abs() < 2.0**28) & (y.abs() < float("inf")))
    return far.rare(lambda: x.op("rem_trunc", y), near)


def _fmod_and_sign(x: Any, y: Any) -> tuple[Any, Any]:
    """``fmod``, and whether it is non-zero with the sign that the divisor has not."""
    r = _exact_fmod(x, y)
    return r, r.ne(0) & ((r < 0) ^ (y < 0))


def _floor_quotient(x: Any, y: Any) -> Any:
    """The floor of the exact quotient, found from the exact remainder as NumPy and CPython do: ``x / y`` may round up to an integer."""
    r, wrong = _fmod_and_sign(x, y)
    q = (x - r) / y
    q = wrong.select(q - 1, q)
    whole = q.floor()
    whole = (q - whole > 0.5).select(whole + 1, whole)
    true_quotient = x / y
    return y.eq(0).select(true_quotient, q.ne(0).select(whole, x.const(0.0).copysign(true_quotient)))


# Integers: x // 0 = x % 0 = fmod(x, 0) = 0, INT_MIN // -1 wraps to INT_MIN. Floats: IEEE's infinities and NaNs, and a zero
# remainder has the divisor's sign. ``rem`` has the sign of the divisor, ``fmod`` that of the dividend.
floordiv = _define("floordiv", 2, np.floor_divide, "iuf", _lower_floordiv, cost=24, symbol="//")
rem = _define("rem", 2, np.remainder, "iuf", _lower_rem, cost=20, symbol="%")
fmod = _define("fmod", 2, np.fmod, "iuf", _lower_fmod, cost=17)


# --- shifts ----------------------------------------------------------------------------------------------------------


def _count_below_width(y: Any) -> Any:
    """Whether ``y`` is from 0 to the width - 1: a negative count is beyond any width, as an unsigned number."""
    unsigned = y.bitcast(dtypes.of(f"uint{y.dtype.bits}")) if y.dtype.kind == "i" else y
    return unsigned < y.dtype.bits


def _lower_shl(x: Any, y: Any) -> Any:
    fits = _count_below_width(y)
    return fits.select(x.op("shl_low", fits.select(y, y.const(0))), x.const(0))


def _lower_shr(x: Any, y: Any) -> Any:
    fits = _count_below_width(y)
    if x.dtype.kind == "i":  # the sign fills the whole width
        return x.op("shr_low", fits.select(y, y.const(y.dtype.bits - 1)))
    return fits.select(x.op("shr_low", fits.select(y, y.const(0))), x.const(0))


# A count that is negative or beyond the width shifts everything out: 0, or -1 for the right shift of a negative number.
shl = _define("shl", 2, np.left_shift, "iu", _lower_shl, cost=4, symbol="<<")
shr = _define("shr", 2, np.right_shift, "iu", _lower_shr, cost=4, symbol=">>")


# --- pairs -----------------------------------------------------------------------------------------------------------


def _infer_pair_dot(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    shape, dtype = same_type("pair_dot", "u")(inputs, attrs)
    if dtype is not dtypes.uint32:
        raise DTypeError(f"pair_dot takes pairs of bfloat16 as uint32, not {dtype}")
    return shape, dtypes.float32


def _pair_dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    (a, b), (c, d) = (((v << np.uint32(16)).view(np.float32), (v & np.uint32(0xFFFF0000)).view(np.float32)) for v in map(np.asarray, (x, y)))
    return np.asarray(a * c + b * d)


def _lower_pair_dot(x: Any, y: Any) -> Any:
    (a, b), (c, d) = ((v.op("shl_low", v.const(16)).bitcast(dtypes.float32), (v & 0xFFFF0000).bitcast(dtypes.float32)) for v in (x, y))
    return a * c + b * d


# Of two pairs of bfloat16, each the bits of the first below those of the second: the sum of the products, in float32.
pair_dot = register(Op("pair_dot", "elementwise", 2, _infer_pair_dot, quiet(_pair_dot), lower=_lower_pair_dot, kinds="u", cost=2))


# --- signs and classes -----------------------------------------------------------------------------------------------


def _lower_sign(x: Any) -> Any:
    one, zero = x.const(1), x.const(0)
    if x.dtype.kind == "u":
        return x.ne(0).select(one, zero)
    rest = x.ne(x).select(x, zero) if x.dtype.is_float else zero
    return (x > 0).select(one, (x < 0).select(x.const(-1), rest))


def _lower_signbit(x: Any) -> Any:
    return x.bitcast(dtypes.of(f"int{x.dtype.bits}")) < 0


def _lower_heaviside(x: Any, at_zero: Any) -> Any:
    rest = x.eq(0).select(at_zero, x)  # a NaN stays
    return (x > 0).select(x.const(1), (x < 0).select(x.const(0), rest))


sign = _define("sign", 1, np.sign, "iuf", _lower_sign, cost=3)  # 0 for both zeros, NaN for NaN
signbit = _define("signbit", 1, np.signbit, "f", _lower_signbit, test=True)
isnan = _define("isnan", 1, np.isnan, "f", lambda x: x.ne(x), test=True)
isinf = _define("isinf", 1, np.isinf, "f", lambda x: x.abs().eq(float("inf")), test=True, cost=2)
isfinite = _define("isfinite", 1, np.isfinite, "f", lambda x: x.abs() < float("inf"), test=True, cost=2)
heaviside = _define("heaviside", 2, np.heaviside, "f", _lower_heaviside, cost=5)


def _infer_nextafter(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    shape, dtype = same_type("nextafter", "f")(inputs, attrs)
    if dtype.is_narrow_float:  # computing in float32 would give float32's neighbour
        raise DTypeError(f"nextafter does not take {dtype}")
    return shape, dtype


def _lower_nextafter(x: Any, y: Any) -> Any:
    """Steps the bits, which order floats of one sign by magnitude."""
    bits = x.bitcast(dtypes.of(f"int{x.dtype.bits}"))
    grows = (x < y).eq(x > 0)
    stepped = grows.select(bits + 1, bits - 1).bitcast(x.dtype)
    smallest = bits.const(1).bitcast(x.dtype).copysign(y)
    ordered = x.eq(y).select(y, x.eq(0).select(smallest, stepped))
    return (x.ne(x) | y.ne(y)).select(x + y, ordered)


nextafter = _define("nextafter", 2, np.nextafter, "f", _lower_nextafter, infer=_infer_nextafter, cost=10)


# --- powers ----------------------------------------------------------------------------------------------------------

square = _define("square", 1, np.square, "iuf", lambda x: x * x)
reciprocal = _define("reciprocal", 1, np.reciprocal, "f", lambda x: x.const(1) / x, cost=4)


def power_by_squaring(x: Any, n: int) -> Any:
    """``x ** n`` for n > 0. Which products are rounded is part of the meaning, so the reference and the decomposition share it."""
    result = None
    while True:
        if n & 1:
            result = x if result is None else result * x
        n >>= 1
        if not n:
            return result
        x = x * x


def _integer_pow(x: Any, n: int) -> Any:
    if n == 0:
        return np.ones_like(x)
    power = power_by_squaring(x, abs(n))
    return power if n > 0 else np.reciprocal(power)


def _lower_integer_pow(x: Any, n: int) -> Any:
    if n == 0:
        return x.const(1)
    power = power_by_squaring(x, abs(n))
    return power if n > 0 else x.const(1) / power


def _infer_integer_pow(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    shape, dtype = same_type("integer_pow", "iuf")(inputs, attrs)
    if attrs[0] < 0 and not dtype.is_float:
        raise ShapeError(f"integer_pow: integers to the negative power {attrs[0]} are not integers")
    return shape, dtype


def _ipow(x: Any, y: Any) -> Any:
    power = np.power(x, np.maximum(y, 0))
    of_minus_one = np.where(y & 1, -np.ones_like(x), np.ones_like(x)) if x.dtype.kind == "i" else x
    below_one = np.where(x == 1, x, np.where(x + 1 == 0, of_minus_one, 0))
    return np.where(y < 0, below_one, power)


def _lower_ipow(x: Any, y: Any) -> Any:
    """Square and multiply over every bit of the exponent: wrapping products need them all."""
    one = x.const(1)
    result, base = one, x
    magnitude_bits = x.dtype.bits - (x.dtype.kind == "i")
    for i in range(magnitude_bits):
        result = (y & (1 << i)).ne(0).select(result * base, result)
        if i + 1 < magnitude_bits:
            base = base * base
    if x.dtype.kind == "u":
        return result
    of_minus_one = (y & 1).ne(0).select(x, one)
    below_one = x.eq(1).select(x, x.eq(-1).select(of_minus_one, x.const(0)))
    return (y < 0).select(below_one, result)


# A static exponent: products in the order of power_by_squaring, 1 / x**|n| below zero (floats only), x**0 = 1 for every x.
integer_pow = _define("integer_pow", 1, _integer_pow, "iuf", _lower_integer_pow, infer=_infer_integer_pow, attrs=("n",), cost=4)
# Products wrap. Negative exponents, which NumPy refuses, give 1/x**|y| rounded towards zero, and 0 for x = 0.
ipow = _define("ipow", 2, _ipow, "iu", _lower_ipow, cost=128)
