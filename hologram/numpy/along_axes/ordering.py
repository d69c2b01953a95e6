"""The order of complex numbers and of slices, which sorts find out key by key; different slices in a known number of places."""

from __future__ import annotations

from typing import Any

from hologram import dtypes
from hologram.control.loops import scan
from hologram.errors import ArgumentError
from hologram.ir.symbolic import Expr
from hologram.numpy.along_axes.reductions import all as every
from hologram.numpy.along_axes.reductions import cumsum
from hologram.numpy.complexes import imag, real
from hologram.numpy.creation import arange, full, zeros
from hologram.numpy.elementwise.functions import FUNCTIONS
from hologram.numpy.elementwise.functions import where as chosen
from hologram.numpy.indexing.read import take, take_along_axis
from hologram.numpy.shaping.joining import concat
from hologram.numpy.shaping.shapes import moveaxis
from hologram.primitives import sorting as rows
from hologram.support.user_lines import located
from hologram.trace.checks import integer
from hologram.trace.convert import tensor
from hologram.trace.operators import node_of, wrap
from hologram.trace.recorder import record
from hologram.trace.tensor import Tensor


def _order(x: Tensor, axis: int, descending: bool = False) -> Tensor:
    return wrap(record(rows.argsort, (node_of(x),), (axis, descending)))


def complex_order(x: Tensor, axis: int, descending: bool) -> Tensor:
    """Indices that sort complex numbers along ``axis``, by their real parts, among equals by their imaginary parts.

    As in NumPy what has a NaN comes last: first where it is the imaginary part, then the real part, then both.
    """
    isnan = FUNCTIONS["isnan"]
    re, im = real(x), imag(x)
    nans = 2 * isnan(re).astype("int8") + isnan(im).astype("int8")
    order = _order(im, axis, descending)
    for key in (chosen(isnan(re), 0, re), nans):
        order = take_along_axis(order, _order(take_along_axis(key, order, axis), axis, descending), axis)
    return order


def complex_sorted(x: Tensor) -> Tensor:
    """Elements as complex numbers, sorted along the last axis."""
    dtype = dtypes.to_inexact(x._aval()[1])
    if not dtype.is_complex:
        x = x.astype("complex128" if dtype is dtypes.float64 else "complex64")
    return take_along_axis(x, complex_order(x, x.ndim - 1, False), x.ndim - 1)


def _rows_order(table: Tensor) -> Tensor:
    """Indices that sort the rows of a matrix by the first column, among equals by the next."""

    def by_column(order: Tensor, column: Tensor) -> tuple[Tensor, None]:
        key = column[order]
        return order[complex_order(key, 0, False) if key._aval()[1].is_complex else _order(key, 0)], None

    order: Tensor = scan(by_column, arange(table.shape[0]).astype("int64"), table.T[::-1])[0]
    return order


def _same_as_before(line: Tensor, equal_nan: bool) -> Tensor:
    """Of sorted elements, or rows: which equal the one before."""
    same = line[1:] == line[:-1]
    if equal_nan and line._aval()[1].kind in "fc":
        same = same | (FUNCTIONS["isnan"](line[1:]) & FUNCTIONS["isnan"](line[:-1]))
    return every(same, axis=1) if line.ndim == 2 else same


def unique_of_size(x: Tensor, axis: int | None, size: int, fill: Any, wanted: tuple[bool, ...], equal_nan: bool) -> Any:
    """A sorted element (or slice) is another one than that before it, unless both are NaN; so many are before it as there are such places."""
    line = x.reshape(-1) if axis is None else moveaxis(x, axis, 0)
    flat = line if axis is None else line.reshape(line.shape[0], -1)
    count, many = integer(size, "unique", "a size"), flat.shape[0]
    if count < 0 or (not isinstance(many, Expr) and many == 0 and count and fill is None):
        raise located(ArgumentError(f"unique: a size of {count} of {many} elements, without a fill_value"))
    if axis is None:
        order = complex_order(flat, 0, False) if flat._aval()[1].is_complex else _order(flat, 0)
    else:
        order = _rows_order(flat)
    found, starts = take(line, order, axis=0), take(flat, order, axis=0)
    fresh = FUNCTIONS["bitwise_not"](_same_as_before(starts, equal_nan)).astype(dtypes.int64)
    rank = cumsum(concat([zeros(order[:1].shape, dtype=dtypes.int64), fresh]))
    filling = found[0] if fill is None else tensor(fill).astype(line.dtype)
    repeated = chosen(zeros((count, *line.shape[1:]), dtype=dtypes.bool_), filling, filling).astype(line.dtype)
    values = repeated.at[rank].set(found, mode="drop")
    results = [values if axis is None else moveaxis(values, 0, axis), *_of_ranks(rank, order, count, wanted)]
    if wanted[1] and axis is None:
        results[1 + wanted[0]] = results[1 + wanted[0]].reshape(x.shape)
    return tuple(results) if len(results) > 1 else results[0]


def _of_ranks(rank: Tensor, order: Tensor, count: int, wanted: tuple[bool, ...]) -> list[Tensor]:
    """Where each of the different ones is first, which one each is, how often each is there: what is wanted of these."""
    found, many = [], order.shape[0]
    if wanted[0]:  # the first of equal elements, which is the least index, since the sort is stable
        beyond = full((count,), many, dtype=dtypes.int64).at[rank].min(order, mode="drop")
        found.append(chosen(beyond == many, order[0] if many else 0, beyond))
    if wanted[1]:
        found.append(zeros(order.shape, dtype=dtypes.int64).at[order].set(rank))
    if wanted[2]:
        found.append(zeros((count,), dtype=dtypes.int64).at[rank].add(1, mode="drop"))
    return found
