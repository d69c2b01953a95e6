"""Element-wise ops: functions of arrays, each with one of a few rules of type promotion."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from hologram import nn, special
from hologram import numpy as hnp
from hologram.errors import ArgumentError
from hologram.primitives import TABLE
from hologram.trace.operators import unary_operator
from hologram.trace.tensor import Tensor
from hologram_torch.aten.registry import implements, rows
from hologram_torch.aten.types import cast, inexact, opmath, result_type, tensor_of, type_of

Function = Callable[..., Any]
_normal_within = unary_operator(TABLE["normal_within"])


def _operands(dtype: torch.dtype, args: tuple[Any, ...]) -> list[Any]:
    """The arguments as Tensors of one type; None stays."""
    return [None if x is None else tensor_of(x, dtype) for x in args]


# --- type rules ------------------------------------------------------------------------------------------------------


def promoting(function: Function) -> Function:
    """Computed in, and resulting in, the common type of the arguments."""

    def row(*args: Any) -> Tensor:
        return function(*_operands(result_type(*args), args))

    return row


def to_float(function: Function) -> Function:
    """As :func:`promoting`, with the default float for integers and bool."""

    def row(*args: Any) -> Tensor:
        return function(*_operands(inexact(result_type(*args)), args))

    return row


def testing(function: Function) -> Function:
    """Compared in the common type of the arguments, resulting in bool."""

    def row(*args: Any) -> Tensor:
        return cast(function(*_operands(result_type(*args), args)), torch.bool)

    return row


def keeping(function: Function) -> Function:
    """A function of floats that is the identity on integers and bool."""

    def row(x: Tensor) -> Tensor:
        dtype = type_of(x)
        return function(x) if dtype.is_floating_point or dtype.is_complex else x

    return row


def logical(function: Function) -> Function:
    """A function of truth values, for arguments of any type."""

    def row(*args: Any) -> Tensor:
        return function(*[cast(tensor_of(x, type_of(x)), torch.bool) for x in args])

    return row


# --- functions of complex numbers too ---------------------------------------------------------------------------------


def _sigmoid(x: Tensor) -> Tensor:
    return 1.0 / (1.0 + hnp.exp(-x)) if type_of(x).is_complex else hnp.sigmoid(x)


def _silu(x: Tensor) -> Tensor:
    return x * _sigmoid(x) if type_of(x).is_complex else nn.silu(x)


def _exp2(x: Tensor) -> Tensor:
    return hnp.exp(x * math.log(2)) if type_of(x).is_complex else hnp.exp2(x)


# --- rows ------------------------------------------------------------------------------------------------------------

rows(
    {
        "acos": hnp.acos,
        "acosh": hnp.acosh,
        "asin": hnp.asin,
        "asinh": hnp.asinh,
        "atan": hnp.atan,
        "atanh": hnp.atanh,
        "cos": hnp.cos,
        "cosh": hnp.cosh,
        "digamma": special.digamma,
        "erf": special.erf,
        "erfc": special.erfc,
        "erfinv": special.erfinv,
        "exp": hnp.exp,
        "exp2": _exp2,
        "expm1": hnp.expm1,
        "i0": special.i0,
        "lgamma": special.gammaln,
        "log": hnp.log,
        "log10": hnp.log10,
        "log1p": hnp.log1p,
        "log2": hnp.log2,
        "reciprocal": hnp.reciprocal,
        "rsqrt": hnp.rsqrt,
        "sigmoid": _sigmoid,
        "silu": _silu,
        "sin": hnp.sin,
        "sinh": hnp.sinh,
        "special_erfcx": special.erfcx,
        "special_i0e": special.i0e,
        "special_i1": special.i1,
        "special_i1e": special.i1e,
        "special_ndtri": special.ndtri,
        "sqrt": hnp.sqrt,
        "tan": hnp.tan,
        "tanh": hnp.tanh,
        "atan2": hnp.atan2,
        "copysign.Tensor copysign.Scalar": hnp.copysign,
        "div.Tensor div.Scalar true_divide.Tensor": hnp.divide,
    },
    to_float,
)
rows(
    {
        "abs": hnp.abs,
        "neg": hnp.negative,
        "square": hnp.square,
        "bitwise_not": hnp.bitwise_not,
        "conj_physical _conj_physical": hnp.conj,
        "mul.Tensor mul.Scalar": hnp.multiply,
        "maximum": hnp.maximum,
        "minimum": hnp.minimum,
        "fmax": hnp.fmax,
        "fmin": hnp.fmin,
        "hypot": hnp.hypot,
        "gcd": hnp.gcd,
        "lcm": hnp.lcm,
        "nextafter": hnp.nextafter,
        "logaddexp": hnp.logaddexp,
        "logaddexp2": hnp.logaddexp2,
        "pow.Tensor_Tensor pow.Scalar": hnp.pow,
        "remainder.Tensor remainder.Scalar remainder.Scalar_Tensor": hnp.remainder,
        "fmod.Tensor fmod.Scalar": hnp.fmod,
        "bitwise_and.Tensor bitwise_and.Scalar bitwise_and.Scalar_Tensor": hnp.bitwise_and,
        "bitwise_or.Tensor bitwise_or.Scalar bitwise_or.Scalar_Tensor": hnp.bitwise_or,
        "bitwise_xor.Tensor bitwise_xor.Scalar bitwise_xor.Scalar_Tensor": hnp.bitwise_xor,
    },
    promoting,
)
rows(
    {
        "eq.Tensor eq.Scalar": hnp.equal,
        "ne.Tensor ne.Scalar": hnp.not_equal,
        "lt.Tensor lt.Scalar": hnp.less,
        "le.Tensor le.Scalar": hnp.less_equal,
        "gt.Tensor gt.Scalar": hnp.greater,
        "ge.Tensor ge.Scalar": hnp.greater_equal,
        "isnan": hnp.isnan,
        "isinf": hnp.isinf,
        "signbit": hnp.signbit,
    },
    testing,
)
rows({"ceil": hnp.ceil, "floor": hnp.floor, "trunc": hnp.trunc, "round": hnp.round}, keeping)
rows(
    {"logical_not": hnp.logical_not, "logical_and": hnp.logical_and, "logical_or": hnp.logical_or, "logical_xor": hnp.logical_xor},
    logical,
)


@implements("sign")
def sign(x: Tensor) -> Tensor:
    """Torch's sign of NaN is 0, and that of a truth value the value."""
    dtype = type_of(x)
    if dtype is torch.bool:
        return x
    return hnp.where(hnp.isnan(x), cast(hnp.zeros(()), dtype), hnp.sign(x)) if dtype.is_floating_point else hnp.sign(x)


