"""The windows of an array that an index with index arrays chooses, as one gather reads them and one scatter writes them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import ShapeError
from hologram.ir.node import Node
from hologram.ir.op import Op, Shape
from hologram.ir.symbolic import Int
from hologram.numpy.arguments import permuted, reshaped
from hologram.numpy.creation import count
from hologram.numpy.indexing.selection import Selection
from hologram.numpy.indexing.slices import sliced
from hologram.numpy.indexing.starts import starts
from hologram.primitives.indexing import gather
from hologram.primitives.scalar import elementwise as ew
from hologram.support.user_lines import located
from hologram.trace.operators import broadcast_node, broadcast_shapes, extent_node
from hologram.trace.recorder import constant, record
from hologram.transform.nodes import spread


class Windows:
    """Where the windows of ``node`` begin that ``chosen`` chooses, and how large they are.

    Index arrays, and slices of a step other than 1, are places: a window has one element of their axes. Integers and other slices are windows with a
    constant start. A window's axes are those of ``node``, and one more for each mask without axes. ``drop``: computed indices out of range stay so.
    """

    def __init__(self, node: Node, chosen: Selection, drop: bool = False) -> None:
        self.chosen, self.shape = chosen, node.shape
        masks = itertools.count(len(node.shape))
        sources = ((chosen.sources[k], part) for k, part in chosen.arrays.items())
        array_of = {next(masks) if axis is None else axis: part for axis, part in sources}
        self.node = reshaped(node, (*node.shape, *[1] * (next(masks) - len(node.shape))))
        _require_broadcast(list(array_of.values()))
        found = self.of_arrays = {axis: starts(part, self.node.shape[axis], drop, "indexing", chosen.beyond) for axis, part in array_of.items()}
        self.common = broadcast_shapes("indexing", [s.shape for s in found.values()])
        self.strided = [axis for axis, (_, _, step) in enumerate(chosen.triples) if axis not in found and step != 1]
        extents = [chosen.shape[chosen.sources.index(axis)] if axis in chosen.sources else 1 for axis in self.strided]
        self.places: Shape = (*self.common, *extents)
        self.axes: tuple[int, ...] = ()
        self.starts: tuple[Node, ...] = ()
        self.window: list[Int] = [1 if axis in found else n for axis, n in enumerate(self.node.shape)]
        for axis, n in enumerate(self.node.shape):
            start = self._array_start(found[axis]) if axis in found else self._slice_start(axis, n)
            if start is not None:
                self.axes, self.starts = (*self.axes, axis), (*self.starts, start)

    def _array_start(self, start: Node) -> Node:
        return spread(broadcast_node(start, self.common), self.places, range(len(self.common)))

    def _slice_start(self, axis: int, n: Int) -> Node | None:
        """The starts of windows along an axis that is sliced; None where that is all of it."""
        start, stop, step = self.chosen.triples[axis]
        if step != 1:
            self.window[axis] = 1
            counted = sliced(count((n,), 0, dtypes.int64), 0, start, stop, step)
            return spread(counted, self.places, (len(self.common) + self.strided.index(axis),))
        self.window[axis] = stop - start
        return None if start == 0 and stop == n else broadcast_node(extent_node(start, dtypes.int64), self.places)

    def _layout(self) -> tuple[Shape, list[int], Shape]:
        """The shape of the windows without axes of one element that no axis of the selection stands for, the order in which its axes are those of the
        selection, and the selection's shape."""
        chosen, common = self.chosen, len(self.common)
        others = [k for k in range(len(chosen.shape)) if k not in chosen.arrays]
        sources = [axis for k in others if (axis := chosen.sources[k]) is not None]
        kept = [axis for axis in sources if axis not in self.strided]
        axes = [common + self.strided.index(a) if a in self.strided else len(self.places) + kept.index(a) for a in sources]
        before = sum(chosen.sources[k] is not None for k in others[: chosen.front])
        extents = [chosen.shape[k] for k in others]
        order = [*axes[:before], *range(common), *axes[before:]]
        shape = (*extents[: chosen.front], *self.common, *extents[chosen.front :])
        return (*self.places, *(self.window[a] for a in kept)), order, shape

    def selected_shape(self) -> Shape:
        """The shape of what is selected."""
        return self._layout()[2]

    def gathered(self) -> Node:
        """What is selected."""
        squeezed, order, shape = self._layout()
        sizes = tuple(self.window[a] for a in self.axes)
        windows = record(gather, (self.node, *self.starts), (self.axes, sizes, 0))
        return reshaped(permuted(reshaped(windows, squeezed), order), shape)

    def scattered(self, op: Op, values: Node) -> Node:
        """The array after ``values``, of the selection's shape, went there by ``op``."""
        squeezed, order, _ = self._layout()
        moved = permuted(reshaped(values, tuple(squeezed[a] for a in order)), [order.index(a) for a in range(len(order))])
        updates = reshaped(moved, (*self.places, *self.window))
        return reshaped(record(op, (self.node, updates, *self.starts), (self.axes, 0)), self.shape)

    def within(self) -> Node:
        """Where all computed indices are in range, in the common shape of the index arrays."""
        inside: Node | None = None
        for axis, start in self.of_arrays.items():
            extent = extent_node(self.node.shape[axis], dtypes.int64)
            here = record(ew.and_, (record(ew.ge, (start, constant(0, dtypes.int64))), record(ew.lt, (start, extent))))
            here = broadcast_node(here, self.common)
            inside = here if inside is None else record(ew.and_, (inside, here))
        assert inside is not None
        return inside


def _require_broadcast(parts: list[Any]) -> None:
    shapes = [part.shape for part in parts if isinstance(part, np.ndarray)]  # those of others are checked where they are added
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise located(ShapeError(f"indexing: index arrays of shapes {', '.join(str(list(s)) for s in shapes)} do not broadcast")) from None
