"""Elementwise functions. Those that are one row of the op table are made from it; what is written out here is composed."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ArgumentError
from hologram.ir.op import Op
from hologram.numpy.arguments import array, cast_to, weakly
from hologram.numpy.elementwise.documentation import docstring
from hologram.numpy.elementwise.rounded import rounded_quotient
from hologram.primitives import TABLE
from hologram.primitives.scalar import elementwise as ew
from hologram.support.user_lines import located
from hologram.trace import arithmetic
from hologram.trace.checks import integer
from hologram.trace.operators import (
    binary_operator,
    broadcast_node,
    elementwise,
    node_of,
    promoted,
    stretched,
    unary_operator,
    weak_default,
    working_type,
    wrap,
)
from hologram.trace.recorder import cast_node, constant, record
from hologram.trace.tensor import Tensor

# The table's short names under those of NumPy and the Array API. A row whose name NumPy uses for the same function needs no entry.
_ALIASES = {
    "add": (),
    "sub": ("subtract",),
    "mul": ("multiply",),
    "div": ("divide", "true_divide"),
    "neg": ("negative",),
    "max": ("maximum",),
    "min": ("minimum",),
    "eq": ("equal",),
    "ne": ("not_equal",),
    "lt": ("less",),
    "le": ("less_equal",),
    "gt": ("greater",),
    "ge": ("greater_equal",),
    "and": ("bitwise_and",),
    "or": ("bitwise_or",),
    "xor": ("bitwise_xor",),
    "not": ("invert", "bitwise_invert", "bitwise_not"),
    "shl": ("left_shift", "bitwise_left_shift"),
    "shr": ("right_shift", "bitwise_right_shift"),
    "floordiv": ("floor_divide",),
    "rem": ("remainder", "mod"),
    "round": ("rint",),
    **{name: (name,) for name in ("erf", "erfc", "rsqrt", "sigmoid")},  # NumPy has none
}
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_EXTREMES = ("max", "min")
_ROUNDINGS = ("floor", "ceil", "trunc", "round")  # of integers and bools: these themselves, of rint as floats


def _public_names(op: Op) -> tuple[str, ...]:
    """Under which names ``op`` is a function: its aliases, else its own and NumPy's for it where it is a ufunc there."""
    if op.name in _ALIASES:
        return _ALIASES[op.name] or (op.name,)
    ufunc = getattr(np, op.name, None)
    return (op.name, ufunc.__name__) if isinstance(ufunc, np.ufunc) else ()


def _rounding(op: Op) -> Callable[[Any], Tensor]:
    of_floats = unary_operator(op)

    def function(x: Any, /) -> Tensor:
        if type(x) is Tensor and x._aval()[1].is_float:
            return of_floats(x)
        node = array(x, op.name)
        if node.dtype.is_complex and op.name == "round":  # the others, which would have to order them, NumPy refuses too
            return _part_by_part(function, wrap(node))
        if node.dtype.kind not in "biu":
            return of_floats(x)
        return wrap(cast_node(node, dtypes.to_inexact(node.dtype)) if op.name == "round" else node)  # rint gives floats in NumPy

    return function


