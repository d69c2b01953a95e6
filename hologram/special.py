"""Special functions, under the names of ``scipy.special``.

Every function takes Tensors, NumPy arrays and numbers that broadcast, computes integers in the default float type, has derivatives, and fuses.

Largest errors, in ULP: 2 for erf, erfc, erfinv and expit, 3 for gammaln and digamma of positive arguments, xlogy, xlog1py, ndtr and ndtri, 4 for
erfcx, i0e and i1e, 8 for polygamma up to order 5. Below zero gammaln, digamma and polygamma come from reflection formulas and err by up to 4 ULP of
the sum of two terms. float32, but for erf and its kin, is computed in float64 and rounded. The other functions are short compositions of these.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from hologram import dtypes
from hologram import numpy as hnp
from hologram.errors import ArgumentError
from hologram.numpy.analysis.windows import i0, unscaled_bessel
from hologram.numpy.arguments import cast, floats, weakly, wrap
from hologram.numpy.elementwise import FUNCTIONS, where
from hologram.numpy.reductions import logsumexp
from hologram.primitives import TABLE
from hologram.support.user_lines import located
from hologram.trace.apply import elementwise, promoted, unary_operator
from hologram.trace.recorder import record
from hologram.trace.tensor import Tensor
from hologram.transform.api import stop_gradient

__all__ = [
    "betaln", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "expit", "gammaln", "i0", "i0e", "i1", "i1e", "kl_div", "log_ndtr", "log_softmax",
    "logit", "logsumexp", "ndtr", "ndtri", "polygamma", "rel_entr", "softmax", "xlog1py", "xlogy",
]  # fmt: skip


def _row(name: str, about: str) -> Callable[[Any], Tensor]:
    function = unary_operator(TABLE[name])
    function.__doc__ = about
    return function


erf = _row("erf", "The error function.")
erfc = _row("erfc", "``1 - erf(x)``.")
erfcx = _row("erfcx", "``exp(x**2) * erfc(x)``.")
erfinv = _row("erfinv", "The inverse of ``erf``; NaN beyond -1 and 1.")
expit = _row("sigmoid", "``1 / (1 + exp(-x))``.")
gammaln = _row("lgamma", "``log(|gamma(x)|)``; infinite at 0, -1, -2, …")
digamma = _row("digamma", "The derivative of ``gammaln``; NaN at -1, -2, …")
i0e = _row("i0e", "``exp(-|x|) * i0(x)``.")
i1e = _row("i1e", "``exp(-|x|) * i1(x)``.")
ndtr = _row("ndtr", "The distribution function of the standard normal distribution.")
ndtri = _row("ndtri", "The inverse of ``ndtr``; NaN beyond 0 and 1.")


def _floats(what: str, *args: Any) -> list[Tensor]:
    """The arguments in their common float type."""
    nodes, _, weak = promoted(what, args, dtypes.to_inexact, keep=True)
    return [wrap(n, weak) for n in nodes]


def polygamma(n: int, x: Any) -> Tensor:
    """The ``n``-th derivative of ``digamma``, for a known ``n`` from 0 to 30. Raises ArgumentError for another one."""
    try:
        order = operator.index(n)
    except TypeError:
        raise located(ArgumentError(f"polygamma takes a known order, not a {type(n).__name__}")) from None
    if order == 0:
        return digamma(x)
    (node,), _, weak = promoted("polygamma", (weakly(x, "polygamma"),), dtypes.to_inexact, keep=True)
    return wrap(record(TABLE["polygamma"], (node,), (order,)), weak)


def betaln(a: Any, b: Any) -> Tensor:
    """The logarithm of the beta function of positive numbers. Errors are those of the three ``gammaln`` that it is made of."""
    x, y = _floats("betaln", a, b)
    return gammaln(x) + gammaln(y) - gammaln(x + y)


def i1(x: Any) -> Tensor:
    """The modified Bessel function of the first kind, of order 1."""
    (t,) = _floats("i1", x)
    return unscaled_bessel(t, i1e)


def logit(p: Any) -> Tensor:
    """``log(p / (1 - p))``, the inverse of ``expit``; all digits count near 0 and near 1/2."""
    (t,) = _floats("logit", p)
    middle = FUNCTIONS["abs"](t - 0.5) < 0.25
    near = FUNCTIONS["atanh"](where(middle, (t - 0.5) * 2.0, 0.0)) * 2.0
    outside = where(middle, 0.25, t)
    return where(middle, near, FUNCTIONS["log"](outside) - FUNCTIONS["log1p"](-outside))


def log_ndtr(x: Any) -> Tensor:
    """``log(ndtr(x))``, finite where ``ndtr`` underflows."""
    (t,) = _floats("log_ndtr", x)
    negative = t < 0
    low, high = where(negative, t, 0.0), where(negative, 0.0, t)
    below = FUNCTIONS["log"](erfcx(low * -math.sqrt(0.5)) * 0.5) - low * low * 0.5
    return where(negative, below, FUNCTIONS["log1p"](-ndtr(-high)))


def xlogy(x: Any, y: Any) -> Tensor:
    """``x * log(y)``, 0 for ``x = 0``. The derivative by ``x`` is ``log(y)``, for ``x = 0`` too."""
    return elementwise(TABLE["xlogy"], x, y)


def xlog1py(x: Any, y: Any) -> Tensor:
    """``x * log1p(y)``, 0 for ``x = 0``. The derivative by ``x`` is ``log1p(y)``, for ``x = 0`` too."""
    return elementwise(TABLE["xlog1py"], x, y)


def entr(x: Any) -> Tensor:
    """``-x * log(x)``, 0 at 0 and minus infinity below."""
    (t,) = _floats("entr", x)
    return where(t < 0, -np.inf, -xlogy(t, where(t < 0, 1.0, t)))


def rel_entr(x: Any, y: Any) -> Tensor:
    """``x * log(x / y)`` of positive numbers; 0 for ``x = 0 <= y``, infinite elsewhere."""
    a, b = _floats("rel_entr", x, y)
    inside = (a >= 0) & (b > 0)
    share = where(inside, a, 1.0)
    nan = FUNCTIONS["isnan"](a) | FUNCTIONS["isnan"](b)
    outside = where(nan, np.nan, where((a == 0) & (b == 0), 0.0, np.inf))
    return where(inside, xlogy(share, share / where(inside, b, 1.0)), outside.astype(a.dtype))


def kl_div(x: Any, y: Any) -> Tensor:
    """``rel_entr(x, y) - x + y``."""
    a, b = _floats("kl_div", x, y)
    infinite = FUNCTIONS["isinf"](rel_entr(a, b))
    return where(infinite, np.inf, rel_entr(a, b) - a + b)


# --- softmax ---------------------------------------------------------------------------------------------------------


def softmax(x: Any, /, axis: int | tuple[int, ...] | None = -1, where: Any = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` over ``axis``, without overflow.

    ``where``, bool and broadcast with ``x``, says which elements take part; the others get 0, and so does all of a row of which none does.
    """
    values, dtype = floats(x, "softmax")
    if where is not None:
        values = hnp.where(where, values, -hnp.inf)
    top = stop_gradient(hnp.max(values, axis=axis, keepdims=True))
    if where is not None:
        top = hnp.where(top == -hnp.inf, 0.0, top)
    exponentials = hnp.exp(values - top)
    total = hnp.sum(exponentials, axis=axis, keepdims=True)
    if where is not None:
        total = hnp.where(total == 0, 1.0, total)
    return cast(exponentials / total, dtype)


def log_softmax(x: Any, /, axis: int | tuple[int, ...] | None = -1) -> Tensor:
    """``x - log(sum(exp(x)))`` over ``axis``, without overflow."""
    values, dtype = floats(x, "log_softmax")
    shifted = values - stop_gradient(hnp.max(values, axis=axis, keepdims=True))
    return cast(shifted - hnp.log(hnp.sum(hnp.exp(shifted), axis=axis, keepdims=True)), dtype)
