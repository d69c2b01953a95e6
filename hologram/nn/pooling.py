"""Pooling: the largest or the mean element of windows, as in torch.nn.functional."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hologram import numpy as hnp
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.node import Node
from hologram.ir.symbolic import Int, is_static
from hologram.lax.reductions import MAX
from hologram.lax.windows import window_extreme
from hologram.nn.arguments import by_rank, integers, space_format
from hologram.numpy.arguments import array, cast, floats, wrap
from hologram.primitives.movement import pad
from hologram.support.user_lines import located
from hologram.trace.recorder import assume, constant
from hologram.trace.tensor import Tensor
from hologram.transform.nodes import apply, sum_over
from hologram.transform.rules.convolution import windowed

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d",
    "max_pool3d",
]  # fmt: skip

Integers = tuple[int, ...]


# --- windows ---------------------------------------------------------------------------------------------------------


class _Window:
    """What slides, over how much: per space axis its extent, the window's size, step and dilation, and the widths of padding."""

    __slots__ = ("what", "space", "sizes", "steps", "dilations", "low", "high")

    def __init__(self, what: str, space: Sequence[Int], kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> None:
        rank = len(space)
        self.sizes = integers(what, "kernel_size", kernel_size, rank, 1)
        self.steps = self.sizes if stride is None else integers(what, "stride", stride, rank, 1)
        self.low = integers(what, "padding", padding, rank, 0)
        self.dilations = integers(what, "dilation", dilation, rank, 1)
        if any(2 * p > k for p, k in zip(self.low, self.sizes, strict=True)):
            raise located(ArgumentError(f"{what}: padding {list(self.low)} is more than half of the kernel {list(self.sizes)}"))
        if ceil_mode and not all(map(is_static, space)):
            raise located(ShapeError(f"{what}: with ceil_mode the space axes of an input are static, not {list(space)}"))
        self.what, self.space = what, tuple(space)
        self.high = tuple(self._high(*t, ceil_mode) for t in zip(self.space, self.spans, self.steps, self.low, strict=True))
        extents = [a + n + b for a, n, b in zip(self.low, self.space, self.high, strict=True)]
        if any(isinstance(n, int) and n < span for n, span in zip(extents, self.spans, strict=True)):
            raise located(ShapeError(f"{what}: no window of {list(self.sizes)} elements fits into a padded input of {extents}"))

        for n, span in zip(extents, self.spans, strict=True):
            assume(n - span)

    @property
    def spans(self) -> Integers:
        """From a window's first element to its last, along each axis."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.sizes, self.dilations, strict=True))

    @staticmethod
    def _high(n: Int, span: int, step: int, low: int, ceil_mode: bool) -> int:
        """Padding behind: as in front, or as much as the last window needs that starts before the padding ends."""
        if not ceil_mode or not isinstance(n, int):
            return low
        last = -(-(n + 2 * low - span) // step)
        if last * step >= n + low:
            last -= 1
        return max(low, last * step + span - n - low)

    def over(self, x: Node, fill: Any) -> Node:
        """The windows of ``x`` (N, C, space…) amid ``fill``: (N, C, places in a window…, windows…)."""
        amid = x
        if any((*self.low, *self.high)):
            amid = apply(pad, x, constant(fill, x.dtype), attrs=((0, 0, *self.low), (0, 0, *self.high)))
        return windowed(amid, self.sizes, self.steps, self.dilations)

    def counts(self, padding: bool) -> Any:
        """How many elements that count every window has; those of the padding do if ``padding``. A number where it is the same for all."""
        if not any((*self.low, *self.high)):
            return math.prod(self.sizes)
        out = []
        for n, k, step, low, high in zip(self.space, self.sizes, self.steps, self.low, self.high, strict=True):
            if not isinstance(n, int):
                raise located(ShapeError(f"{self.what}: with padding the space axes of an input are static, not {list(self.space)}"))
            start = np.arange(0, low + n + high - k + 1, step) - low
            first, last = (start, n + low) if padding else (np.maximum(start, 0), n)
            out.append(np.minimum(start + k, last) - first)
        each = functools.reduce(np.multiply.outer, out)
        return int(each.flat[0]) if np.all(each == each.flat[0]) else hnp.asarray(each.astype(np.float32))


# --- the largest -----------------------------------------------------------------------------------------------------


def _max_pool(
    what: str,
    rank: int,
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    *,
    data_format: str | None = None,
) -> Tensor:
    """Max pooling: the largest element of each window of ``x`` (N, C, H, W), which may lack N; NaN if there is one.

    ``stride`` is ``kernel_size`` for None. ``padding``, at most half of the kernel, puts elements below all others around ``x``. With ``ceil_mode``
    a last window may reach beyond the padding if it starts before it. ``data_format`` is ``"NCHW"`` or ``"NHWC"``. The type is that of ``x``. The
    derivative is that of the first of the window's extremes, row by row.

    Raises ArgumentError for a padding that is too wide, ShapeError where no window fits.

    >>> hg.nn.max_pool2d(hnp.reshape(hnp.arange(16.0), (1, 4, 4)), 2)
    Tensor([[[ 5.,  7.],
             [13., 15.]]], dtype=float32)
    """
    layout = space_format(what, rank, data_format)
    image, lacks = layout.channels_first(_image(what, rank, x))
    window = _Window(what, image.shape[2:], kernel_size, stride, padding, dilation, ceil_mode)
    return wrap(layout.restored(array(window_extreme(window, MAX, wrap(image)), what), lacks))


def _image(what: str, rank: int, x: Any) -> Node:
    node = array(x, what)
    if len(node.shape) not in (rank + 1, rank + 2):
        raise located(ShapeError(f"{what}: an input of {rank + 2} axes, or {rank + 1}, not {list(node.shape)}"))
    if node.dtype.kind not in "iuf":
        raise located(DTypeError(f"{what} takes integers or real floats, not {node.dtype.name}"))
    return node


def _places(window: _Window) -> Integers:
    return tuple(range(2, 2 + len(window.sizes)))


# --- the mean --------------------------------------------------------------------------------------------------------


def _avg_pool(
    what: str,
    rank: int,
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    *,
    data_format: str | None = None,
) -> Tensor:
    """Average pooling: the mean of each window of ``x`` (N, C, H, W), which may lack N.

    Zeros of the ``padding`` count if ``count_include_pad``; what a window of ``ceil_mode`` has beyond the padding never does. The other arguments
    and errors are those of :func:`max_pool2d`. The float type is that of ``x``; narrow floats are summed in float32.

    >>> hg.nn.avg_pool2d(hnp.reshape(hnp.arange(16.0), (1, 4, 4)), 2)
    Tensor([[[ 2.5,  4.5],
             [10.5, 12.5]]], dtype=float32)
    """
    layout = space_format(what, rank, data_format)
    wide, dtype = floats(wrap(_image(what, rank, x)), what)
    image, lacks = layout.channels_first(array(wide, what))
    window = _Window(what, image.shape[2:], kernel_size, stride, padding, 1, ceil_mode)
    total = wrap(sum_over(window.over(image, 0), _places(window)))
    mean = total / window.counts(count_include_pad)
    return cast(wrap(layout.restored(array(mean, what), lacks)), dtype)


def _adaptive(what: str, rank: int, x: Any, output_size: Any, *, data_format: str | None = None) -> Tensor:
    """Average pooling to a given size: means of parts of ``x`` (N, C, H, W), which may lack N.

    There are so many parts that the result has the space ``output_size``, an integer or one an axis; None keeps an axis. Of m parts of n elements
    part i is that from ``floor(i * n / m)`` to ``ceil((i + 1) * n / m)``. The float type is that of ``x``. Raises ShapeError where an extent is
    empty or symbolic.

    >>> hg.nn.adaptive_avg_pool2d(hnp.reshape(hnp.arange(16.0), (1, 4, 4)), (1, 2))
    Tensor([[[6.5, 8.5]]], dtype=float32)
    """
    layout = space_format(what, rank, data_format)
    wide, dtype = floats(wrap(_image(what, rank, x)), what)
    image, lacks = layout.channels_first(array(wide, what))
    wanted = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * rank
    if len(wanted) != rank:
        raise located(ArgumentError(f"{what}: output_size is an integer, or {rank} of them, not {output_size!r}"))
    y = wrap(image)
    for i, m in enumerate(wanted):
        if m is not None:
            y = _parts_mean(what, y, 2 + i, integers(what, "output_size", m, 1, 1)[0])
    return cast(wrap(layout.restored(array(y, what), lacks)), dtype)


def _parts_mean(what: str, x: Tensor, axis: int, m: int) -> Tensor:
    n = x.shape[axis]
    if not isinstance(n, int) or n < 1:
        raise located(ShapeError(f"{what}: the space axes of an input are static and not empty, not {n}"))
    if n % m == 0:
        return hnp.mean(x.reshape((*x.shape[:axis], m, n // m, *x.shape[axis + 1 :])), axis=axis + 1)
    start, stop = np.arange(m) * n // m, -(-(np.arange(m) + 1) * n // m)
    length = stop - start
    indices = start[:, None] + np.arange(length.max())
    rest = [1] * (x.ndim - axis - 1)
    seen = hnp.take(x, hnp.asarray(np.minimum(indices, n - 1)), axis=axis)
    inside = hnp.asarray(indices < stop[:, None]).reshape((*indices.shape, *rest))
    total = hnp.sum(hnp.where(inside, seen, 0), axis=axis + 1)
    return total / hnp.asarray(length.astype(np.float32)).reshape((-1, *rest))


# --- by the number of space axes -------------------------------------------------------------------------------------

max_pool1d, max_pool2d, max_pool3d = by_rank(
    "max_pool",
    _max_pool,
    of_one=">>> hg.nn.max_pool1d([[1.0, 3.0, 2.0, 0.0]], 2)\nTensor([[3., 2.]], dtype=float32)",
    of_three=">>> hg.nn.max_pool3d(hnp.ones((1, 4, 4, 4)), 2).shape\n(1, 2, 2, 2)",
)
avg_pool1d, avg_pool2d, avg_pool3d = by_rank(
    "avg_pool",
    _avg_pool,
    of_one=">>> hg.nn.avg_pool1d([[1.0, 3.0, 2.0, 0.0]], 2)\nTensor([[2., 1.]], dtype=float32)",
    of_three=">>> hg.nn.avg_pool3d(hnp.ones((1, 4, 4, 4)), 2).shape\n(1, 2, 2, 2)",
)
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = by_rank(
    "adaptive_avg_pool",
    _adaptive,
    of_one=">>> hg.nn.adaptive_avg_pool1d([[1.0, 3.0, 2.0, 0.0]], 2)\nTensor([[2., 1.]], dtype=float32)",
    of_three=">>> hg.nn.adaptive_avg_pool3d(hnp.ones((1, 4, 4, 4)), (2, 2, None)).shape\n(1, 2, 2, 4)",
)
