"""Mathematical functions: ops whose decompositions are in :mod:`hologram.primitives.expansions`.

References compute in a wider type, float32 in float64 and float64 in C's long double, and round: where long double is wider than
float64 they err by hardly more than half a unit in the last place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hologram.ir.op import Op, register
from hologram.primitives import expansions
from hologram.primitives.scalar.elementwise import rounded, same_type


def in_wider_type(reference: Callable[..., Any]) -> Callable[..., Any]:
    """``reference`` of float32 in float64, of float64 in C's long double."""

    def wide(*xs: Any) -> Any:
        wider = np.longdouble if xs[0].dtype.itemsize >= 8 else np.float64
        return reference(*(np.asarray(x, wider) for x in xs))

    return wide


def _define(name: str, reference: Callable[..., Any], cost: int, low: float = -10.0, high: float = 10.0, arity: int = 1) -> Op:
    """Defines an op; ``low`` and ``high`` bound the arguments that generated tests draw most of theirs from."""

    decomposition = getattr(expansions, name)
    return register(
        Op(
            name,
            "elementwise",
            arity,
            same_type(name, "f"),
            rounded(in_wider_type(reference)),
            lower=decomposition,
            cost=cost,
            exact=False,
            kinds="f",
            tests={"low": low, "high": high},
        )
    )


def _sigmoid(x: Any) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1.0) / (1.0 + small)


def _pow(x: Any, y: Any) -> Any:
    """Infinite bases are left to float64: some libraries' long double function gets their signs and inverses wrong."""
    return np.where(np.isinf(x), np.power(x.astype(np.float64), y.astype(np.float64)), np.power(x, y))


def pi_like(x: Any) -> Any:
    """The number pi in the type of ``x``."""
    return np.arccos(x.dtype.type(-1.0))


def gauss(x: Any) -> Any:
    """exp(-x**2), the square being taken of two parts so that it is exact."""
    short = x.astype(np.float32).astype(x.dtype)
    return np.exp(-np.square(short)) * np.exp(-(x - short) * (x + short))


def erf_near_zero(x: Any) -> Any:
    """erf for |x| <= 1: 2/sqrt(pi) * exp(-x**2) * sum of 2**n x**(2n+1) / (2n+1)!!, whose terms have one sign."""
    term = total = x
    for n in range(1, 36):
        term = term * (2.0 * np.square(x) / (2 * n + 1))
        total = total + term
    return 2.0 / np.sqrt(pi_like(x)) * gauss(x) * total


def erfcx_far(a: Any) -> Any:
    """``exp(a**2) * erfc(a)`` for a >= 1/2.

    By the trapezoidal rule of Chiarella & Reichel (On the evaluation of integrals related to the error function, 1968).
    Its own error is exp(-(pi/h)**2). Libraries' erfc err by several units.
    """
    h = 0.4
    squares = (h * np.arange(1, 18, dtype=a.dtype)) ** 2
    terms = np.exp(-squares) / (squares + np.square(a)[..., None])
    period = pi_like(a) / h
    near = np.minimum(a, period)
    residue = np.where(a < period, 2.0 / np.expm1(2.0 * period * near) / gauss(near), 0.0)
    return a / period * (1.0 / np.square(a) + 2.0 * terms.sum(axis=-1)) - residue


def _erfc_far(a: Any) -> Any:
    return gauss(a) * erfcx_far(a)


def erf_of(x: Any) -> Any:
    a = np.clip(np.abs(x), 0.0, 28.0)
    result = np.where(a < 0.5, erf_near_zero(np.minimum(a, 0.5)), 1.0 - _erfc_far(np.maximum(a, 0.5)))
    return np.copysign(np.where(np.isnan(x), x, result), x)


def erfc_of(x: Any) -> Any:
    a = np.clip(np.abs(x), 0.5, 28.0)
    far = _erfc_far(a)
    result = np.where(np.abs(x) < 0.5, 1.0 - erf_near_zero(np.clip(x, -0.5, 0.5)), np.where(x < 0, 2.0 - far, far))
    return np.where(np.isnan(x), x, result)


def erfinv_of(x: Any) -> Any:
    """Halley's iteration on erf, or on erfc where that is the smaller, from the approximation of Winitzki (2008)."""
    y = np.where(np.abs(x) < 1.0, np.abs(x), 0.0)
    w = np.log1p(-np.square(y))
    p = 2.0 / (pi_like(x) * 0.147) + w / 2.0
    z = np.sqrt(np.sqrt(np.square(p) - w / 0.147) - p)
    for _ in range(4):
        excess = np.where(y < 0.5, erf_near_zero(np.minimum(z, 0.6)) - y, (1.0 - y) - _erfc_far(np.maximum(z, 0.45)))
        step = excess / (2.0 / np.sqrt(pi_like(x)) * np.exp(-np.square(z)))
        z = z - step / (1.0 + z * step)
    edge = np.where(np.abs(x) == 1.0, np.inf, np.nan)
    return np.copysign(np.where(np.abs(x) < 1.0, np.where(y < 1e-30, y * np.sqrt(pi_like(x)) / 2.0, z), edge), x)


exp = _define("exp", np.exp, 20)
exp2 = _define("exp2", np.exp2, 18)
expm1 = _define("expm1", np.expm1, 22)
log = _define("log", np.log, 22, 0.0)
log2 = _define("log2", np.log2, 30, 0.0)
log10 = _define("log10", np.log10, 30, 0.0)
log1p = _define("log1p", np.log1p, 26, -1.0)
sin = _define("sin", np.sin, 26, -100.0, 100.0)
cos = _define("cos", np.cos, 26, -100.0, 100.0)
tan = _define("tan", np.tan, 36, -100.0, 100.0)
asin = _define("asin", np.arcsin, 22, -1.0, 1.0)
acos = _define("acos", np.arccos, 24, -1.0, 1.0)
atan = _define("atan", np.arctan, 26)
atan2 = _define("atan2", np.arctan2, 36, arity=2)
sinh = _define("sinh", np.sinh, 24)
cosh = _define("cosh", np.cosh, 24)
tanh = _define("tanh", np.tanh, 26)
asinh = _define("asinh", np.arcsinh, 44)
acosh = _define("acosh", np.arccosh, 40, 1.0)
atanh = _define("atanh", np.arctanh, 30, -1.0, 1.0)
erf = _define("erf", erf_of, 28, -4.0, 4.0)
erfc = _define("erfc", erfc_of, 60, -4.0)
erfinv = _define("erfinv", erfinv_of, 44, -1.0, 1.0)
sigmoid = _define("sigmoid", _sigmoid, 24)
pow_ = _define("pow", _pow, 80, 0.0, arity=2)
rsqrt = _define("rsqrt", lambda x: 1.0 / np.sqrt(x), 12, 0.0)
cbrt = _define("cbrt", np.cbrt, 44)
hypot = _define("hypot", np.hypot, 14, arity=2)
