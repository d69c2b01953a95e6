"""Gathers and scatters: reads and writes at computed indices.

Rows clamp indices out of range in reads and drop them in writes, as compiled code does. Torch raises: :func:`ranges` tells callers what to check.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from hologram import numpy as hnp
from hologram.errors import ArgumentError
from hologram.trace.tensor import Tensor
from hologram.transform.stacking import vmap
from hologram_torch.aten.reduce.reductions import vector_norm
from hologram_torch.aten.registry import implements
from hologram_torch.aten.types import cast, tensor_of, type_of


class IndexArguments(NamedTuple):
    """The positions of an op's arguments: the tensor that is indexed, the axis (None: axis 0) and the index."""

    x: int
    dim: int | None
    indices: int


_ALONG = (
    "gather", "index_reduce", "index_select", "scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce", "scatter_add",
    "scatter_reduce.two",
)  # fmt: skip
_ROWS = ("embedding", "embedding_renorm", "_embedding_bag", "_embedding_bag_forward_only")
INDEX_ARGUMENTS = {"aten::" + name: IndexArguments(0, None, 1) for name in _ROWS} | {"aten::" + name: IndexArguments(0, 1, 2) for name in _ALONG}
KEYS = ("aten::index.Tensor", "aten::index_put")  # ops of several indices, which may count from the end
PUT = "aten::put"
_BAGS = ("aten::_embedding_bag", "aten::_embedding_bag_forward_only")
COUNTED = {"aten::masked_scatter": "as many elements of the source as the mask sets"} | dict.fromkeys(
    _BAGS, "offsets that begin with 0, do not decrease and end within the indices"
)  # ops that have conditions on numbers of elements, and these


def ranges(name: str, args: Sequence[Any]) -> list[tuple[Tensor, int, int]]:
    """The indices among the arguments of the op ``name``, each with its lower bound and the bound that it must be less than."""
    if name in KEYS:
        x, indices = args[0], args[1]
        return [(i, -n, n) for i, n in zip(indices, x.shape, strict=False) if i is not None and type_of(i) is not torch.bool]
    if name == PUT:
        return [(args[1], -args[0].size, args[0].size)]
    if name == "aten::masked_scatter":
        mask, _ = hnp.broadcast_arrays(args[1], args[0])
        return [(hnp.sum(mask, dtype=hnp.int64), 0, args[2].size + 1)]  # how many elements are taken
    of = INDEX_ARGUMENTS.get(name)
    if of is None:
        return []
    shape = args[of.x].shape or (1,)
    found = [(args[of.indices], 0, shape[0 if of.dim is None else args[of.dim]])]
    if name in _BAGS:
        found += _of_bags(args[of.indices].shape[0], args[2])
    return found


def out_of_range(name: str, args: Sequence[Any]) -> list[Tensor]:
    """For each index among the arguments of the op ``name``, whether one of its elements is out of range."""
    return [hnp.any((index < low) | (index >= size)) for index, low, size in ranges(name, args) if index.size]


def has_indices(name: str) -> bool:
    """Whether the op ``name`` has indices, which may be out of range."""
    return name in KEYS or name == PUT or name in INDEX_ARGUMENTS or name in COUNTED


def _of_bags(count: int, offsets: Tensor) -> list[tuple[Tensor, int, int]]:
    """The conditions on offsets of bags: they begin with 0, do not decrease, and end within the ``count`` indices."""
    return [(offsets[:1], 0, 1), (offsets[1:] - offsets[:-1], 0, count + 1), (offsets[-1:], 0, count + 1)]


def _key(indices: Sequence[Tensor | None]) -> tuple[Any, ...]:
    """The indices of ``x[...]``, None standing for whole axes. Raises ArgumentError for masks, whose results have no known shape."""
    for i in indices:
        if i is not None and type_of(i) in (torch.bool, torch.uint8):
            raise ArgumentError("a mask as an index gives a shape that depends on values")
    return tuple(slice(None) if i is None else i for i in indices)


