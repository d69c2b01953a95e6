"""Functions by element that are composed of others: choosing, rounding, powers, tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hologram import dtypes
from hologram.errors import ArgumentError
from hologram.numpy.arguments import as_tensor, promoted_pair, weakly, wrap
from hologram.numpy.elementwise.functions import FUNCTIONS, log_of_sum, round, where
from hologram.support.user_lines import located
from hologram.trace.checks import choice, items
from hologram.trace.operators import promoted
from hologram.trace.tensor import Tensor

__all__ = ["around", "choose", "fabs", "fix", "float_power", "fmax", "fmin", "isneginf", "isposinf", "logaddexp2", "modf", "select"]


def select(conditions: Sequence[Any], choices: Sequence[Any], default: Any = 0) -> Tensor:
    """Selects by element the first of ``choices`` whose condition is not zero, else ``default``.

    All broadcast; the result has the choices' common type. Raises ArgumentError for lists of different lengths, or none.

    >>> x = hnp.arange(5)
    >>> hnp.select([x < 2, x > 3], [x, 10 * x], default=-1)
    Tensor([ 0,  1, -1, -1, 40], dtype=int64)
    """
    conditions, choices = items(conditions, "select", "conditions"), items(choices, "select")
    if len(conditions) != len(choices) or not choices:
        raise located(ArgumentError(f"select: {len(conditions)} conditions for {len(choices)} choices"))
    *values, last = promoted("select", [*choices, default])[0]
    result = wrap(last)
    for condition, value in zip(reversed(conditions), reversed(values), strict=True):
        result = where(condition, wrap(value), result)
    return result


def choose(which: Any, choices: Sequence[Any], mode: str = "clip") -> Tensor:
    """Selects by element from the array of ``choices`` whose number ``which`` gives.

    Numbers out of range mean the first or the last; where ``mode`` is ``wrap`` their remainder by the count. All broadcast. NumPy's mode
    ``raise`` is not there. Raises ArgumentError for another mode, or no choices.

    >>> hnp.choose([0, 1, 5], [[1, 2, 3], [10, 20, 30]])
    Tensor([ 1, 20, 30], dtype=int64)
    """
    choice(mode, "choose", "mode", ("clip", "wrap"))
    if not (arrays := items(choices, "choose")):
        raise located(ArgumentError("choose: no choices"))
    number = as_tensor(which, "choose")
    number = number % len(arrays) if mode == "wrap" else number
    result: Any = arrays[0]
    for i, value in enumerate(arrays[1:], 1):
        result = where(number >= i, value, result)
    return result


def fmax(x1: Any, x2: Any, /) -> Tensor:
    """Larger of two elements; of a number and NaN the number.

    The operands broadcast; the result has their common type.

    >>> hnp.fmax([1.0, hnp.nan], [0.5, 2.0])
    Tensor([1., 2.], dtype=float32)
    """
    return _of_numbers("fmax", "maximum", x1, x2)


def fmin(x1: Any, x2: Any, /) -> Tensor:
    """Smaller of two elements; of a number and NaN the number.

    The operands broadcast; the result has their common type.

    >>> hnp.fmin([1.0, hnp.nan], [0.5, 2.0])
    Tensor([0.5, 2. ], dtype=float32)
    """
    return _of_numbers("fmin", "minimum", x1, x2)


def _of_numbers(name: str, extreme: str, x1: Any, x2: Any) -> Tensor:
    """An extreme of two elements, but of a number and NaN the number."""
    isnan = FUNCTIONS["isnan"]
    a, b = promoted_pair(name, x1, x2)
    return where(isnan(a), b, where(isnan(b), a, FUNCTIONS[extreme](a, b)))


around = round


def fix(x: Any, /) -> Tensor:
    """Whole part of ``x``: rounding towards zero, as :func:`trunc`.

    >>> hnp.fix([-1.5, 1.5])
    Tensor([-1.,  1.], dtype=float32)
    """
    return FUNCTIONS["trunc"](x)


def fabs(x: Any, /) -> Tensor:
    """Absolute value as a float: the type of ``x``, float32 for integers.

    >>> hnp.fabs([-1, 2])
    Tensor([1., 2.], dtype=float32)
    """
    t = weakly(x, "fabs")
    return FUNCTIONS["abs"](t if t._aval()[1].is_float else t.astype(dtypes.default_float))


def modf(x: Any, /) -> tuple[Tensor, Tensor]:
    """Fraction and whole part, both with the sign of ``x``: floats, float32 for integers.

    >>> hnp.modf([1.5, -2.25])
    (Tensor([ 0.5 , -0.25], dtype=float32), Tensor([ 1., -2.], dtype=float32))
    """
    t = weakly(x, "modf")
    whole = FUNCTIONS["trunc"](t if t._aval()[1].is_float else t.astype(dtypes.default_float))
    rest = where(FUNCTIONS["isinf"](whole), 0.0, t - whole)
    return FUNCTIONS["copysign"](rest, whole), whole


def float_power(x1: Any, x2: Any, /) -> Tensor:
    """Power ``x1 ** x2``, computed and given in float64; of complex numbers in complex128.

    >>> hnp.float_power([1, 2, 3], 2)
    Tensor([1., 4., 9.], dtype=float64)
    """
    nodes, _, _ = promoted("float_power", (x1, x2), lambda d: dtypes.complex128 if d.is_complex else dtypes.float64, keep=True)
    a, b = map(wrap, nodes)
    return a**b


def logaddexp2(x1: Any, x2: Any, /) -> Tensor:
    """``log2(2**x1 + 2**x2)``, without overflow.

    The operands broadcast. The result has their common float type, float32 for integers.

    >>> hnp.logaddexp2([0.0, 1000.0], [0.0, 1000.0])
    Tensor([1.000e+00, 1.001e+03], dtype=float32)
    """
    return log_of_sum(*promoted_pair("logaddexp2", x1, x2, dtypes.to_inexact), FUNCTIONS["exp2"], math.log2(math.e))


def isposinf(x: Any, /) -> Tensor:
    """Whether an element is positive infinity; bool. Raises DTypeError for complex numbers.

    >>> hnp.isposinf([hnp.inf, -hnp.inf, 1.0])
    Tensor([ True, False, False], dtype=bool)
    """
    return FUNCTIONS["isinf"](x) & ~FUNCTIONS["signbit"](x)


def isneginf(x: Any, /) -> Tensor:
    """Whether an element is negative infinity; bool. Raises DTypeError for complex numbers.

    >>> hnp.isneginf([hnp.inf, -hnp.inf, 1.0])
    Tensor([False,  True, False], dtype=bool)
    """
    return FUNCTIONS["isinf"](x) & FUNCTIONS["signbit"](x)
