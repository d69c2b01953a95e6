"""Products of sparse matrices and dense arrays.

A product of compressed rows is a loop over rows, which threads share, and in it one over the elements of a row, whose sum is in registers. Its
derivative is made of gathers and sums of segments, which are linear, so that all orders and both modes follow.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import hologram.numpy as hnp
from hologram.control.loops import fori_loop, scan
from hologram.trace.call.jit import jit
from hologram.trace.recorder import current, transforming
from hologram.trace.tensor import Tensor
from hologram.transform.custom import custom_jvp

Function = Callable[..., Any]

__all__ = ["row_product", "scattered_product", "segments_of", "sorted_product"]


def _one_program(static_argnums: tuple[int, ...] = ()) -> Callable[[Function], Function]:
    """Decorator of functions that are one compiled program where nothing is traced: their loops are not recorded anew in each call."""

    def decorate(function: Function) -> Function:
        program = jit(function, static_argnums=static_argnums)

        @functools.wraps(function)
        def run(*args: Any) -> Any:
            return program(*args) if current() is None and not transforming() else function(*args)

        return run

    return decorate


def segments_of(pointers: Tensor, count: int) -> Tensor:
    """The row of each of ``count`` elements, from where rows begin."""
    return hnp.searchsorted(pointers, hnp.arange(count).astype(pointers.dtype), side="right") - 1


@_one_program((4,))
def scattered_product(data: Tensor, rows: Tensor, columns: Tensor, x: Tensor, extent: int) -> Tensor:
    """Sums of ``data * x[columns]`` that go to ``rows``, in any order: (extent,), or (extent, k) for ``x`` (n, k)."""
    weights = data if x.ndim == 1 else data[:, None]
    return hnp.segment_sum(weights * x[columns], rows, extent)


@_one_program()
def row_product(data: Tensor, columns: Tensor, pointers: Tensor, x: Tensor) -> Tensor:
    """The product of compressed rows, all of one element type, and ``x`` (n,) or (n, k): (m,) or (m, k).

    ``columns`` and ``pointers`` are unsigned, which asks for no treatment of negative ones.
    """
    return _row_product(data, columns, pointers, x)


@_one_program((4,))
def sorted_product(data: Tensor, rows: Tensor, columns: Tensor, x: Tensor, extent: int) -> Tensor:
    """:func:`row_product` of elements whose ``rows``, one for each, do not fall."""
    pointers = hnp.searchsorted(rows, hnp.arange(extent + 1).astype(rows.dtype)).astype("uint32")
    return _row_product(data, columns, pointers, x)


@custom_jvp
def _row_product(data: Tensor, columns: Tensor, pointers: Tensor, x: Tensor) -> Tensor:
    if not data.shape[0] or not pointers.shape[0] - 1:
        return hnp.zeros((pointers.shape[0] - 1, *x.shape[1:]), dtype=x.dtype)
    zero = hnp.zeros(x.shape[1:], dtype=x.dtype)

    def row(carry: Any, bounds: tuple[Tensor, Tensor]) -> tuple[Any, Tensor]:
        def add(k: Tensor, total: Tensor) -> Tensor:
            return total + data[k] * x[columns[k]]

        return carry, fori_loop(bounds[0], bounds[1], add, zero)

    return scan(row, 0, (pointers[:-1], pointers[1:]))[1]


@_row_product.defjvp
def _row_product_jvp(primals: tuple[Tensor, ...], tangents: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    (data, columns, pointers, x), (by_data, _, _, by_x) = primals, tangents
    rows, extent = segments_of(pointers, data.shape[0]), pointers.shape[0] - 1
    tangent = scattered_product(by_data, rows, columns, x, extent) + scattered_product(data, rows, columns, by_x, extent)
    return _row_product(data, columns, pointers, x), tangent
