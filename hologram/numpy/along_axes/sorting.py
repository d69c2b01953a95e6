"""Sorting, searching, sets and counting.

Functions whose result's size depends on values (``unique``, ``nonzero`` and their kin) read them, so they raise TracedValueError while tracing.
"""

from __future__ import annotations

from typing import Any, NamedTuple, overload

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.node import Node
from hologram.ir.op import Op
from hologram.ir.symbolic import prod
from hologram.numpy.along_axes.ordering import complex_order, unique_of_size
from hologram.numpy.along_axes.reductions import cumsum, max, min
from hologram.numpy.arguments import array, axis_of, reshaped, weakly, wrap
from hologram.numpy.creation import arange, full, rounded_product, zeros
from hologram.numpy.elementwise.functions import FUNCTIONS
from hologram.numpy.elementwise.functions import where as chosen
from hologram.numpy.indexing.read import take, take_along_axis
from hologram.numpy.shaping.joining import concat, stack
from hologram.primitives import sorting as rows
from hologram.primitives.indexing import gather
from hologram.support.user_lines import located
from hologram.trace.array_classes import known_array
from hologram.trace.checks import choice, integer, items
from hologram.trace.convert import tensor
from hologram.trace.operators import extent_node, promoted
from hologram.trace.recorder import record
from hologram.trace.tensor import Tensor

__all__ = [
    "argpartition", "argsort", "argwhere", "bincount", "digitize", "flatnonzero", "histogram", "histogram2d", "histogram_bin_edges",
    "histogramdd", "intersect1d", "isin", "lexsort", "nonzero", "partition", "searchsorted", "setdiff1d", "setxor1d", "sort", "top_k", "union1d",
    "unique",    "unique_all", "unique_counts", "unique_inverse", "unique_values", "where",
]  # fmt: skip

MAX_COUNTED = 32  # elements of a sorted axis: of so few those that are smaller are counted, ...
MAX_COMPARISONS = 1 << 14  # ... in so many comparisons
MAX_SEARCH_STEPS = 48  # of a binary search in an axis of symbolic extent


def _sorted(op: Op, x: Any, axis: int | None, descending: bool, stable: bool) -> Tensor:
    node = array(x, op.name)
    if axis is None:
        node, axis = reshaped(node, (prod(node.shape),)), 0
    axis = axis_of(axis, len(node.shape), op.name)
    if node.dtype.is_complex:
        order = complex_order(wrap(node), axis, bool(descending))
        return take_along_axis(wrap(node), order, axis) if op is rows.sort else order
    return wrap(record(op, (node,), (axis, bool(descending))))


