"""Mathematical functions: rows whose decompositions are in :mod:`hologram.primitives.vector_math`.

References compute in a wider type, float32 in float64 and float64 in C's long double, and round: where long double is wider than
float64 they err by hardly more than half a unit in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hologram.primitives import vector_math
from hologram.primitives.elementwise import rounded, same_type
from hologram.primitives.op import Op, register


def _row(name: str, reference: Callable[..., Any], cost: int, low: float = -10.0, high: float = 10.0, arity: int = 1) -> Op:
    """A row of the table; ``low`` and ``high`` bound the arguments that generated tests draw most of theirs from."""

    def wide(*xs: Any) -> Any:
        wider = np.longdouble if xs[0].dtype == np.float64 else np.float64
        return reference(*(np.asarray(x, wider) for x in xs))

    decomposition = getattr(vector_math, name)
    return register(
        Op(
            name,
            "elementwise",
            arity,
            same_type(name, "f"),
            rounded(wide),
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


_erf_each = np.vectorize(math.erf, otypes=[np.float64])


def _erfc(x: Any) -> Any:
    """The trapezoidal rule of Chiarella & Reichel (On the evaluation of integrals related to the error function, 1968).

    Its error is exp(-(pi/h)**2); exp(-x**2) is taken of two parts, since libraries' own erfc errs by several units.
    """
    h = 0.4
    a = np.minimum(np.maximum(np.abs(x), 0.5), 28.0)
    squares = (h * np.arange(1, 18, dtype=x.dtype)) ** 2
    terms = np.exp(-squares) / (squares + np.square(a)[..., None])
    short = a.astype(np.float32).astype(x.dtype)
    gauss = np.exp(-np.square(short)) * np.exp(-(a - short) * (a + short))
    pi = np.arccos(x.dtype.type(-1.0))
    residue = np.where(a < pi / h, 2.0 / np.expm1(2.0 * pi * a / h), 0.0)
    far = gauss * a * h / pi * (1.0 / np.square(a) + 2.0 * terms.sum(axis=-1)) - residue
    return np.where(np.abs(x) < 0.5, 1.0 - _erf_each(x), np.where(x < 0, 2.0 - far, np.where(x == x, far, x)))


exp = _row("exp", np.exp, 20)
exp2 = _row("exp2", np.exp2, 18)
expm1 = _row("expm1", np.expm1, 22)
log = _row("log", np.log, 22, 0.0)
log2 = _row("log2", np.log2, 30, 0.0)
log10 = _row("log10", np.log10, 30, 0.0)
log1p = _row("log1p", np.log1p, 26, -1.0)
sin = _row("sin", np.sin, 26, -100.0, 100.0)
cos = _row("cos", np.cos, 26, -100.0, 100.0)
tan = _row("tan", np.tan, 36, -100.0, 100.0)
asin = _row("asin", np.arcsin, 22, -1.0, 1.0)
acos = _row("acos", np.arccos, 24, -1.0, 1.0)
atan = _row("atan", np.arctan, 26)
atan2 = _row("atan2", np.arctan2, 36, arity=2)
sinh = _row("sinh", np.sinh, 24)
cosh = _row("cosh", np.cosh, 24)
tanh = _row("tanh", np.tanh, 26)
asinh = _row("asinh", np.arcsinh, 44)
acosh = _row("acosh", np.arccosh, 40, 1.0)
atanh = _row("atanh", np.arctanh, 30, -1.0, 1.0)
erf = _row("erf", _erf_each, 28, -4.0, 4.0)
erfc = _row("erfc", _erfc, 60, -4.0)
sigmoid = _row("sigmoid", _sigmoid, 36)
pow_ = _row("pow", np.power, 80, 0.0, arity=2)
rsqrt = _row("rsqrt", lambda x: 1.0 / np.sqrt(x), 12, 0.0)
cbrt = _row("cbrt", np.cbrt, 44)
hypot = _row("hypot", np.hypot, 14, arity=2)
