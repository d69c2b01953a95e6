"""Views and copies: ops that rearrange elements. Strides are no part of a value: a view is the Tensor that it shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from hologram import numpy as hnp
from hologram.errors import ArgumentError
from hologram.ir.strides import Strided
from hologram.trace.tensor import Tensor
from hologram_torch.aten.registry import implements
from hologram_torch.aten.types import cast, result_type, tensor_of, type_of
from hologram_torch.bridge.strided import read_view, write_view

SYS_MAX = 2**63 - 1  # the end of a slice that is left open


@implements("alias", "alias_copy", "clone", "detach", "detach_copy", "lift", "lift_fresh", "lift_fresh_copy", "contiguous")
def alias(x: Tensor, *, memory_format: Any = None) -> Tensor:
    return x


@implements("copy")
def copy(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    return hnp.broadcast_to(cast(source, type_of(x)), x.shape)


@implements("view", "_unsafe_view", "reshape", "_reshape_alias")
def view(x: Tensor, size: Sequence[int], stride: Any = None) -> Tensor:
    return hnp.reshape(x, tuple(size))


@implements("permute")
def permute(x: Tensor, dims: Sequence[int]) -> Tensor:
    return hnp.permute_dims(x, tuple(d % x.ndim for d in dims)) if x.ndim else x


@implements("transpose.int")
def transpose(x: Tensor, dim0: int, dim1: int) -> Tensor:
    return hnp.swapaxes(x, dim0, dim1) if x.ndim else x


@implements("t")
def t(x: Tensor) -> Tensor:
    return hnp.matrix_transpose(x) if x.ndim == 2 else x


@implements("expand")
def expand(x: Tensor, size: Sequence[int], *, implicit: bool = False) -> Tensor:
    lead = len(size) - x.ndim
    return hnp.broadcast_to(x, tuple(x.shape[i - lead] if n == -1 else n for i, n in enumerate(size)))


@implements("squeeze", "squeeze.dim", "squeeze.dims")
def squeeze(x: Tensor, dim: Any = None) -> Tensor:
    axes = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    gone = {a % x.ndim for a in axes if x.ndim and x.shape[a] == 1}
    return hnp.reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in gone))


@implements("unsqueeze")
def unsqueeze(x: Tensor, dim: int) -> Tensor:
    return hnp.expand_dims(x, axis=dim)


def bounds(n: int, start: int | None, end: int | None) -> tuple[int, int]:
    """A slice's ends as ATen clamps them, from 0 to ``n``."""
    first = 0 if start is None else start + n if start < 0 else start
    last = n if end is None or end == SYS_MAX else end + n if end < 0 else end
    first = min(max(first, 0), n)
    return first, min(max(last, first), n)


def _at(x: Tensor, dim: int, part: Any) -> tuple[Any, ...]:
    """The key that has ``part`` along axis ``dim``."""
    return (slice(None),) * (dim % x.ndim) + (part,)


def _slice(x: Tensor, dim: int, start: int | None, end: int | None, step: int) -> tuple[Any, ...]:
    return _at(x, dim, slice(*bounds(x.shape[dim], start, end), step))


