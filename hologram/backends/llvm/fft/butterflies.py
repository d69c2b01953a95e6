"""Discrete Fourier transforms of a few elements in registers: what one step of a longer transform computes.

Powers of two and other composites by Cooley and Tukey's factorization with constant twiddle factors; odd primes by sums and differences of the
elements j and r - j, whose coefficients are real. All are forward transforms.

Elements are asked for when they are needed, and handed over when they are there, so that few registers are in use at one time.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from hologram.backends.llvm.fft.arithmetic import Complex, Lanes

Source = Callable[[int], Complex]
Sink = Callable[[int, Complex], None]

_SPLIT = {4: 2, 6: 2, 8: 4, 9: 3, 10: 2, 12: 4, 14: 2, 15: 3, 16: 4}
PRIMES = (2, 3, 5, 7, 11, 13)
RADICES = tuple(sorted({*PRIMES, *_SPLIT}))


def transform(e: Lanes, r: int, source: Source, sink: Sink) -> None:
    """The transform of the ``r`` elements that ``source`` gives, each asked for once."""
    if r == 1:
        sink(0, source(0))
    elif r == 2:
        a, b = source(0), source(1)
        sink(0, e.plus(a, b))
        sink(1, e.minus(a, b))
    elif r == 4:
        _four(e, source, sink)
    elif r in _SPLIT:
        _composite(e, _SPLIT[r], r // _SPLIT[r], source, sink)
    else:
        _odd_prime(e, r, source, sink)


def _four(e: Lanes, source: Source, sink: Sink) -> None:
    a, c = source(0), source(2)
    even, odd = e.plus(a, c), e.minus(a, c)
    b, d = source(1), source(3)
    other, turned = e.plus(b, d), e.minus(b, d)
    sink(0, e.plus(even, other))
    sink(1, (e.add(odd[0], turned[1]), e.sub(odd[1], turned[0])))
    sink(2, e.minus(even, other))
    sink(3, (e.sub(odd[0], turned[1]), e.add(odd[1], turned[0])))


def _composite(e: Lanes, a: int, b: int, source: Source, sink: Sink) -> None:
    """Transforms of length ``a`` of every b-th element, twiddle factors, transforms of length ``b``."""
    middle: dict[tuple[int, int], Complex] = {}
    for j in range(b):

        def keep(k: int, value: Complex, j: int = j) -> None:
            middle[k, j] = rotated(e, value, j * k, a * b)

        transform(e, a, lambda i, j=j: source(b * i + j), keep)  # type: ignore[misc]
    for k in range(a):
        transform(e, b, lambda j, k=k: middle[k, j], lambda i, value, k=k: sink(k + a * i, value))  # type: ignore[misc]


def rotated(e: Lanes, x: Complex, k: int, n: int) -> Complex:
    """x times exp(-2πi k/n), a constant."""
    eighths, rest = divmod(8 * (k % n), n)
    if rest == 0 and eighths % 2 == 0:
        return [x, (x[1], e.negative(x[0])), (e.negative(x[0]), e.negative(x[1])), (e.negative(x[1]), x[0])][eighths // 2]
    if rest == 0:
        half = e.constant(math.sqrt(0.5))
        total, difference = e.add(x[0], x[1]), e.sub(x[1], x[0])
        if eighths in (1, 5):
            out = e.mul(total, half), e.mul(difference, half)
        else:
            out = e.mul(difference, half), e.mul(e.negative(total), half)
        return out if eighths in (1, 3) else (e.negative(out[0]), e.negative(out[1]))
    c, s = root(k, n)
    return e.times(x, (e.constant(c), e.constant(s)))


def root(k: int, n: int) -> tuple[float, float]:
    """The parts of exp(-2πi k/n), from an angle in the first octant, so that both are as exact as doubles are."""
    octant, rest = divmod(8 * (k % n), n)
    if octant % 2:
        rest = n - rest
    angle = 2 * math.pi * rest / (8 * n)
    c, s = math.cos(angle), math.sin(angle)
    if octant in (1, 2, 5, 6):
        c, s = s, c
    if octant in (2, 3, 4, 5):
        c = -c
    if octant < 4:
        s = -s
    return c, s


def _odd_prime(e: Lanes, r: int, source: Source, sink: Sink) -> None:
    first, pairs = source(0), []
    total = first
    for j in range(1, (r + 1) // 2):
        a, b = source(j), source(r - j)
        pairs.append((e.plus(a, b), e.minus(a, b)))
        total = e.plus(total, pairs[-1][0])
    sink(0, total)
    for k in range(1, (r + 1) // 2):
        c: tuple[str, str] = first
        s: tuple[str, str] | None = None
        for j, (even, odd) in enumerate(pairs, 1):
            cosine, sine = root(j * k, r)
            f, g = e.constant(cosine), e.constant(-sine)
            c = e.fma(even[0], f, c[0]), e.fma(even[1], f, c[1])
            s = e.scaled(odd, g) if s is None else (e.fma(odd[0], g, s[0]), e.fma(odd[1], g, s[1]))
        assert s is not None
        sink(k, (e.add(c[0], s[1]), e.sub(c[1], s[0])))
        sink(r - k, (e.sub(c[0], s[1]), e.add(c[1], s[0])))
