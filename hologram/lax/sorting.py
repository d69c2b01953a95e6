"""Sorting under the names and arguments of ``jax.lax``: several arrays by the first of them, the greatest and the least elements."""

from __future__ import annotations

from typing import Any

from hologram import numpy as hnp
from hologram.errors import ArgumentError, ShapeError
from hologram.numpy.arguments import axis_of
from hologram.support.user_lines import located
from hologram.trace.checks import integer
from hologram.trace.tensor import Tensor

__all__ = ["approx_max_k", "approx_min_k", "sort", "sort_key_val", "top_k"]


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sorts along an axis; several arrays of one shape together, by the first ``num_keys`` of them: a tuple.

    NaNs come last. Equal elements keep their order, whether ``is_stable`` or not. Raises ShapeError for shapes that differ, ArgumentError for another
    number of keys.

    >>> hg.lax.sort((np.array([2, 1, 2]), np.array([10, 20, 5])), num_keys=1)
    (Tensor([1, 2, 2], dtype=int64), Tensor([20, 10,  5], dtype=int64))
    """
    if not isinstance(operand, (tuple, list)):
        t = hnp.asarray(operand)
        return hnp.sort(t, axis=axis_of(dimension, t.ndim, "sort"))
    arrays = [hnp.asarray(x) for x in operand]
    count = integer(num_keys, "sort", "a number of keys")
    if not 1 <= count <= len(arrays):
        raise located(ArgumentError(f"sort: {count} keys of {len(arrays)} arrays"))
    if any(t.shape != arrays[0].shape for t in arrays):
        raise located(ShapeError(f"sort: arrays of shapes {[list(t.shape) for t in arrays]}"))
    axis = axis_of(dimension, arrays[0].ndim, "sort")
    order = hnp.argsort(arrays[count - 1], axis=axis)
    for key in reversed(arrays[: count - 1]):  # stable: the less significant keys first
        order = hnp.take_along_axis(order, hnp.argsort(hnp.take_along_axis(key, order, axis=axis), axis=axis), axis=axis)
    return tuple(hnp.take_along_axis(t, order, axis=axis) for t in arrays)


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple[Tensor, Tensor]:
    """Keys sorted along an axis, and values in the same order.

    >>> hg.lax.sort_key_val(np.array([3, 1, 2]), np.array([30, 10, 20]))
    (Tensor([1, 2, 3], dtype=int64), Tensor([10, 20, 30], dtype=int64))
    """
    first, second = sort((keys, values), dimension, is_stable)
    return first, second


def top_k(operand: Any, k: int, axis: int = -1) -> tuple[Tensor, Tensor]:
    """The ``k`` greatest elements along an axis, in descending order, and where they are; of equal ones the first come first.

    Raises ArgumentError for more than there are.

    >>> hg.lax.top_k(np.array([3, 9, 4]), 2)
    (Tensor([9, 4], dtype=int64), Tensor([1, 2], dtype=int64))
    """
    return hnp.top_k(operand, k, axis)


def approx_max_k(operand: Any, k: int, reduction_dimension: int = -1, recall_target: float = 0.95, **_: Any) -> tuple[Tensor, Tensor]:
    """As :func:`top_k`, which here is exact: the recall that is asked for is 1.

    >>> hg.lax.approx_max_k(np.array([3.0, 9.0, 4.0]), 2)
    (Tensor([9., 4.], dtype=float64), Tensor([1, 2], dtype=int64))
    """
    return hnp.top_k(operand, k, reduction_dimension)


def approx_min_k(operand: Any, k: int, reduction_dimension: int = -1, recall_target: float = 0.95, **_: Any) -> tuple[Tensor, Tensor]:
    """The ``k`` least elements along an axis, in ascending order, and where they are.

    >>> hg.lax.approx_min_k(np.array([3.0, 9.0, 4.0]), 2)
    (Tensor([3., 4.], dtype=float64), Tensor([0, 2], dtype=int64))
    """
    values, places = hnp.top_k(-hnp.asarray(operand), k, reduction_dimension)
    return -values, places
