"""sin, cos and tan.

Ordinary arguments are reduced by multiples of pi/2 in four parts, the first three so short that their product with the multiple is
exact with or without FMA (Cody & Waite, Software Manual for the Elementary Functions, 1980; here the rounding error of the third step
is kept). Where a lane holds a larger argument, the integer reduction of Payne & Hanek (Radian reduction for trigonometric functions,
1983) is computed as well. Then minimax polynomials of sin(r) and cos(r) on |r| <= pi/4.
"""

from __future__ import annotations

from collections.abc import Callable

from hologram import dtypes
from hologram.primitives.vector_math.coefficients import COS, SIN, TAN
from hologram.primitives.vector_math.common import Value, flip_sign, format_of, leading_bits, polynomial

# pi = the sum of the parts; the first three have at most 9 (float32) and 31 (float64) bits
# and the first two end so early that what they leave of an ordinary argument is exact
TWO_OVER_PI = 0.6366197723675814
# pi/2, the sum of the parts; the first three have at most 9 (float32) and 31 (float64) bits
# and the first two end so early that what they leave of an ordinary argument is exact
_HALF_PI = {
    dtypes.float32: (1.5703125, 0.00048351287841796875, 3.138557076454163e-07, 6.07710062827671e-11),
    dtypes.float64: (1.5707963267341256, 6.077094383272197e-11, 6.12323399409214e-17, 1.6446256936324258e-26),
}
# |x| below this takes the ordinary reduction
_ORDINARY = {dtypes.float32: 2.0**15, dtypes.float64: 2.0**21}
# the first bits of 1/pi behind its binary point
_INVERSE_PI = int(
    "517CC1B727220A94FE13ABE8FA9A6EE06DB14ACC9E21C820FF28B1D5EF5DE2B0"
    "DB92371D2126E9700324977504E8C90E7F0EF58E5894D39F74411AFA975DA242"
    "74CE38135A2FBF209CC8EB1CC1A99CFA4E422FC5DEFC941D8FFC4BFFEF02CC07"
    "F79788C5AD05368FB69B3F6793E584DBA7A31FB34F2FF516BA93DD63F5F2F8BD"
    "9E839CFBC529497535FDAFD88FC6AE842B0198237E3DB5D5"
    , 16)
# pi/2 in two parts, whose first times half a significand is exact
_HALF_PI_SHORT = {dtypes.float32: (1.5703125, 0.00048382679489661923), dtypes.float64: (1.570796325802803, 9.920935796805415e-10)}
# bits of a fraction's word below the cut are converted apart, so that both pieces are exact and no sign bit is set
_CUT = {dtypes.float32: 20, dtypes.float64: 38}
_ZEROS = 33  # zero bits put before them, so that a window may start before the point
_INVERSE_PI_BITS = 1216


def _sum(a: Value, b: Value) -> tuple[Value, Value]:
    """a + b and its rounding error, for |a| >= |b| or a = 0 (Dekker, A floating-point technique for extending the precision, 1971)."""
    s = a + b
    return s, (a - s) + b


Reduced = tuple[Value, Value, Value]  # r, what rounding took from it, and the bits of n


def _ordinary(a: Value) -> Reduced:
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
    """``a / pi`` modulo 2, as a fixed-point number of two unsigned words, the first bit worth 1; a finite and at least 2**9."""
    f = format_of(a)
    width = f.unsigned.bits
    half = width // 2
    low_half = (1 << half) - 1
    bits = a.bitcast(f.unsigned)
    exponent = (bits >> f.mantissa) & (2 * f.bias + 1)
    significand = (bits & ((1 << f.mantissa) - 1)) | (1 << f.mantissa)
    # a = significand * 2**(exponent - bias - mantissa): bits of 1/pi worth 2 and more after scaling have no say
    first = _ZEROS - 1 - f.bias - f.mantissa
    count = (2 * f.bias + first) // width + 4
    window = _window(exponent + first, _words(width, count), 3)
    limbs = [limb for w in window for limb in (w >> half, w & low_half)]
    m1, m0 = significand >> half, significand & low_half
    low = [m0 * limb for limb in limbs]
    high = [m1 * limb for limb in limbs]
    total: list[Value] = []
    carry = None
    for i in range(4, -1, -1):
        column = (low[i] & low_half) + (low[i + 1] >> half) + (high[i + 1] & low_half)
        if i + 2 < 6:
            column = column + (high[i + 2] >> half)
        if carry is not None:
            column = column + carry
        carry = column >> half
        total.append(column & low_half)
    d3, d2, d1, d0 = total[1:]
    return (d0 << half) | d1, (d2 << half) | d3


def _large(a: Value) -> Reduced:
    """As :func:`_ordinary`, for a >= 2**9; NaN for infinity.

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


def _reduced(x: Value, kernel: Callable[[Value, Value, Value], Value]) -> Value:
    """``kernel(r, r_low, n)`` where ``|x| = r + r_low + n*pi/2``, |r| <= pi/4, n modulo 4 in the low bits of an unsigned value."""
    a = x.abs()
    return (a >= _ORDINARY[x.dtype]).rare(lambda: kernel(*_large(a)), kernel(*_ordinary(a)))


def _sine_of_quadrant(r: Value, n: Value, sign: Value) -> Value:
    """sin(r + n*pi/2) with the sign of ``sign`` multiplied in: one polynomial whose coefficients are the sine's or the cosine's."""
    f = format_of(r)
    odd = (n & 1).ne(0)
    z = r * r
    base = odd.select(1.0, r)
    *rest, last = (odd.select(r.const(c), r.const(s)) for s, c in zip(SIN[r.dtype], COS[r.dtype], strict=True))
    p = last
    for c in reversed(rest):
        p = p.mad(z, c)
    return flip_sign((base * z).mad(p, base), (n << (f.unsigned.bits - 2)) ^ sign)


def sin(x: Value) -> Value:
    """The sine."""
    sign = x.bitcast(format_of(x).unsigned)
    return _reduced(x, lambda r, _, n: _sine_of_quadrant(r, n, sign))


def cos(x: Value) -> Value:
    """The cosine, sin(|x| + pi/2)."""
    return _reduced(x, lambda r, _, n: _sine_of_quadrant(r, n + 1, n.const(0)))


def tan(x: Value) -> Value:
    """The tangent: with t + t_low = tan(r), that or -1/(t + t_low)."""

    def of_quadrant(r: Value, r_low: Value, n: Value) -> Value:
        z = r * r
        v = (r * z).mad(polynomial(z, TAN[r.dtype]), z.mad(r_low, r_low))
        t = r + v
        t_low = (r - t) + v
        inverse = -1.0 / t
        odd = (n & 1).ne(0)
        return flip_sign(odd.select((inverse * inverse).mad(t_low, inverse), t), x.bitcast(n.dtype))

    return _reduced(x, of_quadrant)
