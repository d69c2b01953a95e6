"""Special functions of one argument or of two that are ops of their own or short compositions of these.

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
from hologram.numpy.along_axes.reductions import logsumexp
from hologram.numpy.analysis.windows import i0, unscaled_bessel
from hologram.numpy.arguments import cast, floats, weakly, wrap
from hologram.numpy.elementwise.functions import FUNCTIONS, where
from hologram.primitives import TABLE
from hologram.support.user_lines import located
from hologram.trace.operators import elementwise, promoted, unary_operator
from hologram.trace.recorder import record
from hologram.trace.tensor import Tensor
from hologram.transform.api import stop_gradient

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "expit", "gammaln", "i0", "i0e", "i1", "i1e", "kl_div", "log_ndtr", "log_softmax",
    "logit", "logsumexp", "ndtr", "ndtri", "polygamma", "rel_entr", "softmax", "xlog1py", "xlogy",
]  # fmt: skip


def _row(name: str, about: str, at: str, result: str, op: str | None = None) -> Callable[[Any], Tensor]:
    """The function of the row ``op`` of the op table, by default that called ``name``. Its example: at ``at`` it is ``result``."""
    function = unary_operator(TABLE[op or name])
    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = f"""{about}

The result has the shape and float type of ``x``, float32 for integers. Raises DTypeError for complex numbers.

