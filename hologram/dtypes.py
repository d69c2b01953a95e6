"""The seventeen element types, and how two of them promote.

A :class:`DType` is one interned object a type, so that types compare by identity everywhere inside Hologram. What a
user sees (``Tensor.dtype``, ``hologram.numpy.float32``) is NumPy's own ``dtype``.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from hologram.errors import DTypeError
from hologram.settings import listeners, settings
from hologram.support.user_lines import located


class FloatFormat(NamedTuple):
    """The layout of a binary float of ``bits`` bits: a sign, an exponent, and ``fraction_bits``.

    ``least_exponent`` is that of the least normal number. Without ``has_infinity`` all exponents hold finite numbers, only the largest bit pattern
    is NaN, and a number beyond the range rounds to NaN. Bit patterns are those of the positive number.

    >>> hg.dtypes.float16.format.largest
    65504.0
    """

    bits: int
    fraction_bits: int
    least_exponent: int
    has_infinity: bool = True

    @property
    def beyond(self) -> int:
        """The bit pattern of what is beyond the range: infinity, or NaN where there is none."""
        largest = (1 << (self.bits - 1)) - 1
        return largest & (-1 << self.fraction_bits) if self.has_infinity else largest

    @property
    def nan(self) -> int:
        """The bit pattern of the quiet NaN."""
        return self.beyond | 1 << (self.fraction_bits - 1)

    @property
    def greatest(self) -> int:
        """The greatest bit pattern that is no NaN: infinity, or the largest finite number."""
        return self.beyond if self.has_infinity else self.beyond - 1

    @property
    def largest(self) -> float:
        """The largest finite number."""
        if self.has_infinity:
            return (2 - 2.0**-self.fraction_bits) * 2.0**self.bias
        return (2 - 2.0 ** (1 - self.fraction_bits)) * 2.0 ** (self.bias + 1)  # the last pattern is NaN

    @property
    def least_normal(self) -> float:
        """The least positive number that is normal."""
        return 2.0**self.least_exponent

    @property
    def bias(self) -> int:
        """What the stored exponent of a normal number exceeds its exponent by."""
        return 1 - self.least_exponent


class DType:
    """An element type: ``kind`` is one of ``b i u f c``, ``bits`` counts storage bits (bool is stored as one byte).

    >>> hg.dtypes.bfloat16.kind, hg.dtypes.bfloat16.bits
    ('f', 16)
    """

    __slots__ = ("name", "kind", "bits", "itemsize", "np", "bit_type", "code", "rank", "_format")

    def __init__(self, name: str, kind: str, bits: int, scalar: Any, *format: Any, code: int) -> None:
        self.name, self.kind, self.bits, self.code = name, kind, bits, code
        self._format = FloatFormat(bits, *format) if format else None
        self.np = np.dtype(scalar)
        self.itemsize = self.np.itemsize
        # of the bits of a type that NumPy lacks (it is ml_dtypes's), in which arrays go where only NumPy's types can
        self.bit_type: np.dtype | None = None if self.np.isbuiltin == 1 else np.dtype(f"u{self.itemsize}")
        self.rank = "biufc".index(kind)  # a Python scalar of a lower rank adopts the type it meets

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return of, (self.name,)

    @property
    def is_float(self) -> bool:
        """Whether it is a float type, of reals."""
        return self.kind == "f"

    @property
    def is_narrow_float(self) -> bool:
        """Whether arithmetic runs in float32 and rounds its result: true of floats of fewer than 32 bits."""
        return self.kind == "f" and self.bits < 32

    @property
    def is_16bit_float(self) -> bool:
        """Whether it is one of the two 16-bit floats, which matrix units take."""
        return self.kind == "f" and self.bits == 16

    @property
    def format(self) -> FloatFormat:
        """The layout of a float type."""
        assert self._format is not None, self
        return self._format

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer type, signed or not; bool is none."""
        return self.kind in "iu"

    @property
    def is_complex(self) -> bool:
        """Whether it is a complex type."""
        return self.kind == "c"


