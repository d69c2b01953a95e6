"""Matrix products, convolutions and attention, with their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hologram import nn
from hologram import numpy as hnp
from hologram.errors import ArgumentError
from hologram.trace.tensor import Tensor
from hologram.transform.api import vjp
from hologram_torch.aten.registry import implements
from hologram_torch.aten.types import cast, opmath, tensor_of, type_of


@implements("mm", "bmm", "mv", "dot")
def mm(a: Tensor, b: Tensor) -> Tensor:
    return hnp.matmul(a, b)


def _plus(x: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """``beta * x + alpha * product``; where beta is 0, not even a NaN of ``x`` counts."""
    dtype = type_of(product)
    scaled = product if alpha == 1 else product * tensor_of(alpha, dtype)
    if beta == 0:
        return scaled
    return scaled + (x if beta == 1 else x * tensor_of(beta, dtype))


@implements("addmm", "addmv", "baddbmm")
def addmm(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return _plus(x, hnp.matmul(a, b), beta, alpha)


@implements("addbmm")
def addbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return _plus(x, cast(hnp.sum(hnp.matmul(a, b), axis=0), type_of(x)), beta, alpha)  # sums of small integers are of 64 bits


# --- convolutions ----------------------------------------------------------------------------------------------------

_CONVOLUTIONS = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}
_TRANSPOSED = {1: nn.conv_transpose1d, 2: nn.conv_transpose2d, 3: nn.conv_transpose3d}


def _each(values: Sequence[int], rank: int) -> tuple[int, ...]:
    return tuple(values) * rank if len(values) == 1 else tuple(values)


@implements("convolution")
def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    rank = weight.ndim - 2
    options: dict[str, Any] = dict(stride=_each(stride, rank), padding=_each(padding, rank), dilation=_each(dilation, rank), groups=groups)
    if transposed:
        return _TRANSPOSED[rank](x, weight, bias, output_padding=_each(output_padding, rank), **options)
    return _CONVOLUTIONS[rank](x, weight, bias, **options)


@implements("convolution_backward")
def convolution_backward(
    gradient: Tensor, x: Tensor, weight: Tensor, bias_sizes: Any, *geometry: Any
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    *options, output_mask = geometry
    by_x, by_weight, by_bias = output_mask
    found: list[Tensor | None] = [None, None, None]
    if by_x:
        _, pull = vjp(lambda v: convolution(v, weight, None, *options), x)
        found[0] = pull(gradient)[0]
    if by_weight:
        _, pull = vjp(lambda w: convolution(x, w, None, *options), weight)
        found[1] = pull(gradient)[0]
    if by_bias:
        found[2] = hnp.sum(gradient, axis=(0, *range(2, gradient.ndim)))
    return found[0], found[1], found[2]


# --- attention -------------------------------------------------------------------------------------------------------

MIN_BLOCK_ROWS = 64  # of queries in a block, at least
MAX_BLOCKS = 4


def _blocks(queries: int, keys: int, is_causal: bool, mask: Tensor | None) -> list[tuple[int, int, int]]:
    """Queries that are worked on together, as (first, last, how many keys they may see): where keys come after all queries of a block, neither
    their scores nor the products with them are computed."""
    parts = min(queries // MIN_BLOCK_ROWS, MAX_BLOCKS) if is_causal and mask is None and queries == keys else 1
    if parts < 2 or queries % parts != 0:
        return [(0, queries, keys)]
    rows = queries // parts
    return [(first, first + rows, first + rows) for first in range(0, queries, rows)]


def _scale(q: Tensor, scale: float | None) -> float:
    return 1 / math.sqrt(q.shape[-1]) if scale is None else scale


def _scores(q: Tensor, k: Tensor, first: int, is_causal: bool, mask: Tensor | None, scale: float) -> Tensor:
    """What a softmax makes the weights of the keys of: (..., L, S); ``first`` is the number of the first query."""
    scores = hnp.matmul(q, hnp.matrix_transpose(k)) * scale
    if mask is not None:
        scores = scores + mask
    if is_causal:
        earlier = hnp.arange(k.shape[-2]) <= hnp.expand_dims(hnp.arange(first, first + q.shape[-2]), axis=-1)
        scores = hnp.where(earlier, scores, -hnp.inf)
    return scores


def _sees_keys(mask: Tensor) -> Tensor:
    """Whether a query may see any key: PyTorch's attention gives zeros where it may not."""
    return hnp.any(mask if mask.dtype == np.bool_ else mask != -hnp.inf, axis=-1)


