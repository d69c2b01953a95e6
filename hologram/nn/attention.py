"""Scaled dot-product attention (Vaswani et al. 2017)."""

from __future__ import annotations

import math
from typing import Any

from hologram import numpy as hnp
from hologram.errors import ArgumentError, ShapeError
from hologram.nn.arguments import floats
from hologram.nn.normalisation import softmax
from hologram.numpy.arguments import array, wrap
from hologram.trace.recorder import located
from hologram.trace.tensor import Tensor

__all__ = ["dot_product_attention"]


def dot_product_attention(q: Any, k: Any, v: Any, /, mask: Any = None, is_causal: bool = False, scale: Any = None) -> Tensor:
    """``softmax(scale * q @ k.T) @ v`` for queries (..., L, E), keys (..., S, E) and values (..., S, V): (..., L, V).

    ``mask`` broadcasts with (..., L, S): bools tell which keys a query sees, floats are added to the scores. ``is_causal``: query i sees the
    keys 0 to i. A query that sees no key gets zeros. ``scale`` is ``1 / sqrt(E)`` for None. The result has the type of ``q``.
    Raises ShapeError where the shapes do not fit, ArgumentError for a mask of integers.
    """
    queries, dtype = floats(q, "dot_product_attention")
    keys, _ = floats(k, "dot_product_attention")
    values, _ = floats(v, "dot_product_attention")
    if min(queries.ndim, keys.ndim, values.ndim) < 2 or queries.shape[-1] != keys.shape[-1] or keys.shape[-2] != values.shape[-2]:
        shapes = ", ".join(str(list(x.shape)) for x in (queries, keys, values))
        raise located(ShapeError(f"dot_product_attention: q (..., L, E), k (..., S, E) and v (..., S, V) have the shapes {shapes}"))
    factor = 1 / math.sqrt(queries.shape[-1]) if scale is None else scale
    scores = hnp.matmul(queries, hnp.matrix_transpose(keys)) * factor
    scores, seen = _masked(scores, mask)
    if is_causal:
        earlier = hnp.arange(keys.shape[-2]) <= hnp.expand_dims(hnp.arange(queries.shape[-2]), axis=-1)
        seen = earlier if seen is None else hnp.logical_and(seen, earlier)
    return hnp.astype(hnp.matmul(softmax(scores, where=seen), values), dtype)


def _masked(scores: Tensor, mask: Any) -> tuple[Tensor, Tensor | None]:
    """The scores with a mask of floats added, and which of them count; None for all."""
    if mask is None:
        return scores, None
    node = array(mask, "dot_product_attention")
    if node.dtype.is_float:
        return scores + wrap(node), None
    if node.dtype.kind != "b":
        raise located(ArgumentError(f"dot_product_attention: mask is bool or float, not {node.dtype.name}"))
    return scores, wrap(node)
