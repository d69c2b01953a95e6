"""Order statistics: medians, modes and k-th values, found in sorted elements, with their indices among the unsorted ones."""

from __future__ import annotations

from hologram import numpy as hnp
from hologram.trace.tensor import Tensor
from hologram_torch.aten.reduce.reductions import sort, with_axes
from hologram_torch.aten.registry import implements
from hologram_torch.aten.types import type_of


def _picked(found: tuple[Tensor, Tensor], dim: int, at: Tensor, x: Tensor, keepdim: bool) -> tuple[Tensor, Tensor]:
    """What ``found``, values and indices (…), have at ``at`` along ``dim``; ``at`` has the extent 1 there."""
    values, indices = (hnp.take_along_axis(part, at, axis=dim) for part in found)
    if keepdim or x.ndim == 0:
        return (hnp.reshape(values, ()), hnp.reshape(indices, ())) if x.ndim == 0 else (values, indices)
    return hnp.squeeze(values, axis=dim), hnp.squeeze(indices, axis=dim)


def _number(x: Tensor, dim: int, n: int) -> Tensor:
    """``n`` in the shape of ``x`` with the extent 1 along ``dim``."""
    return hnp.full(tuple(1 if i == dim % x.ndim else extent for i, extent in enumerate(x.shape)), n, dtype=hnp.int64)


@implements("kthvalue")
def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    wide = with_axes(x)
    return _picked(sort(wide, dim), dim, _number(wide, dim, k - 1), x, keepdim)


@implements("median.dim")
def median_along(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower one of two in the middle; the first NaN where there is one."""
    wide = with_axes(x)
    at = _number(wide, dim, (wide.shape[dim] - 1) // 2)
    if type_of(x).is_floating_point:  # NaNs are sorted to the end, the first one first
        whole = hnp.sum(~hnp.isnan(wide), axis=dim, keepdims=True)
        at = hnp.where(whole < wide.shape[dim], whole, at)
    return _picked(sort(wide, dim), dim, at, x, keepdim)


@implements("nanmedian.dim")
def nanmedian_along(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Of what is no NaN; NaN where there is nothing else."""
    wide = with_axes(x)
    whole = hnp.sum(~hnp.isnan(wide), axis=dim, keepdims=True)
    return _picked(sort(wide, dim), dim, hnp.maximum(whole - 1, 0) // 2, x, keepdim)


@implements("median")
def median(x: Tensor) -> Tensor:
    return median_along(hnp.reshape(x, (-1,)), 0)[0]


@implements("nanmedian")
def nanmedian(x: Tensor) -> Tensor:
    return nanmedian_along(hnp.reshape(x, (-1,)), 0)[0]


@implements("mode")
def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest of the most frequent values, and the last index that has it: the end of the first longest run of sorted elements. A NaN equals
    nothing and comes after all numbers; torch compares with it while it sorts, and what it gives depends on where NaNs are."""
    wide = with_axes(x)
    axis, n = dim % wide.ndim, wide.shape[dim]
    values, indices = sort(wide, axis)
    here = hnp.reshape(hnp.arange(n), tuple(n if i == axis else 1 for i in range(wide.ndim)))
    changed = values != hnp.roll(values, 1, axis=axis)
    start = hnp.cummax(hnp.where(changed, here, 0), axis=axis)
    return _picked((values, indices), axis, hnp.argmax(here - start, axis=axis, keepdims=True), x, keepdim)