@implements("pow.Tensor_Scalar")
def pow_scalar(x: Tensor, exponent: Any) -> Tensor:
    """Torch's roots are those of ``sqrt``: of minus infinity NaN, where a power is infinite."""
    base, power = _operands(result_type(x, exponent), (x, exponent))
    if type_of(base).is_floating_point and exponent in (0.5, -0.5):
        return hnp.sqrt(base) if exponent > 0 else hnp.rsqrt(base)
    return hnp.pow(base, power)


@implements("round.decimals")
def round_decimals(x: Tensor, *, decimals: int) -> Tensor:
    scale = 10.0 ** abs(decimals)
    return hnp.round(x * scale) / scale if decimals >= 0 else hnp.round(x / scale) * scale


@implements("add.Tensor", "add.Scalar")
def add(x: Any, y: Any, alpha: Any = 1) -> Tensor:
    a, b = _operands(result_type(x, y), (x, y))
    return a + _scaled(b, alpha)


@implements("sub.Tensor", "sub.Scalar")
def sub(x: Any, y: Any, alpha: Any = 1) -> Tensor:
    a, b = _operands(result_type(x, y), (x, y))
    return a - _scaled(b, alpha)


def _scaled(x: Tensor, alpha: Any) -> Tensor:
    return x if alpha == 1 else x * tensor_of(alpha, type_of(x))


@implements("div.Tensor_mode", "div.Scalar_mode")
def div_mode(x: Any, y: Any, *, rounding_mode: str | None) -> Tensor:
    dtype = result_type(x, y)
    if rounding_mode is None:
        dtype = inexact(dtype)
    a, b = _operands(dtype, (x, y))
    if rounding_mode is None:
        return a / b
    if rounding_mode == "floor":
        return hnp.floor_divide(a, b)
    if dtype.is_floating_point:
        return hnp.trunc(a / b)
    return (a - hnp.fmod(a, b)) // b


@implements("where.self", "where.ScalarOther", "where.ScalarSelf")
def where(condition: Tensor, x: Any, y: Any) -> Tensor:
    return hnp.where(cast(condition, torch.bool), *_operands(result_type(x, y), (x, y)))


