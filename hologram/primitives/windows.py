"""Sliding windows over the last axes, and convolutions, which are sums of products of windows.

``windows(x, sizes, steps, dilations)`` looks at the last ``len(sizes)`` axes of ``x``, its *space*: element ``(…, k, q)`` of the result is element
``(…, q * step + k * dilation)`` of ``x``. ``k`` runs over the window, ``q`` over the windows that fit. Nothing is copied: in kernels it is an index.

``convolution(x, w, steps, dilations)`` takes x (groups, n, c, space…) and w (groups, o, c, sizes…) and gives (groups, n, o, windows…):
the sum over c and the window, in this order and vertically, of windows times weights. It is a cross-correlation; padding is a ``pad``
before it. Narrow floats are multiplied and summed in float32 and rounded once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError
from hologram.ir.op import Op, Shape, register
from hologram.ir.symbolic import Int, bounds
from hologram.primitives.reductions import reduce_sum


def window_count(extent: Int, size: Int, step: int, dilation: int) -> Int:
    """How many windows of ``size`` elements, ``dilation`` apart, fit into ``extent`` at steps of ``step``. Negative or zero where none does."""
    return (extent - (size - 1) * dilation - 1) // step + 1


def _counts(op: str, space: Shape, sizes: Shape, steps: tuple[int, ...], dilations: tuple[int, ...]) -> Shape:
    if not len(space) == len(sizes) == len(steps) == len(dilations):
        raise ShapeError(f"{op}: sizes {list(sizes)}, steps {list(steps)} and dilations {list(dilations)} for the {len(space)} axes {list(space)}")
    if any(d < 1 for d in (*steps, *dilations)):
        raise ShapeError(f"{op}: steps {list(steps)} and dilations {list(dilations)} are at least 1")
    counts = tuple(window_count(*t) for t in zip(space, sizes, steps, dilations, strict=True))
    for n, size, count in zip(space, sizes, counts, strict=True):
        if bounds(size)[1] == 0 or (high := bounds(count)[1]) is not None and high < 1:
            raise ShapeError(f"{op}: no window of {size} elements fits into an axis of extent {n}")
    return counts


def _infer_windows(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    (x,), (sizes, steps, dilations) = inputs, attrs
    first = len(x.shape) - len(sizes)
    if first < 0:
        raise ShapeError(f"windows: sizes {list(sizes)} for the {len(x.shape)} axes of shape {list(x.shape)}")
    return (*x.shape[:first], *sizes, *_counts("windows", x.shape[first:], sizes, steps, dilations)), x.dtype


def _windows(x: np.ndarray, sizes: tuple[int, ...], steps: tuple[int, ...], dilations: tuple[int, ...]) -> np.ndarray:
    rank = len(sizes)
    lead, space = x.shape[: x.ndim - rank], x.shape[x.ndim - rank :]
    positions: list[np.ndarray] = []
    for i, (n, size, step, dilation) in enumerate(zip(space, sizes, steps, dilations, strict=True)):
        count = (n - (size - 1) * dilation - 1) // step + 1
        at = np.arange(size)[:, None] * dilation + np.arange(count) * step
        shape = [1] * (2 * rank)
        shape[i], shape[rank + i] = at.shape
        positions.append(at.reshape(shape))
    index: tuple[Any, ...] = (*[slice(None)] * len(lead), *positions)
    return np.asarray(x[index])


def _infer_convolution(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    (x, w), (steps, dilations) = inputs, attrs
    if x.dtype is not w.dtype or x.dtype.kind not in "iuf":
        raise DTypeError(f"convolution does not take {x.dtype} and {w.dtype}")
    if len(x.shape) != len(w.shape) or len(x.shape) < 4 or x.shape[0] != w.shape[0] or x.shape[2] != w.shape[2]:
        raise ShapeError(f"convolution: x (groups, n, c, space…) and w (groups, o, c, sizes…) have the shapes {list(x.shape)} and {list(w.shape)}")
    return (*x.shape[:2], w.shape[1], *_counts("convolution", x.shape[3:], w.shape[3:], steps, dilations)), x.dtype


def _convolution(x: np.ndarray, w: np.ndarray, steps: tuple[int, ...], dilations: tuple[int, ...]) -> np.ndarray:
    rank, work = len(steps), dtypes.compute_type(dtypes.of(x.dtype)).np
    seen = _windows(x.astype(work), w.shape[3:], steps, dilations)[:, :, None]
    weights = w.astype(work)[:, None].reshape(*w.shape[:1], 1, *w.shape[1:], *[1] * rank)
    with np.errstate(all="ignore"):
        return np.asarray(reduce_sum.reference(seen * weights, tuple(range(3, 4 + rank)))).astype(x.dtype)


windows = register(Op("windows", "movement", 1, _infer_windows, _windows, attrs=("sizes", "steps", "dilations"), kinds="biufc", cost=0))
convolution = register(Op("convolution", "contraction", 2, _infer_convolution, _convolution, attrs=("steps", "dilations"), kinds="iuf", cost=40))
