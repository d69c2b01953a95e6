"""What an index chooses of an array, by NumPy's rules."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError
from hologram.ir.op import Shape
from hologram.ir.symbolic import Expr, Int, bounds
from hologram.primitives.movement import slice_extent
from hologram.support.user_lines import located
from hologram.trace.array_classes import known_array
from hologram.trace.diagnostics.origins import is_traced, traced_slice
from hologram.trace.recorder import assume, plain
from hologram.trace.tensor import Tensor


class Mask(NamedTuple):
    """One axis of a mask whose values are known: where it holds, and the extent it was made for."""

    indices: np.ndarray
    extent: Int


class Selection:
    """What an index chooses of an array of a given shape, by NumPy's rules.

    ``triples`` slice every axis (an integer is a slice of one); the result then has the shape ``shape``, without the integers' axes and with None's;
    ``sources`` are the axes that those of ``shape`` come from, None for a new one. ``arrays`` are index arrays by axis of that shape. Their common
    axes stand at ``front`` among what is left of the other axes. ``beyond`` says what becomes of known indices out of range: ``raise``
    IndexOutOfRange, ``clip`` them, or ``drop`` what they choose.
    """

    __slots__ = ("triples", "shape", "sources", "arrays", "front", "beyond")

    def __init__(self, of: Shape, key: Any, beyond: str = "raise") -> None:
        self.beyond = beyond
        self.triples: list[tuple[Int, Int, int]] = []
        self.shape: Shape = ()
        self.sources: list[int | None] = []
        self.arrays: dict[int, Any] = {}
        self.front = 0
        parts = _complete(_parts(key), len(of))
        for part in parts:
            if part is not Ellipsis:
                self._add(part, of)
        if self.arrays:
            self._place(parts)

    def _add(self, part: Any, of: Shape) -> None:
        if part is None or isinstance(part, bool):
            if part is not None:  # a mask of no axes
                self.arrays[len(self.shape)] = np.zeros(int(part), np.int64)
            self._add_axis(1, None)
            return
        axis = len(self.triples)
        n = of[axis]
        if isinstance(part, slice):
            if any(map(is_traced, (part.start, part.stop, part.step))):
                raise traced_slice(part, axis)
            self.triples.append(_resolve(part, n))
            self._add_axis(slice_extent(*self.triples[-1]), axis)
        elif isinstance(part, (int, Expr)) and not self._is_dropped(part, n):
            i = _in_range(part, n, axis, self.beyond == "clip")
            self.triples.append((i, i + 1, 1))
        else:
            if isinstance(part, Mask):
                if part.extent != n and part.extent != 0:  # a mask without elements chooses nothing
                    raise located(IndexOutOfRange(f"a mask of extent {part.extent} for axis {axis} of extent {n}"))
                part = part.indices
            elif isinstance(part, int):
                part = np.asarray(min(max(part, -(2**62)), 2**62))
            self.triples.append((0, n, 1))
            self.arrays[len(self.shape)] = part
            self._add_axis(n, axis)

    def _add_axis(self, n: Int, source: int | None) -> None:
        self.shape = (*self.shape, n)
        self.sources.append(source)

    def _is_dropped(self, i: Int, n: Int) -> bool:
        return self.beyond == "drop" and isinstance(i, int) and isinstance(n, int) and not -n <= i < n

    def _place(self, parts: list[Any]) -> None:
        """Index arrays that are neighbours, integers counting as such, stay where they are; others come first."""
        plain = [p is None or p is Ellipsis or isinstance(p, slice) for p in parts]
        first, last = plain.index(False), len(plain) - 1 - plain[::-1].index(False)
        self.front = 0 if any(plain[first:last]) else sum(p is not Ellipsis for p in parts[:first])


def _parts(key: Any) -> list[Any]:
    parts: list[Any] = []
    for part in key if isinstance(key, tuple) else (key,):
        normal = _normal(part)
        if isinstance(normal, np.ndarray) and normal.dtype == np.bool_:
            parts += [bool(normal)] if normal.ndim == 0 else [Mask(i, n) for i, n in zip(np.nonzero(normal), normal.shape, strict=True)]
        else:
            parts.append(normal)
    return parts


def _normal(part: Any) -> Any:
    """One part of an index as int, symbol, slice, None, Ellipsis, a NumPy array or an integer Tensor."""
    if part is None or part is Ellipsis or isinstance(part, slice) or type(part) is int:
        return part
    if isinstance(part, (bool, np.bool_)):
        return np.asarray(part)
    if isinstance(part, Expr):
        return plain(part)
    if type(part) is Tensor:
        return _tensor_part(part)
    if isinstance(part, np.integer):
        return int(part)
    if isinstance(part, (list, np.ndarray)):
        values = known_array(part, "indexing")
        values = values.astype(np.int64) if values.size == 0 and isinstance(part, list) else values
        if values.dtype.kind in "iu" or values.dtype == np.bool_:
            return values if values.ndim or values.dtype == np.bool_ else int(values)
        raise located(DTypeError(f"an index array holds integers or bools, not {values.dtype}"))
    try:
        return operator.index(part)
    except TypeError:
        raise located(ArgumentError(f"an index is an integer, a slice, None, Ellipsis or an integer array, not {type(part).__name__}")) from None


def _tensor_part(part: Tensor) -> Any:
    _, dtype = part._aval()
    if dtype is dtypes.bool_:
        return part._view("indexing with a mask, whose result's size depends on its values,")
    if not dtype.is_integer:
        raise located(DTypeError(f"an index array holds integers or bools, not {dtype}"))
    return part


def _complete(parts: list[Any], ndim: int) -> list[Any]:
    """``parts`` with the Ellipsis, or the end, filled up with whole slices. An Ellipsis that stands for no axis stays: it parts index arrays."""
    used = sum(p is not None and p is not Ellipsis and not isinstance(p, bool) for p in parts)
    if used > ndim:
        raise located(IndexOutOfRange(f"{used} indices for an array with {ndim} axes"))
    ellipses = [i for i, p in enumerate(parts) if p is Ellipsis]
    if len(ellipses) > 1:
        raise located(IndexOutOfRange("an index has at most one Ellipsis"))
    at = ellipses[0] if ellipses else len(parts)
    filled = [slice(None)] * (ndim - used) or parts[at : at + 1]
    return [*parts[:at], *filled, *parts[at + 1 :]]


def _in_range(i: Int, n: Int, axis: int, clip: bool) -> Int:
    if isinstance(n, Expr) or isinstance(i, Expr):
        at = _from_start(i, n)
        assume(at)
        assume(n - 1 - at)
        return at
    if not -n <= i < n:
        if clip and n:
            return 0 if i < 0 else n - 1
        raise located(IndexOutOfRange(f"index {i} is out of range for axis {axis} of extent {n}"))
    return i + n if i < 0 else i


def _from_start(i: Int, n: Int) -> Int:
    """A position on an axis, as from its start: what cannot be positive counts from the end, and is assumed to be negative."""
    _, high = bounds(i)
    from_end = high is not None and (high < 0 or (high == 0 and isinstance(i, Expr)))
    if from_end:
        assume(-i - 1)
    return n + i if from_end else i


def _resolve(part: slice, n: Int) -> tuple[Int, Int, int]:
    """``part`` on an axis of extent ``n`` as (start, stop, step) with the stop clamped so that no step leaves the axis."""
    step = 1 if part.step is None else operator.index(part.step)
    if step == 0:
        raise located(ShapeError("a slice's step cannot be 0"))
    if isinstance(n, Expr) or isinstance(part.start, Expr) or isinstance(part.stop, Expr):
        return _resolve_symbolic(part, n, step)
    start, stop, step = part.indices(n)
    return (start, max(start, stop), step) if step > 0 else (start, min(start, stop), step)


def _resolve_symbolic(part: slice, n: Int, step: int) -> tuple[Int, Int, int]:
    """As :func:`_resolve`. What is certain decides: bounds beyond the axis are clamped, and no elements may be left. The rest is assumed, and
    checked on every call: that the bounds lie on the axis, in order."""
    lowest, highest = (0, n) if step > 0 else (-1, n - 1)

    def end(value: Any, default: Int) -> Int:
        if value is None:
            return default
        at = _from_start(plain(value) if isinstance(value, Expr) else operator.index(value), n)
        return lowest if _is_negative(at - lowest) else highest if _is_negative(highest - at) else at

    start, stop = (end(part.start, lowest), end(part.stop, highest)) if step > 0 else (end(part.start, highest), end(part.stop, lowest))
    low, high = (start, stop) if step > 0 else (stop, start)
    if _is_negative(high - low):
        return lowest, lowest, step
    for slack in (low - lowest, high - low, highest - high):
        assume(slack)
    return start, stop, step


def _is_negative(x: Int) -> bool:
    """Whether ``x`` is negative whatever the extents."""
    high = bounds(x)[1]
    return high is not None and high < 0
