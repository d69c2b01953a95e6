"""Sorting, searching, sets and counting.

Functions whose result's size depends on values (``unique``, ``nonzero`` and their kin) read them, so they raise TracedValueError while tracing.
"""

from __future__ import annotations

from typing import Any, NamedTuple, overload

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.op import Op
from hologram.ir.symbolic import prod
from hologram.numpy.arguments import array, axis_of, reshaped, wrap
from hologram.numpy.creation import arange, full, zeros
from hologram.numpy.elementwise import FUNCTIONS
from hologram.numpy.elementwise import where as chosen
from hologram.numpy.indexing.read import take
from hologram.numpy.manipulation import concat
from hologram.numpy.reductions import cumsum, max, min
from hologram.primitives import sorting as rows
from hologram.support.user_lines import located
from hologram.trace.apply import extent_node, promoted
from hologram.trace.checks import choice, integer, items
from hologram.trace.convert import tensor
from hologram.trace.recorder import record
from hologram.trace.tensor import Tensor

__all__ = [
    "argpartition", "argsort", "argwhere", "bincount", "digitize", "flatnonzero", "histogram", "histogram2d", "histogram_bin_edges",
    "histogramdd", "intersect1d", "isin", "lexsort", "nonzero", "partition", "searchsorted", "setdiff1d", "setxor1d", "sort", "union1d", "unique",
    "unique_all", "unique_counts", "unique_inverse", "unique_values", "where",
]  # fmt: skip

MAX_SEARCH_STEPS = 48  # of a binary search in an axis of symbolic extent


def _sorted(op: Op, x: Any, axis: int | None, descending: bool, stable: bool) -> Tensor:
    node = array(x, op.name)
    if axis is None:
        node, axis = reshaped(node, (prod(node.shape),)), 0
    return wrap(record(op, (node,), (axis_of(axis, len(node.shape), op.name), bool(descending))))


