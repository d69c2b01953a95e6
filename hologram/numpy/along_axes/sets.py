"""The different elements of arrays, and sets of them.

Functions whose result's size depends on values read them, so they raise TracedValueError while tracing unless they are given a ``size``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hologram.errors import DTypeError
from hologram.numpy.along_axes.ordering import unique_of_size
from hologram.numpy.along_axes.positions import known_values
from hologram.numpy.along_axes.searching import isin
from hologram.numpy.arguments import array, axis_of, wrap
from hologram.support.user_lines import located
from hologram.trace.convert import tensor
from hologram.trace.tensor import Tensor

__all__ = ["intersect1d", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


class UniqueAll(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


def unique(
    x: Any,
    /,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The different elements of ``x``, sorted; with ``axis`` the different slices.

    A tuple with what else is asked for: where each is first, which one each element of ``x`` is, how often each is there. With ``equal_nan``
    all NaNs are one. Raises TracedValueError while tracing, unless ``size`` says how many there are: what is beyond it is left out, and missing
    elements are ``fill_value``, by default the least (their indices are those of the least, their counts 0). Slices with NaNs are all different.

    >>> hnp.unique([3, 1, 3], size=3)
    Tensor([1, 3, 1], dtype=int64)
    >>> hnp.unique([3, 1, 3])
    Tensor([1, 3], dtype=int64)
    >>> hnp.unique([3, 1, 3], return_counts=True)
    (Tensor([1, 3], dtype=int64), Tensor([1, 2], dtype=int64))
    """
    wanted: Any = {"return_index": return_index, "return_inverse": return_inverse, "return_counts": return_counts}
    if size is not None:
        t = wrap(array(x, "unique"))
        along = None if axis is None else axis_of(axis, t.ndim, "unique")
        return unique_of_size(t, along, size, fill_value, tuple(wanted.values()), equal_nan and axis is None)
    values = known_values(x, "unique")
    if axis is not None:
        axis = axis_of(axis, values.ndim, "unique")
    found: Any = np.unique(values, axis=axis, equal_nan=equal_nan, **wanted)
    return tuple(tensor(a) for a in found) if isinstance(found, tuple) else tensor(found)


def unique_all(x: Any, /) -> UniqueAll:
    """The different elements, sorted, with ``indices`` of the first of each, ``inverse_indices`` and ``counts``: a named tuple.

    Every NaN is one of its own. Raises TracedValueError while tracing.

    >>> found = hnp.unique_all([3, 1, 3])
    >>> found.values, found.inverse_indices
    (Tensor([1, 3], dtype=int64), Tensor([1, 0, 1], dtype=int64))
    """
    return UniqueAll(*(tensor(a) for a in np.unique(known_values(x, "unique_all"), True, True, True, equal_nan=False)))


def unique_counts(x: Any, /) -> UniqueCounts:
    """The different elements, sorted, and how often each is there: a named tuple ``(values, counts)``.

    Every NaN is one of its own. Raises TracedValueError while tracing.

    >>> hnp.unique_counts([3, 1, 3]).counts
    Tensor([1, 2], dtype=int64)
    """
    return UniqueCounts(*(tensor(a) for a in np.unique(known_values(x, "unique_counts"), return_counts=True, equal_nan=False)))


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The different elements, sorted, and which one each element of ``x`` is: a named tuple ``(values, inverse_indices)``.

    Every NaN is one of its own. Raises TracedValueError while tracing.

    >>> hnp.unique_inverse([3, 1, 3]).inverse_indices
    Tensor([1, 0, 1], dtype=int64)
    """
    return UniqueInverse(*(tensor(a) for a in np.unique(known_values(x, "unique_inverse"), return_inverse=True, equal_nan=False)))


def unique_values(x: Any, /) -> Tensor:
    """The different elements, sorted; every NaN is one of its own. Raises TracedValueError while tracing.

    >>> hnp.unique_values([3, 1, 3])
    Tensor([1, 3], dtype=int64)
    """
    return tensor(np.unique(known_values(x, "unique_values"), equal_nan=False))


def _two(x1: Any, x2: Any, what: str) -> tuple[np.ndarray, np.ndarray, bool]:
    """The values of both, and whether they are integers that no integer type has all: NumPy would compare them as floats."""
    a, b = known_values(x1, what), known_values(x2, what)
    return a, b, a.dtype.kind in "iu" and b.dtype.kind in "iu" and np.result_type(a, b).kind not in "iu"


def _joined(f: Callable[[np.ndarray, np.ndarray], np.ndarray], x1: Any, x2: Any, what: str) -> Tensor:
    a, b, apart = _two(x1, x2, what)
    if apart:
        raise located(DTypeError(f"{what}: no integer type has the elements of {a.dtype} and {b.dtype}: cast one of them"))
    return tensor(f(a, b))


def _chosen(f: Callable[..., np.ndarray], x1: Any, x2: Any, what: str, there: bool) -> Tensor:
    a, b, apart = _two(x1, x2, what)
    if not apart:
        return tensor(f(a, b))
    different = np.unique(a)
    return tensor(different[np.asarray(isin(different, b)) == there])


def union1d(x1: Any, x2: Any, /) -> Tensor:
    """Set union: the different elements of both arrays, sorted. Raises TracedValueError while tracing, DTypeError for integers that no integer type
    has all.

    >>> hnp.union1d([1, 2], [2, 3])
    Tensor([1, 2, 3], dtype=int64)
    """
    return _joined(np.union1d, x1, x2, "union1d")


def intersect1d(x1: Any, x2: Any, /, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """Set intersection: the different elements that are in both arrays, sorted; of integers that no integer type has all in the type of
    ``x1``. With ``return_indices`` a tuple with where each is first in ``x1`` and in ``x2``, flattened. Nothing is gained by ``assume_unique``.
    Raises TracedValueError while tracing.

    >>> hnp.intersect1d([1, 2], [2, 3])
    Tensor([2], dtype=int64)
    """
    found = _chosen(np.intersect1d, x1, x2, "intersect1d", True)
    if not return_indices:
        return found
    values = np.asarray(found)
    return found, *(tensor(_first(known_values(x, "intersect1d").reshape(-1), values)) for x in (x1, x2))


def _first(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Where each of ``values``, which are all there, is first in the vector ``x``."""
    different, at = np.unique(x, return_index=True)
    return at[np.isin(different, values.astype(x.dtype))]


def setdiff1d(x1: Any, x2: Any, /, assume_unique: bool = False) -> Tensor:
    """Set difference: the different elements of ``x1`` that are not in ``x2``, sorted; with ``assume_unique`` all, in their order. Raises
    TracedValueError while tracing.

    >>> hnp.setdiff1d([1, 2, 1], [2, 3])
    Tensor([1], dtype=int64)
    """
    if assume_unique:
        a, b, _ = _two(x1, x2, "setdiff1d")
        return tensor(a.reshape(-1)[~np.asarray(isin(a.reshape(-1), b))])
    return _chosen(np.setdiff1d, x1, x2, "setdiff1d", False)


def setxor1d(x1: Any, x2: Any, /, assume_unique: bool = False) -> Tensor:
    """Symmetric set difference: the different elements that are in one of the arrays alone, sorted. Nothing is gained by
    ``assume_unique``. Raises TracedValueError while tracing, DTypeError for integers that no integer type has all.

    >>> hnp.setxor1d([1, 2], [2, 3])
    Tensor([1, 3], dtype=int64)
    """
    return _joined(np.setxor1d, x1, x2, "setxor1d")
