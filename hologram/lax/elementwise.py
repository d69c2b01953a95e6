"""Elementwise functions of ``jax.lax`` that NumPy lacks or means otherwise: quotients towards zero, rounding, bits, selection."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

from hologram import dtypes
from hologram import numpy as hnp
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DTypeError
from hologram.ir.node import Node
from hologram.numpy.arguments import array, element_type, promoted_pair, reshaped, weakly, wrap
from hologram.numpy.numbers.bits import bitcast, same_width
from hologram.primitives import TABLE
from hologram.primitives.markers import barrier
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.checks import integer
from hologram.trace.recorder import cast_node, constant, record
from hologram.trace.tensor import Tensor
from hologram.transform.custom import ReverseRule, custom_jvp, wrapped

__all__ = [
    "AccuracyMode", "Precision", "RoundingMethod", "bitcast_convert_type", "clamp", "clz", "complex", "conj", "convert_element_type", "div", "exp2",
    "integer_pow", "mulhi", "optimization_barrier", "population_count", "reduce_precision", "rem", "round", "select", "select_n",
    "shift_right_arithmetic", "shift_right_logical", "sign",
]  # fmt: skip


class Precision(enum.Enum):
    """How exactly products are computed on accelerators. It is taken, and says nothing here: see the ``precision`` of :func:`hologram.jit`.

    >>> hg.lax.Precision("highest")
    <Precision.HIGHEST: 2>
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        names = {"default": cls.DEFAULT, "fastest": cls.DEFAULT, "bfloat16": cls.DEFAULT, "high": cls.HIGH, "tensorfloat32": cls.HIGH}
        return (names | {"bfloat16_3x": cls.HIGH, "highest": cls.HIGHEST, "float32": cls.HIGHEST}).get(str(value).lower())


class AccuracyMode(enum.Enum):
    """How exactly a function is computed on accelerators. It is there for programs that name it.

    >>> hg.lax.AccuracyMode.HIGHEST
    <AccuracyMode.HIGHEST: 1>
    """

    DEFAULT = 0
    HIGHEST = 1


