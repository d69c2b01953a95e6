"""Operators whose op depends on their operands: powers, comparison with Python integers of any size, extremes of complex numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError
from hologram.ir.node import Node
from hologram.ir.op import Op
from hologram.primitives import TABLE
from hologram.primitives.scalar import composite
from hologram.settings import settings
from hologram.support.user_lines import located
from hologram.trace import operators
from hologram.trace.operators import (
    binary_operator,
    broadcast_node,
    common_type,
    elementwise,
    node_as,
    operand,
    promoted,
    stretched,
    with_tensors,
    wrap,
)
from hologram.trace.recorder import cast_node, constant, current, fits, record
from hologram.trace.symbolic_extent import Extent

_PRODUCTS = 16  # static exponents up to this size are products; beyond, the error of repeated products exceeds that of pow


def power(x: Any, y: Any) -> Any:
    """``x ** y``. A static whole exponent becomes products; integers to a negative static power are refused, as NumPy does."""
    x, y = with_tensors((x, y), "pow")
    if isinstance(y, (np.integer, np.ndarray)):
        _refuse_negative(x, y)
    exponent = _whole(y)
    if exponent is not None:
        base = operand(x, "pow")
        dtype, weak = common_type([base, operand(y, "pow")])
        if dtype.is_integer and exponent > _PRODUCTS and current() is None and fits(exponent, dtype):
            return elementwise(composite.ipow, x, y)  # an operand, so that programs for other exponents are the same
        if dtype.is_integer or (dtype.kind in "fc" and abs(exponent) <= _PRODUCTS):
            node = node_as(base[0], dtype)
            if exponent == 1:
                return wrap(node, weak)
            if dtype.is_integer and exponent < 0:
                raise _no_integer(exponent)
            return wrap(record(composite.integer_pow, (node,), (exponent,)), weak)
    _, dtype, _ = promoted("pow", (x, y))
    if dtype.kind == "b":
        raise located(DTypeError("pow does not take bool"))
    return elementwise(composite.ipow if dtype.is_integer else TABLE["pow"], x, y)


def _refuse_negative(x: Any, y: np.integer[Any] | np.ndarray) -> None:
    """Raises DTypeError for integers to a negative power that is known: a NumPy scalar, or an array of no axes."""
    if y.ndim == 0 and y.dtype.kind == "i" and int(y) < 0 and common_type([operand(x, "pow"), operand(y, "pow")])[0].is_integer:
        raise _no_integer(int(y))


def _no_integer(exponent: int) -> Exception:
    return located(DTypeError(f"pow: integers to the negative power {exponent} are not integers: cast the base to a float type"))


_lean_power = binary_operator(TABLE["pow"], general=power)


def raised(x: Any, y: Any) -> Any:
    """The operator ``x ** y`` of a Tensor: numbers that become products go through :func:`power` each time."""
    kind = type(y)
    if (kind is int or kind is float) and -_PRODUCTS <= y <= _PRODUCTS:
        return power(x, y)
    if isinstance(y, (np.integer, np.ndarray)):
        _refuse_negative(x, y)
    return _lean_power(x, y)


def _whole(y: Any) -> int | None:
    """A Python number that is an integer."""
    if type(y) is int:
        return y
    return int(y) if type(y) is float and y.is_integer() else None


def floor_division(swapped: bool = False, infix: bool = True) -> Callable[[Any, Any], Any]:
    """``x1 // x2``, or ``x2 // x1`` where ``swapped``; see :func:`~hologram.trace.operators.binary_operator`.

    ``settings.standard_floor_divide`` chooses, call by call, what holds where an operand is infinite.
    """
    as_numpy, as_standard = (
        binary_operator(composite.floordiv, swapped, general, infix) for general in (None, lambda x, y: _with_infinite_quotients(x, y))
    )

    def method(x1: Any, x2: Any, /) -> Any:
        return (as_standard if settings.standard_floor_divide else as_numpy)(x1, x2)

    return method


def _with_infinite_quotients(x: Any, y: Any) -> Any:
    """The quotient rounded down; where an operand is infinite the true quotient, which is infinite, a zero or NaN."""
    x, y = with_tensors((x, y), "floor_divide")
    whole = elementwise(composite.floordiv, x, y)
    if not whole._aval()[1].is_float:
        return whole
    infinite = elementwise(TABLE["or"], elementwise(TABLE["isinf"], x), elementwise(TABLE["isinf"], y))
    chosen = stretched("floor_divide", (infinite._node, elementwise(TABLE["div"], x, y)._node, whole._node))
    return wrap(record(TABLE["select"], chosen), whole._weak)


def comparison(row: Op) -> Callable[[Any, Any], Any]:
    """The comparison ``row``, for which every Python integer has its place beside those of an integer type, and integers of two types have theirs,
    whatever type their sum would have."""

    def compare(x: Any, y: Any) -> Any:
        if type(x) is int and type(y) is int:  # of any size: their order is known
            x, y = (x > y) - (x < y), 0
        x, y = with_tensors((x, y), row.name)
        first, second = _integer_type(x), _integer_type(y)
        if first is not None and second is not None and first is not second:
            return _of_integers(row, x, y)
        if type(x) is int or type(y) is int:
            a, b = operand(x, row.name), operand(y, row.name)
            dtype, _ = common_type([a, b])
            if dtype.is_integer:
                info = np.iinfo(dtype.np)
                for value, other, on_left in ((x, b[0], True), (y, a[0], False)):
                    if type(value) is int and not info.min <= value <= info.max:
                        return _beyond(row, other, value > 0, on_left)
        return elementwise(row, x, y)

    return compare


def _integer_type(x: Any) -> DType | None:
    """The element type of an array of integers; None for everything else, Python's numbers too."""
    if isinstance(x, (np.ndarray, np.generic)):
        return dtypes.of(x.dtype) if x.dtype.kind in "iu" else None
    dtype = dtypes.int64 if type(x) is Extent else x._aval()[1] if isinstance(x, operators.tensor_class) else None
    return dtype if dtype is not None and dtype.is_integer else None


