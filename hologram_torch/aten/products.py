"""Matrix products, convolutions and attention, with their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from hologram import nn
from hologram import numpy as hnp
from hologram.trace.tensor import Tensor
from hologram.transform.api import vjp
from hologram_torch.aten.registry import implements
from hologram_torch.aten.types import cast, tensor_of, type_of


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
    return _plus(x, hnp.sum(hnp.matmul(a, b), axis=0), beta, alpha)


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


def _scores(q: Tensor, k: Tensor, is_causal: bool, mask: Tensor | None, scale: float | None) -> Tensor:
    """What a softmax makes the weights of the keys of: (..., L, S), float32 for 16-bit floats."""
    wide = torch.float64 if type_of(q) is torch.float64 else torch.float32
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = hnp.matmul(cast(q, wide), hnp.matrix_transpose(cast(k, wide))) * factor
    if mask is not None:
        scores = scores + cast(mask, wide)
    if is_causal:
        earlier = hnp.arange(k.shape[-2]) <= hnp.expand_dims(hnp.arange(q.shape[-2]), axis=-1)
        scores = hnp.where(earlier, scores, -hnp.inf)
    return scores


@implements("_scaled_dot_product_flash_attention_for_cpu")
def attention(
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
    scores = _scores(q, k, is_causal, attn_mask, scale)
    top = hnp.max(scores, axis=-1, keepdims=True)
    exponentials = hnp.exp(scores - top)
    total = hnp.sum(exponentials, axis=-1, keepdims=True)
    found = hnp.matmul(exponentials / total, cast(v, type_of(scores)))
    return cast(found, type_of(q)), hnp.squeeze(top + hnp.log(total), axis=-1)


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
    scores = _scores(q, k, is_causal, attn_mask, scale)
    wide, factor = type_of(scores), 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    g, wide_v = cast(gradient, wide), cast(v, wide)
    weights = hnp.exp(scores - hnp.expand_dims(cast(logsumexp, wide), axis=-1))
    by_v = hnp.matmul(hnp.matrix_transpose(weights), g)
    by_weights = hnp.matmul(g, hnp.matrix_transpose(wide_v))
    dot = hnp.sum(g * cast(out, wide), axis=-1, keepdims=True)
    by_scores = weights * (by_weights - dot) * factor
    by_q = hnp.matmul(by_scores, cast(k, wide))
    by_k = hnp.matmul(hnp.matrix_transpose(by_scores), cast(q, wide))
    return cast(by_q, type_of(q)), cast(by_k, type_of(k)), cast(by_v, type_of(v))
