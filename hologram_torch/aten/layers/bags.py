"""Embedding bags: sums, means and maxima of bags of rows, with their gradients.

Bag i has the indices from ``offsets[i]`` up to ``offsets[i + 1]``. The last bag has all that follow, or those up to the last offset if there is one
offset more than bags. Indices equal to ``padding_idx`` do not count. An empty bag gives 0.
"""

from __future__ import annotations

from functools import partial

import torch

from hologram import numpy as hnp
from hologram.errors import UnsupportedError
from hologram.trace.tensor import Tensor
from hologram_torch.aten.registry import implements, register
from hologram_torch.aten.types import cast, opmath, type_of

SUM, MEAN, MAX = range(3)  # torch's numbers of modes


def _bags(indices: Tensor, offsets: Tensor, count: int) -> Tensor:
    """The bag of each index."""
    return hnp.searchsorted(offsets[:count], hnp.arange(indices.shape[0], dtype=offsets.dtype), side="right") - 1


def _present(indices: Tensor, offsets: Tensor, count: int, padding_idx: int) -> Tensor:
    """Whether each index counts."""
    present = indices != padding_idx
    if offsets.shape[0] > count:
        present = present & (hnp.arange(indices.shape[0], dtype=offsets.dtype) < offsets[count])
    return present


def _where(present: Tensor, rows: Tensor, other: float) -> Tensor:
    """``rows`` (indices, columns) with ``other`` for those that do not count."""
    return hnp.where(hnp.expand_dims(present, axis=-1), rows, other)


def _sizes(present: Tensor, bag: Tensor, count: int) -> Tensor:
    """How many indices of each bag count."""
    return hnp.zeros((count,), dtype=hnp.int64).at[bag].add(hnp.astype(present, hnp.int64))


def _divisors(sizes: Tensor, dtype: torch.dtype) -> Tensor:
    """What sums are divided by to be means: (bags, 1)."""
    return hnp.expand_dims(cast(hnp.maximum(sizes, 1), dtype), axis=-1)


def _refuse_sparse(what: str, sparse: bool) -> None:
    if sparse:
        raise UnsupportedError(f"{what}: sparse gradients are not supported")


def _embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
    *,
    sized_by_offsets: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The bags' values; the bag of each index; the sizes of the bags, one more with ``sized_by_offsets`` and a last offset; and, for maxima, the
    index of each element of the result, -1 in empty bags."""
    _refuse_sparse("_embedding_bag", sparse)
    dtype, number = type_of(weight), type_of(offsets)
    count = offsets.shape[0] - include_last_offset
    bag = _bags(indices, offsets, count)
    present = _present(indices, offsets, count, padding_idx)
    sizes = _sizes(present, bag, count)
    picked = cast(hnp.take(weight, indices, axis=0), opmath(dtype))
    largest = sizes
    if mode == MAX:
        found, largest = _maxima(picked, indices, bag, sizes, present)
    else:
        if per_sample_weights is not None:
            picked = picked * hnp.expand_dims(cast(per_sample_weights, opmath(dtype)), axis=-1)
        found = hnp.zeros((count, weight.shape[1]), dtype=picked.dtype).at[bag].add(_where(present, picked, 0.0))
        if mode == MEAN:
            found = found / _divisors(sizes, opmath(dtype))
    if mode == SUM and padding_idx < 0 and dtype in (torch.float32, torch.float16):
        bag = bag[:0]  # torch's fast path for these gives none
    if sized_by_offsets:
        sizes = hnp.pad(sizes, (0, int(include_last_offset)))
    return cast(found, dtype), cast(bag, number), cast(sizes, number), cast(largest, number)


register("_embedding_bag", partial(_embedding_bag, sized_by_offsets=False))
register("_embedding_bag_forward_only", partial(_embedding_bag, sized_by_offsets=True))


def _maxima(picked: Tensor, indices: Tensor, bag: Tensor, sizes: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
    """The largest elements of the bags, and the indices that they are of: of equal ones the first."""
    count, n = sizes.shape[0], indices.shape[0]
    if n == 0:
        return hnp.zeros((count, picked.shape[1]), dtype=picked.dtype), hnp.full((count, picked.shape[1]), -1, dtype=hnp.int64)
    seen = _where(present, picked, -hnp.inf)
    highest = hnp.full((count, picked.shape[1]), -hnp.inf, dtype=picked.dtype).at[bag].max(seen)
    positions = hnp.where(hnp.expand_dims(present, axis=-1) & (seen == hnp.take(highest, bag, axis=0)), hnp.expand_dims(hnp.arange(n), axis=-1), n)
    first = hnp.full(highest.shape, n, dtype=positions.dtype).at[bag].min(positions)
    filled = hnp.expand_dims(sizes > 0, axis=-1)
    of = hnp.astype(hnp.take(indices, hnp.minimum(first, n - 1), axis=0), hnp.int64)
    return hnp.where(filled, highest, 0.0), hnp.where(filled, of, -1)


@implements("_embedding_bag_backward")
def embedding_bag_backward(
    gradient: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    """The gradient in the weights; which bag an index is of is found anew."""
    _refuse_sparse("_embedding_bag_backward", sparse)
    dtype, columns = type_of(gradient), gradient.shape[1]
    of_weights = hnp.zeros((num_weights, columns), dtype=gradient.dtype)
    if mode == MAX:
        shares = hnp.where(maximum_indices >= 0, gradient, 0.0)
        return of_weights.at[hnp.maximum(maximum_indices, 0), hnp.arange(columns)].add(shares)
    count = gradient.shape[0]
    bag, present = _bags(indices, offsets, count), _present(indices, offsets, count, padding_idx)
    if mode == MEAN:
        gradient = gradient / _divisors(_sizes(present, bag, count), dtype)
    shares = _where(present, hnp.take(gradient, bag, axis=0), 0.0)
    if per_sample_weights is not None:
        shares = shares * hnp.expand_dims(per_sample_weights, axis=-1)
    if scale_grad_by_freq:
        shares = shares / hnp.expand_dims(hnp.take(_frequencies(indices, num_weights, dtype), indices, axis=0), axis=-1)
    return of_weights.at[indices].add(shares)


def _frequencies(indices: Tensor, num_weights: int, dtype: torch.dtype) -> Tensor:
    """What torch's CPU kernel divides the gradient of each weight by: for the k-th smallest index that occurs, how often the k-th of all sorted
    indices does."""
    counts = hnp.zeros((num_weights,), dtype=hnp.int64).at[indices].add(hnp.ones(indices.shape, dtype=hnp.int64))
    rank = hnp.maximum(hnp.cumulative_sum(hnp.astype(counts > 0, hnp.int64)) - 1, 0)
    return cast(hnp.maximum(hnp.take(counts, hnp.take(hnp.sort(indices), rank, axis=0), axis=0), 1), dtype)


@implements("_embedding_bag_per_sample_weights_backward")
def per_sample_weights_backward(
    gradient: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, mode: int, padding_idx: int = -1
) -> Tensor:
    count = gradient.shape[0]
    shares = hnp.sum(hnp.take(gradient, _bags(indices, offsets, count), axis=0) * hnp.take(weight, indices, axis=0), axis=-1)
    return hnp.where(_present(indices, offsets, count, padding_idx), shares, 0.0)
