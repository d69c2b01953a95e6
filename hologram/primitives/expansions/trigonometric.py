"""sin, cos and tan: minimax polynomials on a quarter turn, after :mod:`hologram.primitives.expansions.angles`.

Where a lane holds a large argument, the way for these is taken as well.
"""

from __future__ import annotations

from collections.abc import Callable

from hologram.primitives.expansions.angles import ORDINARY, large, ordinary
from hologram.primitives.expansions.coefficients.trigonometric import COS, SIN, TAN
from hologram.primitives.expansions.common import Value, flip_sign, format_of, polynomial


def _reduced(x: Value, kernel: Callable[[Value, Value, Value], Value]) -> Value:
    """``kernel(r, r_low, n)`` where ``|x| = r + r_low + n*pi/2``, |r| <= pi/4, n modulo 4 in the low bits of an unsigned value."""
    a = x.abs()
    return (a >= ORDINARY[x.dtype]).rare(lambda: kernel(*large(a)), kernel(*ordinary(a)))


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
