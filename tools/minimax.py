"""Writes ``hologram/primitives/expansions/coefficients/``: minimax polynomials by the Remez exchange, in mpmath.

``fit(f, powers, low, high, weight)`` minimises ``max |(f(x) - sum c_i x**powers[i]) * weight(x)|`` on ``[low, high]``. With ``bits``
the coefficients are rounded to that many bits one after the other, lowest power first, and those that remain are fitted again, so
that later coefficients make up for the rounding of earlier ones (the idea of Brisebarre & Chevillard 2007, simplified).

``python tools/minimax.py`` writes the files; ``python tools/minimax.py NAME ...`` prints the polynomials of these names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import mpmath as mp

mp.mp.prec = 320
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
    two_part: bool = False,
    grid: int = 300,
) -> tuple[list[mp.mpf], mp.mpf]:
    """Coefficients (in the order of ``powers``) and the weighted maximum error; ``two_part`` doubles the bits of the first."""
    low, high = mp.mpf(low), mp.mpf(high)
    xs = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / grid) for i in range(grid + 1)]
    xs = [x for x in xs if abs(x) > (high - low) * mp.mpf(2) ** -20]  # most f are quotients that have no value at 0
    weights = [weight(x) for x in xs]
    target = [f(x) * w for x, w in zip(xs, weights, strict=True)]
    done: list[mp.mpf] = []
    left = list(powers)
    while True:
        basis = [[x**p * w for x, w in zip(xs, weights, strict=True)] for p in left]
        coefficients, error = _remez(target, basis)
        if bits is None:
            return coefficients, error
        first = _round(coefficients[0], bits if done or not two_part else 2 * bits)
        done.append(first)
        target = [t - first * b for t, b in zip(target, basis[0], strict=True)]
        left = left[1:]
        if not left:
            return done, max(abs(t) for t in target)


# --- the polynomials of the module -----------------------------------------------------------------------------------

_SLACK = mp.mpf("1.0015")  # reductions overshoot their interval by a rounding error
_LN2 = mp.log(2)
_HALF_LN2 = _LN2 / 2 * _SLACK
_ROOT = mp.sqrt(2)


def _odd(f: Function) -> Function:
    """``(f(r)/r - 1) / r**2`` of an odd f, as a function of ``z = r**2``."""
    return lambda z: (f(mp.sqrt(z)) / mp.sqrt(z) - 1) / z


def _odd_weight(f: Function) -> Function:
    """Makes the error of :func:`_odd`'s polynomial that of f, relative."""
    return lambda z: z * mp.sqrt(z) / f(mp.sqrt(z))


def _over(f: Function) -> Function:
    """``f(r) / r`` as a function of ``z = r**2``."""
    return lambda z: f(mp.sqrt(z)) / mp.sqrt(z)


def _odd_fit(about: str, f: Function, high: mp.mpf, single: int, double: int) -> Fit:
    return Fit(f"({about}(r) / r - 1) / r**2 in r**2, r <= {mp.nstr(high, 4)}", _odd(f), 0, high**2, _odd_weight(f), (single, double))


@dataclass(frozen=True)
class Fit:
    """What is approximated, where, the weight of the error, and the numbers of coefficients for float32 and float64, 0 for none."""

    about: str
    f: Function
    low: mp.mpf | float
    high: mp.mpf | float
    weight: Function
    counts: tuple[int, int]
    two_part: bool = False  # the first coefficient is rounded to twice the bits; what its float lacks stands in a table NAME_LOW


def _erf_fit(high: float, single: int, double: int) -> Fit:
    f = _over(mp.erf)
    return Fit(f"erf(x)/x - 1 in x**2, x <= {high}", lambda z: f(z) - 1, 0, mp.mpf(high) ** 2, lambda z: 1 / f(z), (single, double))


def _log2_erfc_fit(low: float, high: float, single: int, double: int) -> Fit:
    """The weight is for 1 - erfc."""
    return Fit(
        f"log2(erfc(x)), {low} <= x <= {high}",
        lambda x: mp.log(mp.erfc(x), 2),
        low,
        high,
        lambda x: mp.erfc(x) * _LN2 / mp.erf(x),
        (single, double),
    )


