"""Arguments of the SDK's calls, as what they are meant to be. Errors name the call and the argument."""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dlpack import VERSIONED
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DTypeError, HologramError, ShapeError
from hologram.ir.aval import Aval, aval
from hologram.support.user_lines import located

_named = lru_cache(64)(dtypes.of)


def integer(x: Any, what: str, name: str) -> int:
    """An integer. Raises ArgumentError."""
    try:
        return operator.index(x)
    except TypeError:
        raise located(ArgumentError(f"{what}: {name} is an integer, not {x!r}")) from None


def count(x: Any, what: str, name: str) -> int:
    """A number of elements. Raises ArgumentError for what is no integer, ShapeError below 1."""
    n = integer(x, what, name)
    if n < 1:
        raise located(ShapeError(f"{what}: {name} is at least 1, not {n}"))
    return n


def bounded(x: Any, low: int, high: int, what: str, name: str) -> int:
    """An integer within bounds, both included. Raises ArgumentError for what is no integer, ShapeError beyond the bounds."""
    n = integer(x, what, name)
    if not low <= n <= high:
        raise located(ShapeError(f"{what}: {name} is from {low} to {high}, not {n}"))
    return n


def element_type(x: Any, what: str) -> DType:
    """The element type that ``x`` names. Raises DTypeError."""
    try:
        return _named(x)
    except TypeError as e:
        raise located(DTypeError(f"{what}: {e}")) from None


def scalar(x: Any, dtype: DType, what: str, name: str) -> np.ndarray:
    """A number as an array without axes, in the type of buffers; floats beyond it are infinite.

    Raises ArgumentError for what is no number, DTypeError for one that the type cannot hold: a float where it has integers, an integer beyond it.
    """
    value = x
    if not isinstance(x, int):
        try:
            given = np.asarray(x)
        except (TypeError, ValueError, RuntimeError):
            given = _NO_NUMBER
        if given.ndim or given.dtype not in _NUMBERS:
            raise located(ArgumentError(f"{what}: {name} is a number, not a {type(x).__name__}"))
        value = given.item()
    try:
        if dtypes.of_scalar(value).rank <= dtype.rank:
            with np.errstate(over="ignore"):
                return dtypes.rounded_once(np.asarray(float(value)), dtype) if dtype.is_narrow_float else np.asarray(value, dtype.np)
    except OverflowError:
        pass
    raise located(DTypeError(f"{what}: {name} = {x!r:.80} is no {dtype}"))


_NUMBERS = {d.np for d in dtypes.ALL}
_NO_NUMBER = np.empty(0)


@lru_cache(256)
def extent(dtype: DType, n: int) -> Aval:
    """The Aval of ``n`` elements on one axis, kept for the next buffer of that length."""
    return aval(dtype, (n,))


def as_array(x: Any, what: str) -> np.ndarray:
    """Anything array-like as an array, which shares its memory where it has any. Raises ArgumentError, FreedBufferError."""
    if isinstance(x, np.ndarray):
        return x
    try:
        by_dlpack = hasattr(x, "__dlpack__") and (VERSIONED or not hasattr(x, "__array__"))  # older NumPy takes all of it for read-only
        return np.from_dlpack(x) if by_dlpack else np.asarray(x)
    except HologramError:  # of a buffer that was freed
        raise
    except (BufferError, RuntimeError, TypeError, ValueError) as e:
        raise located(ArgumentError(f"{what}: a {type(x).__name__} cannot be read as an array: {e}")) from None
