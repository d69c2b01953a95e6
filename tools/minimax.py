"""Minimax polynomials for :mod:`hologram.primitives.vector_math`, by the Remez exchange in mpmath.

``fit(f, powers, low, high, weight)`` minimises ``max |(f(x) - sum c_i x**powers[i]) * weight(x)|`` on ``[low, high]``. With
``bits`` the coefficients are rounded to that many bits one after the other, lowest power first, and those that remain are fitted
again, so that later coefficients make up for the rounding of earlier ones (the idea of Brisebarre & Chevillard 2007, simplified).

Run as a script it prints every polynomial that the module holds: ``python tools/minimax.py [name ...]``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import mpmath as mp

mp.mp.prec = 200
Function = Callable[[mp.mpf], mp.mpf]


def _one(x: mp.mpf) -> mp.mpf:
    return mp.mpf(1)


def _round(c: mp.mpf, bits: int) -> mp.mpf:
    if c == 0:
        return c
    mantissa, exponent = mp.frexp(c)
    return mp.ldexp(mp.nint(mp.ldexp(mantissa, bits)), exponent - bits)


def _errors(target: Sequence[mp.mpf], basis: Sequence[Sequence[mp.mpf]], coefficients: Sequence[mp.mpf]) -> list[mp.mpf]:
    return [t - mp.fsum(c * b[i] for c, b in zip(coefficients, basis, strict=True)) for i, t in enumerate(target)]


def _least_squares(target: Sequence[mp.mpf], basis: Sequence[Sequence[mp.mpf]]) -> list[mp.mpf]:
    normal = mp.matrix([[mp.fdot(p, q) for q in basis] for p in basis])
    return list(mp.lu_solve(normal, mp.matrix([mp.fdot(p, target) for p in basis])))


def _remez(target: Sequence[mp.mpf], basis: Sequence[Sequence[mp.mpf]]) -> tuple[list[mp.mpf], mp.mpf]:
    """Coefficients and error of the best approximation on a grid: ``target`` and each row of ``basis`` are weighted samples.

    Starts from least squares, whose error alternates almost always often enough; where it does not, it is the answer.
    """
    size = len(basis) + 1
    coefficients = _least_squares(target, basis)
    errors = _errors(target, basis, coefficients)
    best = max(abs(e) for e in errors), coefficients
    for _ in range(12):
        points = _alternating_peaks(errors, size)
        if points is None:
            break
        system = mp.matrix([[samples[i] for samples in basis] + [(-1) ** row] for row, i in enumerate(points)])
        solution = mp.lu_solve(system, mp.matrix([target[i] for i in points]))
        coefficients = [solution[i] for i in range(size - 1)]
        errors = _errors(target, basis, coefficients)
        worst = max(abs(e) for e in errors)
        best = min(best, (worst, coefficients), key=lambda pair: pair[0])
        if worst <= abs(solution[size - 1]) * mp.mpf("1.001"):
            break
    return best[1], best[0]


def _alternating_peaks(errors: Sequence[mp.mpf], size: int) -> list[int] | None:
    """The largest error of every run of one sign, shortened at its weaker end to ``size`` points."""
    peaks: list[int] = []
    for i, e in enumerate(errors):
        if e == 0:
            continue
        if peaks and (errors[peaks[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    while len(peaks) > size:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    return peaks if len(peaks) == size else None


def fit(
    f: Function,
    powers: Sequence[int],
    low: float,
    high: float,
    weight: Function = _one,
    bits: int | None = None,
    fixed: dict[int, float] | None = None,
    grid: int = 300,
) -> tuple[list[mp.mpf], mp.mpf]:
    """Coefficients (in the order of ``powers``) and the weighted maximum error; ``fixed`` gives the coefficients of other powers."""
    low, high = mp.mpf(low), mp.mpf(high)
    xs = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / grid) for i in range(grid + 1)]
    xs = [x for x in xs if abs(x) > (high - low) * mp.mpf(2) ** -20]  # most f are quotients that have no value at 0
    weights = [weight(x) for x in xs]
    target = [(f(x) - sum(mp.mpf(c) * x**p for p, c in (fixed or {}).items())) * w for x, w in zip(xs, weights, strict=True)]
    done: list[mp.mpf] = []
    left = list(powers)
    while True:
        basis = [[x**p * w for x, w in zip(xs, weights, strict=True)] for p in left]
        coefficients, error = _remez(target, basis)
        if bits is None:
            return coefficients, error
        first = _round(coefficients[0], bits)
        done.append(first)
        target = [t - first * b for t, b in zip(target, basis[0], strict=True)]
        left = left[1:]
        if not left:
            return done, max(abs(t) for t in target)


def show(name: str, coefficients: Sequence[mp.mpf], error: mp.mpf, bits: int) -> None:
    """Prints one table as Python source."""
    digits = {24: 9, 53: 17}[bits]
    print(f"# {name}: error 2^{mp.nstr(mp.log(error, 2), 4)}")
    print("(" + ", ".join(mp.nstr(c, digits) if bits == 24 else repr(float(c)) for c in coefficients) + ")")