class RoundingMethod(enum.IntEnum):
    """Where :func:`round` takes halves.

    >>> hg.lax.RoundingMethod.TO_NEAREST_EVEN
    <RoundingMethod.TO_NEAREST_EVEN: 1>
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


# --- arithmetic ------------------------------------------------------------------------------------------------------


def div(x: Any, y: Any) -> Tensor:
    """Quotient ``x / y``; of integers rounded towards zero, and 0 for a divisor of 0.

    The operands broadcast; the result has their common type.

    >>> hg.lax.div([7, -7], 2), hg.lax.div(7.0, 2.0)
    (Tensor([ 3, -3], dtype=int64), Tensor(3.5, dtype=float32))
    """
    a, b = promoted_pair("div", x, y)
    if not a._aval()[1].is_integer:
        return hnp.divide(a, b)
    quotient = hnp.floor_divide(a, b)
    return hnp.where((quotient * b != a) & ((a < 0) != (b < 0)) & (b != 0), quotient + 1, quotient)


def rem(x: Any, y: Any) -> Tensor:
    """Remainder of :func:`div`, which has the sign of ``x``.

    The operands broadcast; the result has their common type.

    >>> hg.lax.rem([7, -7], 3), hg.lax.rem(-7.5, 2.0)
    (Tensor([ 1, -1], dtype=int64), Tensor(-1.5, dtype=float32))
    """
    return hnp.fmod(x, y)


def integer_pow(x: Any, y: int) -> Tensor:
    """Power ``x**y`` to a known integer, as products.

    The type is that of ``x``. Raises ArgumentError for another exponent.

    >>> hg.lax.integer_pow([1.0, 2.0, 3.0], 3)
    Tensor([ 1.,  8., 27.], dtype=float32)
    """
    return hnp.power(x, integer(y, "integer_pow", "an exponent"))


def exp2(x: Any, /) -> Tensor:
    """2 to the power ``x``, of complex numbers too: shape and type are those of ``x``, integers become floats.

    >>> hg.lax.exp2([0.0, 3.0]), hg.lax.exp2(1j)
    (Tensor([1., 8.], dtype=float32), Tensor(0.7692389+0.63896126j, dtype=complex64))
    """
    t = weakly(x, "exp2")
    return hnp.exp(t * math.log(2)) if t._aval()[1].is_complex else hnp.exp2(t)


def sign(x: Any, /) -> Tensor:
    """-1, 0 or 1 with the sign of ``x``; -0.0 of -0.0, where ``hologram.numpy.sign`` and NumPy give 0.0. Of complex numbers ``x / abs(x)``.

    Shape and type are those of ``x``.

    >>> hg.lax.sign([-3.0, -0.0, 2.0])
    Tensor([-1., -0.,  1.], dtype=float32)
    """
    t = weakly(x, "sign")
    return hnp.where(t == 0, t, hnp.sign(t)) if t._aval()[1].is_float else hnp.sign(t)


def mulhi(x: Any, y: Any, /) -> Tensor:
    """The upper half of the bits of the product of integers of one type.

    Raises DTypeError for other types.

    >>> hg.lax.mulhi(np.int32([2**30, -3]), np.int32([8, 5]))
    Tensor([ 2, -1], dtype=int32)
    """
    a, b = promoted_pair("mulhi", x, y)
    d = a._aval()[1]
    if not d.is_integer:
        raise located(DTypeError(f"mulhi takes integers, not {d}"))
    if d.bits < 64:
        wide = f"{'int' if d.kind == 'i' else 'uint'}{2 * d.bits}"
        return (a.astype(wide) * b.astype(wide) >> d.bits).astype(d.np)
    return _upper_half(a, b)


def _upper_half(a: Tensor, b: Tensor) -> Tensor:
    """Of 64-bit integers, from products of their halves: the upper ones are signed as the numbers are."""
    low = (1 << 32) - 1
    a0, b0, a1, b1 = a & low, b & low, a >> 32, b >> 32
    middle = a1 * b0 + shift_right_logical(a0 * b0, 32)
    return a1 * b1 + (middle >> 32) + ((middle & low) + a0 * b1 >> 32)


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Tensor:
    """Rounds to whole numbers, halves away from zero, or to even numbers: see :class:`RoundingMethod`.

    The type is that of ``x``. Raises ArgumentError for another method.

    >>> hg.lax.round([0.5, -1.5, 2.4])
    Tensor([ 1., -2.,  2.], dtype=float32)
    """
    if rounding_method not in tuple(RoundingMethod):
        raise located(ArgumentError(f"round: the method is one of RoundingMethod, not {rounding_method!r}"))
    if RoundingMethod(rounding_method) is RoundingMethod.TO_NEAREST_EVEN:
        return hnp.rint(x)
    t = weakly(x, "round")
    whole = hnp.trunc(t)
    return hnp.where(hnp.abs(t - whole) >= 0.5, whole + hnp.sign(t), whole)


def complex(x: Any, y: Any) -> Tensor:
    """Complex numbers of the real part ``x`` and the imaginary part ``y``, which broadcast: complex128 of float64, else complex64.

    >>> hg.lax.complex(1.0, [2.0, 3.0])
    Tensor([1.+2.j, 1.+3.j], dtype=complex64)
    """
    re, im = promoted_pair("complex", x, y, lambda d: d if d is dtypes.float64 else dtypes.float32)
    parts = hnp.broadcast_arrays(re, im)
    return wrap(record(TABLE["complex"], tuple(array(p, "complex") for p in parts)))


def conj(x: Any) -> Tensor:
    """The complex conjugate, which is complex for real floats, too.

    >>> hg.lax.conj([2.0])
    Tensor([2.+0.j], dtype=complex64)
    """
    t = hnp.conj(x)
    return complex(t, hnp.zeros_like(t)) if t._aval()[1].is_float else t


def clamp(min: Any, x: Any, max: Any) -> Tensor:
    """``x`` limited to the range from ``min`` to ``max``, which broadcast with it.

    >>> hg.lax.clamp(0, [-1, 2, 7], 5)
    Tensor([0, 2, 5], dtype=int64)
    """
    return hnp.minimum(hnp.maximum(x, min), max)


# --- bits ------------------------------------------------------------------------------------------------------------


def _unsigned(x: Any, what: str) -> tuple[Tensor, DType]:
    """Integers as unsigned ones of the same bits, and their own type."""
    node = array(x, what)
    if not node.dtype.is_integer:
        raise located(DTypeError(f"{what} takes integers, not {node.dtype}"))
    return wrap(cast_node(node, dtypes.of(f"uint{node.dtype.bits}"))), node.dtype


def shift_right_logical(x: Any, y: Any) -> Tensor:
    """Bits of integers moved to the right by ``y``, with zeros after them. Shifts by less than zero, or by the width or more, give 0.

    >>> hg.lax.shift_right_logical(np.int8([-1, 64]), np.int8(2))
    Tensor([63, 16], dtype=int8)
    """
    a, b = promoted_pair("shift_right_logical", x, y)
    bits, d = _unsigned(a, "shift_right_logical")
    return hnp.where((b < 0) | (b >= d.bits), 0, (bits >> _unsigned(b, "shift_right_logical")[0]).astype(d.np))


def shift_right_arithmetic(x: Any, y: Any) -> Tensor:
    """Bits of integers moved to the right by ``y``, with copies of the sign after them. A shift by the width or more is one by all but one bit.

    >>> hg.lax.shift_right_arithmetic(np.int8([-8, 64]), np.int8(2))
    Tensor([-2, 16], dtype=int8)
    """
    a, b = promoted_pair("shift_right_arithmetic", x, y)
    bits, d = _unsigned(a, "shift_right_arithmetic")
    signed = bits.astype(f"int{d.bits}")
    most = d.bits - 1
    return (signed >> hnp.where((b < 0) | (b > most), most, b).astype(f"int{d.bits}")).astype(d.np)


def population_count(x: Any) -> Tensor:
    """How many bits of each integer are 1, in the type of ``x``.

    >>> hg.lax.population_count(np.int32([0, 7, -1]))
    Tensor([ 0,  3, 32], dtype=int32)
    """
    bits, d = _unsigned(x, "population_count")
    return hnp.bitwise_count(bits).astype(d.np)


def clz(x: Any) -> Tensor:
    """How many zeros stand before the first bit of each integer that is 1, in the type of ``x``.

    >>> hg.lax.clz(np.uint8([1, 64, 0]))
    Tensor([7, 1, 8], dtype=uint8)
    """
    bits, d = _unsigned(x, "clz")
    shift = 1
    while shift < d.bits:  # every bit after the first 1 becomes 1
        bits = bits | bits >> shift
        shift *= 2
    return hnp.bitwise_count(~bits).astype(d.np)


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Tensor:
    """The bits of ``operand`` as another type.

    Of a narrower type there is a last axis with the parts of each element, the lowest bits first; elements of a last axis become one of a wider type.
    Raises ShapeError where that axis has another extent, DTypeError for bool and complex types.

    >>> hg.lax.bitcast_convert_type(np.float32([1.0, -2.0]), np.uint32)
    Tensor([1065353216, 3221225472], dtype=uint32)
    """
    return bitcast(operand, new_dtype, "bitcast_convert_type")


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Tensor:
    """Rounds floats to fewer bits of the significand, and to the range of fewer bits of the exponent; the type stays.

    Halves go to even numbers, what is beyond the range becomes infinite, what is below it zero. Tangents and cotangents are rounded likewise. Raises
    ArgumentError for fewer than 1 and 0 bits, DTypeError for other types than floats.

    >>> hg.lax.reduce_precision([1.2345678, 1e30], 8, 3)
    Tensor([1.2500000e+00, 1.0299661e+30], dtype=float32)
    """
    node = array(operand, "reduce_precision")
    if not node.dtype.is_float:
        raise located(DTypeError(f"reduce_precision takes floats, not {node.dtype}"))
    exponent, mantissa = (integer(n, "reduce_precision", "a number of bits") for n in (exponent_bits, mantissa_bits))
    if exponent < 1 or mantissa < 0:
        raise located(ArgumentError(f"reduce_precision: {exponent} bits of exponent and {mantissa} of significand"))
    return wrap(_Rounding(exponent, mantissa).applied([node])[0])


class _Rounding(ReverseRule):
    """The derivative of rounding: a linear map that is its own transpose."""

    def __init__(self, exponent: int, mantissa: int) -> None:
        super().__init__()
        self.exponent, self.mantissa = exponent, mantissa

    def of(self, nodes: Sequence[Node]) -> list[Node]:
        return [array(_rounded(self.exponent, self.mantissa, wrap(x)), "reduce_precision") for x in nodes]

    def applied(self, nodes: Sequence[Node]) -> list[Node]:
        """The rounded values, with this derivative."""
        return wrapped(self.of(nodes), nodes, _Rounding(self.exponent, self.mantissa))

    def pushed(self, arguments: Sequence[Node], given: Sequence[Node]) -> Sequence[Node]:
        return self.applied(given)

    def forward(self, arguments: Sequence[Node]) -> tuple[list[Node], list[Node]]:
        return self.applied(arguments), []

    def backward(self, arguments: Sequence[Node], residuals: Sequence[Node], cotangents: Sequence[Node]) -> list[Node | None]:
        return [*self.applied(cotangents)]


def _rounded(exponent: int, mantissa: int, x: Tensor) -> Tensor:
    d = x._aval()[1]
    words, form = dtypes.of(f"uint{d.bits}"), d.format
    bits = wrap(same_width(array(x, "reduce_precision"), words))
    one = lambda n: constant(n, words)  # noqa: E731
    drop = form.fraction_bits - mantissa
    if drop > 0:
        last = bits >> wrap(one(drop)) & wrap(one(1))
        bits = bits + wrap(one((1 << drop - 1) - 1)) + last & wrap(one((1 << d.bits) - (1 << drop)))
    out = wrap(same_width(array(bits, "reduce_precision"), d))
    bias = (1 << exponent - 1) - 1
    if bias < form.bias:
        least, most = 2.0 ** (1 - bias), (2.0 - 2.0 ** -min(mantissa, form.fraction_bits)) * 2.0**bias
        zero = hnp.copysign(0.0, out)
        out = hnp.where(hnp.abs(out) < least, zero, hnp.where(hnp.abs(out) > most, hnp.copysign(hnp.inf, out), out))
    return hnp.where(hnp.isfinite(x), out, x).astype(d.np)


# --- types and choices -----------------------------------------------------------------------------------------------


def convert_element_type(operand: Any, new_dtype: Any) -> Tensor:
    """Elements converted to another type, as by ``hologram.numpy.astype``; complex numbers to real ones by their real part.

    >>> hg.lax.convert_element_type([1.7, -2.5], np.int32)
    Tensor([ 1, -2], dtype=int32)
    """
    t, to = weakly(operand, "convert_element_type"), element_type(new_dtype)
    if dtypes.loses_part(t._aval()[1], to):
        t = hnp.real(t)
    return hnp.astype(t, to.np)


def select(pred: Any, on_true: Any, on_false: Any) -> Tensor:
    """``on_true`` where ``pred`` holds, else ``on_false``: ``hologram.numpy.where`` of three operands.

    >>> hg.lax.select(np.array([True, False]), [1, 2], [3, 4])
    Tensor([1, 4], dtype=int64)
    """
    return hnp.where(pred, on_true, on_false)


def select_n(which: Any, *cases: Any) -> Tensor:
    """By element, the case that ``which`` numbers: a bool chooses between two, an integer among all.

    ``which`` is a scalar, or has the shape of the cases, which are of one type. A number out of range takes the first or the last. Raises
    ArgumentError for no cases, DTypeError for a ``which`` of another type, and for a bool beside other than two.

    >>> hg.lax.select_n(np.array([2, 0, 1]), [1, 2, 3], [10, 20, 30], [100, 200, 300])
    Tensor([100,   2,  30], dtype=int64)
    """
    if not cases:
        raise located(ArgumentError("select_n takes at least one case"))
    chosen = hnp.asarray(which)
    d = chosen._aval()[1]
    if d.kind not in "biu" or (d.kind == "b" and len(cases) > 2):
        raise located(DTypeError(f"select_n: {d} does not choose among {len(cases)} cases"))
    result = hnp.asarray(cases[0])
    for i, case in enumerate(cases[1:], 1):
        result = hnp.where(chosen if d.kind == "b" else chosen >= i, case, result)
    return result


def optimization_barrier(operand: Any) -> Any:
    """A pytree as it is, of which nothing is computed before all of it is, nor merged with what comes after it.

    >>> hg.lax.optimization_barrier({"x": np.float32(1)})
    {'x': Tensor(1., dtype=float32)}
    """
    leaves, structure = tree.flatten(operand)
    return tree.unflatten(structure, _behind([weakly(x, "optimization_barrier") for x in leaves]))


@custom_jvp
def _behind(leaves: list[Tensor]) -> list[Tensor]:
    nodes = [array(x, "optimization_barrier") for x in leaves]
    some = [n for n in nodes if n.size != 0]
    first: Callable[[Node], Node] = lambda x: reshaped(array(wrap(x).reshape(-1)[:1], "optimization_barrier"), ())  # noqa: E731
    for after in some:
        token = first(after)
        nodes = [n if n is after or n.size == 0 else record(barrier, (n, token)) for n in nodes]
    return [wrap(n) for n in nodes]


@_behind.defjvp
def _behind_jvp(primals: Any, tangents: Any) -> Any:
    return _behind(*primals), tangents[0]