@implements("index.Tensor", "_unsafe_index.Tensor")
def index(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    return x[_key(indices)]


@implements("index_put", "_unsafe_index_put")
def index_put(x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False, unsafe: bool = False) -> Tensor:
    if len(indices) == 1 and indices[0] is not None and type_of(indices[0]) is torch.bool and values.ndim == 0:
        mask = indices[0]
        new = hnp.broadcast_to(cast(values, type_of(x)), x.shape)
        wide = hnp.reshape(mask, mask.shape + (1,) * (x.ndim - mask.ndim))
        return hnp.where(wide, x + new if accumulate else new, x)
    target = x.at[_key(indices)]
    values = cast(values, type_of(x))
    return target.add(values) if accumulate else target.set(values)


@implements("index_select")
def index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    if x.ndim == 0:
        return hnp.reshape(hnp.broadcast_to(x, index.shape), ()) if index.ndim == 0 else x
    return hnp.take(x, hnp.reshape(index, (-1,)), axis=dim)


@implements("embedding")
def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    return hnp.take(weight, indices, axis=0)


@implements("embedding_renorm")
def embedding_renorm(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """The weights with those rows whose norm is larger than ``max_norm`` scaled to it, among the rows that ``indices`` name."""
    used = hnp.zeros((weight.shape[0],), dtype=hnp.bool).at[hnp.reshape(indices, (-1,))].set(True)
    norms = vector_norm(weight, norm_type, 1)
    scales = hnp.where(used & (norms > max_norm), max_norm / (norms + 1e-7), 1.0)
    return weight * hnp.expand_dims(scales, axis=1)


@implements("gather")
def gather(x: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    if x.ndim == 0 or index.ndim == 0:
        return hnp.broadcast_to(hnp.reshape(x, (-1,))[:1].reshape(()), index.shape) if x.ndim == 0 else hnp.take(x, index, axis=0)
    axis = dim % x.ndim
    seen = x[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(index.shape))]
    return hnp.take_along_axis(seen, index, axis=axis)


# --- scatter ---------------------------------------------------------------------------------------------------------


class _ScatterTarget:
    """The elements that a scatter writes: of ``x``, at the coordinates of ``index``, with ``index`` itself along ``dim``."""

    def __init__(self, x: Tensor, dim: int, index: Tensor) -> None:
        self.shape = x.shape
        self.x = hnp.reshape(x, (1,)) if x.ndim == 0 else x
        self.index = hnp.reshape(index, (1,)) if index.ndim == 0 else index
        axis, shape = dim % self.x.ndim, self.index.shape
        self.key = tuple(self.index if i == axis else _count(shape, i) for i in range(len(shape)))
        self.part = tuple(slice(n) for n in shape)

    def of(self, source: Any) -> Any:
        """The part of ``source`` that is written: as much of it as there are indices."""
        values = tensor_of(source, type_of(self.x))
        if type(source) is not Tensor:
            return values
        return (hnp.reshape(values, (1,)) if values.ndim == 0 else values)[self.part]

    def write(self, how: str, values: Any, onto: Tensor | None = None) -> Tensor:
        target = self.x if onto is None else onto
        return getattr(target.at[self.key], how)(values)

    def done(self, result: Tensor) -> Tensor:
        return hnp.reshape(result, self.shape)


def _count(shape: tuple[int, ...], axis: int) -> Tensor:
    """The coordinate along ``axis``, to broadcast to ``shape``."""
    return hnp.reshape(hnp.arange(shape[axis]), tuple(n if i == axis else 1 for i, n in enumerate(shape)))


def _scatter(how: str, x: Tensor, dim: int, index: Tensor, source: Any) -> Tensor:
    if 0 in index.shape:
        return x
    target = _ScatterTarget(x, dim, index)
    return target.done(target.write(how, target.of(source)))


@implements("scatter.src", "scatter.value")
def scatter(x: Tensor, dim: int, index: Tensor, source: Any) -> Tensor:
    return _scatter("set", x, dim, index, source)


@implements("scatter.reduce", "scatter.value_reduce")
def scatter_reduce_in_place(x: Tensor, dim: int, index: Tensor, source: Any, *, reduce: str) -> Tensor:
    return _scatter({"add": "add", "multiply": "multiply"}[reduce], x, dim, index, source)


@implements("scatter_add")
def scatter_add(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    return _scatter("add", x, dim, index, source)


@implements("scatter_reduce.two")
def scatter_reduce(x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    if 0 in index.shape:
        return x
    target = _ScatterTarget(x, dim, index)
    values, dtype = target.of(source), type_of(x)
    how = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "max", "amin": "min"}[reduce]
    onto = target.x
    if not include_self:
        onto = target.write("set", _identity(reduce, dtype))
    found = target.write(how, values, onto)
    if reduce == "mean":
        once = hnp.ones_like(target.x)
        base = once if include_self else target.write("set", tensor_of(0, dtype), once)
        count = target.write("add", hnp.ones_like(values), base)
        found = found / count if dtype.is_floating_point else hnp.floor_divide(found, count)
    return target.done(found)


def _identity(reduce: str, dtype: torch.dtype) -> Tensor:
    if reduce in ("sum", "mean"):
        return tensor_of(0, dtype)
    if reduce == "prod":
        return tensor_of(1, dtype)
    if dtype.is_floating_point:
        return tensor_of(float("-inf") if reduce == "amax" else float("inf"), dtype)
    if dtype is torch.bool:
        return tensor_of(reduce == "amin", dtype)
    limits = torch.iinfo(dtype)
    return tensor_of(limits.min if reduce == "amax" else limits.max, dtype)


@implements("index_reduce")
def index_reduce(x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """As :func:`scatter_reduce`, one index for each slice of ``source``."""
    if x.ndim == 0:
        return scatter_reduce(x, dim, index, source, reduce, include_self=include_self)
    wide = tuple(-1 if i == dim % x.ndim else 1 for i in range(x.ndim))
    everywhere = hnp.broadcast_to(hnp.reshape(index, wide), source.shape)
    return scatter_reduce(x, dim, everywhere, source, reduce, include_self=include_self)


@implements("put")
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Writes ``source`` to the elements of the flattened ``x`` that ``index`` names."""
    target = hnp.reshape(x, (-1,)).at[hnp.reshape(index, (-1,))]
    values = cast(hnp.reshape(source, (-1,)), type_of(x))
    return hnp.reshape(target.add(values) if accumulate else target.set(values), x.shape)


def _taken_in_turn(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """``mask`` in the shape of ``x``; and for each element that is set, the number of elements set before it, 0 for the others."""
    wide = hnp.broadcast_to(mask, x.shape)
    flat = hnp.astype(hnp.reshape(wide, (-1,)), hnp.int64)
    return wide, hnp.reshape((hnp.cumulative_sum(flat) - 1) * flat, x.shape)


@implements("masked_scatter")
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Writes the elements of ``source``, one after the other, where ``mask`` is set."""
    x, mask = hnp.broadcast_arrays(x, mask)
    if source.size == 0:
        return x
    wide, at = _taken_in_turn(x, mask)
    return hnp.where(wide, cast(hnp.take(hnp.reshape(source, (-1,)), at), type_of(x)), x)


@implements("masked_scatter_backward")
def masked_scatter_backward(gradient: Tensor, mask: Tensor, sizes: Sequence[int]) -> Tensor:
    """The gradient in the source."""
    wide, at = _taken_in_turn(gradient, mask)
    flat = hnp.zeros((math.prod(sizes),), dtype=gradient.dtype)
    shares = hnp.where(wide, gradient, 0)
    return hnp.reshape(flat.at[hnp.reshape(at, (-1,))].add(hnp.reshape(shares, (-1,))) if flat.size else flat, tuple(sizes))


# --- sorted sequences ------------------------------------------------------------------------------------------------


@implements("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(
    boundaries: Tensor, x: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Tensor | None = None
) -> Tensor:
    values = tensor_of(x, type_of(boundaries)) if type(x) is not Tensor else x
    ordered = boundaries if sorter is None else hnp.take_along_axis(boundaries, sorter, axis=-1)
    search = partial(hnp.searchsorted, side="right" if right or side == "right" else "left")
    if ordered.ndim == 1:
        found = search(ordered, values)
    else:  # each row of values among the boundaries of its row
        rows = math.prod(ordered.shape[:-1])
        found = hnp.reshape(vmap(search)(*(hnp.reshape(t, (rows, t.shape[-1])) for t in (ordered, values))), values.shape)
    return cast(found, torch.int32 if out_int32 else torch.int64)


@implements("bucketize.Tensor", "bucketize.Scalar")
def bucketize(x: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    return searchsorted(boundaries, x, out_int32=out_int32, right=right)
