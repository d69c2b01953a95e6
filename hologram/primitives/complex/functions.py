"""Functions of complex numbers, as real ops on their parts.

Results are within a few units in the last place of the larger part (``tests/primitives/test_complex.py`` has the bounds), intermediate results
overflow and underflow only where the result does, and infinities, NaNs, signed zeros and branch cuts are those of C's Annex G. The inverse
functions are Kahan's (Branch Cuts for Complex Elementary Functions, 1987). ``pow`` is ``exp(w log z)``, so its error grows with the size of
``w log z``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np


class Pair:
    """The parts of a complex number, as values of a builder or as NumPy arrays."""

    __slots__ = ("re", "im")

    def __init__(self, re: Any, im: Any) -> None:
        self.re, self.im = re, im

    def __iter__(self) -> Iterator[Any]:
        return iter((self.re, self.im))

    def __getitem__(self, i: int) -> Any:
        return (self.re, self.im)[i]

    def __add__(self, o: Pair) -> Pair:
        return Pair(self.re + o.re, self.im + o.im)

    def __sub__(self, o: Pair) -> Pair:
        return Pair(self.re - o.re, self.im - o.im)

    def __mul__(self, o: Pair) -> Pair:
        return Pair(self.re * o.re - self.im * o.im, self.re * o.im + self.im * o.re)

    def __neg__(self) -> Pair:
        return Pair(-self.re, -self.im)

    def times(self, number: Any) -> Pair:
        """The product with a real number."""
        return Pair(self.re * number, self.im * number)


# --- pieces ----------------------------------------------------------------------------------------------------------


def _largest(x: Any) -> float:
    return float(np.finfo(x.dtype.np).max)


def _epsilon(x: Any) -> float:
    return float(np.finfo(x.dtype.np).eps)


def _small(x: Any) -> float:
    """A power of four whose square, and the square's reciprocal, are normal with room to spare."""
    return 2.0**-60 if x.dtype.bits == 32 else 2.0**-500


def _is_inf(x: Any) -> Any:
    return x.abs().eq(math.inf)


def _is_finite(x: Any) -> Any:
    return x.abs() < math.inf


def _turned(z: Pair) -> Pair:
    """``i z``."""
    return Pair(-z.im, z.re)


def _turned_back(z: Pair) -> Pair:
    """``-i z``."""
    return Pair(z.im, -z.re)


def _scaled(z: Pair) -> tuple[Pair, Any, Any]:
    """``z`` times a power of four that keeps sums of its squares' roots within the normal numbers; that it is large; that it is small."""
    m = z.re.abs().max(z.im.abs())
    large, small = m > _largest(m) / 16, m < _small(m)
    factor = large.select(m.const(1 / 16), small.select(m.const(1 / _small(m)), m.const(1)))
    return z.times(factor), large, small


# --- division --------------------------------------------------------------------------------------------------------


def div(x: Pair, y: Pair) -> Pair:
    """Smith's division. A zero divisor gives infinities and NaNs, each part being divided by it."""
    swapped = y.re.abs() < y.im.abs()
    larger, smaller = swapped.select(y.im, y.re), swapped.select(y.re, y.im)
    ratio = smaller / larger
    scale = 1 / (larger + smaller * ratio)
    first, second = swapped.select(x.im, x.re), swapped.select(x.re, x.im)
    re = (first + second * ratio) * scale
    ahead, behind = swapped.select(x.im * ratio, x.im), swapped.select(x.re, x.re * ratio)
    im = (ahead - behind) * scale
    zero = larger.eq(0) & smaller.eq(0)
    nothing = larger.abs()
    return Pair(zero.select(x.re / nothing, re), zero.select(x.im / nothing, im))


def reciprocal(z: Pair) -> Pair:
    swapped = z.re.abs() < z.im.abs()
    larger, smaller = swapped.select(z.im, z.re), swapped.select(z.re, z.im)
    ratio = smaller / larger
    scale = larger + smaller * ratio
    one = ratio.const(1)
    return Pair(swapped.select(ratio, one) / scale, swapped.select(-one, -ratio) / scale)


