"""Angles reduced to a quarter turn: ``a = r + n*pi/2``, |r| <= pi/4.

Ordinary angles are reduced by a multiple of pi/2 in four parts, the first three so short that their product with the multiple is exact
with or without FMA (Cody & Waite, Software Manual for the Elementary Functions, 1980; here the rounding error of the third step is
kept). Larger ones take the integer reduction of Payne & Hanek (Radian reduction for trigonometric functions, 1983): the few words of
1/pi that matter are chosen by selects, shifted and multiplied with the significand.
"""

from __future__ import annotations

from hologram import dtypes
from hologram.primitives.expansions.common import Value, flip_sign, format_of, leading_bits

TWO_OVER_PI = 0.6366197723675814
# pi/2, the sum of the parts; the first three have at most 9 (float32) and 31 (float64) bits
# and the first two end so early that what they leave of an ordinary argument is exact
_HALF_PI = {
    dtypes.float32: (1.5703125, 0.00048351287841796875, 3.138557076454163e-07, 6.07710062827671e-11),
    dtypes.float64: (1.5707963267341256, 6.077094383272197e-11, 6.12323399409214e-17, 1.6446256936324258e-26),
}
# |x| below this takes the ordinary reduction
ORDINARY = {dtypes.float32: 2.0**15, dtypes.float64: 2.0**21}
# the first bits of 1/pi behind its binary point, and how many they are
_INVERSE_PI_BITS = 1216
_INVERSE_PI = int(
    "517CC1B727220A94FE13ABE8FA9A6EE06DB14ACC9E21C820FF28B1D5EF5DE2B0"
    "DB92371D2126E9700324977504E8C90E7F0EF58E5894D39F74411AFA975DA242"
    "74CE38135A2FBF209CC8EB1CC1A99CFA4E422FC5DEFC941D8FFC4BFFEF02CC07"
    "F79788C5AD05368FB69B3F6793E584DBA7A31FB34F2FF516BA93DD63F5F2F8BD"
    "9E839CFBC529497535FDAFD88FC6AE842B0198237E3DB5D5",
    16,
)
# pi/2 in two parts, whose first times half a significand is exact
_HALF_PI_SHORT = {dtypes.float32: (1.5703125, 0.00048382679489661923), dtypes.float64: (1.570796325802803, 9.920935796805415e-10)}
# bits of a fraction's word below the cut are converted apart, so that both pieces are exact and no sign bit is set
_CUT = {dtypes.float32: 20, dtypes.float64: 38}
_ZEROS = 33  # zero bits put before those of 1/pi, so that a window may start before the point


def _sum(a: Value, b: Value) -> tuple[Value, Value]:
    """a + b and its rounding error, for |a| >= |b| or a = 0 (Dekker, A floating-point technique for extending the precision, 1971)."""
    s = a + b
    return s, (a - s) + b


Reduced = tuple[Value, Value, Value]  # r, what rounding took from it, and the bits of n


def ordinary(a: Value) -> Reduced:
    """``a - n*pi/2`` for a >= 0."""
    f = format_of(a)
    p1, p2, p3, p4 = _HALF_PI[a.dtype]
    total = a.mad(TWO_OVER_PI, f.magic)
    n = total - f.magic
    b = n.mad(-p2, n.mad(-p1, a))
    s = n.mad(-p3, b)
    return *_sum(s, n.mad(-p4, n.mad(-p3, b - s))), total.bitcast(f.unsigned)


def _window(p: Value, words: list[int], count: int) -> list[Value]:
    """``count`` words of the bit string ``words`` from bit ``p`` on, ``p`` an unsigned value."""
    bits = p.dtype.bits
    chosen: list[Value] = [p.const_bits(w) for w in words]
    step = 1 << (len(words) - count - 1).bit_length() - 1
    while step:
        far = (p & (step * bits)).ne(0)
        chosen = [far.select(*pair) for pair in zip(chosen[step:], chosen, strict=False)] + chosen[len(chosen) - step :]
        del chosen[count + step :]
        step >>= 1
    shift = p & (bits - 1)
    rest = shift ^ (bits - 1)
    return [(chosen[i] << shift) | ((chosen[i + 1] >> 1) >> rest) for i in range(count)]


def _words(width: int, count: int) -> list[int]:
    """The first ``count`` words of the zero bits and 1/pi."""
    start = _INVERSE_PI_BITS + _ZEROS
    return [(_INVERSE_PI >> (start - width * (i + 1))) & ((1 << width) - 1) for i in range(count)]


def _turns(a: Value) -> tuple[Value, Value]:
    """``a / pi`` modulo 2, as a fixed-point number of two unsigned words, the first bit worth 1; a finite and not ordinary."""
    f = format_of(a)
    width = f.unsigned.bits
    bits = a.bitcast(f.unsigned)
    exponent = (bits >> f.mantissa) & (2 * f.bias + 1)
    significand = (bits & ((1 << f.mantissa) - 1)) | (1 << f.mantissa)
    # a = significand * 2**(exponent - bias - mantissa): bits of 1/pi worth 2 and more after scaling have no say
    first = _ZEROS - 1 - f.bias - f.mantissa
    count = (2 * f.bias + first) // width + 4
    window = _window(exponent + first, _words(width, count), 3)
    return _product(significand, window)


def _product(significand: Value, window: list[Value]) -> tuple[Value, Value]:
    """The first two words of the last three of ``significand * window``, by columns of half words; the last column has no say in them."""
    half = significand.dtype.bits // 2
    low_half = (1 << half) - 1
    limbs = [limb for w in window for limb in (w >> half, w & low_half)]
    m1, m0 = significand >> half, significand & low_half
    low = [m0 * limb for limb in limbs]
    high = [m1 * limb for limb in limbs]
    columns: list[Value] = []
    carry = low[5] >> half
    for i in range(4, -1, -1):
        column = (low[i] & low_half) + (high[i + 1] & low_half) + carry
        if i < 4:
            column = column + (low[i + 1] >> half) + (high[i + 2] >> half)
        columns.append(column & low_half)
        carry = column >> half
    d3, d2, d1, d0 = columns[1:]
    return (d0 << half) | d1, (d2 << half) | d3


def large(a: Value) -> Reduced:
    """As :func:`ordinary` for finite a from :data:`ORDINARY` on; NaN for infinity.

    The fraction of 2/pi * a becomes a sum of two floats, and its product with pi/2 starts with one that is exact.
    """
    f = format_of(a)
    width = f.unsigned.bits
    high, low = _turns(a)
    n = (high + (1 << (width - 3))) >> (width - 2)
    fraction, rest = (high << 2) | (low >> (width - 2)), low << 2
    flip = (fraction.bitcast(f.integer) >> (width - 1)).bitcast(f.unsigned)
    fraction, rest = fraction ^ flip, rest ^ flip
    cut = _CUT[a.dtype]
    pieces = (fraction >> cut, width - cut), (fraction & ((1 << cut) - 1), width), (rest >> 1, 2 * width - 1)
    top, middle, bottom = (flip_sign(bits.bitcast(f.integer).cast(a.dtype) * 2.0**-weight, flip) for bits, weight in pieces)
    s, error = _sum(top, middle)
    h, h_low = _sum(s, error + bottom)
    h_high = leading_bits(h)
    p1, p2 = _HALF_PI_SHORT[a.dtype]
    product = h_high * p1 + (a - a)
    r, r_low = _sum(product, h_high.mad(p2, ((h - h_high) + h_low) * (p1 + p2)))
    return r, r_low, n
