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
from hologram.ir.op import Op
from hologram.numpy.arguments import array, cast_to, weakly
from hologram.primitives import TABLE
from hologram.primitives.scalar import elementwise as ew
from hologram.trace import arithmetic
from hologram.trace.apply import binary_operator, elementwise, node_of, promoted, stretched, unary_operator, weak_default, working_type, wrap
from hologram.trace.checks import integer
from hologram.trace.recorder import cast_node, record
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
_ROUNDINGS = ("floor", "ceil", "trunc", "round")  # of integers and bools: these themselves


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
        return wrap(node) if node.dtype.kind in "biu" else of_floats(x)

    return function


def _part_by_part(f: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
    """``f`` of the real and of the imaginary parts of complex numbers."""
    return wrap(record(TABLE["complex"], tuple(array(f(part), "complex") for part in (z.real, z.imag))))


def _binary(op: Op) -> Callable[[Any, Any], Tensor]:
    if op.name in _COMPARISONS:
        general = arithmetic.comparison(op)
    elif op.name in _EXTREMES:
        general = arithmetic.extreme(op)
    else:
        general = lambda x, y: elementwise(op, x, y)  # noqa: E731
    method = binary_operator(op, general=general)

    def function(x1: Any, x2: Any, /) -> Tensor:
        result = method(x1, x2) if type(x1) is Tensor else NotImplemented
        return general(x1, x2) if result is NotImplemented else result

    return function


def _functions() -> dict[str, Callable[..., Tensor]]:
    made: dict[str, Callable[..., Tensor]] = {}
    for op in TABLE.values():
        names = _public_names(op) if op.kind == "elementwise" and not op.attrs else ()
        if not names or op.arity not in (1, 2):
            continue
        function = _binary(op) if op.arity == 2 else _rounding(op) if op.name in _ROUNDINGS else unary_operator(op)
        function.__name__ = function.__qualname__ = names[0]
        function.__doc__ = f"Elementwise ``{names[0]}``, as NumPy's." if hasattr(np, names[0]) else f"Elementwise ``{names[0]}``."
        made |= dict.fromkeys(names, function)
    return made


FUNCTIONS = _functions()  # not globals of this module: some have the names of builtins


def power(x1: Any, x2: Any, /) -> Tensor:
    """``x1 ** x2``; a static whole exponent becomes products."""
    return arithmetic.power(x1, x2)


pow = power


def positive(x: Any, /) -> Tensor:
    return weakly(x, "positive")


def where(condition: Any, x1: Any, x2: Any, /) -> Tensor:
    """``x1`` where ``condition`` holds, else ``x2``. :func:`hologram.numpy.sorting.where` is what users call."""
    (a, b), _, weak = promoted("where", (x1, x2), keep=True)
    c = cast_node(array(condition, "where"), dtypes.bool_)
    node = record(ew.select, stretched("where", (c, a, b)))
    return wrap(cast_node(node, weak_default(node.dtype))) if weak and node.shape else wrap(node, weak)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """``x`` held between ``min`` and ``max``, either of which may be None."""
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
    return _logical(ew.and_, x1, x2)


def logical_or(x1: Any, x2: Any, /) -> Tensor:
    return _logical(ew.or_, x1, x2)


def logical_xor(x1: Any, x2: Any, /) -> Tensor:
    return _logical(ew.xor, x1, x2)


def logical_not(x: Any, /) -> Tensor:
    return _logical(ew.not_, x)


def round(x: Any, /, decimals: int = 0) -> Tensor:
    """Rounds halves to even, both parts of complex numbers; ``decimals`` as NumPy's."""
    rint = FUNCTIONS["rint"]
    if decimals == 0:
        return rint(x)
    x = weakly(x, "round")
    decimals = integer(decimals, "round", "a number of decimals")
    dtype = x._aval()[1]
    if dtype.is_complex:
        return _part_by_part(lambda part: round(part, decimals), x)
    if dtype.kind in "biu":
        return x if decimals > 0 else round(x.astype(np.float64), decimals).astype(dtype.np)
    scale = 10.0 ** abs(decimals)
    return rint(x * scale) / scale if decimals > 0 else rint(x / scale) * scale


def divmod(x1: Any, x2: Any, /) -> tuple[Tensor, Tensor]:
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
    """``log(exp(x1) + exp(x2))`` without overflow."""
    return log_of_sum(*_float_pair("logaddexp", x1, x2), FUNCTIONS["exp"], 1.0)


_SINC = [(-1) ** n / math.factorial(2 * n + 1) for n in range(10)]  # of sin(y) / y in powers of y * y, to float64's last digit up to 1


def sinc(x: Any, /) -> Tensor:
    """``sin(πx) / (πx)``, 1 at 0; a polynomial around 0, so that derivatives of every order the terms reach hold there."""
    y = weakly(x, "sinc") * np.pi
    small = FUNCTIONS["abs"](y) < 1
    square = where(small, y * y, 0.0)
    near = functools.reduce(lambda total, c: total * square + c, reversed(_SINC))
    return where(small, near, FUNCTIONS["sin"](y) / where(small, 1.0, y))


def degrees(x: Any, /) -> Tensor:
    return FUNCTIONS["multiply"](x, 180.0 / np.pi)


def radians(x: Any, /) -> Tensor:
    return FUNCTIONS["multiply"](x, np.pi / 180.0)


rad2deg, deg2rad = degrees, radians


def nan_to_num(x: Any, /, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """``x`` with NaN and the infinities replaced, by default by 0 and the type's largest and smallest values; in both parts of complex numbers."""
    x = weakly(x, "nan_to_num")
    dtype = x._aval()[1]
    if dtype.is_complex:
        return _part_by_part(lambda part: nan_to_num(part, nan, posinf, neginf), x)
    if not dtype.is_float:
        return x
    low, high = limits(dtype)
    x = where(FUNCTIONS["isnan"](x), nan, x)
    x = where(x == np.inf, high if posinf is None else posinf, x)
    return where(x == -np.inf, low if neginf is None else neginf, x)


def limits(dtype: DType) -> tuple[float, float]:
    """The smallest and the largest finite value of a float type."""
    info = ml_dtypes.finfo(dtype.np)
    return float(info.min), float(info.max)


def isclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether ``|x1 - x2| <= atol + rtol * |x2|``."""
    a, b = _float_pair("isclose", x1, x2)
    close = (FUNCTIONS["abs"](a - b) <= atol + rtol * FUNCTIONS["abs"](b)) & FUNCTIONS["isfinite"](b)
    close = close | (a == b)
    return close | (FUNCTIONS["isnan"](a) & FUNCTIONS["isnan"](b)) if equal_nan else close


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """``x`` as ``dtype``: floats to integers truncate and saturate, NaN gives 0. ``x`` itself where that is its type and ``copy`` is False."""
    node = node_of(weakly(x, "astype"))
    new = cast_to(node, dtype)
    return x if new is node and not copy and type(x) is Tensor and not x._weak else wrap(new)


def copy(x: Any, /) -> Tensor:
    """Another Tensor of the values of ``x``: an assignment to elements of one does not change the other."""
    return wrap(array(x, "copy"))


__all__ = [
    "astype", "clip", "copy", "deg2rad", "degrees", "divmod", "isclose", "logaddexp", "logical_and", "logical_not",
    "logical_or", "logical_xor", "nan_to_num", "positive", "pow", "power", "rad2deg", "radians", "round", "sinc",
]  # fmt: skip