def modulus(z: Pair) -> Any:
    return z.re.op("hypot", z.im)


def sign(z: Pair) -> Pair:
    """``z / |z|``; 0 for 0; the direction of an infinite part beside a finite one."""
    w, _, _ = _scaled(z)
    high, flat = _is_inf(z.im) & _is_finite(z.re), _is_inf(z.re) & _is_finite(z.im)
    one, zero = z.re.const(1), z.re.const(0)
    re, im = flat.select(one.copysign(z.re), high.select(zero, w.re)), high.select(one.copysign(z.im), flat.select(zero, w.im))
    r = re.op("hypot", im)
    nothing = r.eq(0)
    return Pair(*(nothing.select(zero, part / r) for part in (re, im)))


# --- roots -----------------------------------------------------------------------------------------------------------


def sqrt(z: Pair) -> Pair:
    w, large, small = _scaled(z)
    t = ((w.re.abs() + modulus(w)) * 0.5).sqrt()
    t = large.select(t * 4.0, small.select(t * math.sqrt(_small(t)), t))
    other = z.im.abs() / (t * 2.0)
    left = z.re < 0
    re, im = left.select(other, t), left.select(t, other)
    zero = z.re.eq(0) & z.im.eq(0)
    re, im = zero.select(z.re.abs(), re), zero.select(z.im.abs(), im)
    # infinite parts
    high, flat = _is_inf(z.im), _is_inf(z.re)
    side = _is_finite(z.im).select(re.const(0), z.im)  # beside an infinite real part
    re = high.select(z.im.abs(), flat.select(left.select(side, z.re), re))
    im = high.select(z.im.abs(), flat.select(left.select(z.re.abs(), side), im))
    return Pair(re, im.copysign(z.im))


def rsqrt(z: Pair) -> Pair:
    root = sqrt(z)
    return div(Pair(root.re.const(1), root.re.const(0)), root)


# --- exponentials ----------------------------------------------------------------------------------------------------


def _too_large(x: Any) -> Any:
    """Whether ``exp(x)`` overflows, though its product with a sine or cosine may not."""
    return x > math.log(_largest(x)) - 1.0


def _unwound(z: Pair) -> tuple[Any, Any, Any]:
    """Sine and cosine of the imaginary part, and whether it has none."""
    return z.im.op("sin"), z.im.op("cos"), ~_is_finite(z.im)


def exp(z: Pair) -> Pair:
    x, y = z
    s, c, wild = _unwound(z)
    large = _too_large(x)
    e = large.select(x * 0.5, x).op("exp")
    again = large.select(e, e.const(1))
    re, im = e * c * again, e * s * again
    left, right = x.eq(-math.inf), x.eq(math.inf)
    re = wild.select(right.select(x, left.select(x.const(0), re)), re)
    im = (wild & left).select(x.const(0), im)
    return Pair(re, y.eq(0).select(y, im))


def expm1(z: Pair) -> Pair:
    """``expm1(x) cos(y) - 2 sin(y/2)**2`` keeps what ``exp(z) - 1`` loses near 0."""
    x, y = z
    e = exp(z)
    half = (y * 0.5).op("sin")
    re = x.op("expm1") * y.op("cos") - half * half * 2.0
    re = (~_is_finite(y) & x.eq(-math.inf)).select(x.const(-1), (x > 1.0).select(e.re - 1.0, re))
    return Pair((x.eq(0) & y.eq(0)).select(x.abs(), re), e.im)


def _hyperbolic(z: Pair) -> tuple[Any, Any, Any]:
    """Hyperbolic sine and cosine of the real part, and what both are still to be multiplied by."""
    large = _too_large(z.re.abs())
    e = (z.re.abs() * 0.5).op("exp")
    sinh_x = large.select(e.copysign(z.re), z.re.op("sinh"))
    return sinh_x, large.select(e, z.re.op("cosh")), large.select(e * 0.5, e.const(1))