def _of_integers(row: Op, x: Any, y: Any) -> Any:
    """The comparison ``row`` of integers of two types, which are compared as the numbers that they are: the type that arithmetic would give them
    may round them (uint64 beside int64), or wrap them (what is made of Python's numbers alone takes any type)."""
    (a, _, weak), (b, _, also_weak) = operand(x, row.name), operand(y, row.name)
    common = dtypes.promote(a.dtype, b.dtype)
    negative = None
    if not common.is_integer:
        common = dtypes.uint64
        signed = b if a.dtype is common else a
        negative = record(TABLE["lt"], (signed, constant(0, signed.dtype)))
    shaped = stretched(row.name, (cast_node(a, common), cast_node(b, common)))
    result = record(row, shaped)
    if negative is not None:  # below every uint64
        below = _beyond(row, negative, False, signed is a)
        result = record(TABLE["select"], stretched(row.name, (negative, below._node, result)))
    return wrap(result, weak and also_weak)


def extreme(row: Op) -> Callable[[Any, Any], Any]:
    """The larger or smaller of two, which of complex numbers NumPy orders by their real parts, equal ones by their imaginary parts.

    A number with a NaN in either part is the result, the left one of two.
    """
    beyond = "gt" if row.name == "max" else "lt"

    def choose(x: Any, y: Any) -> Any:
        x, y = with_tensors((x, y), row.name)
        dtype, weak = common_type([operand(x, row.name), operand(y, row.name)])
        if not dtype.is_complex:
            return elementwise(row, x, y)
        a, b = stretched(row.name, promoted(row.name, (x, y), keep=True)[0])
        (p, q), (r, s) = ([record(TABLE[part], (z,)) for part in ("real", "imag")] for z in (a, b))

        def of(name: str, *nodes: Node) -> Node:
            return functools.reduce(lambda u, v: record(TABLE[name], (u, v)), nodes)

        numbers = of("and", of("eq", q, q), of("eq", s, s))
        tied = of("and", of("eq", p, r), of("or", of(beyond, q, s), of("eq", q, s)))
        left = of("or", of("ne", p, p), of("ne", q, q), of("and", of(beyond, p, r), numbers), tied)
        return wrap(record(TABLE["select"], (left, a, b)), weak)

    return choose


def _beyond(row: Op, other: Node | Any, above: bool, on_left: bool) -> Any:
    """The comparison of ``other`` with an integer above, or below, everything its type holds."""
    shape = other.shape if isinstance(other, Node) else ()
    order = np.array(1), np.array(0)  # greater, smaller
    left, right = order if above == on_left else order[::-1]
    return wrap(broadcast_node(constant(bool(row.reference(left, right)), dtypes.bool_), shape))
