"""Abstract values: what is known of an array without its elements."""

from __future__ import annotations

import functools
import math
import operator
import threading
from collections.abc import Iterable, Sequence

from hologram.dtypes import DType
from hologram.errors import OutOfMemory, ShapeError
from hologram.ir.symbolic import Int
from hologram.support import forks
from hologram.support.weak import WeakTable

MAX_BYTES = 2**47  # of one array: more than any address space has, and less than the size classes of allocators cover

MAX_AXES = 64  # of an array: NumPy's, in which values are given

MAX_ELEMENTS = 2**63 - 1  # of an array, stretched ones too: indices have 64 bits


def require_countable(shape: Sequence[Int], dtype: DType) -> None:
    """Raises OutOfMemory for a shape whose elements 64 bits do not count, ShapeError for more than 64 axes. As in NumPy, extents of 0 do not
    excuse the others."""
    if len(shape) > MAX_AXES:
        raise ShapeError(f"a result of {len(shape)} axes: an array has at most {MAX_AXES}")
    if math.prod(n for n in shape if isinstance(n, int) and n) > MAX_ELEMENTS:
        nbytes = math.prod(n for n in shape if isinstance(n, int) and n) * dtype.itemsize
        raise OutOfMemory(f"a result of {nbytes:,} bytes cannot be allocated: {dtype}{list(shape)}")


class Aval:
    """Element type and shape of an array, interned: two arrays agree in both exactly where their Avals are one object.

    ``size`` counts elements, ``nbytes`` the bytes of the C-contiguous array; ``kind`` is one object for each dtype and rank.
    """

    __slots__ = ("dtype", "shape", "size", "nbytes", "kind", "__weakref__")
    dtype: DType
    shape: tuple[int, ...]
    size: int
    nbytes: int
    kind: tuple[DType, int]

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    def __reduce__(self) -> tuple[object, ...]:
        return aval, (self.dtype, self.shape)


_avals: WeakTable[tuple[DType, tuple[int, ...]], Aval] = WeakTable()
_kinds: dict[tuple[DType, int], tuple[DType, int]] = {}
_lock = forks.guard(forks.INNERMOST, threading.RLock())  # a finaliser may run inside


def aval(dtype: DType, shape: Iterable[int]) -> Aval:
    """The Aval of a dtype and a shape of integers; it lives as long as something holds it."""
    key = (dtype, tuple(shape))
    found = _avals.get(key)
    return found if found is not None else _make(dtype, tuple(map(operator.index, key[1])))


recent_aval = functools.lru_cache(1024)(aval)  # for shapes, tuples of Python integers, that come and go


def _make(dtype: DType, shape: tuple[int, ...]) -> Aval:
    made = Aval()
    made.dtype, made.shape, made.size = dtype, shape, math.prod(shape)
    made.nbytes = made.size * dtype.itemsize
    kind = (dtype, len(shape))
    with _lock:
        made.kind = _kinds.setdefault(kind, kind)
        return _avals.setdefault((dtype, shape), made)
