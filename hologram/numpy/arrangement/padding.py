"""Borders around arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hologram.dtypes import DType
from hologram.errors import ArgumentError, ShapeError
from hologram.ir.node import Node
from hologram.numpy.arguments import array, axis_of, wrap
from hologram.numpy.arrangement import borders
from hologram.numpy.arrangement.lines import apply_along_axis
from hologram.primitives.movement import pad as pad_row
from hologram.support.user_lines import located
from hologram.trace.checks import choice, has_items, integer, items
from hologram.trace.recorder import cast_node, constant, record
from hologram.trace.tensor import Tensor

__all__ = ["pad"]


def _pairs(widths: Any, ndim: int, what: str) -> list[tuple[int, int]]:
    """A pair for each axis, of what broadcasts to pairs, or of a dictionary by axis. Raises ArgumentError for what are no integers, ShapeError for
    negative ones, and for another number of axes."""
    if isinstance(widths, dict):
        by_axis = {axis_of(axis, ndim, "pad"): _pairs(width, 1, what)[0] for axis, width in widths.items()}
        return [by_axis.get(axis, (0, 0)) for axis in range(ndim)]
    given = _integers(widths, what)
    try:
        pairs = np.broadcast_to(np.array(given), (ndim, 2)).tolist()
    except ValueError:
        message = f"pad: {what} {widths} for {ndim} axes: a number, a pair of them, or a pair for each axis"
        raise located(ArgumentError(message) if isinstance(given, list) and len({np.shape(w) for w in given}) > 1 else ShapeError(message)) from None
    if any(w < 0 for pair in pairs for w in pair):
        raise located(ShapeError(f"pad: {what} {widths}, of which one is negative"))
    return [(before, after) for before, after in pairs]


def _integers(widths: Any, what: str) -> Any:
    return [_integers(w, what) for w in items(widths, "pad", what)] if has_items(widths) else integer(widths, "pad", f"each of {what}")


def _fills(values: Any, dtype: DType, ndim: int, name: str) -> list[tuple[Node, Node]]:
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
        what = f"{name} of shape {list(given.shape)} for {ndim} axes"
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


MODES = ("constant", "edge", "empty", "linear_ramp", *borders.STATISTICS, "reflect", "symmetric", "wrap")
MIRRORED = ("reflect", "symmetric")
# The one option that a mode has, and its default.
OPTIONS: dict[str, tuple[str, Any]] = {"constant": ("constant_values", 0), "linear_ramp": ("end_values", 0)}
OPTIONS |= dict.fromkeys(borders.STATISTICS, ("stat_length", None)) | dict.fromkeys(MIRRORED, ("reflect_type", "even"))


def pad(
    x: Any,
    /,
    pad_width: Any,
    mode: str | Callable[..., Any] = "constant",
    **options: Any,
) -> Tensor:
    """Adds borders around an array, axis after axis.

    ``pad_width`` is a number, a pair (before, after), a pair for each axis, or a dictionary of these by axis; but for the last, so are
    ``constant_values``, ``end_values`` and ``stat_length``.
    ``mode``: ``constant``, ``constant_values`` or 0; ``edge``; ``reflect`` (without the edge itself) or ``symmetric`` (with it), of
    ``reflect_type`` ``even`` or ``odd``; ``wrap``; ``maximum``, ``mean``, ``median`` or ``minimum`` of ``stat_length`` elements at that side, of
    all for None; ``linear_ramp`` from ``end_values`` to the edge; ``empty``, which is zeros; or a function ``mode(vector, pair, axis, options)`` of
    every vector with borders of zeros, which assigns to the borders, or gives another vector; it gets all ``options``. Raises ArgumentError for
    another mode and an option that the mode does not have, ShapeError for negative widths, widths of another number of axes, and for an axis
    without elements in other modes than ``constant`` and ``empty``.

    >>> hnp.pad([1, 2, 3], (1, 2))
    Tensor([0, 1, 2, 3, 0, 0], dtype=int64)
    >>> hnp.pad([1, 2, 3], 2, mode="reflect")
    Tensor([3, 2, 1, 2, 3, 2, 1], dtype=int64)
    >>> hnp.pad([4.0, 8.0], (2, 1), mode="linear_ramp")
    Tensor([0., 2., 4., 8., 0.], dtype=float32)
    """
    node = array(x, "pad")
    ndim = len(node.shape)
    widths = _pairs(pad_width, ndim, "widths")
    if callable(mode):
        return _by_function(node, widths, mode, options)
    kind = choice(mode, "pad", "mode", MODES)
    name, default = OPTIONS.get(kind, ("", None))
    if others := [option for option in options if option != name]:
        raise located(ArgumentError(f"pad: mode {mode!r} takes no {', '.join(others)}"))
    option = options.get(name, default)
    if kind in ("constant", "empty"):
        fills = _fills(option if kind == "constant" else 0, node.dtype, ndim, name)
        return wrap(_filled(node, widths, fills) if widths else node)
    add = _border_of(kind, node.dtype, ndim, option)
    for axis, width in enumerate(widths):
        if any(width):
            if node.shape[axis] == 0:
                raise located(ShapeError(f"pad: mode {mode} for axis {axis} of shape {list(node.shape)}, which has no elements"))
            node = add(node, axis, width)
    return wrap(node)


def _by_function(node: Node, widths: list[tuple[int, int]], function: Callable[..., Any], options: dict[str, Any]) -> Tensor:
    """Borders that a function of one vector after the other makes of zeros, axis after axis."""

    def filled(vector: Tensor, axis: int) -> Any:
        made = function(vector, widths[axis], axis, options)
        return vector if made is None else made

    x = wrap(_filled(node, widths, _fills(0, node.dtype, len(widths), "constant_values")) if widths else node)
    for axis in range(len(widths)):
        x = apply_along_axis(filled, axis, x, axis)
    return x


def _border_of(mode: str, dtype: DType, ndim: int, option: Any) -> Callable[[Node, int, tuple[int, int]], Node]:
    """The function of an array, an axis and widths that adds these borders."""
    if mode == "linear_ramp":
        ends = _fills(option, borders.ramp_type(dtype), ndim, "end_values")
        return lambda node, axis, width: borders.ramps(node, axis, width, ends[axis])
    if mode in borders.STATISTICS:
        lengths = [None] * ndim if option is None else _pairs(option, ndim, "stat_length")
        return lambda node, axis, width: borders.statistics(node, axis, width, mode, lengths[axis])
    if mode in MIRRORED:
        odd = choice(option, "pad", "reflect_type", ("even", "odd")) == "odd"
        return lambda node, axis, width: borders.mirrored(node, axis, width, int(mode == "reflect"), odd)
    return borders.edge if mode == "edge" else borders.wrapped