_ROWS: list[tuple[Any, ...]] = [
    ("bool", "b", 8, np.bool_),
    ("int8", "i", 8, np.int8),
    ("int16", "i", 16, np.int16),
    ("int32", "i", 32, np.int32),
    ("int64", "i", 64, np.int64),
    ("uint8", "u", 8, np.uint8),
    ("uint16", "u", 16, np.uint16),
    ("uint32", "u", 32, np.uint32),
    ("uint64", "u", 64, np.uint64),
    ("float8_e4m3fn", "f", 8, ml_dtypes.float8_e4m3fn, 3, -6, False),
    ("float8_e5m2", "f", 8, ml_dtypes.float8_e5m2, 2, -14),
    ("float16", "f", 16, np.float16, 10, -14),
    ("bfloat16", "f", 16, ml_dtypes.bfloat16, 7, -126),
    ("float32", "f", 32, np.float32, 23, -126),
    ("float64", "f", 64, np.float64, 52, -1022),
    ("complex64", "c", 64, np.complex64),
    ("complex128", "c", 128, np.complex128),
]
ALL: tuple[DType, ...] = tuple(DType(*row, code=i) for i, row in enumerate(_ROWS))
_BY_NAME = {d.name: d for d in ALL}
_BY_NP: dict[Any, DType] = {d.np: d for d in ALL}
(
    bool_,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
) = ALL
default_float, default_int, default_complex = float32, int64, complex64


def _like(x: Any) -> str:
    from hologram.support.wording import did_you_mean

    return did_you_mean(x, _BY_NAME) if isinstance(x, str) else ""


def of(x: Any) -> DType:
    """The :class:`DType` that ``x`` names: a DType, a NumPy dtype or scalar type, a name, or bool/int/float/complex.

    Raises ``TypeError`` where Hologram has no such type.

    >>> hg.dtypes.of("bfloat16"), hg.dtypes.of(np.int8), hg.dtypes.of(float)
    (bfloat16, int8, float32)
    """
    if type(x) is DType:
        return x
    if isinstance(x, str) and x in _BY_NAME:
        return _BY_NAME[x]
    if x is bool:
        return bool_
    if x is int:
        return default_int
    if x is float:
        return default_float
    if x is complex:
        return default_complex
    try:
        d = np.dtype(x)
    except TypeError as e:
        raise TypeError(f"{x!r} does not name an element type; Hologram has {', '.join(_BY_NAME)}{_like(x)}") from e
    got = _BY_NP.get(d.newbyteorder("="))
    if got is None:
        raise TypeError(f"element type {d} is not supported; Hologram has {', '.join(_BY_NAME)}")
    return got


def of_scalar(x: bool | int | float | complex) -> DType:
    """Default type of a Python scalar that meets no array.

    >>> hg.dtypes.of_scalar(1), hg.dtypes.of_scalar(1.5)
    (int64, float32)
    """
    return {bool: bool_, int: default_int, float: default_float, complex: default_complex}[type(x)]


def _refuse_8_bits(a: DType, b: DType) -> None:
    """Raises DTypeError where an 8-bit float meets another float or a complex number."""
    if any(d.is_float and d.bits == 8 for d in (a, b)) and all(d.kind in "fc" for d in (a, b)):
        raise located(DTypeError(f"{a} and {b} have no common type: 8-bit floats do not promote; cast one of them, as x.astype('float32') does"))


@cache
def promote(a: DType, b: DType) -> DType:
    """Common type of two arrays: the Array API's table within a kind; an integer takes the float's type.

    uint64 with a signed integer gives float32's kind no say: as in JAX it promotes to the default float; bfloat16 with
    float16 gives float32. As in JAX an 8-bit float promotes with bools and integers alone. Raises DTypeError for it beside other floats.

    >>> hg.dtypes.promote(hg.dtypes.int8, hg.dtypes.uint8), hg.dtypes.promote(hg.dtypes.int64, hg.dtypes.float16)
    (int16, float16)
    """
    if a is b:
        return a
    if a.rank > b.rank:
        a, b = b, a
    if a.kind == "b" or a is b:
        return b
    _refuse_8_bits(a, b)
    if a.kind == b.kind:
        if a.kind == "f" and a.bits == b.bits:  # float16 with bfloat16
            return float32
        return a if a.bits > b.bits else b
    if a.kind == "i" and b.kind == "u":
        if a.bits > b.bits:
            return a
        return {8: int16, 16: int32, 32: int64, 64: default_float}[b.bits]
    if a.is_integer and b.is_float:
        return b
    if b.is_complex:
        if a.is_float:
            return complex128 if a is float64 or b is complex128 else complex64
        return b
    raise AssertionError((a, b))