def _for_each_query_head(q: Tensor, x: Tensor) -> Tensor:
    """Keys or values (…, h, S, d), each head as often as groups of query heads share it."""
    return x if x.shape[-3] == q.shape[-3] else hnp.repeat(x, q.shape[-3] // x.shape[-3], axis=-3)


def _of_shared_heads(gradient: Tensor, x: Tensor) -> Tensor:
    """The gradient in ``x``, keys or values, of that in what :func:`_for_each_query_head` makes of it."""
    if gradient.shape == x.shape:
        return gradient
    *lead, heads, length, width = x.shape
    return hnp.sum(hnp.reshape(gradient, (*lead, heads, -1, length, width)), axis=-3)


@implements("scaled_dot_product_attention")
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    if dropout_p != 0:
        raise ArgumentError("scaled_dot_product_attention: dropout draws random numbers")
    if enable_gqa:
        k, v = _for_each_query_head(q, k), _for_each_query_head(q, v)
    out = nn.dot_product_attention(q, k, v, mask=attn_mask, is_causal=is_causal, scale=scale)
    return out if attn_mask is None else hnp.where(hnp.expand_dims(_sees_keys(attn_mask), axis=-1), out, 0)


@implements("_scaled_dot_product_flash_attention_for_cpu")
def attention_with_logsumexp(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The attention, and the logarithm of the sum of exponentials of each row of scores."""
    wide, factor = opmath(type_of(q)), _scale(q, scale)
    queries, keys, values = cast(q, wide), cast(_for_each_query_head(q, k), wide), cast(_for_each_query_head(q, v), wide)
    mask = None if attn_mask is None else cast(attn_mask, wide)
    outs, logs = [], []
    for first, last, seen in _blocks(q.shape[-2], k.shape[-2], is_causal, attn_mask):
        scores = _scores(queries[..., first:last, :], keys[..., :seen, :], first, is_causal, mask, factor)
        top = hnp.max(scores, axis=-1, keepdims=True)
        exponentials = hnp.exp(scores - top)
        total = hnp.sum(exponentials, axis=-1, keepdims=True)
        outs.append(hnp.matmul(exponentials / total, values[..., :seen, :]))
        logs.append(hnp.squeeze(top + hnp.log(total), axis=-1))
    out, log = cast(_joined(outs, -2), type_of(q)), _joined(logs, -1)
    if attn_mask is None:
        return out, log
    any_seen = _sees_keys(attn_mask)
    return hnp.where(hnp.expand_dims(any_seen, axis=-1), out, 0), hnp.where(any_seen, log, hnp.inf)  # so that the weights made of it are zeros


@implements("_scaled_dot_product_flash_attention_for_cpu_backward")
def attention_backward(
    gradient: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Dao et al. 2022, without the tiles: weights are computed anew from the scores and their log-sum-exp."""
    wide, factor = opmath(type_of(q)), _scale(q, scale)
    g, queries, result, logs = (cast(x, wide) for x in (gradient, q, out, logsumexp))
    keys, values = cast(_for_each_query_head(q, k), wide), cast(_for_each_query_head(q, v), wide)
    mask = None if attn_mask is None else cast(attn_mask, wide)
    dots = hnp.sum(g * result, axis=-1, keepdims=True)
    by_q, by_k, by_v = [], [], []
    for first, last, seen in _blocks(q.shape[-2], k.shape[-2], is_causal, attn_mask):
        here, there = (..., slice(first, last), slice(None)), (..., slice(seen), slice(None))
        scores = _scores(queries[here], keys[there], first, is_causal, mask, factor)
        weights = hnp.exp(scores - hnp.expand_dims(logs[..., first:last], axis=-1))
        by_weights = hnp.matmul(g[here], hnp.matrix_transpose(values[there]))
        by_scores = weights * (by_weights - dots[here]) * factor
        rest = [(0, 0)] * (k.ndim - 2) + [(0, k.shape[-2] - seen), (0, 0)]
        by_q.append(hnp.matmul(by_scores, keys[there]))
        by_k.append(hnp.pad(hnp.matmul(hnp.matrix_transpose(by_scores), queries[here]), rest))
        by_v.append(hnp.pad(hnp.matmul(hnp.matrix_transpose(weights), g[here]), rest))
    by_key, by_value = _of_shared_heads(_total(by_k), k), _of_shared_heads(_total(by_v), v)
    return cast(_joined(by_q, -2), type_of(q)), cast(by_key, type_of(k)), cast(by_value, type_of(v))


def _joined(parts: list[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else hnp.concat(parts, axis=axis)


def _total(parts: list[Tensor]) -> Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