def _normal_within_fit(halvings: int, high: float, single: int) -> Fit:
    """The weight is for erf(x/sqrt(2)), had by ``halvings`` steps d -> 1 - (1 - d)**2."""
    power = mp.mpf(2) ** -halvings

    def f(x: mp.mpf) -> mp.mpf:
        return -mp.expm1(power * mp.log(mp.erfc(x / _ROOT))) / x

    def weight(x: mp.mpf) -> mp.mpf:
        return mp.erfc(x / _ROOT) ** (1 - power) / power * x / mp.erf(x / _ROOT)

    return Fit(f"(1 - erfc(x/sqrt(2))**{mp.nstr(power)}) / x, x <= {high}", f, 0, high, weight, (single, 0))


def _erfcx_fit(k: int, high: float, single: int, double: int) -> Fit:
    def f(t: mp.mpf) -> mp.mpf:
        a = k * (1 + t) / (1 - t)
        return mp.exp(a * a) * mp.erfc(a) * (a + k)

    low_t, high_t = ((mp.mpf(a) - k) / (mp.mpf(a) + k) for a in (0.45, high))
    about = f"erfc(a) * exp(a**2) * (a + {k}) in t = (a - {k})/(a + {k}), 0.45 <= a <= {high}"
    return Fit(about, f, low_t, high_t, lambda t: 1 / f(t), (single, double), two_part=True)


@cache
def _erfinv_over(w: mp.mpf) -> mp.mpf:
    """erfinv(x) / x where ``w = -log(1 - x**2)``."""
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def _erfinv_fit(center: float, low: float, high: float, single: int, double: int, less: int = 0) -> Fit:
    def f(t: mp.mpf) -> mp.mpf:
        return _erfinv_over(t + center) - less

    name = f"erfinv(x)/x - {less}" if less else "erfinv(x)/x"
    about = f"{name} in w - {center}, w = -log(1 - x**2), {low} < w < {high}"
    span = mp.mpf(low) - center, mp.mpf(high) - center
    return Fit(about, f, *span, lambda t: 1 / (f(t) + less), (single, double), two_part=not less)


@cache
def _normal_tail(s: mp.mpf) -> mp.mpf:
    """erfinv(x) / (x*s) where ``s**2 = -log(1 - x**2)``, for x next to 1."""
    rest = mp.exp(-s * s)
    two_p = rest / (1 + mp.sqrt(1 - rest))  # 1 - x
    z = mp.findroot(lambda z: mp.log(mp.erfc(z) / two_p), s - mp.log(mp.pi * s * s) / (4 * s))
    return z / (1 - two_p) / s


def _mobius(c: float, low: float, high: float) -> tuple[Function, mp.mpf, mp.mpf]:
    """x of ``t = (x - c)/(x + c)``, and the ends of t."""
    return lambda t: c * (1 + t) / (1 - t), (mp.mpf(low) - c) / (mp.mpf(low) + c), (mp.mpf(high) - c) / (mp.mpf(high) + c)


def _mobius_fit(about: str, f: Function, c: float, low: float, high: float, single: int, double: int) -> Fit:
    x, *span = _mobius(c, low, high)
    about = f"{about} in t = (x - {c})/(x + {c}), {low} <= x <= {high}"
    return Fit(about, lambda t: f(x(t)), *span, lambda t: 1 / f(x(t)), (single, double), two_part=True)


_DIGAMMA_ZERO = mp.findroot(mp.digamma, 1.4616)


def _stirling(z: mp.mpf) -> mp.mpf:
    """What the leading terms of Stirling's formula lack, times x, at ``z = 1/x**2``."""
    x = 1 / mp.sqrt(z)
    return (mp.loggamma(x) - (x - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2) * x


def _digamma_tail(z: mp.mpf) -> mp.mpf:
    x = 1 / mp.sqrt(z)
    return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) / z


def _bessel_near(n: int) -> Fit:
    def scaled(z: mp.mpf) -> mp.mpf:
        return mp.besseli(n, 2 * mp.sqrt(z)) / mp.sqrt(z) ** n

    about = f"(I{n}(x) / (x/2)**{n} - 1) / z in z = (x/2)**2, x <= 7.75"
    return Fit(about, lambda z: (scaled(z) - 1) / z, 0, mp.mpf(7.75) ** 2 / 4, lambda z: z / scaled(z), (9, 15))


