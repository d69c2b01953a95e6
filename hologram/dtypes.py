"""The fifteen element types, and how two of them promote.

A :class:`DType` is one interned object a type, so that types compare by identity everywhere inside Hologram. What a
user sees (``Tensor.dtype``, ``hologram.numpy.float32``) is NumPy's own ``dtype``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np


class DType:
    """An element type: ``kind`` is one of ``b i u f c``, ``bits`` counts storage bits (bool is stored as one byte).

    >>> hg.dtypes.bfloat16.kind, hg.dtypes.bfloat16.bits
    ('f', 16)
    """

    __slots__ = ("name", "kind", "bits", "itemsize", "np", "code", "rank")

    def __init__(self, name: str, kind: str, bits: int, scalar: Any, code: int) -> None:
        self.name, self.kind, self.bits, self.code = name, kind, bits, code
        self.np = np.dtype(scalar)
        self.itemsize = self.np.itemsize
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
    def is_integer(self) -> bool:
        """Whether it is an integer type, signed or not; bool is none."""
        return self.kind in "iu"

    @property
    def is_complex(self) -> bool:
        """Whether it is a complex type."""
        return self.kind == "c"


_ROWS = [
    ("bool", "b", 8, np.bool_),
    ("int8", "i", 8, np.int8),
    ("int16", "i", 16, np.int16),
    ("int32", "i", 32, np.int32),
    ("int64", "i", 64, np.int64),
    ("uint8", "u", 8, np.uint8),
    ("uint16", "u", 16, np.uint16),
    ("uint32", "u", 32, np.uint32),
    ("uint64", "u", 64, np.uint64),
    ("float16", "f", 16, np.float16),
    ("bfloat16", "f", 16, ml_dtypes.bfloat16),
    ("float32", "f", 32, np.float32),
    ("float64", "f", 64, np.float64),
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
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
) = ALL
default_float, default_int, default_complex = float32, int64, complex64


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
        raise TypeError(f"{x!r} does not name an element type; Hologram has {', '.join(_BY_NAME)}") from e
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


@cache
def promote(a: DType, b: DType) -> DType:
    """Common type of two arrays: the Array API's table within a kind; an integer takes the float's type.

    uint64 with a signed integer gives float32's kind no say: as in JAX it promotes to the default float; bfloat16 with
    float16 gives float32.

    >>> hg.dtypes.promote(hg.dtypes.int8, hg.dtypes.uint8), hg.dtypes.promote(hg.dtypes.int64, hg.dtypes.float16)
    (int16, float16)
    """
    if a is b:
        return a
    if a.rank > b.rank:
        a, b = b, a
    if a.kind == "b" or a is b:
        return b
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
    """Type of an array of type ``strong`` with a Python scalar whose own default is ``weak``.

    >>> hg.dtypes.promote_weak(hg.dtypes.float16, hg.dtypes.float32)
    float16
    """
    if weak.rank <= strong.rank or (weak.kind == "i" and strong.kind in "iu"):
        return strong
    if weak.is_complex and strong.is_float:
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


def loses_part(a: DType, b: DType) -> bool:
    """Whether values of type ``a`` as ``b`` lose their imaginary part; bool tells a number from zero.

    >>> hg.dtypes.loses_part(hg.dtypes.complex64, hg.dtypes.float32)
    True
    """
    return a.is_complex and b.kind in "iuf"


@cache
def compute_type(d: DType) -> DType:
    """Type that arithmetic is done in: the two 16-bit floats compute in float32.

    >>> hg.dtypes.compute_type(hg.dtypes.bfloat16)
    float32
    """
    return float32 if d.is_float and d.bits == 16 else d
