"""How often integers are there, and how many elements fall into bins."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.symbolic import prod
from hologram.numpy.along_axes.positions import known_values
from hologram.numpy.along_axes.reductions import max, min
from hologram.numpy.along_axes.searching import check_order, searchsorted
from hologram.numpy.arguments import array, wrap
from hologram.numpy.creation import arange, full, zeros
from hologram.numpy.elementwise.functions import where as chosen
from hologram.numpy.elementwise.rounded import rounded_product
from hologram.numpy.shaping.joining import concat, stack
from hologram.support.user_lines import located
from hologram.trace.checks import computed, integer, items, number
from hologram.trace.convert import tensor
from hologram.trace.operators import promoted
from hologram.trace.recorder import cast_node
from hologram.trace.tensor import Tensor

__all__ = ["bincount", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


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
    node = array(np.zeros(0, np.int64) if isinstance(x, (list, tuple)) and not x else x, "bincount")
    if not node.dtype.is_integer or len(node.shape) != 1:
        raise located(DTypeError(f"bincount takes integers along one axis, not {node.dtype}{list(node.shape)}"))
    if length is None:
        known = known_values(x, "bincount without length") if node.shape != (0,) else np.zeros(0, np.int64)
        if known.size and known.min() < 0:
            raise located(ArgumentError("bincount: a negative number"))
        length = int(known.max()) + 1 if known.size else 0
        if (least := integer(minlength, "bincount", "a length")) < 0:
            raise located(ArgumentError(f"bincount: minlength is not negative: {least}"))
        length = length if length > least else least
    values = wrap(node if node.dtype is dtypes.uint64 else cast_node(node, dtypes.int64))  # small types may not have the length
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

    Edges that are given as ``bins`` come back as an array. With the name of one of NumPy's rules, as ``"auto"``, the number of bins follows from the
    values of ``x``, which must be known. Raises ArgumentError for another name, for fewer than one bin, for known edges that are not in order, and
    for a known range that is infinite, NaN or ends before it begins; ShapeError for edges of more than one axis.

    >>> hnp.histogram_bin_edges([1.0, 3.0, 2.0], bins=4)
    Tensor([1. , 1.5, 2. , 2.5, 3. ], dtype=float32)
    """
    if isinstance(bins, str):
        return _edges_by_rule(x, bins, range)
    if not isinstance(bins, (int, np.integer)):
        edges = wrap(array(bins, "histogram"))
        if edges.ndim != 1:
            raise located(ShapeError(f"histogram takes a number of bins or edges of one axis, not shape {list(edges.shape)}"))
        if type(bins) is not Tensor and not any(type(b) is Tensor for b in bins):
            check_order(np.asarray(bins), "histogram")
        return edges
    if bins < 1:
        raise located(ArgumentError(f"histogram: {bins} bins"))
    values = wrap(array(x, "histogram"))
    kind = _counted_in(values)
    if range is None:
        low, high = (min(values), max(values)) if values.size != 0 else (zeros(()), full((), 1.0))
        return _even_edges(low, high, int(bins), kind)
    if len(ends := items(range, "histogram", "two ends")) != 2:
        raise located(ArgumentError(f"histogram: a range has two ends, not {len(ends)}"))
    if not all(isinstance(v, (int, float, np.number)) for v in ends):
        (_, first, last), of, _ = promoted("histogram", (zeros((), dtype=kind), *ends))
        return _even_edges(wrap(first), wrap(last), int(bins), of.np)
    if not -np.inf < ends[0] <= ends[1] < np.inf:
        raise located(ArgumentError(f"histogram: a range has finite ends, the smaller one first: not {ends[0]} and {ends[1]}"))
    return _known_edges(ends[0], ends[1], int(bins), kind)


def _edges_by_rule(x: Any, rule: str, range: Any) -> Tensor:
    """Edges whose number NumPy's rule of that name finds for the values of ``x``."""
    known = known_values(x, f"histogram with bins={rule!r}")
    ends = [] if range is None else [number(v, "histogram", "an end") for v in items(range, "histogram", "two ends")]
    try:
        count = len(np.histogram_bin_edges(known, rule, (ends[0], ends[-1]) if ends else None)) - 1
    except ValueError as e:
        raise located(ArgumentError(f"histogram: bins={rule!r}: {e}")) from None
    return histogram_bin_edges(x, count, range)


def _even_edges(low: Tensor, high: Tensor, bins: int, kind: np.dtype) -> Tensor:
    """Edges of computed ends, in the type that statistics of ``kind`` are computed in."""
    wide = dtypes.compute_type(dtypes.of(kind))
    low, high = low.astype(wide), high.astype(wide)
    flat = low == high
    low, high = chosen(flat, low - 0.5, low), chosen(flat, high + 0.5, high)
    steps = rounded_product(array(arange(bins).astype(wide), "histogram"), array((high - low) / bins, "histogram"))
    return concat([low + wrap(steps), high.reshape(1)]).astype(kind)


def _known_edges(low: Any, high: Any, bins: int, kind: np.dtype) -> Tensor:
    """Edges of ends that are numbers: computed in float64, so that ends which ``kind`` cannot hold still give the edges between them. NumPy's numbers
    widen the edges, as they widen arrays."""
    _, of, _ = promoted("histogram", (zeros((), dtype=kind), low, high))
    if low == high:
        low, high = low - 0.5, high + 0.5
    return tensor(computed("histogram", bins + 1, 8, lambda: np.linspace(float(low), float(high), bins + 1)), dtype=of)


def histogram(x: Any, /, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None) -> tuple[Tensor, Tensor]:
    """Histogram: how many elements, or the sum of their ``weights``, each bin holds, and the bins' edges.

    ``bins`` and ``range`` are those of :func:`histogram_bin_edges`. A bin includes its lower edge, the last one its upper edge too. With
    ``density`` the integral over all bins is 1. Counts are int64, sums have the weights' type.

    >>> counts, edges = hnp.histogram([1.0, 2.0, 2.5, 4.0], bins=3)
    >>> counts, edges
    (Tensor([1, 2, 1], dtype=int64), Tensor([1., 2., 3., 4.], dtype=float32))
    """
    if isinstance(bins, str) and weights is not None:
        raise located(ArgumentError(f"histogram: bins={bins!r} is a rule for elements without weights"))
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
    ``bins`` is a number, or a number or edges for each axis; ``range`` None or a pair for each axis. Counts are floats no narrower than the default
    ones; ``weights`` and ``density`` are as for :func:`histogram`. Raises ShapeError for more than two axes, ArgumentError for bins or ranges of
    another number.

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
    w = full((), 1) if weights is None else wrap(array(weights, "histogramdd")).reshape(-1)
    kind = functools.reduce(dtypes.promote, (dtypes.of(_counted_in(t)) for t in (points, w)), dtypes.default_float)
    sums = zeros(cells, dtype=dtypes.int64 if weights is None else kind).at[chosen(inside, cell, cells)].add(w)
    counts = sums.reshape(shape).astype(kind)
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