def _bessel_far(n: int) -> Fit:
    def scaled(v: mp.mpf) -> mp.mpf:
        return mp.exp(-1 / v) * mp.besseli(n, 1 / v) / mp.sqrt(v) if v > 1e-9 else 1 / mp.sqrt(2 * mp.pi)

    about = f"exp(-x) * sqrt(x) * I{n}(x) in 1/x - 1/16, x >= 7.75"
    center, high = 1 / mp.mpf(16), 1 / mp.mpf(7.75)
    return Fit(about, lambda t: scaled(t + center), -center, high - center, lambda t: 1 / scaled(t + center), (8, 25), two_part=True)


FITS: dict[str, Fit | tuple[Fit, ...]] = {
    "EXPM1": Fit("(expm1(r) - r) / r**2, |r| <= ln2/2", lambda r: (mp.expm1(r) - r) / r**2, -_HALF_LN2, _HALF_LN2, lambda r: r * r, (5, 10)),
    "EXP2M1": Fit("(2**r - 1) / r, |r| <= 1/2", lambda r: mp.expm1(r * _LN2) / r, -_SLACK / 2, _SLACK / 2, lambda r: r, (7, 12)),
    "TANH": _odd_fit("tanh", mp.tanh, mp.mpf("0.2775"), 4, 8),
    "SINH": _odd_fit("sinh", mp.sinh, _HALF_LN2, 3, 6),
    "COSH": Fit("(cosh(r) - 1) / r**2 in r**2, |r| <= ln2/2", lambda z: (mp.cosh(mp.sqrt(z)) - 1) / z, 0, (_HALF_LN2) ** 2, lambda z: z, (3, 6)),
    "LOG1P": Fit(
        "(log1p(f) - f + f**2/2) / f**3, sqrt(1/2) <= 1 + f <= sqrt(2)",
        lambda f: (mp.log1p(f) - f + f * f / 2) / f**3,
        1 / _ROOT - 1,
        _ROOT - 1,
        lambda f: f**3 / mp.log1p(f),
        (8, 0),
    ),
    "ATANH": _odd_fit("atanh", mp.atanh, mp.mpf("0.273"), 5, 10),
    "SIN": _odd_fit("sin", mp.sin, mp.pi / 4 * _SLACK, 4, 7),
    "COS": Fit("(cos(r) - 1) / r**2 in r**2, |r| <= pi/4", lambda z: (mp.cos(mp.sqrt(z)) - 1) / z, 0, (mp.pi / 4 * _SLACK) ** 2, lambda z: z, (4, 7)),
    "TAN": _odd_fit("tan", mp.tan, mp.pi / 4 * _SLACK, 7, 15),
    "ATAN": _odd_fit("atan", mp.atan, mp.mpf(1), 9, 20),
    "ERF": (_erf_fit(0.9, 6, 0), _erf_fit(1.0, 0, 13)),
    "ERF_NEAR": _erf_fit(0.48, 5, 9),
    "LOG2_ERFC": (_log2_erfc_fit(0.9, 3.93, 7, 0), _log2_erfc_fit(1.0, 5.95, 0, 19)),
    "EXP2M1_SHORT": Fit("(2**r - 1) / r, |r| <= 1/2", lambda r: mp.expm1(r * _LN2) / r, -_SLACK / 2, _SLACK / 2, lambda r: r, (5, 11)),
    "NORMAL_WITHIN": _normal_within_fit(3, 5.6, 8),
    "ERFCX": (_erfcx_fit(1, 10.3, 11, 0), _erfcx_fit(2, 27.3, 0, 23)),
    "ERFINV": (_erfinv_fit(0.75, 1e-9, 5.0, 11, 0, 1), _erfinv_fit(0.75, 1e-9, 6.25, 0, 25, 1)),
    "ERFINV_TAIL": (_erfinv_fit(9.0, 5.0, 16.1, 11, 0), _erfinv_fit(10.0, 6.25, 16.0, 0, 23)),
    "ERFINV_FAR": _erfinv_fit(24.0, 16.0, 36.2, 0, 23),
    "CBRT": Fit("cbrt(m), sqrt(1/2) <= m <= sqrt(2)", mp.cbrt, 1 / _ROOT, _ROOT, lambda m: 1 / mp.cbrt(m), (4, 5)),
    "LOG2_TAIL": Fit(
        "(3*atanh(s)/s - 3 - s**2) / s**4 in s**2, s <= 0.1716",
        lambda z: (3 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 3 - z) / z**2,
        0,
        ((_ROOT - 1) / (_ROOT + 1) * _SLACK) ** 2,
        lambda z: z * z / 3,
        (3, 7),
    ),
    "ASIN": _odd_fit("asin", mp.asin, mp.mpf("0.5"), 5, 13),
    "LGAMMA": _mobius_fit("lgamma(x) / ((x - 1)*(x - 2))", lambda x: mp.loggamma(x) / ((x - 1) * (x - 2)), 1.25, 0.5, 3.0, 13, 28),
    "STIRLING": Fit("(lgamma(x) - (x - 1/2)*log(x) + x - log(2*pi)/2) * x in 1/x**2, x >= 8", _stirling, 0, 1 / mp.mpf(64), _one, (3, 7)),
    "DIGAMMA": _mobius_fit("digamma(x) / (x - its zero)", lambda x: mp.digamma(x) / (x - _DIGAMMA_ZERO), 1.75, 1.0, 3.0, 10, 21),
    "DIGAMMA_TAIL": Fit("(log(x) - 1/(2*x) - digamma(x)) * x**2 in 1/x**2, x >= 8", _digamma_tail, 0, 1 / mp.mpf(64), _one, (3, 8)),
    "I0_NEAR": _bessel_near(0),
    "I0_FAR": _bessel_far(0),
    "I1_NEAR": _bessel_near(1),
    "I1_FAR": _bessel_far(1),
    "NDTRI_FAR": _mobius_fit("erfinv(y)/(x*y), x = sqrt(-log(1 - y**2))", _normal_tail, 12.0, 6.0, 27.5, 9, 25),
}