@cache
def promote_weak(strong: DType, weak: DType) -> DType:
    """Type of an array of type ``strong`` with a Python scalar whose own default is ``weak``. Raises DTypeError for 8-bit floats with ``complex``.

    >>> hg.dtypes.promote_weak(hg.dtypes.float16, hg.dtypes.float32)
    float16
    """
    if weak.rank <= strong.rank or (weak.kind == "i" and strong.kind in "iu"):
        return strong
    if weak.is_complex and strong.is_float:
        _refuse_8_bits(strong, weak)
        return complex128 if strong is float64 else complex64
    return weak


@cache
def to_inexact(d: DType) -> DType:
    """Type that a function such as ``exp`` computes in: floats stay, everything else becomes the default float.

    >>> hg.dtypes.to_inexact(hg.dtypes.int64)
    float32
    """
    return d if d.is_float or d.is_complex else default_float


@cache
def real_of(d: DType) -> DType:
    """Type of a complex number's parts; a real type is its own.

    >>> hg.dtypes.real_of(hg.dtypes.complex128)
    float64
    """
    return {complex64: float32, complex128: float64}.get(d, d)


def _follow_settings() -> None:
    """Sets the types of what has none, as ``settings.default_float`` and ``settings.default_int`` say."""
    global default_float, default_int, default_complex
    found = _BY_NAME[settings.default_float], _BY_NAME[settings.default_int]
    if found != (default_float, default_int):
        default_float, default_int = found
        default_complex = complex128 if default_float is float64 else complex64
        promote.cache_clear()
        to_inexact.cache_clear()


listeners.append(_follow_settings)
_follow_settings()


def loses_part(a: DType, b: DType) -> bool:
    """Whether values of type ``a`` as ``b`` lose their imaginary part; bool tells a number from zero.

    >>> hg.dtypes.loses_part(hg.dtypes.complex64, hg.dtypes.float32)
    True
    """
    return a.is_complex and b.kind in "iuf"


def rounded_once(x: Any, d: DType) -> Any:
    """``x.astype`` of a NumPy array to ``d``, rounded once: NumPy rounds to a narrow float by way of float32.

    >>> hg.dtypes.rounded_once(np.array([1.0, 0.1]), hg.dtypes.float16)
    array([1. , 0.1], dtype=float16)
    """
    if d.is_narrow_float and of(x.dtype).bits > d.bits:
        x = _to_odd_float32(x)
    return np.asarray(x.astype(d.np))


def _to_odd_float32(x: Any) -> Any:
    """``x`` as float32 where that is exact, else the neighbour whose last bit is set, which rounds to a narrow float as ``x`` does."""
    if x.dtype.kind in "iu" and x.dtype.itemsize == 8:  # first to float64's 53 bits, in the same way
        beyond = (x >= 2**53) | (x <= -(2**53)) if x.dtype.kind == "i" else x >= 2**53
        lost = x & 2047
        x = np.where(beyond, x - lost | np.where(lost != 0, 2048, 0).astype(x.dtype), x)
    exact = np.asarray(x.astype(np.float64))
    near = exact.astype(np.float32)
    bits = near.view(np.uint32)
    bits = np.where(np.abs(near) > np.abs(exact), bits - 1, bits)
    return np.where(np.isnan(exact) | (near == exact), near.view(np.uint32), bits | 1).astype(np.uint32).view(np.float32)


@cache
def compute_type(d: DType) -> DType:
    """Type that arithmetic is done in: narrow floats compute in float32.

    >>> hg.dtypes.compute_type(hg.dtypes.bfloat16)
    float32
    """
    return float32 if d.is_narrow_float else d