@implements("clamp", "clamp.Tensor")
def clamp(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """What is not beyond a bound is itself: -0.0 too, where the bound is 0.0. A NaN among the bounds is the result."""
    values, low, high = _operands(result_type(x, min, max), (x, min, max))
    if low is not None:
        values = _where_within(values, low, min, values < low)
    return values if high is None else _where_within(values, high, max, values > high)


def _where_within(values: Tensor, bound: Tensor, given: Any, beyond: Tensor) -> Tensor:
    """The bound for what is ``beyond`` it; ``given`` is the bound as the caller has it."""
    if type(given) is Tensor or given != given:
        beyond = beyond | hnp.isnan(bound)
    return hnp.where(beyond, bound, values)


@implements("relu")
def relu(x: Tensor) -> Tensor:
    return clamp(x, 0)


@implements("addcmul")
def addcmul(x: Tensor, a: Tensor, b: Tensor, *, value: Any = 1) -> Tensor:
    x, a, b = _operands(result_type(x, a, b), (x, a, b))
    return x + _times(value, a) * b


@implements("addcdiv")
def addcdiv(x: Tensor, a: Tensor, b: Tensor, *, value: Any = 1) -> Tensor:
    x, a, b = _operands(result_type(x, a, b), (x, a, b))
    return x + _times(value, a) / b


def _times(value: Any, x: Tensor) -> Tensor:
    return x if type(value) is not Tensor and value == 1 else tensor_of(value, type_of(x)) * x


@implements("lerp.Scalar", "lerp.Tensor")
def lerp(x: Tensor, end: Tensor, weight: Any) -> Tensor:
    """``x + weight * (end - x)``, from the nearer end."""
    near: Any = abs(weight) < 0.5
    x, end, weight = _operands(result_type(x, end, weight), (x, end, weight))
    low, high = x + weight * (end - x), end - (end - x) * (1 - weight)
    if type(near) is bool:
        return low if near else high
    return hnp.where(near, low, high)


@implements("leaky_relu")
def leaky_relu(x: Tensor, negative_slope: Any = 0.01) -> Tensor:
    return hnp.where(x > 0, x, x * negative_slope)


@implements("elu")
def elu(x: Tensor, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Tensor:
    values = cast(x, opmath(type_of(x)))
    low = hnp.expm1(hnp.minimum(values, 0.0) * float(input_scale)) * (float(alpha) * float(scale))
    return cast(hnp.where(values <= 0, low, values * float(scale)), type_of(x))


@implements("hardtanh")
def hardtanh(x: Tensor, min_val: Any = -1, max_val: Any = 1) -> Tensor:
    dtype = type_of(x)
    return clamp(x, tensor_of(min_val, dtype), tensor_of(max_val, dtype))


@implements("gelu")
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"gelu: approximate is 'none' or 'tanh', not {approximate!r}")
    if approximate == "tanh":
        return nn.gelu(x)
    # the normal distribution function to the precision of 1, as torch has it; nn.gelu's own keeps its digits far below 0, and costs more
    values = cast(x, opmath(type_of(x)))
    return cast(values * (_normal_within(values) * 0.5 + 0.5), type_of(x))


@implements("gelu_backward")
def gelu_backward(cotangent: Tensor, x: Tensor, *, approximate: str = "none") -> Tensor:
    values, given = (cast(t, opmath(type_of(x))) for t in (x, cotangent))
    slope = _slope_by_tanh(values) if approximate == "tanh" else _normal_within(values) * 0.5 + 0.5 + values * _normal_density(values)
    return cast(given * slope, type_of(x))


def _normal_density(x: Tensor) -> Tensor:
    return hnp.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))


def _slope_by_tanh(x: Tensor) -> Tensor:
    """The derivative of ``x * sigmoid(k * (x + c * x**3))``, the tanh approximation; beyond 20 it is 0 or 1, and powers must not overflow."""
    k, c = 2 * math.sqrt(2 / math.pi), 0.044715
    near = hnp.clip(x, -30.0, 30.0)
    square = near * near
    tail = hnp.sigmoid(hnp.abs(near) * (-k - k * c * square))  # of sigmoids s and 1 - s the smaller, which keeps its digits
    return hnp.where(near > 0, 1.0 - tail, tail) + tail * (1.0 - tail) * near * (k + 3 * k * c * square)


@implements("polygamma")
def polygamma(n: int, x: Tensor) -> Tensor:
    """At its poles torch gives even orders the value from above too, and Hologram NaN."""
    at = cast(x, inexact(type_of(x)))
    found = special.polygamma(n, at)
    return found if n == 0 or n % 2 else hnp.where((at <= 0) & (at == hnp.floor(at)), -math.inf, found)


@implements("angle")
def angle(x: Tensor) -> Tensor:
    if type_of(x).is_complex:
        return hnp.angle(x)
    values = cast(x, inexact(type_of(x)))
    return hnp.where(hnp.isnan(values), values, cast(values < 0, type_of(values)) * math.pi)


@implements("ldexp.Tensor")
def ldexp(x: Tensor, exponent: Tensor) -> Tensor:
    dtype = inexact(result_type(x, 2.0, exponent))
    return cast(x, dtype) * hnp.exp2(cast(exponent, dtype))


@implements("bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar", "bitwise_left_shift.Scalar_Tensor")
def left_shift(x: Any, y: Any) -> Tensor:
    return hnp.bitwise_left_shift(*_operands(result_type(x, y), (x, y)))


@implements("bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar", "bitwise_right_shift.Scalar_Tensor")
def right_shift(x: Any, y: Any) -> Tensor:
    return hnp.bitwise_right_shift(*_operands(result_type(x, y), (x, y)))


@implements("prims::convert_element_type")
def convert_element_type(x: Tensor, dtype: torch.dtype) -> Tensor:
    return cast(x, dtype)


@implements("_to_copy")
def to_copy(x: Tensor, *, dtype: torch.dtype | None = None, **layout: Any) -> Tensor:
    require_cpu("_to_copy", layout.get("device"))
    return cast(x, dtype)


def require_cpu(what: str, device: Any) -> None:
    """Raises ArgumentError for a device whose memory is not the CPU's."""
    if device is not None and torch.device(device).type not in ("cpu", "hologram"):
        raise ArgumentError(f"{what}: Hologram's Tensors are in the CPU's memory, not on {device}")
