"""Sliding windows: ``numpy.lib.stride_tricks``."""

from __future__ import annotations

from typing import Any

from hologram.errors import ShapeError
from hologram.numpy.arguments import array, axis_of, permuted
from hologram.numpy.indexing.views import viewed
from hologram.primitives.windows import windows
from hologram.support.user_lines import located
from hologram.trace.checks import items, shape_of
from hologram.trace.recorder import record
from hologram.trace.tensor import Tensor

__all__ = ["sliding_window_view"]

_OVERLAPPING = "windows give several elements one place: copy it first, or assign to what they are windows of"


def sliding_window_view(x: Any, /, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False) -> Tensor:
    """The windows of ``x``: a read-only view; an axis of n elements has n - w + 1 windows of w, whose elements are along a further axis at the end.

    ``window_shape`` is an extent for each of ``axis``, which are all axes for None; one that is named twice has windows of windows. ``subok`` and
    ``writeable`` are NumPy's and change nothing. Raises ShapeError where extents and axes do not fit, or no window does.

    >>> hnp.lib.stride_tricks.sliding_window_view([1, 2, 3, 4], 3)
    Tensor([[1, 2, 3],
            [2, 3, 4]], dtype=int64)
    """
    what = "sliding_window_view"
    node = first = array(x, what)
    rank = len(node.shape)
    sizes = shape_of(window_shape, what)
    axes = (
        tuple(range(rank))
        if axis is None
        else tuple(axis_of(a, rank, what) for a in (items(axis, what, "axes") if isinstance(axis, (tuple, list)) else (axis,)))
    )
    if len(sizes) != len(axes):
        raise located(ShapeError(f"{what}: a window of shape {list(sizes)} for {len(axes)} axes"))
    for size, a in zip(sizes, axes, strict=True):
        if size == 0:
            raise located(ShapeError(f"{what}: a window of shape {list(sizes)} has no elements"))
        last = len(node.shape) - 1
        order = [i for i in range(last + 1) if i != a]
        node = record(windows, (permuted(node, (*order, a)),), ((size,), (1,), (1,)))  # its last axes are window, place
        place = last + 1
        back = [*range(a), place, *range(a, last), last]
        node = permuted(node, tuple(back))
    return viewed(x, first, node, why=_OVERLAPPING)