def sort(x: Any, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """Sorts along ``axis``; ``x`` flattened for None. The result is new.

    Shape and type are those of ``x``. NaNs come last, or first if ``descending``, which NumPy does not have. Always stable. Complex numbers are
    sorted by their real parts, among equals by their imaginary parts.

    >>> hnp.sort([3, 1, 2])
    Tensor([1, 2, 3], dtype=int64)
    >>> hnp.sort([3.0, hnp.nan, 1.0], descending=True)
    Tensor([nan,  3.,  1.], dtype=float32)
    """
    return _sorted(rows.sort, x, axis, descending, stable)


def argsort(x: Any, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """Indices that sort ``x`` along ``axis``, of ``x`` flattened for None; int64. Equal elements keep their order.

    >>> hnp.argsort([30, 10, 20])
    Tensor([1, 2, 0], dtype=int64)
    """
    return _sorted(rows.argsort, x, axis, descending, stable)


def top_k(x: Any, k: int, axis: int = -1) -> tuple[Tensor, Tensor]:
    """The ``k`` largest elements along ``axis``, in descending order, and their indices; of equal elements that of the lowest index comes first.

    Both results have the shape of ``x`` with extent ``k`` along ``axis``; indices are int64. NaN counts as the largest. JAX's ``jax.lax.top_k``.
    Raises ShapeError for a scalar and for fewer than ``k`` elements, ArgumentError for a negative ``k``, DTypeError for complex numbers.

    >>> hnp.top_k([1, 5, 3, 5], 3)
    (Tensor([5, 5, 3], dtype=int64), Tensor([1, 3, 2], dtype=int64))
    """
    t = wrap(array(x, "top_k"))
    if t._aval()[1].is_complex:
        raise located(DTypeError(f"top_k: takes what has an order, not {t.dtype}"))
    a = axis_of(axis, t.ndim, "top_k")
    count = integer(k, "top_k", "k")
    if count < 0:
        raise located(ArgumentError(f"top_k: the {count} largest elements"))
    if isinstance(n := t.shape[a], int) and count > n:
        raise located(ShapeError(f"top_k: the {count} largest of {n} elements along axis {a}"))
    indices = argsort(t, a, descending=True)[(slice(None),) * a + (slice(count),)]
    return take_along_axis(t, indices, a), indices


def partition(x: Any, kth: Any, /, axis: int | None = -1) -> Tensor:
    """Puts the ``kth`` elements where sorting would. Sorts the whole axis, which does that too; ``kth`` is not used.

    >>> hnp.partition([3, 1, 2], 1)
    Tensor([1, 2, 3], dtype=int64)
    """
    return sort(x, axis)


def argpartition(x: Any, kth: Any, /, axis: int | None = -1) -> Tensor:
    """Indices that :func:`partition` ``x`` along ``axis``: those of :func:`argsort`; ``kth`` is not used.

    >>> hnp.argpartition([30, 10, 20], 1)
    Tensor([1, 2, 0], dtype=int64)
    """
    return argsort(x, axis)


def lexsort(keys: Any, /, axis: int = -1) -> Tensor:
    """Indices (n,) that sort by several keys: by the last one, among equals by the one before it, and so on.

    Raises ShapeError for keys that are not vectors, ArgumentError for none.

    >>> hnp.lexsort(([2, 1, 3], [1, 1, 0]))
    Tensor([2, 1, 0], dtype=int64)
    """
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


def _comparable(x1: Any, x2: Any, what: str) -> tuple[Node, Node]:
    """Both in their common type; integers that have no common integer type as they are, so that comparisons lose no digits."""
    a, b = (weakly(x, what) for x in (x1, x2))
    if a.dtype.kind in "iu" and b.dtype.kind in "iu" and not dtypes.promote(a._aval()[1], b._aval()[1]).is_integer:
        return array(a, what), array(b, what)
    (p, q), _, _ = promoted(what, (x1, x2))
    return p, q


def searchsorted(x1: Any, x2: Any, /, side: str = "left", sorter: Any = None) -> Tensor:
    """Indices at which the elements of ``x2`` would be inserted into the sorted vector ``x1``; int64, of the shape of ``x2``.

    ``side`` says whether before equal elements (``left``) or after them (``right``); ``sorter`` are indices that sort ``x1``. A binary search,
    or a count; NaN is the largest. Raises ShapeError where ``x1`` has not one axis, ArgumentError for another side.

    >>> hnp.searchsorted([10, 20, 30], [20, 25])
    Tensor([1, 2], dtype=int64)
    >>> hnp.searchsorted([10, 20, 30], [20, 25], side="right")
    Tensor([2, 2], dtype=int64)
    """
    choice(side, "searchsorted", "side", ("left", "right"))
    a, v = _comparable(x1, x2, "searchsorted")
    if len(a.shape) != 1:
        raise located(ShapeError(f"searchsorted takes one sorted axis, not shape {list(a.shape)}"))
    ordered, values = wrap(a), wrap(v)
    if sorter is not None:
        ordered = take(ordered, sorter, axis=0)
    n = a.shape[0]
    at: Any = zeros(v.shape, dtype=dtypes.int64)
    if isinstance(n, int) and n == 0:
        return at
    comparisons = prod((n, *v.shape))
    if isinstance(comparisons, int) and isinstance(n, int) and n <= MAX_COUNTED and comparisons <= MAX_COMPARISONS:
        knots = ordered.reshape(n, *[1] * len(v.shape))
        before = _less(knots, values) if side == "left" else ~_less(values, knots)
        return before.astype(dtypes.int64).sum(0)
    end, source = extent_node(n, dtypes.int64), wrap(array(ordered, "searchsorted"))
    for k in reversed(range(n.bit_length() if isinstance(n, int) else MAX_SEARCH_STEPS)):
        further = at + (1 << k)
        index = FUNCTIONS["minimum"](further, wrap(end)) - 1
        here = wrap(reshaped(record(gather, (source._node, index._node), ((0,), (1,), 0)), v.shape))
        before = _less(here, values) if side == "left" else ~_less(values, here)
        at = chosen((further <= wrap(end)) & before, further, at)
    return at


def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    """Index of the bin that each element falls into; int64, of the shape of ``x``.

    Bin i is ``bins[i - 1] <= x < bins[i]``, or with the equality at the other end if ``right``; 0 and ``len(bins)`` are outside. Bins may descend.
    Raises ShapeError for bins of more than one axis, ArgumentError for known ones that neither ascend nor descend.

    >>> hnp.digitize([0.5, 1.0, 9.0], [0.0, 1.0, 2.0])
    Tensor([1, 2, 3], dtype=int64)
    """
    edges: Any = bins if type(bins) is Tensor else known_array(bins, "digitize")
    if edges.ndim != 1:
        raise located(ShapeError(f"digitize takes bins of one axis, not shape {list(edges.shape)}"))
    side = "left" if right else "right"
    count = edges.shape[0]
    if isinstance(edges, np.ndarray):
        descend = bool(count and edges[0] > edges[-1])
        _check_order(edges[::-1] if descend else edges, "digitize")
        return count - searchsorted(edges[::-1].copy(), x, side=side) if descend else searchsorted(edges, x, side=side)
    if count == 0:
        return searchsorted(edges, x, side=side)
    down = edges[0] > edges[-1]
    found = searchsorted(chosen(down, edges[::-1], edges), x, side=side)
    return chosen(down, count - found, found)


def _check_order(edges: np.ndarray, what: str) -> None:
    """Raises ArgumentError for edges of bins of which one is smaller than that before it."""
    if (edges[1:] < edges[:-1]).any():
        raise located(ArgumentError(f"{what}: the edges of bins are in order, not {edges.tolist()}"))


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element of ``x1`` is among those of ``x2``, or is not if ``invert``; bool, of the shape of ``x1``.

    >>> hnp.isin([[1, 2], [3, 4]], [2, 4])
    Tensor([[False,  True],
            [False,  True]], dtype=bool)
    """
    a, b = _comparable(x1, x2, "isin")
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
    """Selects by element: ``x1`` where ``condition`` is not zero, else ``x2``.

    All three broadcast; the result has the values' common type. NaNs and infinities of the value that is not chosen do no harm, in derivatives
    neither. Without values :func:`nonzero` of ``condition``, whose ``size`` and ``fill_value`` these are. Raises ArgumentError for one value.

    >>> hnp.where([True, False], [1, 2], 0)
    Tensor([1, 0], dtype=int64)
    """
    if x1 is None and x2 is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x1 is None or x2 is None or size is not None:
        raise located(ArgumentError("where takes a condition and two values, or a condition alone, and then size"))
    return chosen(condition, x1, x2)


def nonzero(x: Any, /, *, size: int | None = None, fill_value: int = 0) -> tuple[Tensor, ...]:
    """Indices of the elements that are not zero: a tuple with one int64 vector an axis.

    With ``size`` there are so many of them, cut off or filled up with ``fill_value``, which works while tracing, too. Raises TracedValueError
    while tracing without ``size``, ShapeError for a scalar.

    >>> hnp.nonzero([[0, 1], [2, 0]])
    (Tensor([0, 1], dtype=int64), Tensor([1, 0], dtype=int64))
    >>> hnp.nonzero([0, 5, 6], size=3, fill_value=-1)
    (Tensor([ 1,  2, -1], dtype=int64),)
    """
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
    """Indices of the elements of ``x`` flattened that are not zero; ``size`` and ``fill_value`` as for :func:`nonzero`.

    >>> hnp.flatnonzero([[0, 1], [2, 0]])
    Tensor([1, 2], dtype=int64)
    """
    return nonzero(wrap(array(x, "flatnonzero")).reshape(-1), size=size, fill_value=fill_value)[0]


def argwhere(x: Any, /, *, size: int | None = None, fill_value: int = 0) -> Tensor:
    """Indices of the elements that are not zero, as rows of an int64 matrix. ``size`` and ``fill_value`` are as for :func:`nonzero`.

    >>> hnp.argwhere([[0, 1], [2, 0]])
    Tensor([[0, 1],
            [1, 0]], dtype=int64)
    """
    return tensor(np.argwhere(_values(x, "argwhere"))) if size is None else stack(nonzero(x, size=size, fill_value=fill_value), axis=-1)


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
    values = _values(x, "unique")
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
    return UniqueAll(*(tensor(a) for a in np.unique(_values(x, "unique_all"), True, True, True, equal_nan=False)))


def unique_counts(x: Any, /) -> UniqueCounts:
    """The different elements, sorted, and how often each is there: a named tuple ``(values, counts)``.

    Every NaN is one of its own. Raises TracedValueError while tracing.

    >>> hnp.unique_counts([3, 1, 3]).counts
    Tensor([1, 2], dtype=int64)
    """
    return UniqueCounts(*(tensor(a) for a in np.unique(_values(x, "unique_counts"), return_counts=True, equal_nan=False)))


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The different elements, sorted, and which one each element of ``x`` is: a named tuple ``(values, inverse_indices)``.

    Every NaN is one of its own. Raises TracedValueError while tracing.

    >>> hnp.unique_inverse([3, 1, 3]).inverse_indices
    Tensor([1, 0, 1], dtype=int64)
    """
    return UniqueInverse(*(tensor(a) for a in np.unique(_values(x, "unique_inverse"), return_inverse=True, equal_nan=False)))


def unique_values(x: Any, /) -> Tensor:
    """The different elements, sorted; every NaN is one of its own. Raises TracedValueError while tracing.

    >>> hnp.unique_values([3, 1, 3])
    Tensor([1, 3], dtype=int64)
    """
    return tensor(np.unique(_values(x, "unique_values"), equal_nan=False))


def union1d(x1: Any, x2: Any, /) -> Tensor:
    """Set union: the different elements of both arrays, sorted. Raises TracedValueError while tracing.

    >>> hnp.union1d([1, 2], [2, 3])
    Tensor([1, 2, 3], dtype=int64)
    """
    return tensor(np.union1d(_values(x1, "union1d"), _values(x2, "union1d")))


def intersect1d(x1: Any, x2: Any, /) -> Tensor:
    """Set intersection: the different elements that are in both arrays, sorted. Raises TracedValueError while tracing.

    >>> hnp.intersect1d([1, 2], [2, 3])
    Tensor([2], dtype=int64)
    """
    return tensor(np.intersect1d(_values(x1, "intersect1d"), _values(x2, "intersect1d")))


def setdiff1d(x1: Any, x2: Any, /) -> Tensor:
    """Set difference: the different elements of ``x1`` that are not in ``x2``, sorted. Raises TracedValueError while tracing.

    >>> hnp.setdiff1d([1, 2, 1], [2, 3])
    Tensor([1], dtype=int64)
    """
    return tensor(np.setdiff1d(_values(x1, "setdiff1d"), _values(x2, "setdiff1d")))


def setxor1d(x1: Any, x2: Any, /) -> Tensor:
    """Symmetric set difference: the different elements that are in one of the arrays alone, sorted. Raises TracedValueError while tracing.

    >>> hnp.setxor1d([1, 2], [2, 3])
    Tensor([1, 3], dtype=int64)
    """
    return tensor(np.setxor1d(_values(x1, "setxor1d"), _values(x2, "setxor1d")))


# --- counting --------------------------------------------------------------------------------------------------------


def bincount(x: Any, /, weights: Any = None, minlength: int = 0, *, length: int | None = None) -> Tensor:
    """Counts how often each integer from 0 up is in the vector ``x``: int64, or the float sums of ``weights``.

    The result has the length of the largest integer plus 1, at least ``minlength``; or ``length``, beyond which nothing counts, and which is
    needed while tracing. Raises DTypeError for what is no vector of integers, ArgumentError for negative ones without ``length``, and for a negative
    ``minlength``.

    >>> hnp.bincount([0, 2, 2, 3])
    Tensor([1, 0, 2, 1], dtype=int64)
    >>> hnp.bincount([0, 2, 2], weights=[0.5, 1.0, 1.5])
    Tensor([0.5, 0. , 2.5], dtype=float32)
    """
    node = array(x, "bincount")
    if not node.dtype.is_integer or len(node.shape) != 1:
        raise located(DTypeError(f"bincount takes integers along one axis, not {node.dtype}{list(node.shape)}"))
    if length is None:
        known = _values(x, "bincount without length")
        if known.size and known.min() < 0:
            raise located(ArgumentError("bincount: a negative number"))
        length = int(known.max()) + 1 if known.size else 0
        if (least := integer(minlength, "bincount", "a length")) < 0:
            raise located(ArgumentError(f"bincount: minlength is not negative: {least}"))
        length = length if length > least else least
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
    """Edges (bins + 1,) of ``bins`` bins of equal width over ``range``, by default from the least element to the largest.

    Edges that are given as ``bins`` come back as an array. The names of rules that NumPy takes are not known. Raises ArgumentError for fewer
    than one bin, for known edges that are not in order, and for a known range that is infinite, NaN or ends before it begins; ShapeError for edges
    of more than one axis.

    >>> hnp.histogram_bin_edges([1.0, 3.0, 2.0], bins=4)
    Tensor([1. , 1.5, 2. , 2.5, 3. ], dtype=float32)
    """
    if not isinstance(bins, (int, np.integer)):
        edges = wrap(array(bins, "histogram"))
        if edges.ndim != 1:
            raise located(ShapeError(f"histogram takes a number of bins or edges of one axis, not shape {list(edges.shape)}"))
        if type(bins) is not Tensor and not any(type(b) is Tensor for b in bins):
            _check_order(np.asarray(bins), "histogram")
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
        if all(isinstance(v, (int, float, np.number)) for v in ends) and not -np.inf < ends[0] <= ends[1] < np.inf:
            raise located(ArgumentError(f"histogram: a range has finite ends, the smaller one first: not {ends[0]} and {ends[1]}"))
        low, high = (wrap(array(v, "histogram")) for v in ends)
    low, high = low.astype(kind), high.astype(kind)
    flat = low == high
    low, high = chosen(flat, low - 0.5, low), chosen(flat, high + 0.5, high)
    steps = rounded_product(array(arange(int(bins)).astype(kind), "histogram"), array((high - low) / int(bins), "histogram"))
    return concat([low + wrap(steps), high.reshape(1)])


def histogram(x: Any, /, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None) -> tuple[Tensor, Tensor]:
    """Histogram: how many elements, or the sum of their ``weights``, each bin holds, and the bins' edges.

    ``bins`` and ``range`` are those of :func:`histogram_bin_edges`. A bin includes its lower edge, the last one its upper edge too. With
    ``density`` the integral over all bins is 1. Counts are int64, sums have the weights' type.

    >>> counts, edges = hnp.histogram([1.0, 2.0, 2.5, 4.0], bins=3)
    >>> counts, edges
    (Tensor([1, 2, 1], dtype=int64), Tensor([1., 2., 3., 4.], dtype=float32))
    """
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
    """Histogram of points in d dimensions: counts of the cells of a grid, and a list of the edges of each axis.

    Points are the rows of the array ``sample`` (n, d), or a sequence of their d coordinates, arrays (n,).
    ``bins`` is a number, or a number or edges for each axis; ``range`` None or a pair for each axis. Counts are floats; ``weights`` and
    ``density`` are as for :func:`histogram`. Raises ShapeError for more than two axes, ArgumentError for bins or ranges of another number.

    >>> counts, edges = hnp.histogramdd(([0.0, 1.0, 1.0], [0.0, 1.0, 0.9]), bins=2)
    >>> counts
    Tensor([[1., 0.],
            [0., 2.]], dtype=float32)
    """
    coordinates = isinstance(sample, (tuple, list)) and np.ndim(sample[0] if sample else ()) == 1
    points = stack([wrap(array(x, "histogramdd")) for x in sample], axis=1) if coordinates else wrap(array(sample, "histogramdd"))
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
    """Histogram of points in the plane with the coordinates ``x`` and ``y``: ``(counts, edges of x, edges of y)``.

    As :func:`histogramdd`; one number or array of edges is for both axes.

    >>> hnp.histogram2d([0.0, 1.0, 1.0], [0.0, 1.0, 0.9], bins=2)[0]
    Tensor([[1., 0.],
            [0., 2.]], dtype=float32)
    """
    if not isinstance(bins, (int, np.integer)) and not (isinstance(bins, (tuple, list)) and len(bins) == 2):
        bins = [bins, bins]
    points = concat([wrap(array(v, "histogram2d")).reshape((-1, 1)) for v in (x, y)], axis=1)
    counts, (first, second) = histogramdd(points, bins, range, density, weights)
    return counts, first, second
