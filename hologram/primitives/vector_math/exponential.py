"""exp and its kin.

All reduce x = n ln2 + r, |r| <= ln2/2, with ln2 in two parts of which the first times n is exact (Cody & Waite, Software Manual
for the Elementary Functions, 1980), and evaluate a minimax polynomial of expm1(r). n is rounded by adding a large constant
(Muller, Elementary Functions, 2016, section 11), whose low bits then hold it.
"""

from __future__ import annotations

from hologram import dtypes
from hologram.primitives.vector_math.common import Format, Value, at_least, at_most, format_of, polynomial

LOG2_E = 1.4426950408889634
# ln2 in two parts: n times the first is exact for every exponent n
LN2 = {dtypes.float32: (0.693145751953125, 1.4286068203094172e-06), dtypes.float64: (0.6931471803691238, 1.9082149292705877e-10)}
# (expm1(r) - r) / r**2 on |r| <= ln2/2; error relative to exp 2**-28.1 and 2**-57.9
EXPM1 = {
    dtypes.float32: (0.5, 0.166665092, 0.0416665785, 0.00837000925, 0.00139226741),
    dtypes.float64: (
        0.5000000000000013,
        0.16666666666666666,
        0.041666666666510435,
        0.008333333333327392,
        0.0013888888948312068,
        0.0001984126987541951,
        2.4801488620631435e-05,
        2.7557252603611887e-06,
        2.7631744343403124e-07,
        2.5106669932214284e-08,
    ),
}
# below these exp is 0 and above them infinite
_RANGE = {dtypes.float32: (-104.0, 89.0), dtypes.float64: (-746.0, 710.0)}
# beyond these tanh is 1
_TANH_ONE = {dtypes.float32: 9.1, dtypes.float64: 19.1}
# below these expm1 is -1
_EXPM1_LOW = {dtypes.float32: -20.0, dtypes.float64: -40.0}


def scale_by_sum(p: Value, total: Value) -> Value:
    """``p * 2**n`` where ``total = n + magic + 2*bias``, rounded once, down to subnormals and up to infinity.

    ``2*bias + n`` is split into two biased exponents of nearly equal size, so that only the last of two products can round.
    """
    f = format_of(p)
    both = total.bitcast(f.unsigned) << f.mantissa
    first = (both >> 1) & f.unsigned.np.type(2**f.unsigned.bits + f.exponent_mask)
    return p * first.bitcast(f.float) * (both - first).bitcast(f.float)


def exp(x: Value) -> Value:
    """e**x. Max error 0.9 ULP (both types)."""
    f = format_of(x)
    high, low = LN2[x.dtype]
    x = at_least(at_most(x, _RANGE[x.dtype][1]), _RANGE[x.dtype][0])
    magic = f.magic + 2 * f.bias
    total = x.mad(LOG2_E, magic)
    n = total - magic
    r = n.mad(-low, n.mad(-high, x))
    q = polynomial(r, EXPM1[x.dtype])
    return scale_by_sum((r * r).mad(q, r) + 1.0, total)


def _expm1_parts(x: Value) -> tuple[Value, Value, Value]:
    """``s, r, w`` with ``exp(x) = 2*s*(1 + r + w)``: s a power of two, ``r = x - n*high`` exact, w small. |x| within exp's range."""
    f = format_of(x)
    high, low = LN2[x.dtype]
    magic = f.magic + f.bias - 1
    total = x.mad(LOG2_E, magic)
    n = total - magic
    s = (total.bitcast(f.unsigned) << f.mantissa).bitcast(f.float)
    r = n.mad(-high, x)
    tail = n * low
    z = r - tail
    return s, r, (z * z).mad(polynomial(z, EXPM1[x.dtype]), -tail)


def expm1(x: Value) -> Value:
    """e**x - 1 = 2*((s - 1/2) + s*r + s*w), each term exact or much smaller than the sum before it."""
    high = _RANGE[x.dtype][1]
    y = at_least(at_most(x, high), _EXPM1_LOW[x.dtype])
    s, r, w = _expm1_parts(y)
    result = s.mad(w, s.mad(r, s - 0.5)) * 2.0
    return x.eq(0.0).select(x, result)


def tanh(x: Value) -> Value:
    """With t = expm1(2|x|)/2: t / (t + 1)."""
    a = at_most(x.abs(), _TANH_ONE[x.dtype])
    s, r, w = _expm1_parts(a + a)
    t = s.mad(w, s.mad(r, s - 0.5))
    return (t / (t + 1.0)).copysign(x)
