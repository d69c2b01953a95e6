"""Borders around arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hologram.dtypes import DType
from hologram.errors import ArgumentError, ShapeError
from hologram.ir.node import Node
from hologram.ir.symbolic import Int
from hologram.numpy.arguments import array, spread, wrap
from hologram.numpy.indexing.slices import sliced
from hologram.numpy.shaping.joining import joined
from hologram.primitives.movement import pad as pad_row
from hologram.support.user_lines import located
from hologram.trace.checks import integer, items
from hologram.trace.recorder import cast_node, constant, record
from hologram.trace.tensor import Tensor

__all__ = ["pad"]


def _widths(widths: Any, ndim: int) -> list[tuple[int, int]]:
    if isinstance(widths, (int, np.integer)):
        return [(int(widths), int(widths))] * ndim
    pairs = [tuple(w) if isinstance(w, (tuple, list, np.ndarray)) else w for w in items(widths, "pad", "widths")]
    if len(pairs) == 2 and all(isinstance(w, (int, np.integer)) for w in pairs):
        pairs = [tuple(pairs)]
    if not all(isinstance(w, tuple) and len(w) in (1, 2) for w in pairs):
        raise located(ArgumentError(f"pad: widths {widths}: a number, a pair of them, or a pair for each axis"))
    pairs = [(integer(w[0], "pad", "a width"), integer(w[-1], "pad", "a width")) for w in pairs]
    if len(pairs) not in (1, ndim) or any(w < 0 for p in pairs for w in p):
        raise located(ShapeError(f"pad: widths {widths} for {ndim} axes"))
    return pairs * ndim if len(pairs) == 1 else pairs


def _fills(values: Any, dtype: DType, ndim: int) -> list[tuple[Node, Node]]:
    """The scalars before and after each axis that ``values`` names, as NumPy takes them: one for all, a pair for every axis, or a pair (or one number
    in a sequence) for each. Raises ShapeError for other shapes."""
    if isinstance(values, (list, tuple)) and not any(isinstance(v, Tensor) for v in _leaves(values)):
        given: Any = np.array(values, dtype=object)  # Python numbers keep their values until their type is known
        pick = lambda i: constant(given[i], dtype)  # noqa: E731
    elif isinstance(values, (list, tuple, Tensor, np.ndarray)):
        given = wrap(cast_node(array(values, "pad"), dtype))
        pick = lambda i: array(given[i], "pad")  # noqa: E731
    else:
        return [(constant(values, dtype),) * 2] * ndim
    try:
        fits = np.broadcast_shapes(given.shape, (ndim, 2)) == (ndim, 2)
    except ValueError:
        fits = False
    if not fits:
        what = f"constant_values of shape {list(given.shape)} for {ndim} axes"
        raise located(ShapeError(f"pad: {what}: a number, a pair of them, or a pair for each axis"))

    def at(axis: int, side: int) -> Node:
        last = (axis, side)[2 - given.ndim :]
        return pick(tuple(0 if n == 1 else i for i, n in zip(last, given.shape, strict=True)))

    return [(at(axis, 0), at(axis, 1)) for axis in range(ndim)]


def _leaves(values: Any) -> Iterator[Any]:
    for v in values:
        if isinstance(v, (list, tuple)):
            yield from _leaves(v)
        else:
            yield v


def _filled(node: Node, widths: list[tuple[int, int]], fills: list[tuple[Node, Node]]) -> Node:
    """Borders of constants, axis after axis: those of the last one have the corners."""
    if all(x is fills[0][0] for pair in fills for x in pair):
        return record(pad_row, (node, fills[0][0]), (tuple(w[0] for w in widths), tuple(w[1] for w in widths)))
    nothing = (0,) * len(widths)
    for axis, (width, fill) in enumerate(zip(widths, fills, strict=True)):
        for side in (0, 1):
            only = tuple(width[side] if i == axis else 0 for i in range(len(widths)))
            if width[side]:
                node = record(pad_row, (node, fill[side]), (only, nothing) if side == 0 else (nothing, only))
    return node


def pad(x: Any, /, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Tensor:
    """Adds borders around an array.

    ``pad_width`` is a number, a pair (before, after), or a pair for each axis. ``mode``: ``constant``, ``edge``, ``reflect`` (without the edge
    itself), ``symmetric`` (with it), ``wrap``. ``constant_values`` is given as the widths are. Raises ArgumentError for another mode, ShapeError
    for negative widths, widths of another number of axes, and for more elements than a mode reaches.

    >>> hnp.pad([1, 2, 3], (1, 2))
    Tensor([0, 1, 2, 3, 0, 0], dtype=int64)
    >>> hnp.pad([1, 2, 3], 2, mode="reflect")
    Tensor([3, 2, 1, 2, 3, 2, 1], dtype=int64)
    """
    node = array(x, "pad")
    widths = _widths(pad_width, len(node.shape))
    if mode == "constant":
        return wrap(_filled(node, widths, _fills(constant_values, node.dtype, len(widths))) if widths else node)
    if mode not in _BORDERS:
        raise located(ArgumentError(f"pad: mode is constant, {', '.join(_BORDERS)}; not {mode!r}"))
    for axis, (low, high) in enumerate(widths):
        if low or high:
            node = _bordered(node, axis, low, high, mode)
    return wrap(node)


_BORDERS = ("edge", "reflect", "symmetric", "wrap")


def _bordered(node: Node, axis: int, low: int, high: int, mode: str) -> Node:
    n = node.shape[axis]
    if mode == "edge":
        ends = sliced(node, axis, 0, 1), sliced(node, axis, n - 1, n)
        parts = [_repeated(ends[0], axis, low), node, _repeated(ends[1], axis, high)]
    elif mode == "wrap":
        _require_reach(n, max(low, high), mode)
        parts = [sliced(node, axis, n - low, n), node, sliced(node, axis, 0, high)]
    else:
        skip = 1 if mode == "reflect" else 0
        _require_reach(n - skip, max(low, high), mode)
        parts = [sliced(node, axis, low - 1 + skip, skip - 1, -1), node, sliced(node, axis, n - 1 - skip, n - 1 - skip - high, -1)]
    return joined([p for p, width in zip(parts, (low, 1, high), strict=True) if width], axis)


def _require_reach(available: Int, width: int, mode: str) -> None:
    if isinstance(available, int) and width > available:
        raise located(ShapeError(f"pad: mode {mode} reaches {available} elements, not {width}"))


def _repeated(node: Node, axis: int, times: int) -> Node:
    """``node``, whose ``axis`` has extent 1, stretched along it."""
    shape = (*node.shape[:axis], times, *node.shape[axis + 1 :])
    return spread(node, shape, range(len(shape)))
