"""Grid sampling of images and volumes, with its gradients.

A point's coordinates run from -1 to 1, the last axis of the image first (Jaderberg et al., Spatial Transformer Networks, 2015).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hologram import numpy as hnp
from hologram.errors import ArgumentError
from hologram.trace.tensor import Tensor
from hologram.transform.api import vjp
from hologram_torch.aten.registry import register
from hologram_torch.aten.types import cast, opmath, type_of

LINEAR, NEAREST, CUBIC = range(3)  # torch's numbers of interpolations
ZEROS, BORDER, REFLECTION = range(3)  # and of paddings
SHARPNESS = -0.75  # of the cubic convolution kernel (Keys, 1981)

Weighted = list[tuple[Tensor, Tensor]]  # along one axis: positions and their weights


def _unnormalised(c: Tensor, size: int, aligned: bool) -> Tensor:
    """Where -1 … 1 is among the elements 0 … size - 1: their centres if ``aligned``, else their edges."""
    return (c + 1) * ((size - 1) / 2) if aligned else ((c + 1) * size - 1) / 2


def _clamped(c: Tensor, size: int) -> Tensor:
    """``c`` within 0 … size - 1; what is moved, and what is at an end, has no derivative, as in torch."""
    return hnp.where((c > 0) & (c < size - 1), c, hnp.where(c > 0, float(size - 1), 0.0))


def _reflected(c: Tensor, size: int, aligned: bool) -> Tensor:
    low, span = (0.0, size - 1.0) if aligned else (-0.5, float(size))
    if span == 0:
        return hnp.zeros_like(c)
    c = hnp.abs(c - low)
    turns = hnp.floor(c / span)
    rest = c - turns * span
    return hnp.where(turns % 2 == 0, rest + low, span - rest + low)


def _padded(c: Tensor, size: int, padding: int, aligned: bool) -> Tensor:
    if padding == ZEROS:
        return c
    return _clamped(_reflected(c, size, aligned) if padding == REFLECTION else c, size)


def _linear(c: Tensor, pad: Callable[[Tensor], Tensor]) -> Weighted:
    c = pad(c)
    low = hnp.floor(c)
    return [(low, low + 1 - c), (low + 1, c - low)]


def _nearest(c: Tensor, pad: Callable[[Tensor], Tensor]) -> Weighted:
    at = hnp.round(pad(c))
    return [(at, hnp.ones_like(c))]


def _cubic(c: Tensor, pad: Callable[[Tensor], Tensor]) -> Weighted:
    low = hnp.floor(c)
    t = c - low
    return [(pad(low + i), _cubic_weight(t - i)) for i in (-1, 0, 1, 2)]


def _cubic_weight(distance: Tensor) -> Tensor:
    d, a = hnp.abs(distance), SHARPNESS
    return hnp.where(d <= 1, ((a + 2) * d - (a + 3)) * d * d + 1, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a)


_INTERPOLATIONS = {LINEAR: _linear, NEAREST: _nearest, CUBIC: _cubic}


def _sampled(rank: int, x: Tensor, grid: Tensor, interpolation: int, padding: int, align_corners: bool) -> Tensor:
    """``x`` (n, c, extents…) at the points of ``grid`` (n, points…, rank): (n, c, points…)."""
    if interpolation == CUBIC and rank != 2:
        raise ArgumentError(f"grid_sampler_{rank}d: cubic interpolation is for images")
    count, channels, *space = x.shape
    dtype = type_of(x)
    grid = cast(grid, opmath(dtype))
    along = []
    for i, size in enumerate(space):
        pad = partial(_padded, size=size, padding=padding, aligned=align_corners)
        along.append(_INTERPOLATIONS[interpolation](_unnormalised(grid[..., rank - 1 - i], size, align_corners), pad))
    pixels = hnp.reshape(hnp.moveaxis(x, 1, -1), (count * math.prod(space), channels))
    image = hnp.reshape(hnp.arange(count) * math.prod(space), (count,) + (1,) * rank)
    total: Any = 0
    for corner in itertools.product(*along):
        index, weight = _placed(corner, space)
        total = total + cast(hnp.take(pixels, image + index, axis=0), opmath(dtype)) * hnp.expand_dims(weight, axis=-1)
    return cast(hnp.moveaxis(total, -1, 1), dtype)


def _placed(corner: Sequence[tuple[Tensor, Tensor]], space: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The index of a corner in the flattened space, and the product of its weights, 0 where it is outside."""
    index: Any = 0
    weight: Any = 1
    for (at, part), size in zip(corner, space, strict=True):
        index = index * size + hnp.astype(hnp.clip(at, 0, size - 1), hnp.int64)
        weight = weight * hnp.where((at >= 0) & (at <= size - 1), part, 0.0)
    return index, weight


def _backward(
    rank: int, gradient: Tensor, x: Tensor, grid: Tensor, interpolation: int, padding: int, align_corners: bool, output_mask: Sequence[bool]
) -> tuple[Tensor | None, Tensor]:
    _, pull = vjp(lambda a, b: _sampled(rank, a, b, interpolation, padding, align_corners), x, grid)
    of_x, of_grid = pull(gradient)
    return (of_x if output_mask[0] else None), of_grid


for _rank in (2, 3):
    register(f"grid_sampler_{_rank}d", partial(_sampled, _rank))
    register(f"grid_sampler_{_rank}d_backward", partial(_backward, _rank))
