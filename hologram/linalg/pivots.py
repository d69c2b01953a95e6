"""LU factors with the order that pivoting brings rows into, for matrices of any shape."""

from __future__ import annotations

from typing import Any

import hologram.numpy as hnp
from hologram.control.loops import fori_loop
from hologram.linalg import factors, systems
from hologram.trace.tensor import Tensor
from hologram.transform.api import stop_gradient

__all__ = ["exchanges_of", "factored", "order_of", "packed_factors", "rows_in_order"]


def packed_factors(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """l and u in one square matrix, the pivots, and the order of the rows."""
    f, pivots, order = factors.run(factors.rows.lu, [factors.node_of(hnp.matrix_transpose(a))])
    return hnp.matrix_transpose(f), pivots, order


def rows_in_order(a: Tensor, order: Tensor) -> Tensor:
    """The rows of matrices in an order."""
    return hnp.take_along_axis(a, hnp.expand_dims(order, -1), axis=-2)


def _unit_lower(packed: Tensor) -> Tensor:
    return hnp.tril(packed, k=-1) + hnp.eye(packed.shape[-1], dtype=packed.dtype)


def factored(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """``(order, l, u)`` with ``a[order] = l u``, of matrices of any shape."""
    m, n = a.shape[-2:]
    if m <= n:
        packed, _, order = packed_factors(a[..., :m])
        low = _unit_lower(packed)
        rest = systems.triangular_solve(low, rows_in_order(a[..., m:], order), lower=True, unit_diagonal=True) if m < n else a[..., m:]
        return order, low, hnp.concat([hnp.triu(packed), rest], axis=-1)
    wide = hnp.concat([stop_gradient(a), hnp.zeros((*a.shape[:-1], m - n), dtype=a.dtype)], axis=-1)
    order = packed_factors(wide)[2]  # of all rows; the first n of them in that order need no exchanges, but for roundings
    sorted_rows = rows_in_order(a, order)
    packed, _, top = packed_factors(sorted_rows[..., :n, :])
    up = hnp.triu(packed)
    below = systems.triangular_solve(up, sorted_rows[..., n:, :], left_side=False)
    whole = hnp.concat([rows_in_order(order[..., :n, None], top)[..., 0], order[..., n:]], axis=-1)
    return whole, hnp.concat([_unit_lower(packed), below], axis=-2), up


def order_of(pivots: Tensor, size: Any = None) -> Tensor:
    """The order of ``size`` rows, by default as many as there are exchanges, that these lead to."""
    size = pivots.shape[-1] if size is None else size
    start = hnp.broadcast_to(hnp.arange(size), (*pivots.shape[:-1], size))

    def exchange(k: Any, order: Tensor) -> Tensor:
        other = hnp.expand_dims(hnp.take(pivots, k, axis=-1), -1)
        first, second = hnp.expand_dims(hnp.take(order, k, axis=-1), -1), hnp.take_along_axis(order, other, axis=-1)
        columns = hnp.arange(order.shape[-1])
        return hnp.where(columns == k, second, hnp.where(columns == other, first, order))

    return fori_loop(0, pivots.shape[-1], exchange, start)


def exchanges_of(order: Tensor, count: int) -> Tensor:
    """The exchanges of the first ``count`` rows that lead to an order of rows: row k with row ``pivots[k]``, one after the other."""
    columns = hnp.arange(order.shape[-1])

    def exchange(k: Any, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        rows, pivots = state
        wanted = hnp.expand_dims(hnp.take(order, k, axis=-1), -1)
        place = hnp.argmax(rows == wanted, axis=-1, keepdims=True)
        other = hnp.expand_dims(hnp.take(rows, k, axis=-1), -1)
        rows = hnp.where(columns == k, wanted, hnp.where(columns == place, other, rows))
        return rows, hnp.where(columns[:count] == k, place.astype(pivots.dtype), pivots)

    start = hnp.broadcast_to(columns, order.shape).astype(order.dtype)
    return fori_loop(0, count, exchange, (start, hnp.zeros((*order.shape[:-1], count), dtype="int32")))[1]