def sinh(z: Pair) -> Pair:
    x, y = z
    s, c, wild = _unwound(z)
    sinh_x, cosh_x, more = _hyperbolic(z)
    re = (wild & (x.eq(0) | _is_inf(x))).select(x, sinh_x * c * more)
    return Pair(re, y.eq(0).select(y, cosh_x * s * more))


def cosh(z: Pair) -> Pair:
    x, y = z
    s, c, wild = _unwound(z)
    sinh_x, cosh_x, more = _hyperbolic(z)
    re = (wild & _is_inf(x)).select(x.abs(), cosh_x * c * more)
    zero = x.const(0).copysign(x) * x.const(1).copysign(y)
    lost = (wild & x.eq(0)) | y.eq(0)
    return Pair(re, lost.select(zero, sinh_x * s * more))


def tanh(z: Pair) -> Pair:
    """``(sinh x cosh x + i sin y cos y) / (sinh(x)**2 + cos(y)**2)``, whose denominator adds squares; far out the limit."""
    x, y = z
    s, c, wild = _unwound(z)
    far = x.abs() > (11.0 if x.dtype.bits == 32 else 22.0)
    near = far.select(x.const(1), x)
    sinh_x, cosh_x = near.op("sinh"), near.op("cosh")
    scale = sinh_x * sinh_x + c * c
    e = (-x.abs()).op("exp")
    re = far.select(x.const(1).copysign(x), sinh_x * cosh_x / scale)
    im = far.select(s * c * e * 4.0 * e, s * c / scale)
    re = (wild & _is_finite(x)).select(y - y, re)
    im = _is_inf(x).select(x.const(0).copysign(y), im)  # as the Array API standard has it; C's zero has the sign of sin(2 y)
    return Pair(x.eq(0).select(x, re), y.eq(0).select(y, im))


def sigmoid(z: Pair) -> Pair:
    """``1 / (1 + exp(-z))``, from the exponential that is at most 1; near the poles ``1 + e cos y`` is a sum of positive numbers."""
    left = z.re < 0
    w = Pair(-z.re.abs(), left.select(z.im, -z.im))
    s, c, _ = _unwound(w)
    e, half = exp(w), (w.im * 0.5).op("cos")
    re = ((c < 0) & w.im.eq(w.im)).select(half * half * 2.0 + w.re.op("expm1") * c, e.re + 1.0)
    one, zero = e.re.const(1), e.re.const(0)
    return div(Pair(left.select(e.re, one), left.select(e.im, zero)), Pair(re, e.im))


def sin(z: Pair) -> Pair:
    return _turned_back(sinh(_turned(z)))


def cos(z: Pair) -> Pair:
    return cosh(_turned(z))


def tan(z: Pair) -> Pair:
    return _turned_back(tanh(_turned(z)))


# --- logarithms ------------------------------------------------------------------------------------------------------


def _log_modulus(x: Any, y: Any, excess: Any = None) -> Any:
    """``log |x + iy|``, from ``|x + iy|**2 - 1``, which may be given as ``excess``, where that is not large."""
    ax, ay = x.abs(), y.abs()
    m, n = ax.max(ay), ax.min(ay)
    near = (m > 0.5) & (m < 2.0)
    ratio = m.eq(0).select(m, n / m)
    squares = near.select((m - 1.0) * (m + 1.0) + n * n if excess is None else excess, ratio * ratio)
    found = near.select(m.const(0), m.op("log")) + squares.op("log1p") * 0.5
    return (ax.eq(math.inf) | ay.eq(math.inf)).select(m.const(math.inf), found)


def log(z: Pair) -> Pair:
    return Pair(_log_modulus(z.re, z.im), z.im.op("atan2", z.re))


def log2(z: Pair) -> Pair:
    return log(z).times(1 / math.log(2))


def log10(z: Pair) -> Pair:
    return log(z).times(1 / math.log(10))


