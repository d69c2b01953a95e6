"""Pooling and its gradients."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from hologram import nn
from hologram import numpy as hnp
from hologram.errors import ArgumentError, DTypeError
from hologram.trace.tensor import Tensor
from hologram.transform.api import vjp
from hologram_torch.aten.registry import implements, register
from hologram_torch.aten.types import type_of

Sizes = Sequence[int]
MAX_WINDOW = 64  # of a window whose largest element is found together with its index


def _each(values: Sizes, rank: int) -> tuple[int, ...]:
    return tuple(values) * rank if len(values) == 1 else tuple(values)


class _Windows:
    """The windows of a max-pooling over the last ``rank`` axes."""

    def __init__(self, shape: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool, rank: int) -> None:
        self.rank, self.space = rank, tuple(shape[-rank:])
        self.kernel, self.padding, self.dilation = _each(kernel, rank), _each(padding, rank), _each(dilation, rank)
        self.stride = _each(stride, rank) if stride else self.kernel
        self.counts = tuple(self._count(i, ceil_mode) for i in range(rank))

    def _count(self, i: int, ceil_mode: bool) -> int:
        room = self.space[i] + 2 * self.padding[i] - self.dilation[i] * (self.kernel[i] - 1) - 1
        count = (math.ceil(room / self.stride[i]) if ceil_mode else room // self.stride[i]) + 1
        return count - (ceil_mode and (count - 1) * self.stride[i] >= self.space[i] + self.padding[i])

    def seen(self, x: Tensor, fill: float | int) -> Tensor:
        """The elements of each window, along a new first axis."""
        widths = [(0, 0)] * (x.ndim - self.rank)
        for i in range(self.rank):
            reach = (self.counts[i] - 1) * self.stride[i] + self.dilation[i] * (self.kernel[i] - 1) + 1
            widths.append((self.padding[i], max(reach - self.padding[i] - self.space[i], 0)))
        wide = hnp.pad(x, widths, constant_values=fill)
        indices = itertools.product(*(range(0, k * d, d) for k, d in zip(self.kernel, self.dilation, strict=True)))
        return hnp.stack([wide[(..., *map(self._part, at, self.counts, self.stride))] for at in indices])

    @staticmethod
    def _part(start: int, count: int, step: int) -> slice:
        return slice(start, start + (count - 1) * step + 1, step)

    def indices(self, within: Tensor) -> Tensor:
        """The index in the flattened space of the element that has the number ``within`` in its window."""
        found: Any = 0
        rest = within
        at = []
        for k in reversed(self.kernel):
            at.append(rest % k)
            rest = rest // k
        for i, part in enumerate(reversed(at)):
            shape = tuple(n if j == i else 1 for j, n in enumerate(self.counts))
            start = hnp.reshape(hnp.arange(self.counts[i]) * self.stride[i] - self.padding[i], shape)
            found = found * self.space[i] + (start + part * self.dilation[i])
        return found


def _max_pool(rank: int, x: Tensor, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool) -> tuple[Tensor, Tensor]:
    windows = _Windows(x.shape, kernel, stride, padding, dilation, ceil_mode, rank)
    if math.prod(windows.kernel) > MAX_WINDOW:
        raise ArgumentError(f"max_pool{rank}d_with_indices: windows of at most {MAX_WINDOW} elements, not {math.prod(windows.kernel)}")
    dtype = type_of(x)
    seen = windows.seen(x, -math.inf if dtype.is_floating_point else torch.iinfo(dtype).min)
    return hnp.max(seen, axis=0), windows.indices(hnp.argmax(seen, axis=0))


@implements("max_pool2d_with_indices")
def max_pool2d(
    x: Tensor, kernel_size: Sizes, stride: Sizes = (), padding: Sizes = (0,), dilation: Sizes = (1,), ceil_mode: bool = False
) -> tuple[Tensor, Tensor]:
    return _max_pool(2, x, kernel_size, stride, padding, dilation, ceil_mode)


@implements("max_pool3d_with_indices")
def max_pool3d(
    x: Tensor, kernel_size: Sizes, stride: Sizes = (), padding: Sizes = (0,), dilation: Sizes = (1,), ceil_mode: bool = False
) -> tuple[Tensor, Tensor]:
    return _max_pool(3, x, kernel_size, stride, padding, dilation, ceil_mode)


def _adaptive_max_pool(rank: int, x: Tensor, output_size: Sizes) -> tuple[Tensor, Tensor]:
    """Windows of about the same size: a shorter one has its last element several times."""
    space, counts = x.shape[-rank:], _each(output_size, rank)
    if 0 in (*x.shape, *counts):
        raise ArgumentError(f"adaptive_max_pool{rank}d: at least one element")
    flat: Any = 0
    for i, (n, count) in enumerate(zip(space, counts, strict=True)):
        starts, ends = np.arange(count) * n // count, -(-np.arange(1, count + 1) * n // count)
        within = np.minimum(starts[:, None] + np.arange((ends - starts).max()), ends[:, None] - 1)
        shape = [1] * (2 * rank)
        shape[i], shape[rank + i] = within.shape
        flat = flat * n + within.reshape(shape)
    indices = hnp.asarray(flat.reshape(*counts, -1))
    seen = hnp.take(hnp.reshape(x, (*x.shape[:-rank], math.prod(space))), indices, axis=-1)
    at = hnp.argmax(seen, axis=-1, keepdims=True)
    return hnp.max(seen, axis=-1), hnp.squeeze(hnp.take_along_axis(hnp.broadcast_to(indices, seen.shape), at, axis=-1), axis=-1)


def _max_pool_backward(
    rank: int, gradient: Tensor, x: Tensor, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool, indices: Tensor
) -> Tensor:
    return _added_at(rank, gradient, x, indices)


def _added_at(rank: int, gradient: Tensor, x: Tensor, indices: Tensor) -> Tensor:
    """The gradient of a pooling whose results are the elements of ``x`` at ``indices`` of the flattened space."""
    planes = math.prod(x.shape[:-rank])
    flat = hnp.zeros((planes, math.prod(x.shape[-rank:])), dtype=x.dtype)
    row = hnp.expand_dims(hnp.arange(planes), axis=1)
    return hnp.reshape(flat.at[row, hnp.reshape(indices, (planes, -1))].add(hnp.reshape(gradient, (planes, -1))), x.shape)


for _rank in (2, 3):
    register(f"max_pool{_rank}d_with_indices_backward", partial(_max_pool_backward, _rank))
    register(f"adaptive_max_pool{_rank}d", partial(_adaptive_max_pool, _rank))
    register(f"adaptive_max_pool{_rank}d_backward", partial(_added_at, _rank))


# --- means -----------------------------------------------------------------------------------------------------------


def _avg_pool(
    rank: int,
    x: Tensor,
    kernel_size: Sizes,
    stride: Sizes = (),
    padding: Sizes = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    if divisor_override is not None:
        raise ArgumentError(f"avg_pool{rank}d: divisor_override is not supported")
    if not type_of(x).is_floating_point:
        raise DTypeError(f"avg_pool{rank}d: takes floats, not {type_of(x)}")
    steps = _each(stride or kernel_size, rank)
    pool: Any = (nn.avg_pool1d, nn.avg_pool2d, nn.avg_pool3d)[rank - 1]
    return pool(x, _each(kernel_size, rank), steps, _each(padding, rank), ceil_mode, count_include_pad)


def _avg_pool_backward(rank: int, gradient: Tensor, x: Tensor, *geometry: Any) -> Tensor:
    return vjp(lambda v: _avg_pool(rank, v, *geometry), x)[1](gradient)[0]


for _rank in (2, 3):
    register(f"avg_pool{_rank}d", partial(_avg_pool, _rank))
    register(f"avg_pool{_rank}d_backward", partial(_avg_pool_backward, _rank))


@implements("_adaptive_avg_pool2d")
def adaptive_avg_pool2d(x: Tensor, output_size: Sizes) -> Tensor:
    return nn.adaptive_avg_pool2d(x, tuple(output_size))


@implements("_adaptive_avg_pool3d")
def adaptive_avg_pool3d(x: Tensor, output_size: Sizes) -> Tensor:
    return nn.adaptive_avg_pool3d(x, tuple(output_size))


@implements("_adaptive_avg_pool2d_backward")
def adaptive_avg_pool2d_backward(gradient: Tensor, x: Tensor) -> Tensor:
    return vjp(lambda v: adaptive_avg_pool2d(v, gradient.shape[-2:]), x)[1](gradient)[0]