def _part_by_part(f: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
    """``f`` of the real and of the imaginary parts of complex numbers."""
    return wrap(record(TABLE["complex"], tuple(array(f(part), "complex") for part in (z.real, z.imag))))


def _binary(op: Op) -> Callable[[Any, Any], Tensor]:
    if op.name == "floordiv":
        return arithmetic.floor_division(infix=False)
    if op.name in _COMPARISONS:
        general = arithmetic.comparison(op)
    elif op.name in _EXTREMES:
        general = arithmetic.extreme(op)
    else:
        general = lambda x, y: elementwise(op, x, y)  # noqa: E731
    return binary_operator(op, general=general, infix=False)


def _functions() -> dict[str, Callable[..., Tensor]]:
    made: dict[str, Callable[..., Tensor]] = {}
    for op in TABLE.values():
        names = _public_names(op) if op.kind == "elementwise" and not op.attrs else ()
        if not names or op.arity not in (1, 2):
            continue
        function = _binary(op) if op.arity == 2 else _rounding(op) if op.name in _ROUNDINGS else unary_operator(op)
        function.__name__ = function.__qualname__ = names[0]
        function.__module__ = "hologram.numpy"
        function.__doc__ = docstring(
            op, names, keeps_integers=op.name in ("floor", "ceil", "trunc"), takes_complex=op.name in ("max", "min", "round")
        )
        made |= dict.fromkeys(names, function)
    return made


FUNCTIONS = _functions()  # not globals of this module: some have the names of builtins


def power(x1: Any, x2: Any, /) -> Tensor:
    """Power ``x1 ** x2``.

    ``x1`` and ``x2`` broadcast. The result has their common type. A whole Python number as exponent becomes products. NaN for a negative
    float to a fractional power. Raises DTypeError for bool, and for integers to a negative Python number. Also called ``pow``.

    >>> hnp.power([1, 2, 3], 2)
    Tensor([1, 4, 9], dtype=int64)
    >>> hnp.power([1.0, 2.0, 3.0], 0.5)
    Tensor([1.       , 1.4142135, 1.7320508], dtype=float32)
    """
    return arithmetic.power(x1, x2)


pow = power


def positive(x: Any, /) -> Tensor:
    """Each element itself, ``+x``: a Tensor of the shape and type of ``x``.

    >>> hnp.positive([-1, 2])
    Tensor([-1,  2], dtype=int64)
    """
    return weakly(x, "positive")


def where(condition: Any, x1: Any, x2: Any, /) -> Tensor:
    """``x1`` where ``condition`` holds, else ``x2``. :func:`hologram.numpy.along_axes.positions.where` is what users call."""
    (a, b), _, weak = promoted("where", (x1, x2), keep=True)
    c = cast_node(array(condition, "where"), dtypes.bool_)
    node = record(ew.select, stretched("where", (c, a, b)))
    return wrap(cast_node(node, weak_default(node.dtype))) if weak and node.shape else wrap(node, weak)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """Elements limited to the range from ``min`` to ``max``.

    Either bound may be None, and an array that broadcasts with ``x``. The result has the common type; NaN stays.

    >>> hnp.clip([-1, 2, 7], 0, 5)
    Tensor([0, 2, 5], dtype=int64)
    >>> hnp.clip([-1.5, 0.5], min=0)
    Tensor([0. , 0.5], dtype=float32)
    """
    result = +weakly(x, "clip")
    if min is not None:
        result = FUNCTIONS["maximum"](result, min)
    if max is not None:
        result = FUNCTIONS["minimum"](result, max)
    return result


def _logical(op: Op, *args: Any) -> Tensor:
    nodes = [cast_node(array(x, f"logical_{op.name}"), dtypes.bool_) for x in args]
    return wrap(record(op, stretched(f"logical_{op.name}", nodes)))


def logical_and(x1: Any, x2: Any, /) -> Tensor:
    """Whether both ``x1`` and ``x2`` are not zero.

    The operands, of any types, broadcast; the result is bool.

    >>> hnp.logical_and([True, 2, 0], [1, 0, 0])
    Tensor([ True, False, False], dtype=bool)
    """
    return _logical(ew.and_, x1, x2)


def logical_or(x1: Any, x2: Any, /) -> Tensor:
    """Whether ``x1`` or ``x2`` is not zero.

    The operands, of any types, broadcast; the result is bool.

    >>> hnp.logical_or([True, 2, 0], [1, 0, 0])
    Tensor([ True,  True, False], dtype=bool)
    """
    return _logical(ew.or_, x1, x2)


def logical_xor(x1: Any, x2: Any, /) -> Tensor:
    """Whether exactly one of ``x1`` and ``x2`` is not zero.

    The operands, of any types, broadcast; the result is bool.

    >>> hnp.logical_xor([True, 2, 0], [1, 0, 0])
    Tensor([False,  True, False], dtype=bool)
    """
    return _logical(ew.xor, x1, x2)


def logical_not(x: Any, /) -> Tensor:
    """Whether ``x`` is zero: bool, of the shape of ``x``.

    >>> hnp.logical_not([0.0, 1.5])
    Tensor([ True, False], dtype=bool)
    """
    return _logical(ew.not_, x)


def round(x: Any, /, decimals: int = 0) -> Tensor:
    """Rounds to ``decimals`` decimals, halves to even.

    Shape and type are those of ``x``; of complex numbers both parts are rounded. Negative ``decimals`` round to tens, hundreds and so on.
    Also called ``around``.

    >>> hnp.round([0.5, 1.5, 1.25])
    Tensor([0., 2., 1.], dtype=float32)
    >>> hnp.round([12.5, 17.0], -1)
    Tensor([10., 20.], dtype=float32)
    """
    rint = FUNCTIONS["rint"]
    x = weakly(x, "round")
    if decimals == 0:
        return x if x._aval()[1].kind in "biu" else rint(x)
    decimals = integer(decimals, "round", "a number of decimals")
    dtype = x._aval()[1]
    if dtype.is_complex:
        return _part_by_part(lambda part: round(part, decimals), x)
    if dtype.kind in "biu":
        return x if decimals > 0 else round(x.astype(np.float64), decimals).astype(dtype.np)
    scale = 10.0 ** abs(decimals) if abs(decimals) < 309 else math.inf  # float64 holds no larger power
    return _by_number(rint(x * scale), scale) if decimals > 0 else rint(_by_number(x, scale)) * scale


def _by_number(x: Tensor, y: float) -> Tensor:
    node = node_of(x)
    return wrap(rounded_quotient(node, broadcast_node(constant(y, node.dtype), node.shape)), x._weak)


def divmod(x1: Any, x2: Any, /) -> tuple[Tensor, Tensor]:
    """Quotient rounded down and remainder: ``(x1 // x2, x1 % x2)``.

    The operands broadcast; both results have their common type. Raises DTypeError for bool and complex numbers.

    >>> hnp.divmod([7, -7], 3)
    (Tensor([ 2, -3], dtype=int64), Tensor([1, 2], dtype=int64))
    """
    return FUNCTIONS["floor_divide"](x1, x2), FUNCTIONS["remainder"](x1, x2)


def _float_pair(what: str, x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    (a, b), _, weak = promoted(what, (x1, x2), lambda d: working_type(ew.div, d), keep=True)
    return wrap(a, weak), wrap(b, weak)


def log_of_sum(a: Tensor, b: Tensor, exp: Callable[[Any], Tensor], scale: float) -> Tensor:
    """``log(exp(a) + exp(b))`` without overflow, for a base whose ``exp`` and ``1/log(e)`` are given."""
    first = a >= b  # selected, not max and min: where operands are equal, either choice has the one smooth function's derivatives, of every order
    high, low = where(first, a, b), where(first, b, a)
    same = (high == low) & FUNCTIONS["isinf"](high)  # infinities of one sign differ by NaN, and share the derivative as equal numbers do
    rest = FUNCTIONS["log1p"](exp(where(same, 0.0, low - high)))
    return where(same, a * 0.5 + b * 0.5, high) + (rest if scale == 1 else rest * scale)


def logaddexp(x1: Any, x2: Any, /) -> Tensor:
    """``log(exp(x1) + exp(x2))``, without overflow.

    The operands broadcast. The result has their common float type, float32 for integers.

    >>> hnp.logaddexp([0.0, 1000.0], [0.0, 999.0])
    Tensor([6.93147182e-01, 1.00031323e+03], dtype=float32)
    """
    return log_of_sum(*_float_pair("logaddexp", x1, x2), FUNCTIONS["exp"], 1.0)


_SINC = [(-1) ** n / math.factorial(2 * n + 1) for n in range(10)]  # of sin(y) / y in powers of y * y, to float64's last digit up to 1


def sinc(x: Any, /) -> Tensor:
    """``sin(πx) / (πx)``, 1 at zero.

    The result has the float type of ``x``, float32 for integers. A polynomial is used around 0, so derivatives hold there too.

    >>> hnp.sinc([0.0, 0.5, 1.5])
    Tensor([ 1.        ,  0.63661975, -0.21220659], dtype=float32)
    """
    y = weakly(x, "sinc") * np.pi
    small = FUNCTIONS["abs"](y) < 1
    square = where(small, y * y, 0.0)
    near = functools.reduce(lambda total, c: total * square + c, reversed(_SINC))
    return where(small, near, FUNCTIONS["sin"](y) / where(small, 1.0, y))


def degrees(x: Any, /) -> Tensor:
    """Radians in degrees: ``x * 180 / π``.

    The result has the float type of ``x``, float32 for integers. Also called ``rad2deg``.

    >>> hnp.degrees([0.0, hnp.pi])
    Tensor([  0., 180.], dtype=float32)
    """
    return FUNCTIONS["multiply"](x, 180.0 / np.pi)


def radians(x: Any, /) -> Tensor:
    """Degrees in radians: ``x * π / 180``.

    The result has the float type of ``x``, float32 for integers. Also called ``deg2rad``.

    >>> hnp.radians([0, 180])
    Tensor([0.       , 3.1415927], dtype=float32)
    """
    return FUNCTIONS["multiply"](x, np.pi / 180.0)


rad2deg, deg2rad = degrees, radians


def nan_to_num(x: Any, /, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Replaces NaN and the infinities by numbers.

    NaN becomes ``nan``, the infinities ``posinf`` and ``neginf``, for None the type's largest and smallest values; in both parts of complex
    numbers. Shape and type are those of ``x``; integers are themselves. Raises ArgumentError for a false ``copy``: the result is a new value.

    >>> hnp.nan_to_num([1.0, hnp.nan, hnp.inf], posinf=9.0)
    Tensor([1., 0., 9.], dtype=float32)
    """
    if copy is not True and copy != 1:
        raise located(ArgumentError("nan_to_num makes a new value; with copy=False NumPy writes into x: x[...] = nan_to_num(x) does that"))
    x = weakly(x, "nan_to_num")
    dtype = x._aval()[1]
    if dtype.is_complex:
        return _part_by_part(lambda part: nan_to_num(part, True, nan, posinf, neginf), x)
    if not dtype.is_float:
        return x
    low, high = limits(dtype)
    finite = where(x == np.inf, high if posinf is None else posinf, where(x == -np.inf, low if neginf is None else neginf, x))
    return where(FUNCTIONS["isnan"](x), nan, finite)


def limits(dtype: DType) -> tuple[float, float]:
    """The smallest and the largest finite value of a float type."""
    info = ml_dtypes.finfo(dtype.np)
    return float(info.min), float(info.max)


def isclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether elements are close: ``|x1 - x2| <= atol + rtol * |x2|``.

    The operands broadcast; the result is bool. An infinity is close to itself alone, NaN to NaN only with ``equal_nan``.

    >>> hnp.isclose([1.0, 2.0, hnp.nan], [1.000001, 2.1, hnp.nan], equal_nan=True)
    Tensor([ True, False,  True], dtype=bool)
    """
    a, b = _float_pair("isclose", x1, x2)
    close = (FUNCTIONS["abs"](a - b) <= atol + rtol * FUNCTIONS["abs"](b)) & FUNCTIONS["isfinite"](b)
    close = close | (a == b)
    return close | (FUNCTIONS["isnan"](a) & FUNCTIONS["isnan"](b)) if equal_nan else close


def astype(x: Any, /, dtype: Any, *, copy: bool = True, device: Any = None) -> Tensor:
    """Elements converted to ``dtype``; None is the default type of floats.

    Floats to integers truncate and saturate, NaN gives 0, where NumPy leaves these open; integers wrap around; to bool is ``x != 0``. Gives
    ``x`` itself where it has the type and ``copy`` is False. Raises DTypeError for an element type that Hologram does not have.

    >>> hnp.astype([1.7, -300.0, hnp.nan], hnp.int8)
    Tensor([   1, -128,    0], dtype=int8)
    """
    node = node_of(weakly(x, "astype"))
    new = cast_to(node, dtypes.default_float if dtype is None else dtype)
    return x if new is node and not copy and type(x) is Tensor and not x._weak else wrap(new)


def copy(x: Any, /) -> Tensor:
    """Another Tensor of the values of ``x``: an assignment to elements of one does not change the other.

    >>> a = hnp.asarray([1, 2])
    >>> b = hnp.copy(a)
    >>> b[0] = 5
    >>> a, b
    (Tensor([1, 2], dtype=int64), Tensor([5, 2], dtype=int64))
    """
    t = weakly(x, "copy")
    return wrap(node_of(t), t._weak)


__all__ = [
    "astype", "clip", "copy", "deg2rad", "degrees", "divmod", "isclose", "logaddexp", "logical_and", "logical_not",
    "logical_or", "logical_xor", "nan_to_num", "positive", "pow", "power", "rad2deg", "radians", "round", "sinc",
]  # fmt: skip
