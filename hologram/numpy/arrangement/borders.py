"""What borders are made of where they are not constant: elements of the array, statistics of them, or ramps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ShapeError
from hologram.ir.node import Node
from hologram.ir.symbolic import Int, floordiv
from hologram.numpy.along_axes.reductions import max, mean, min
from hologram.numpy.along_axes.sorting import sort
from hologram.numpy.arguments import array, spread, wrap
from hologram.numpy.creation import count
from hologram.numpy.elementwise.functions import FUNCTIONS, where
from hologram.numpy.elementwise.rounded import rounded_product
from hologram.numpy.indexing.read import take
from hologram.numpy.indexing.slices import sliced
from hologram.numpy.shaping.joining import joined
from hologram.primitives.scalar import elementwise as ew
from hologram.support.user_lines import located
from hologram.trace.recorder import cast_node, record
from hologram.trace.tensor import Tensor

Width = tuple[int, int]


def _around(low: Node, node: Node, high: Node, width: Width, axis: int) -> Node:
    """``node`` between two borders; one of no width is left out."""
    return joined([p for p, n in zip((low, node, high), (width[0], 1, width[1]), strict=True) if n], axis)


def _repeated(node: Node, axis: int, times: int) -> Node:
    """``node``, whose ``axis`` has extent 1, stretched along it."""
    shape = (*node.shape[:axis], times, *node.shape[axis + 1 :])
    return spread(node, shape, range(len(shape)))


def _ends(node: Node, axis: int) -> tuple[Node, Node]:
    n = node.shape[axis]
    return sliced(node, axis, 0, 1), sliced(node, axis, n - 1, n)


# --- elements --------------------------------------------------------------------------------------------------------


def edge(node: Node, axis: int, width: Width) -> Node:
    """The last element on either side, repeated."""
    first, last = _ends(node, axis)
    return _around(_repeated(first, axis, width[0]), node, _repeated(last, axis, width[1]), width, axis)


def wrapped(node: Node, axis: int, width: Width) -> Node:
    """The elements of the other side: the array is a period."""
    n = node.shape[axis]
    if isinstance(n, int) and n < np.max(width):
        return array(take(wrap(node), np.arange(-width[0], n + width[1]) % n, axis=axis), "pad")
    return _around(sliced(node, axis, n - width[0], n), node, sliced(node, axis, 0, width[1]), width, axis)


def mirrored(node: Node, axis: int, width: Width, skip: int, odd: bool) -> Node:
    """The elements in reverse order; ``skip`` is 1 where the edge itself is not repeated. ``odd`` mirrors in the edge's value, too."""
    n = node.shape[axis]
    if isinstance(n, int) and n == 1 and skip:
        return edge(node, axis, width)
    reach: Int = n - skip
    if isinstance(reach, int) and reach < np.max(width):
        if not odd:
            return array(take(wrap(node), _mirror_indices(reach + skip, width, skip), axis=axis), "pad")
        near = (int(np.minimum(width[0], reach)), int(np.minimum(width[1], reach)))
        return mirrored(mirrored(node, axis, near, skip, odd), axis, (width[0] - near[0], width[1] - near[1]), skip, odd)
    low = sliced(node, axis, width[0] - 1 + skip, skip - 1, -1)
    high = sliced(node, axis, n - 1 - skip, n - 1 - skip - width[1], -1)
    if odd:
        low, high = (array(2 * wrap(end) - wrap(border), "pad") for end, border in zip(_ends(node, axis), (low, high), strict=True))
    return _around(low, node, high, width, axis)


def _mirror_indices(n: int, width: Width, skip: int) -> np.ndarray:
    period = 2 * n - 2 * skip
    there = np.arange(-width[0], n + width[1]) % period
    return np.where(there < n, there, period - 1 + skip - there)


# --- statistics ------------------------------------------------------------------------------------------------------


def _rounded(x: Tensor, dtype: DType) -> Tensor:
    return FUNCTIONS["rint"](x) if dtype.is_integer else x


def _averaged(x: Tensor, axis: int) -> Tensor:
    return mean(x, axis, keepdims=True)


def _median(x: Tensor, axis: int) -> Tensor:
    """The mean of the two elements in the middle, which may be one; NaN where one is there."""
    node = array(sort(x, axis), "pad")
    n = node.shape[axis]
    low, high, last = (wrap(sliced(node, axis, i, i + 1)) for i in (floordiv(n - 1, 2), floordiv(n, 2), n - 1))
    middle = mean(wrap(joined([array(low, "pad"), array(high, "pad")], axis)), axis, keepdims=True)
    return where(FUNCTIONS["isnan"](last), last, middle)


def _of_numbers(f: Callable[[Tensor, int], Tensor]) -> Callable[[Tensor, int], Tensor]:
    """``f`` of integers in float64, rounded to the nearest, as NumPy has it."""

    def statistic(x: Tensor, axis: int) -> Tensor:
        dtype = x._aval()[1]
        values = x.astype(dtypes.float64.np) if dtype.kind in "iub" else x
        return _rounded(f(values, axis), dtype)

    return statistic


STATISTICS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "maximum": lambda x, axis: max(x, axis, keepdims=True),
    "mean": _of_numbers(_averaged),
    "median": _of_numbers(_median),
    "minimum": lambda x, axis: min(x, axis, keepdims=True),
}


def statistics(node: Node, axis: int, width: Width, name: str, lengths: tuple[int, int] | None) -> Node:
    """The statistic called ``name`` of so many elements at either side, of all for None."""
    n = node.shape[axis]
    spans: list[tuple[Int, Int]] = [(0, n), (0, n)]
    if lengths is not None:
        if any(k < 1 for k in lengths):
            raise located(ShapeError(f"pad: the {name} of stat_length {lengths} elements"))
        near = [int(np.minimum(k, n)) if isinstance(n, int) else k for k in lengths]
        spans = [(0, near[0]), (n - near[1], n)]
    parts = [cast_node(array(STATISTICS[name](wrap(sliced(node, axis, *span)), axis), "pad"), node.dtype) for span in spans]
    low, high = (_repeated(part, axis, times) for part, times in zip(parts, width, strict=True))
    return _around(low, node, high, width, axis)


# --- ramps -----------------------------------------------------------------------------------------------------------


def ramp_type(dtype: DType) -> DType:
    """The type that ramps are computed in, of whatever they are rounded to."""
    return dtypes.complex128 if dtype.is_complex else dtypes.float64


def ramps(node: Node, axis: int, width: Width, ends: tuple[Node, Node]) -> Node:
    """Numbers at equal steps from the ends, scalars of :func:`ramp_type`, to the edges; for integers rounded down."""
    low, high = (_ramp(end, last, axis, n) for end, last, n in zip(ends, _ends(node, axis), width, strict=True))
    n = width[1]
    return _around(low, node, sliced(high, axis, n - 1, -1, -1) if n else high, width, axis)


def _ramp(end: Node, last: Node, axis: int, n: int) -> Node:
    if not n:
        return last
    work = ramp_type(last.dtype)
    shape = (*last.shape[:axis], n, *last.shape[axis + 1 :])
    start = spread(end, shape, ())
    step = (wrap(cast_node(last, work)) - wrap(end)) / float(n)
    product = rounded_product(cast_node(count(shape, axis, dtypes.int64), work), spread(array(step, "pad"), shape, range(len(shape))))
    found = record(ew.add, (product, start))
    return cast_node(array(FUNCTIONS["floor"](wrap(found)), "pad") if last.dtype.is_integer else found, last.dtype)