def log1p(z: Pair) -> Pair:
    x, y = z
    moved = x + 1.0
    return Pair(_log_modulus(moved, y, x * (x + 2.0) + y * y), y.op("atan2", moved))


def pow(z: Pair, w: Pair) -> Pair:
    """``exp(w log z)``; 1 for w = 0, and for z = 0 zero where w has a positive real part, else NaN, as NumPy has it."""
    found = exp(w * log(z))
    zero, one = found.re.const(0), found.re.const(1)
    of_zero = (w.re > 0).select(zero, zero.const(math.nan))
    base, exponent = z.re.eq(0) & z.im.eq(0), w.re.eq(0) & w.im.eq(0)
    re, im = (base.select(of_zero, part) for part in found)
    return Pair(exponent.select(one, re), exponent.select(zero, im))


# --- inverse functions -----------------------------------------------------------------------------------------------


def _roots(z: Pair) -> tuple[Pair, Pair, Pair, Any]:
    """``z`` and the roots of ``1 - z`` and ``1 + z``, for a large ``z`` all scaled down, and the logarithm of what a product of two roots lacks."""
    m = z.re.abs().max(z.im.abs())
    large = m > _largest(m) / 64
    one = large.select(m.const(1 / 64), m.const(1))
    w = z.times(one)
    return w, sqrt(Pair(one - w.re, -w.im)), sqrt(Pair(one + w.re, w.im)), large.select(m.const(math.log(64)), m.const(0))


def _grown(x: Any, missing: Any) -> Any:
    """``asinh`` of a product of roots."""
    y = x.op("asinh")
    return y + missing.copysign(y)


def _has_inf(z: Pair) -> Any:
    return _is_inf(z.re) | _is_inf(z.im)


def asin(z: Pair) -> Pair:
    x, y = z
    w, a, b, missing = _roots(z)
    re = w.re.op("atan2", a.re * b.re - a.im * b.im)
    im = _grown(a.re * b.im - a.im * b.re, missing)
    infinite = _has_inf(z)
    re = x.eq(0).select(x, infinite.select(x.op("atan2", y.abs()), re))
    return Pair(re, infinite.select(x.const(math.inf).copysign(y), im.copysign(y)))


def acos(z: Pair) -> Pair:
    x, y = z
    _, a, b, missing = _roots(z)
    re = a.re.op("atan2", b.re) * 2.0
    im = _grown(b.re * a.im - b.im * a.re, missing)
    infinite = _has_inf(z)
    re = infinite.select(y.abs().op("atan2", x), re)
    re = (x.eq(0) & y.ne(y)).select(x.const(math.pi / 2), re)
    return Pair(re, infinite.select(x.const(math.inf), im).copysign(-y))


def asinh(z: Pair) -> Pair:
    return _turned_back(asin(_turned(z)))


def acosh(z: Pair) -> Pair:
    w = acos(z)
    return Pair(w.im.abs(), w.re.copysign(z.im))


def atanh(z: Pair) -> Pair:
    """``log1p(4x / ((1-x)**2 + y**2)) / 4`` and half the angle of ``(1-x)(1+x) - y**2 + 2iy``."""
    x, y = z
    ax, ay = x.abs(), y.abs()
    far = ax.max(ay) > 1 / _epsilon(x)
    r = ax.op("hypot", ay)
    from_one = x.const(1) - ax
    general = (ax * 4.0 / (from_one * from_one + y * y)).op("log1p") * 0.25
    pole = ax.eq(1) & (ay < _small(x))
    re = far.select(ax / r / r, pole.select((math.log(2) - ay.op("log")) * 0.5, general))
    im = y.op("atan2", (from_one * (ax + 1.0) - y * y) * 0.5) * 0.5
    infinite = _has_inf(z)
    quarter = y.ne(y).select(y, x.const(math.pi / 2))
    re = x.eq(0).select(ax, infinite.select(x.const(0), re))
    return Pair(re.copysign(x), infinite.select(quarter, im).copysign(y))


def atan(z: Pair) -> Pair:
    return _turned_back(atanh(_turned(z)))