@implements("slice.Tensor")
def slice_(x: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    return x[_slice(x, dim, start, end, step)]


@implements("slice_scatter")
def slice_scatter(x: Tensor, source: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    return x.at[_slice(x, dim, start, end, step)].set(cast(source, type_of(x)))


@implements("select.int")
def select(x: Tensor, dim: int, index: int) -> Tensor:
    return x[_at(x, dim, index)]


@implements("select_scatter")
def select_scatter(x: Tensor, source: Tensor, dim: int, index: int) -> Tensor:
    return x.at[_at(x, dim, index)].set(cast(source, type_of(x)))


@implements("split_with_sizes")
def split_with_sizes(x: Tensor, split_sizes: Sequence[int], dim: int = 0) -> list[Tensor]:
    ends = np.cumsum(split_sizes).tolist()
    return [x[_at(x, dim, slice(end - n, end))] for n, end in zip(split_sizes, ends, strict=True)]


@implements("split.Tensor")
def split(x: Tensor, split_size: int, dim: int = 0) -> list[Tensor]:
    n = x.shape[dim]
    return [x[_at(x, dim, slice(i, min(i + split_size, n)))] for i in range(0, n, split_size)] or [x]


@implements("unbind.int")
def unbind(x: Tensor, dim: int = 0) -> list[Tensor]:
    return [x[_at(x, dim, i)] for i in range(x.shape[dim])]


@implements("cat")
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    dtype = result_type(*tensors)
    real = [x for x in tensors if x.shape != (0,)] or list(tensors[:1])  # empty vectors go with every shape
    return hnp.concat([cast(x, dtype) for x in real], axis=dim)


@implements("stack")
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    dtype = result_type(*tensors)
    return hnp.stack([cast(x, dtype) for x in tensors], axis=dim)


@implements("flip")
def flip(x: Tensor, dims: Sequence[int]) -> Tensor:
    return hnp.flip(x, axis=tuple(dims)) if dims and x.ndim else x


@implements("roll")
def roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    return hnp.roll(x, tuple(shifts), axis=tuple(dims)) if dims else hnp.roll(x, sum(shifts))


@implements("repeat")
def repeat(x: Tensor, repeats: Sequence[int]) -> Tensor:
    return hnp.tile(hnp.reshape(x, (1,) * (len(repeats) - x.ndim) + x.shape), tuple(repeats)) if repeats else x


@implements("diagonal")
def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    return hnp.diagonal(x, offset, dim1, dim2)


@implements("diagonal_scatter")
def diagonal_scatter(x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    last = hnp.moveaxis(x, (dim1, dim2), (-2, -1))
    along = hnp.arange(source.shape[-1])
    written = last.at[..., along + max(-offset, 0), along + max(offset, 0)].set(cast(source, type_of(x)))
    return hnp.moveaxis(written, (-2, -1), (dim1, dim2))


@implements("constant_pad_nd")
def constant_pad_nd(x: Tensor, pad: Sequence[int], value: Any = 0) -> Tensor:
    widths = [(0, 0)] * (x.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    kept = x[tuple(slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(x.shape, widths, strict=True))]
    return hnp.pad(kept, [(max(low, 0), max(high, 0)) for low, high in widths], constant_values=tensor_of(value, type_of(x)))


@implements("unfold")
def unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    if x.ndim == 0:
        return hnp.reshape(x, (1,))[:size]
    axis = dimension % x.ndim
    starts = np.arange((x.shape[axis] - size) // step + 1) * step
    windows = hnp.take(x, starts[:, None] + np.arange(size), axis=axis)
    return hnp.moveaxis(windows, axis + 1, -1)


def _view(what: str, x: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None) -> Strided:
    """The view of ``x``. Raises ArgumentError where it leaves the memory of ``x``."""
    view = Strided(tuple(size), tuple(stride), offset or 0)
    if view.size and view.last >= x.size:
        raise ArgumentError(f"{what}: it leaves the memory of the tensor that it is given")
    return view


@implements("as_strided")
def as_strided(x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """For a tensor whose memory is its elements in C order, from offset 0."""
    return read_view(x, _view("as_strided", x, size, stride, storage_offset))


@implements("as_strided_scatter")
def as_strided_scatter(x: Tensor, source: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """As :func:`as_strided`."""
    return write_view(x, _view("as_strided_scatter", x, size, stride, storage_offset), cast(source, type_of(x)))


# Rows that compute what torch gives for tensors in C order, and not for others.
LAYOUT_SENSITIVE = frozenset(
    {
        torch.ops.aten.as_strided.default,
        torch.ops.aten.as_strided_scatter.default,
        torch.ops.aten._linalg_det.default,
        torch.ops.aten._linalg_slogdet.default,
    }
)