def sort(x: Any, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """``x`` in order along ``axis`` (flattened for None). NaNs come last, or first if ``descending``."""
    return _sorted(rows.sort, x, axis, descending, stable)


def argsort(x: Any, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort ``x``; equal elements keep their order."""
    return _sorted(rows.argsort, x, axis, descending, stable)


def partition(x: Any, kth: Any, /, axis: int | None = -1) -> Tensor:
    """``x`` sorted, which puts the ``kth`` elements in their place, too."""
    return sort(x, axis)


def argpartition(x: Any, kth: Any, /, axis: int | None = -1) -> Tensor:
    return argsort(x, axis)


def lexsort(keys: Any, /, axis: int = -1) -> Tensor:
    """The order by the last of ``keys``, among equals by the one before it, and so on."""
    order: Tensor | None = None
    for key in items(keys, "lexsort", "keys"):
        values = wrap(array(key, "lexsort"))
        if values.ndim != 1:
            raise located(ShapeError(f"lexsort takes keys of one axis, not of shape {list(values.shape)}"))
        by = argsort(values if order is None else values[order])
        order = by if order is None else order[by]
    if order is None:
        raise located(ArgumentError("lexsort takes at least one key"))
    return order


# --- searching -------------------------------------------------------------------------------------------------------


def _less(a: Tensor, b: Tensor) -> Tensor:
    """In the order of ``sort``, where NaN is the largest."""
    less = FUNCTIONS["less"](a, b)
    if not a._aval()[1].is_float:
        return less
    isnan = FUNCTIONS["isnan"]
    return less | (isnan(b) & ~isnan(a))


def searchsorted(x1: Any, x2: Any, /, side: str = "left", sorter: Any = None) -> Tensor:
    """Where the elements of ``x2`` would go in the sorted ``x1``: before equal ones (``left``), or after them (``right``). A binary search."""
    choice(side, "searchsorted", "side", ("left", "right"))
    (a, v), _, _ = promoted("searchsorted", (x1, x2))
    if len(a.shape) != 1:
        raise located(ShapeError(f"searchsorted takes one sorted axis, not shape {list(a.shape)}"))
    ordered, values = wrap(a), wrap(v)
    if sorter is not None:
        ordered = take(ordered, sorter, axis=0)
    n = a.shape[0]
    at: Any = zeros(v.shape, dtype=dtypes.int64)
    if isinstance(n, int) and n == 0:
        return at
    for k in reversed(range(n.bit_length() if isinstance(n, int) else MAX_SEARCH_STEPS)):
        further = at + (1 << k)
        here = take(ordered, further - 1, axis=0)
        before = _less(here, values) if side == "left" else ~_less(values, here)
        at = chosen((further <= wrap(extent_node(n, dtypes.int64))) & before, further, at)
    return at


def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    """The bin of every element: ``bins[i - 1] <= x < bins[i]``, or with the equality at the other end if ``right``. Known ``bins`` may descend."""
    edges = bins if type(bins) is Tensor else np.asarray(bins)
    if edges.ndim != 1:
        raise located(ShapeError(f"digitize takes bins of one axis, not shape {list(edges.shape)}"))
    if isinstance(edges, np.ndarray) and edges.size > 1 and edges[0] > edges[-1]:
        return edges.size - searchsorted(edges[::-1].copy(), x, side="left" if right else "right")
    return searchsorted(edges, x, side="left" if right else "right")


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether every element of ``x1`` is among those of ``x2``."""
    (a, b), _, _ = promoted("isin", (x1, x2))
    elements, test = wrap(a), sort(wrap(b), None)
    if test.size == 0:
        return full(a.shape, invert, dtype=dtypes.bool_)
    found = take(test, searchsorted(test, elements), axis=0) == elements
    return ~found if invert else found


# --- where something is ----------------------------------------------------------------------------------------------


def _values(x: Any, what: str) -> np.ndarray:
    """The values of ``x``. Raises TracedValueError while tracing."""
    return wrap(array(x, what))._view(f"{what}, whose result's size depends on the values,")


@overload
def where(condition: Any, x1: Any, x2: Any, /) -> Tensor: ...
@overload
def where(condition: Any, /, *, size: int | None = None, fill_value: int = 0) -> tuple[Tensor, ...]: ...
def where(condition: Any, x1: Any = None, x2: Any = None, /, *, size: int | None = None, fill_value: int = 0) -> Any:
    """``x1`` where ``condition`` holds, else ``x2``; the other one's NaNs and infinities do no harm. Without them
    :func:`nonzero` of ``condition``."""
    if x1 is None and x2 is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x1 is None or x2 is None or size is not None:
        raise located(ArgumentError("where takes a condition and two values, or a condition alone, and then size"))
    return chosen(condition, x1, x2)


def nonzero(x: Any, /, *, size: int | None = None, fill_value: int = 0) -> tuple[Tensor, ...]:
    """For each axis the indices of what is not zero. With ``size`` so many of them, filled up, which works while tracing, too."""
    node = array(x, "nonzero")
    if not node.shape:
        raise located(ShapeError("nonzero takes at least one axis"))
    if size is None:
        return tuple(tensor(i) for i in np.nonzero(_values(x, "nonzero")))
    size = integer(size, "nonzero", "size")
    counts = cumsum(wrap(reshaped(node, (prod(node.shape),))).astype(dtypes.bool_))
    at = searchsorted(counts, arange(1, size + 1))
    there = at < counts.shape[0]
    out = []
    for n in (wrap(extent_node(n, dtypes.int64)) for n in reversed(node.shape)):
        out.append(chosen(there, at % n, fill_value))
        at = at // n
    return tuple(out[::-1])


def flatnonzero(x: Any, /, *, size: int | None = None, fill_value: int = 0) -> Tensor:
    return nonzero(wrap(array(x, "flatnonzero")).reshape(-1), size=size, fill_value=fill_value)[0]


def argwhere(x: Any, /) -> Tensor:
    return tensor(np.argwhere(_values(x, "argwhere")))


# --- sets ------------------------------------------------------------------------------------------------------------


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
) -> Any:
    """The different elements of ``x``, sorted, and what else is asked for."""
    wanted: Any = {"return_index": return_index, "return_inverse": return_inverse, "return_counts": return_counts}
    values = _values(x, "unique")
    if axis is not None:
        axis = axis_of(axis, values.ndim, "unique")
    found: Any = np.unique(values, axis=axis, equal_nan=equal_nan, **wanted)
    return tuple(tensor(a) for a in found) if isinstance(found, tuple) else tensor(found)


def unique_all(x: Any, /) -> UniqueAll:
    """Different elements, sorted, every NaN one of its own; where each is first; which one each element of ``x`` is; how often each is there."""
    return UniqueAll(*(tensor(a) for a in np.unique(_values(x, "unique_all"), True, True, True, equal_nan=False)))


def unique_counts(x: Any, /) -> UniqueCounts:
    return UniqueCounts(*(tensor(a) for a in np.unique(_values(x, "unique_counts"), return_counts=True, equal_nan=False)))


def unique_inverse(x: Any, /) -> UniqueInverse:
    return UniqueInverse(*(tensor(a) for a in np.unique(_values(x, "unique_inverse"), return_inverse=True, equal_nan=False)))


def unique_values(x: Any, /) -> Tensor:
    return tensor(np.unique(_values(x, "unique_values"), equal_nan=False))


def union1d(x1: Any, x2: Any, /) -> Tensor:
    return tensor(np.union1d(_values(x1, "union1d"), _values(x2, "union1d")))


def intersect1d(x1: Any, x2: Any, /) -> Tensor:
    return tensor(np.intersect1d(_values(x1, "intersect1d"), _values(x2, "intersect1d")))


def setdiff1d(x1: Any, x2: Any, /) -> Tensor:
    return tensor(np.setdiff1d(_values(x1, "setdiff1d"), _values(x2, "setdiff1d")))


def setxor1d(x1: Any, x2: Any, /) -> Tensor:
    return tensor(np.setxor1d(_values(x1, "setxor1d"), _values(x2, "setxor1d")))


# --- counting --------------------------------------------------------------------------------------------------------


def bincount(x: Any, /, weights: Any = None, minlength: int = 0, *, length: int | None = None) -> Tensor:
    """How often every integer from 0 up is in ``x``, or the sums of its weights. ``length``, needed while tracing, fixes the result's; what is
    beyond it does not count."""
    node = array(x, "bincount")
    if not node.dtype.is_integer or len(node.shape) != 1:
        raise located(DTypeError(f"bincount takes integers along one axis, not {node.dtype}{list(node.shape)}"))
    if length is None:
        known = _values(x, "bincount without length")
        if known.size and known.min() < 0:
            raise located(ArgumentError("bincount: a negative number"))
        length = int(known.max()) + 1 if known.size else 0
        length = length if length > minlength else minlength
    values = wrap(node)
    if weights is None:
        return zeros(length, dtype=dtypes.int64).at[chosen(values < 0, length, values)].add(1)
    w = wrap(array(weights, "bincount"))
    kind = _counted_in(w)
    return zeros(length, dtype=kind).at[chosen(values < 0, length, values)].add(w)


def _counted_in(x: Tensor) -> np.dtype:
    """The type of edges and of sums of weights: that of ``x`` where it is a float type of NumPy's, the default float for others."""
    of = x._aval()[1]
    return of.np if of.is_float and of.bit_type is None else dtypes.default_float.np


def histogram_bin_edges(x: Any, /, bins: Any = 10, range: Any = None) -> Tensor:
    """The edges of ``bins`` bins of equal width over ``range``, by default from the least to the largest element; or ``bins`` themselves."""
    if not isinstance(bins, (int, np.integer)):
        edges = wrap(array(bins, "histogram"))
        if edges.ndim != 1:
            raise located(ShapeError(f"histogram takes a number of bins or edges of one axis, not shape {list(edges.shape)}"))
        return edges
    if bins < 1:
        raise located(ArgumentError(f"histogram: {bins} bins"))
    values = wrap(array(x, "histogram"))
    kind = _counted_in(values)
    if range is None:
        low, high = (min(values), max(values)) if values.size != 0 else (zeros(()), full((), 1.0))
    else:
        if len(ends := items(range, "histogram", "two ends")) != 2:
            raise located(ArgumentError(f"histogram: a range has two ends, not {len(ends)}"))
        low, high = (wrap(array(v, "histogram")) for v in ends)
    low, high = low.astype(kind), high.astype(kind)
    flat = low == high
    low, high = chosen(flat, low - 0.5, low), chosen(flat, high + 0.5, high)
    steps = arange(int(bins)).astype(kind)
    return concat([low + steps * ((high - low) / int(bins)), high.reshape(1)])


def histogram(x: Any, /, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None) -> tuple[Tensor, Tensor]:
    """How many elements, or the sum of their weights, every bin holds; and the bins' edges. The last bin includes its upper edge."""
    edges = histogram_bin_edges(x, bins, range)
    last = edges.shape[0] - 1
    place, inside = _bins(edges, wrap(array(x, "histogram")).reshape(-1))
    w: Any = 1 if weights is None else wrap(array(weights, "histogram")).reshape(-1)
    kind: Any = dtypes.int64 if weights is None else w.dtype
    counts = zeros(last, dtype=kind).at[chosen(inside, place, last)].add(w)
    if density:
        counts = counts / (edges[1:] - edges[:-1]) / counts.sum()
    return counts, edges


def _bins(edges: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The bin of every value, and whether it is in one."""
    last = edges.shape[0] - 1
    edges, values = (x.astype(dtypes.compute_type(x._aval()[1])) for x in (edges, values))
    place = searchsorted(edges, values, side="right")
    place = chosen(values == edges[last], last, place) - 1
    return place, (place >= 0) & (place < last)


def histogramdd(sample: Any, /, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None) -> tuple[Tensor, list[Tensor]]:
    """How many points, the rows of ``sample``, every cell of a grid holds, or the sum of their weights; and the edges along every axis.

    ``bins`` is a number, or a number or edges for every axis; ``range`` None or a pair for every axis. The counts are floats.
    """
    points = wrap(array(sample, "histogramdd"))
    points = points if points.ndim > 1 else points.reshape((-1, 1))
    if points.ndim != 2:
        raise located(ShapeError(f"histogramdd takes points in rows, not shape {list(points.shape)}"))
    d = points.shape[1]
    parts = list(bins) if isinstance(bins, (tuple, list)) else [bins] * d
    ranges = [None] * d if range is None else items(range, "histogramdd", "ranges")
    if len(parts) != d or len(ranges) != d:
        raise located(ArgumentError(f"histogramdd: {len(parts)} bins and {len(ranges)} ranges for {d} axes"))
    edges = [histogram_bin_edges(points[:, i], b, r) for i, (b, r) in enumerate(zip(parts, ranges, strict=True))]
    shape = [e.shape[0] - 1 for e in edges]
    cell, inside = zeros(points.shape[0], dtype=dtypes.int64), full(points.shape[0], True)
    for i, e in enumerate(edges):
        place, there = _bins(e, points[:, i])
        cell, inside = cell * shape[i] + place, inside & there
    cells = prod(shape)
    w: Any = 1.0 if weights is None else wrap(array(weights, "histogramdd")).reshape(-1)
    kind = _counted_in(points) if points._aval()[1].is_float else edges[0].dtype
    counts = zeros(cells, dtype=kind).at[chosen(inside, cell, cells)].add(w).reshape(shape)
    if density:
        total = counts.sum()
        for i, e in enumerate(edges):
            counts = counts / (e[1:] - e[:-1]).reshape([-1 if k == i else 1 for k, _ in enumerate(edges)])
        counts = counts / total
    return counts, edges


def histogram2d(x: Any, y: Any, /, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`histogramdd` of points with the coordinates ``x`` and ``y``. One array of edges is for both axes."""
    if not isinstance(bins, (int, np.integer)) and not (isinstance(bins, (tuple, list)) and len(bins) == 2):
        bins = [bins, bins]
    points = concat([wrap(array(v, "histogram2d")).reshape((-1, 1)) for v in (x, y)], axis=1)
    counts, (first, second) = histogramdd(points, bins, range, density, weights)
    return counts, first, second
