"""Folds of ranges of an axis, ``reduceat``: ranges are known or computed, and may overlap."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.control.loops import fori_loop
from hologram.errors import DTypeError, IndexOutOfRange, ShapeError
from hologram.ir.symbolic import is_static
from hologram.numpy.arguments import array, axis_of, wrap
from hologram.numpy.creation import full
from hologram.numpy.elementwise.functions import where
from hologram.numpy.indexing.read import take
from hologram.numpy.indexing.starts import clamped
from hologram.numpy.shaping.joining import concat
from hologram.numpy.shaping.shapes import moveaxis
from hologram.numpy.ufuncs.folds import Fold, operand, require_static
from hologram.support.user_lines import located
from hologram.trace.array_classes import known_array
from hologram.trace.tensor import Tensor


def reduceat(fold: Fold, x: Any, indices: Any, axis: Any, dtype: Any) -> Tensor:
    """See :meth:`~hologram.numpy.ufuncs.ufunc.ufunc.reduceat`."""
    what = f"{fold.name}.reduceat"
    t, _ = operand(fold, x, dtype, "reduceat")
    if t.ndim == 0:
        raise located(ShapeError(f"{what} takes at least one axis"))
    a = axis_of(axis, t.ndim, what)
    rows = moveaxis(t, a, 0)
    require_static(fold, rows)
    return moveaxis(_folded(fold, rows, _starts(indices, rows.shape[0], what)), 0, a)


def _starts(indices: Any, n: int, what: str) -> Any:
    """``indices`` as an int64 vector of positions of an axis of extent ``n``: a NumPy array where they are known, checked; else a Tensor, clamped."""
    known = indices if type(indices) is Tensor else known_array(indices, what)
    if known.ndim != 1 or not is_static(known.shape[0]):
        raise located(ShapeError(f"{what}: indices are a vector of static extent, not of shape {list(known.shape)}"))
    if known.dtype.kind not in "iu" and known.size:
        raise located(DTypeError(f"{what}: indices are integers, not {known.dtype}"))
    if type(known) is Tensor:
        return wrap(clamped(array(known, what), n))
    if known.size and not (known.min() >= 0 and known.max() < n):
        worst = known.min() if known.min() < 0 else known.max()
        raise located(IndexOutOfRange(f"{what}: index {worst} is out of range for an axis of extent {n}"))
    return known.astype(np.int64)


def _folded(fold: Fold, rows: Tensor, starts: Any) -> Tensor:
    """The folds of ``rows`` from each of ``starts`` up to the next, of one element at least."""
    n, count = rows.shape[0], starts.shape[0]
    if count == 0:
        return rows[:0]
    if isinstance(starts, np.ndarray):
        lengths: Any = np.maximum(np.diff(starts, append=n), 1)
        longest = int(lengths.max())
    else:
        following = concat([starts[1:], full((1,), n, dtype=dtypes.int64)])
        lengths, longest = where(following > starts, following - starts, 1), n
    return (_by_tree if fold.reorderable else _in_order)(fold, rows, starts, lengths, longest)


def _beside(x: Any, rows: Tensor) -> Any:
    """A vector with an axis of extent 1 for each axis of ``rows`` but the first."""
    return x.reshape((-1, *[1] * (rows.ndim - 1)))


def _by_tree(fold: Fold, rows: Tensor, starts: Any, lengths: Any, longest: int) -> Tensor:
    """Of an associative function: each range is made of blocks of 2**j elements, at most two of each size, one from either end of what is left."""
    result = take(rows, starts, axis=0)
    low, high = starts + 1, starts + lengths  # what is left, in blocks of the level's size
    ending, has_ending = result, np.zeros(starts.shape[0], bool)  # the blocks at the end, folded
    for _ in range((longest - 1).bit_length()):
        at_low = (low & 1 == 1) & (low < high)
        result = where(_beside(at_low, rows), fold.function(result, take(rows, low, axis=0, mode="clip")), result)
        low = low + at_low
        at_high = (high & 1 == 1) & (low < high)
        high = high - at_high
        block = take(rows, high, axis=0, mode="clip")
        ending = where(_beside(at_high, rows), where(_beside(has_ending, rows), fold.function(block, ending), block), ending)
        has_ending = has_ending | at_high
        low, high = low >> 1, high >> 1
        if rows.shape[0] > 1:
            rows = fold.function(rows[:-1:2], rows[1::2])
    return where(_beside(has_ending, rows), fold.function(result, ending), result)


def _in_order(fold: Fold, rows: Tensor, starts: Any, lengths: Any, longest: int) -> Tensor:
    """The folds of all ranges at once, vectorised over the ranges: an element of each at a time."""

    def step(j: Any, result: Tensor) -> Tensor:
        row = take(rows, j + starts, axis=0)
        return where(_beside(j < lengths, rows), fold.function(result, row), result)

    result: Tensor = fori_loop(1, longest, step, take(rows, starts, axis=0))
    return result
