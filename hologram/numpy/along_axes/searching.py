"""Places in sorted arrays, and membership."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, ShapeError
from hologram.ir.node import Node
from hologram.ir.symbolic import prod
from hologram.numpy.along_axes.sorting import sort
from hologram.numpy.arguments import array, reshaped, weakly, wrap
from hologram.numpy.creation import full, zeros
from hologram.numpy.elementwise.functions import FUNCTIONS
from hologram.numpy.elementwise.functions import where as chosen
from hologram.numpy.indexing.read import take
from hologram.primitives.indexing import gather
from hologram.support.user_lines import located
from hologram.trace.array_classes import known_array
from hologram.trace.checks import choice
from hologram.trace.operators import extent_node, promoted
from hologram.trace.recorder import record
from hologram.trace.tensor import Tensor

__all__ = ["digitize", "isin", "searchsorted"]

MAX_COUNTED = 32  # elements of a sorted axis: of so few those that are smaller are counted, ...
MAX_COMPARISONS = 1 << 14  # ... in so many comparisons
MAX_SEARCH_STEPS = 48  # of a binary search in an axis of symbolic extent


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
        check_order(edges[::-1] if descend else edges, "digitize")
        return count - searchsorted(edges[::-1].copy(), x, side=side) if descend else searchsorted(edges, x, side=side)
    if count == 0:
        return searchsorted(edges, x, side=side)
    down = edges[0] > edges[-1]
    found = searchsorted(chosen(down, edges[::-1], edges), x, side=side)
    return chosen(down, count - found, found)


def check_order(edges: np.ndarray, what: str) -> None:
    """Raises ArgumentError for edges of bins of which one is smaller than that before it."""
    if (edges[1:] < edges[:-1]).any():
        raise located(ArgumentError(f"{what}: the edges of bins are in order, not {edges.tolist()}"))


def isin(x1: Any, x2: Any, /, assume_unique: bool = False, invert: bool = False, *, kind: str | None = None) -> Tensor:
    """Whether each element of ``x1`` is among those of ``x2``, or is not if ``invert``; bool, of the shape of ``x1``.

    Nothing is gained by ``assume_unique``, nor by the ``kind`` of NumPy's algorithm, ``sort`` or ``table``. Raises ArgumentError for another kind.

    >>> hnp.isin([[1, 2], [3, 4]], [2, 4])
    Tensor([[False,  True],
            [False,  True]], dtype=bool)
    """
    if kind is not None:
        choice(kind, "isin", "kind", ("sort", "table"))
    a, b = _comparable(x1, x2, "isin")
    elements, test = wrap(a), sort(wrap(b), None)
    if test.size == 0:
        return full(a.shape, invert, dtype=dtypes.bool_)
    found = take(test, searchsorted(test, elements), axis=0) == elements
    return ~found if invert else found
