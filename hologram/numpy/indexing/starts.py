"""Indices along an axis as starts of windows: counted from the front of the axis, and in range or known to be out of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import IndexOutOfRange
from hologram.ir.node import Node
from hologram.ir.symbolic import Int
from hologram.numpy.arguments import array
from hologram.primitives.scalar import elementwise as ew
from hologram.support.user_lines import located
from hologram.trace.operators import array_node, extent_node
from hologram.trace.recorder import assume, cast_node, constant, record


def starts(part: Any, n: Int, drop: bool, what: str, beyond: str = "raise") -> Node:
    """Indices along an axis of extent ``n``. Tensors are clamped, or, to ``drop`` what is out of range, stay so. NumPy arrays are treated as
    ``beyond`` says: see :class:`~hologram.numpy.indexing.selection.Selection`."""
    if isinstance(part, np.ndarray):
        return array_node(checked(part, n, what, beyond)) if isinstance(n, int) else _in_symbolic(_wide(part), n, beyond)
    return (wrapped if drop else clamped)(array(part, what), n)


def _in_symbolic(indices: np.ndarray, n: Int, beyond: str) -> Node:
    """Known indices along an axis of symbolic extent ``n``: where those out of range are an error, it is taken that there are none."""
    if beyond == "clip":
        return clamped(array_node(indices), n)
    if beyond != "drop" and indices.size:
        assume(n - 1 - int(indices.max()))
        assume(n + int(indices.min()))
    return array_node(indices) if not indices.size or indices.min() >= 0 else wrapped(array_node(indices), n)


def _wide(indices: np.ndarray) -> np.ndarray:
    """Indices as int64."""
    return np.asarray((np.minimum(indices, np.uint64(2**62)) if indices.dtype == np.uint64 else indices).astype(np.int64))


def checked(indices: np.ndarray, n: int, what: str, beyond: str = "raise") -> np.ndarray:
    """Known indices as int64, counted from the front. Those out of range raise IndexOutOfRange, become the nearest (``clip``), or stay (``drop``)."""
    wide = _wide(indices)
    if beyond == "clip" and n:
        wide = np.clip(wide, -n, n - 1)
    elif beyond != "drop" and wide.size and not (-n <= wide.min() and wide.max() < n):
        worst = indices.min() if wide.min() < -n else indices.max()
        raise located(IndexOutOfRange(f"{what}: index {worst} is out of range for an axis of extent {n}"))
    return np.where(wide < 0, wide + n, wide)


def clamped(indices: Node, n: Int, size: Int = 1) -> Node:
    """Computed indices: negative ones count from the end, and what is still out of range is moved to the nearest at which a window of ``size``
    fits."""
    wide, extent = wrapped(indices, n), extent_node(size, dtypes.int64)
    if indices.dtype.kind == "i":
        wide = record(ew.max_, (wide, constant(0, dtypes.int64)))
    return record(ew.min_, (wide, record(ew.sub, (extent_node(n, dtypes.int64), extent))))


def wrapped(indices: Node, n: Int) -> Node:
    """Computed indices as int64, negative ones counted from the end of an axis of extent ``n``."""
    if indices.dtype is dtypes.uint64:  # of which the greater half would be negative
        indices = record(ew.min_, (indices, constant(2**62, dtypes.uint64)))
    wide = cast_node(indices, dtypes.int64)
    if indices.dtype.kind != "i":
        return wide
    negative = record(ew.lt, (wide, constant(0, dtypes.int64)))
    return record(ew.select, (negative, record(ew.add, (wide, extent_node(n, dtypes.int64))), wide))