# what stands in which file
FILES: dict[str, tuple[str, ...]] = {
    "exponential": ("EXPM1", "EXP2M1", "TANH", "SINH", "COSH"),
    "logarithm": ("LOG1P", "ATANH", "CBRT", "LOG2_TAIL"),
    "trigonometric": ("SIN", "COS", "TAN", "ATAN", "ASIN"),
    "error_function": ("ERF", "ERF_NEAR", "LOG2_ERFC", "EXP2M1_SHORT", "NORMAL_WITHIN", "ERFCX", "ERFINV", "ERFINV_TAIL", "ERFINV_FAR", "NDTRI_FAR"),
    "gamma": ("LGAMMA", "STIRLING", "DIGAMMA", "DIGAMMA_TAIL"),
    "bessel": ("I0_NEAR", "I0_FAR", "I1_NEAR", "I1_FAR"),
}


def table(name: str, fits: Fit | tuple[Fit, ...]) -> str:
    """Source text of one table."""
    comments, rows, low_rows = [], [], []
    for fitted in fits if isinstance(fits, tuple) else (fits,):
        errors = []
        for kind, bits, count in zip(("float32", "float64"), (24, 53), fitted.counts, strict=True):
            if not count:
                continue
            coefficients, error = fit(fitted.f, range(count), fitted.low, fitted.high, fitted.weight, bits, fitted.two_part)
            if fitted.two_part:
                first = _round(coefficients[0], bits)
                low_rows.append(f"    {kind}: {mp.nstr(coefficients[0] - first, 17)},\n")
                coefficients[0] = first
            numbers = [mp.nstr(c, 9) if bits == 24 else repr(float(c)) for c in coefficients]
            errors.append(f"2**{mp.nstr(mp.log(error, 2), 4)}")
            rows.append(f"    {kind}: (\n" + "".join(f"        {n},\n" for n in numbers) + "    ),\n")
        comments.append(f"# {fitted.about}; error {', '.join(errors)}\n")
    low_table = f"{name}_LOW = {{\n{''.join(low_rows)}}}\n" if low_rows else ""
    return f"{''.join(comments)}{name} = {{\n{''.join(rows)}}}\n{low_table}"


_HEADER = '''"""Polynomials of the decompositions, constant term first. Written by ``tools/minimax.py``; the error is that of the function."""

from hologram.dtypes import float32, float64

'''


FOLDER = Path(__file__).parent.parent / "hologram/primitives/expansions/coefficients"


def main(names: Sequence[str]) -> None:
    if names:
        for name in names:
            print(table(name, FITS[name]))
        return
    for file, held in FILES.items():
        (FOLDER / f"{file}.py").write_text(_HEADER + "".join(table(name, FITS[name]) for name in held))


if __name__ == "__main__":
    main(sys.argv[1:])