>>> hg.special.{name}({at})
Tensor({result}, dtype=float32)
"""
    return function


erf = _row(
    "erf",
    "Error function: the probability that a normal number of variance 1/2 lies within ``x`` of 0, with the sign of ``x``.",
    "[0.0, 1.0]",
    "[0.       , 0.8427008]",
)
erfc = _row("erfc", "Complementary error function: ``1 - erf(x)``, accurate for large ``x``.", "[0.0, 5.0]", "[1.0000000e+00, 1.5374598e-12]")
erfcx = _row("erfcx", "Scaled complementary error function: ``exp(x**2) * erfc(x)``.", "[0.0, 50.0]", "[1.        , 0.01128154]")
erfinv = _row("erfinv", "Inverse error function; NaN beyond -1 and 1.", "[0.0, 0.5]", "[0.        , 0.47693628]")
expit = _row("expit", "Logistic function: ``1 / (1 + exp(-x))``.", "[0.0, 2.0]", "[0.5     , 0.880797]", "sigmoid")
gammaln = _row(
    "gammaln",
    "Logarithm of the gamma function's magnitude: ``log(|gamma(x)|)``; infinite at 0, -1, -2, …",
    "[1.0, 5.0]",
    "[0.       , 3.1780539]",
    "lgamma",
)
digamma = _row("digamma", "Digamma function, the derivative of :func:`gammaln`; NaN at -1, -2, …", "[1.0, 2.0]", "[-0.5772157 ,  0.42278433]")
i0e = _row("i0e", "Scaled modified Bessel function of the first kind, of order 0: ``exp(-|x|) * i0(x)``.", "[0.0, 100.0]", "[1.        , 0.03994438]")
i1e = _row("i1e", "Scaled modified Bessel function of the first kind, of order 1: ``exp(-|x|) * i1(x)``.", "[0.0, 100.0]", "[0.        , 0.03974415]")
ndtr = _row("ndtr", "Distribution function of the standard normal distribution.", "[0.0, 1.96]", "[0.5      , 0.9750021]")
ndtri = _row("ndtri", "Inverse of :func:`ndtr`; NaN beyond 0 and 1.", "[0.5, 0.975]", "[0.       , 1.9599644]")


def _floats(what: str, *args: Any) -> list[Tensor]:
    """The arguments in their common float type."""
    nodes, _, weak = promoted(what, args, dtypes.to_inexact, keep=True)
    return [wrap(n, weak) for n in nodes]


def polygamma(n: int, x: Any) -> Tensor:
    """Polygamma function: the ``n``-th derivative of :func:`digamma`, for a known ``n`` from 0 to 30.

    Raises ArgumentError for another ``n``, DTypeError for complex numbers.

    >>> hg.special.polygamma(1, [1.0, 2.0])
    Tensor([1.644934  , 0.64493406], dtype=float32)
    """
    try:
        order = operator.index(n)
    except TypeError:
        raise located(ArgumentError(f"polygamma takes a known order, not a {type(n).__name__}")) from None
    if order == 0:
        return digamma(x)
    (node,), _, weak = promoted("polygamma", (weakly(x, "polygamma"),), dtypes.to_inexact, keep=True)
    return wrap(record(TABLE["polygamma"], (node,), (order,)), weak)


def i1(x: Any) -> Tensor:
    """Modified Bessel function of the first kind, of order 1.

    >>> hg.special.i1([0.0, 1.0])
    Tensor([0.       , 0.5651591], dtype=float32)
    """
    (t,) = _floats("i1", x)
    return unscaled_bessel(t, i1e)


def logit(p: Any) -> Tensor:
    """Logit: ``log(p / (1 - p))``, the inverse of :func:`expit`; all digits count near 0 and near 1/2.

    >>> hg.special.logit([0.5, 0.9])
    Tensor([0.       , 2.1972244], dtype=float32)
    """
    (t,) = _floats("logit", p)
    middle = FUNCTIONS["abs"](t - 0.5) < 0.25
    near = FUNCTIONS["atanh"](where(middle, (t - 0.5) * 2.0, 0.0)) * 2.0
    outside = where(middle, 0.25, t)
    return where(middle, near, FUNCTIONS["log"](outside) - FUNCTIONS["log1p"](-outside))


def log_ndtr(x: Any) -> Tensor:
    """Logarithm of the standard normal distribution function: ``log(ndtr(x))``, finite where :func:`ndtr` underflows.

    >>> hg.special.log_ndtr([0.0, -100.0])
    Tensor([-6.9314718e-01, -5.0055244e+03], dtype=float32)
    """
    (t,) = _floats("log_ndtr", x)
    negative = t < 0
    low, high = where(negative, t, 0.0), where(negative, 0.0, t)
    below = FUNCTIONS["log"](erfcx(low * -math.sqrt(0.5)) * 0.5) - low * low * 0.5
    return where(negative, below, FUNCTIONS["log1p"](-ndtr(-high)))


def xlogy(x: Any, y: Any) -> Tensor:
    """``x * log(y)``, 0 for ``x = 0``; the arguments broadcast. The derivative by ``x`` is ``log(y)``, for ``x = 0`` too.

    >>> hg.special.xlogy([0.0, 2.0], [0.0, 3.0])
    Tensor([0.       , 2.1972246], dtype=float32)
    """
    return elementwise(TABLE["xlogy"], x, y)


def xlog1py(x: Any, y: Any) -> Tensor:
    """``x * log1p(y)``, 0 for ``x = 0``; the arguments broadcast. The derivative by ``x`` is ``log1p(y)``, for ``x = 0`` too.

    >>> hg.special.xlog1py([0.0, 2.0], [-1.0, 2.0])
    Tensor([0.       , 2.1972246], dtype=float32)
    """
    return elementwise(TABLE["xlog1py"], x, y)


def entr(x: Any) -> Tensor:
    """Elementwise entropy: ``-x * log(x)``, 0 at 0 and minus infinity below.

    >>> hg.special.entr([0.0, 0.5, -1.0])
    Tensor([-0.       ,  0.3465736,       -inf], dtype=float32)
    """
    (t,) = _floats("entr", x)
    return where(t < 0, -np.inf, -xlogy(t, where(t < 0, 1.0, t)))


def rel_entr(x: Any, y: Any) -> Tensor:
    """Elementwise relative entropy: ``x * log(x / y)`` of positive numbers, which broadcast; 0 for ``x = 0 <= y``, infinite elsewhere.

    >>> hg.special.rel_entr([0.5, 0.0], [0.25, 0.5])
    Tensor([0.3465736, 0.       ], dtype=float32)
    """
    a, b = _floats("rel_entr", x, y)
    inside = (a >= 0) & (b > 0)
    share = where(inside, a, 1.0)
    nan = FUNCTIONS["isnan"](a) | FUNCTIONS["isnan"](b)
    outside = where(nan, np.nan, where((a == 0) & (b == 0), 0.0, np.inf))
    return where(inside, xlogy(share, share / where(inside, b, 1.0)), outside.astype(a.dtype))


def kl_div(x: Any, y: Any) -> Tensor:
    """Elementwise Kullback-Leibler divergence: ``rel_entr(x, y) - x + y``.

    >>> hg.special.kl_div([0.5, 0.0], [0.25, 0.5])
    Tensor([0.09657359, 0.5       ], dtype=float32)
    """
    a, b = _floats("kl_div", x, y)
    infinite = FUNCTIONS["isinf"](rel_entr(a, b))
    return where(infinite, np.inf, rel_entr(a, b) - a + b)


# --- softmax ---------------------------------------------------------------------------------------------------------


def _top(values: Tensor, axis: Any) -> Tensor:
    """The largest values over ``axis``, which stays, as constants; -inf of none."""
    return stop_gradient(hnp.max(values, axis=axis, keepdims=True, initial=-hnp.inf if 0 in values.shape else None))


def softmax(x: Any, /, axis: int | tuple[int, ...] | None = None, where: Any = None) -> Tensor:
    """Softmax: ``exp(x) / sum(exp(x))`` over ``axis``, or over all, without overflow. That of :mod:`hologram.nn` is along the last axis.

    ``where``, bool and broadcast with ``x``, says which elements take part; the others get 0, and so does all of a row of which none does. Shape and
    float type are those of ``x``; integers become float32. Raises DTypeError for complex numbers.

    >>> hg.special.softmax([0.0, 1.0, 2.0])
    Tensor([0.09003057, 0.24472845, 0.6652409 ], dtype=float32)
    >>> hg.special.softmax([0.0, 0.0, 2.0], where=[True, True, False])
    Tensor([0.5, 0.5, 0. ], dtype=float32)
    """
    values, dtype = floats(x, "softmax")
    if where is not None:
        values = hnp.where(where, values, -hnp.inf)
    top = _top(values, axis)
    if where is not None:
        top = hnp.where(top == -hnp.inf, 0.0, top)
    exponentials = hnp.exp(values - top)
    total = hnp.sum(exponentials, axis=axis, keepdims=True)
    if where is not None:
        total = hnp.where(total == 0, 1.0, total)
    return cast(exponentials / total, dtype)


def log_softmax(x: Any, /, axis: int | tuple[int, ...] | None = None, where: Any = None) -> Tensor:
    """Logarithm of the softmax: ``x - log(sum(exp(x)))`` over ``axis``, or over all, without overflow.

    Elements that do not take part, where ``where`` is false, get ``-inf``. Types and errors are those of :func:`softmax`.

    >>> hg.special.log_softmax([0.0, 1.0, 2.0])
    Tensor([-2.4076061 , -1.407606  , -0.40760604], dtype=float32)
    >>> hg.special.log_softmax([0.0, 0.0, 2.0], where=[True, True, False])
    Tensor([-0.6931472, -0.6931472,       -inf], dtype=float32)
    """
    values, dtype = floats(x, "log_softmax")
    if where is None:
        shifted = values - _top(values, axis)
        return cast(shifted - hnp.log(hnp.sum(hnp.exp(shifted), axis=axis, keepdims=True)), dtype)
    values = hnp.where(where, values, -hnp.inf)
    top = _top(values, axis)
    shifted = values - hnp.where(top == -hnp.inf, 0.0, top)
    total = hnp.sum(hnp.exp(shifted), axis=axis, keepdims=True)
    return cast(hnp.where(where, shifted - hnp.log(hnp.where(total == 0, 1.0, total)), -hnp.inf), dtype)
