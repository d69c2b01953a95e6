"""Transformer layers that torch computes as one op in inference: multi-head attention, and an encoder layer."""

from __future__ import annotations

import math

import torch

from hologram import nn
from hologram import numpy as hnp
from hologram.errors import ArgumentError
from hologram.trace.tensor import Tensor
from hologram_torch.aten.layers.normalisation import layer_norm
from hologram_torch.aten.pointwise.elementwise import gelu
from hologram_torch.aten.registry import implements
from hologram_torch.aten.types import cast


def _linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return hnp.matmul(x, hnp.matrix_transpose(weight)) + bias


def _heads(x: Tensor, weight: Tensor, bias: Tensor, part: int, count: int) -> Tensor:
    """The queries (part 0), keys or values of ``x`` (n, l, e): (n, count, l, e / count)."""
    batch, length, width = x.shape
    rows = slice(part * width, (part + 1) * width)
    return hnp.swapaxes(hnp.reshape(_linear(x, weight[rows], bias[rows]), (batch, length, count, width // count)), 1, 2)


def _seen(mask: Tensor | None, mask_type: int | None) -> Tensor | None:
    """Which scores (n, heads, l, s) count, from torch's mask of those that do not: of type 0 (l, s), 1 (n, s), 2 (n, heads, l, s)."""
    if mask is None:
        return None
    if mask_type not in (0, 1, 2):
        raise ArgumentError(f"_native_multi_head_attention: mask_type is 0, 1 or 2, not {mask_type}")
    seen = ~cast(mask, torch.bool)
    return hnp.expand_dims(seen, axis=(1, 2)) if mask_type == 1 else seen


@implements("_native_multi_head_attention")
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    q, k, v = (_heads(x, qkv_weight, qkv_bias, i, num_head) for i, x in enumerate((query, key, value)))
    seen, weights = _seen(mask, mask_type), None
    if need_weights:
        scores = hnp.matmul(q / math.sqrt(q.shape[-1]), hnp.matrix_transpose(k))
        shares = nn.softmax(scores if seen is None else hnp.where(seen, scores, -hnp.inf), -1)
        weights = hnp.mean(shares, axis=1) if average_attn_weights else shares
        made = hnp.matmul(shares, v)
    else:
        made = nn.dot_product_attention(q, k, v, mask=seen)
    return _linear(hnp.reshape(hnp.swapaxes(made, 1, 2), query.shape), proj_weight, proj_bias), weights


@implements("_transformer_encoder_layer_fwd")
def encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    def attended(x: Tensor) -> Tensor:
        return attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type)[0]

    def fed(x: Tensor) -> Tensor:
        hidden = _linear(x, ffn_weight_1, ffn_bias_1)
        return _linear(gelu(hidden) if use_gelu else hnp.maximum(hidden, 0), ffn_weight_2, ffn_bias_2)

    def first(x: Tensor) -> Tensor:
        return layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)[0]

    def second(x: Tensor) -> Tensor:
        return layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)[0]

    if norm_first:
        x = src + attended(first(src))
        return x + fed(second(x))
    x = first(src + attended(src))
    return second(x + fed(x))
