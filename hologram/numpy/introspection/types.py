"""Element types and what is known of them; constants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, DTypeError
from hologram.support.user_lines import located
from hologram.trace.convert import asarray, element_type
from hologram.trace.operators import SCALARS, common_type, weak_default
from hologram.trace.tensor import Tensor

e, pi, inf, nan, euler_gamma = math.e, math.pi, math.inf, math.nan, 0.5772156649015329
newaxis = None


class ScalarType:
    """An element type as a function: ``hnp.float32(x)`` is ``x`` as an array of that type.

    It equals the NumPy dtype, stands for it wherever a type is asked for, and has its attributes.
    """

    def __init__(self, of: dtypes.DType) -> None:
        self.dtype: np.dtype = of.np
        self.__name__ = self.__qualname__ = of.name
        self.__module__ = "hologram.numpy"
        example = {"b": "1", "c": "1"}.get(of.kind, "2")
        self.__doc__ = f"""The element type {of.name}; called, ``x`` as an array of it. Raises what ``hologram.numpy.asarray`` does.

>>> hnp.{of.name}({example}).dtype == hnp.{of.name}
True
"""

    def __call__(self, x: Any = 0) -> Tensor:
        return asarray(x, dtype=self.dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "dtype":  # the latter where there is none yet
            raise AttributeError(name)
        return getattr(self.dtype, name)

    def __eq__(self, other: object) -> bool:
        if other is None:  # which NumPy's types take for float64
            return False
        return bool(self.dtype == (other.dtype if isinstance(other, ScalarType) else other))

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"hologram.numpy.{self.__name__}"

    def __reduce__(self) -> Any:
        return scalar_type, (self.__name__,)


DTYPES = {d.name: ScalarType(d) for d in dtypes.ALL}
globals().update(DTYPES)
dtype = np.dtype


def scalar_type(name: str) -> ScalarType:
    """The element type of that name, as a function."""
    return DTYPES[name]


_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


@dataclass(frozen=True, slots=True)
class FloatLimits:
    """Of a float type: bits, the distance from 1 to the next number, ends, the least normal number. ``tiny`` is another name of that."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype

    @property
    def tiny(self) -> float:
        return self.smallest_normal


@dataclass(frozen=True, slots=True)
class IntegerLimits:
    """Of an integer type: bits and ends."""

    bits: int
    max: int
    min: int
    dtype: np.dtype


def finfo(type: Any, /) -> FloatLimits:
    """Limits of a float type, of a complex type's parts, or of a Tensor's type: bits, eps, max, min, smallest_normal.

    Raises ValueError for other types.

    >>> hnp.finfo(hnp.float32).eps
    1.1920928955078125e-07
    >>> hnp.finfo("bfloat16").max
    3.3895313892515355e+38
    """
    d = _type_of(type)
    of = ml_dtypes.finfo(d)
    return FloatLimits(of.bits, float(of.eps), float(of.max), float(of.min), float(of.smallest_normal), d)


def iinfo(type: Any, /) -> IntegerLimits:
    """Limits of an integer type, or of a Tensor's type: bits, max, min. Raises ValueError for other types.

    >>> hnp.iinfo(hnp.int8).max
    127
    """
    d = _type_of(type)
    of = np.iinfo(d)
    return IntegerLimits(of.bits, int(of.max), int(of.min), d)


def _type_of(x: Any) -> np.dtype:
    d = x.dtype if isinstance(x, (Tensor, np.ndarray)) else element_type(x).np
    return element_type(np.empty(0, d).real.dtype).np if d.kind == "c" else d


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """Type that arrays, Python scalars and types promote to: the Array API's table; an integer takes a float's type.

    A Python scalar is weak: it takes the type of an array of its kind. Unlike in NumPy float32 with int64 is float32. Raises ArgumentError for no
    arguments, DTypeError for an unknown type. Also called ``promote_types``.

    >>> hnp.result_type(hnp.int8, hnp.int32), hnp.result_type(hnp.float32, hnp.int64)
    (dtype('int32'), dtype('float32'))
    >>> hnp.result_type(np.zeros(2, np.float16), 1.5)
    dtype('float16')
    """
    if not arrays_and_dtypes:
        raise located(ArgumentError("result_type takes at least one array or type"))
    operands: list[Any] = []
    for x in arrays_and_dtypes:
        if type(x) in SCALARS:
            operands.append((x, dtypes.of_scalar(x), True))
        else:
            operands.append((x, element_type(x.dtype if isinstance(x, (Tensor, np.ndarray, np.generic)) else x), False))
    dtype, weak = common_type(operands)
    return (weak_default(dtype) if weak else dtype).np


promote_types = result_type


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether the type ``from_``, or that of an array, promotes to ``to`` without a change of that.

    >>> hnp.can_cast(hnp.int8, hnp.int64), hnp.can_cast(hnp.float64, hnp.float32)
    (True, False)
    """
    target = element_type(to)
    try:
        return dtypes.promote(element_type(result_type(from_)), target) is target
    except DTypeError:  # an 8-bit float and another float
        return False


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether ``dtype`` is of ``kind``: a type, a kind's name as in the Array API, or a tuple of either.

    The names are ``bool``, ``signed integer``, ``unsigned integer``, ``integral``, ``real floating``, ``complex floating``, ``numeric``.

    >>> hnp.isdtype(hnp.int8, "integral"), hnp.isdtype(hnp.int8, (hnp.int16, "bool"))
    (True, False)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    d = element_type(dtype)
    if isinstance(kind, str) and kind in _KINDS:
        return d.kind in _KINDS[kind]
    return d is element_type(kind)


__all__ = [
    *DTYPES, "can_cast", "dtype", "e", "euler_gamma", "finfo", "iinfo", "inf", "isdtype", "nan", "newaxis", "pi", "promote_types", "result_type",
]  # fmt: skip
