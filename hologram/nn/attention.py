"""Scaled dot-product attention (Vaswani et al. 2017)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from numbers import Integral
from typing import Any

from hologram import numpy as hnp
from hologram.control.loops import scan
from hologram.errors import ArgumentError, ShapeError
from hologram.ir.symbolic import Int
from hologram.nn.normalisation import softmax
from hologram.numpy.arguments import array, floats, wrap
from hologram.support.user_lines import located
from hologram.trace.tensor import Tensor
from hologram.transform.checkpoint import checkpoint

__all__ = ["dot_product_attention"]

MIN_QUERIES = 256  # queries, at least, of a part of causal attention that has keys of its own
MAX_PARTS = 4


def dot_product_attention(q: Any, k: Any, v: Any, /, mask: Any = None, is_causal: bool = False, scale: Any = None, rows: int | None = None) -> Tensor:
    """Scaled dot-product attention: ``softmax(scale * q @ k.T) @ v`` (Vaswani et al. 2017).

    Queries (..., L, E), keys (..., S, E) and values (..., S, V) give (..., L, V), in the type of ``q``. ``mask`` broadcasts with (..., L, S): bools
    tell which keys a query sees, floats are added to the scores. ``is_causal``: query i sees the keys 0 to i. A query that bools let see no key gets
    zeros, one to all of whose scores -inf is added NaN. ``scale`` is ``1 / sqrt(E)`` for None.

    ``rows``: queries go by so many at a time, in a loop (:func:`hologram.scan`), and derivatives compute the scores of each block again, in every
    precision. None and 0: as compilation finds best, which keeps no large scores in memory either, except in ``exact``. Values are the same.

    Raises ShapeError where the shapes do not fit, ArgumentError for a mask of integers or negative ``rows``, DTypeError for complex numbers.

    >>> q = hnp.asarray([[0.0, 0.0], [9.0, 0.0]])
    >>> k, v = hnp.asarray([[9.0, 0.0], [0.0, 9.0]]), hnp.asarray([[1.0], [3.0]])
    >>> hg.nn.dot_product_attention(q, k, v)
    Tensor([[2.],
            [1.]], dtype=float32)
    >>> hg.nn.dot_product_attention(q, k, v, is_causal=True)
    Tensor([[1.],
            [1.]], dtype=float32)
    """
    queries, dtype = floats(q, "dot_product_attention")
    keys, _ = floats(k, "dot_product_attention")
    values, _ = floats(v, "dot_product_attention")
    if min(queries.ndim, keys.ndim, values.ndim) < 2 or queries.shape[-1] != keys.shape[-1] or keys.shape[-2] != values.shape[-2]:
        shapes = ", ".join(str(list(x.shape)) for x in (queries, keys, values))
        raise located(ShapeError(f"dot_product_attention: q (..., L, E), k (..., S, E) and v (..., S, V) have the shapes {shapes}"))
    if rows is not None and not (isinstance(rows, Integral) and rows >= 0):
        raise located(ArgumentError(f"dot_product_attention: rows is a number of queries, or 0 for all at once, not {rows!r}"))
    factor = 1 / math.sqrt(queries.shape[-1] or 1) if scale is None else scale  # scores of no elements are 0, scaled by whatever number

    def attend(queries: Tensor, mask: Tensor | None, numbers: Tensor | None, count: Int = keys.shape[-2]) -> Tensor:
        """Of some queries, which see none but the first ``count`` keys."""
        scores, seen = _masked(hnp.matmul(queries, hnp.matrix_transpose(keys[..., :count, :])) * factor, mask)
        if numbers is not None:
            earlier = hnp.arange(count) <= numbers
            seen = earlier if seen is None else hnp.logical_and(seen, earlier)
        return hnp.matmul(softmax(scores, where=seen), values[..., :count, :])

    given = None if mask is None else wrap(array(mask, "dot_product_attention"))
    numbers = hnp.expand_dims(hnp.arange(queries.shape[-2]), axis=-1) if is_causal else None
    if rows:
        return hnp.astype(by_rows(attend, queries, given, numbers, int(rows)), dtype)
    parts = _parts(queries.shape[-2], keys.shape[-2]) if numbers is not None and given is None else 1
    return hnp.astype(attend(queries, given, numbers) if parts == 1 else _by_parts(attend, queries, numbers, keys.shape[-2], parts), dtype)


def _parts(queries: Int, keys: Int) -> int:
    """In how many parts causal attention goes: keys behind the last query of a part cost it nothing."""
    return min(queries // MIN_QUERIES, MAX_PARTS) if isinstance(queries, int) and isinstance(keys, int) and queries >= MAX_PARTS * MIN_QUERIES else 1


def _by_parts(attend: Callable[..., Tensor], queries: Tensor, numbers: Any, keys: int, parts: int) -> Tensor:
    n = int(queries.shape[-2])
    cuts = itertools.pairwise(n * i // parts for i in range(parts + 1))
    return hnp.concatenate([attend(queries[..., a:b, :], None, numbers[a:b], min(b, keys)) for a, b in cuts], axis=-2)


def _masked(scores: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """The scores with a mask of floats added, and which of them count; None for all."""
    if mask is None:
        return scores, None
    node = array(mask, "dot_product_attention")
    if node.dtype.is_float:
        return scores + mask, None
    if node.dtype.kind != "b":
        raise located(ArgumentError(f"dot_product_attention: mask is bool or float, not {node.dtype.name}"))
    return scores, mask


# --- by blocks of rows -----------------------------------------------------------------------------------------------


def by_rows(attend: Callable[..., Tensor], queries: Tensor, mask: Tensor | None, numbers: Tensor | None, rows: int) -> Tensor:
    """``attend(queries, mask, numbers)`` for blocks of ``rows`` queries in turn, of which derivatives keep the arguments, and for those left over."""
    n = queries.shape[-2]
    whole = n // rows * rows
    of_each = {"queries": queries, "mask": mask, "numbers": numbers}
    varied = {name: x for name, x in of_each.items() if x is not None and x.ndim >= 2 and x.shape[-2] == n}
    fixed = {name: x for name, x in of_each.items() if name not in varied}
    step = checkpoint(lambda some: attend(**fixed, **some))

    def blocks(x: Tensor) -> Tensor:
        cut = hnp.reshape(x[..., :whole, :], (*x.shape[:-2], whole // rows, rows, x.shape[-1]))
        return hnp.moveaxis(cut, -3, 0)

    parts = []
    if whole:
        _, out = scan(lambda carry, some: (carry, step(some)), (), {name: blocks(x) for name, x in varied.items()})
        side = hnp.moveaxis(out, 0, -3)
        parts.append(hnp.reshape(side, (*side.shape[:-3], whole, side.shape[-1])))
    if whole < n:
        parts.append(step({name: x[..., whole:, :] for name, x in varied.items()}))
    return parts[0] if len(parts) == 1 else hnp.concatenate(parts, axis=-2)
