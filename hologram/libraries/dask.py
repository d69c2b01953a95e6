"""Dask's arrays: Tensors are a type of blocks, and some functions are found by the type of a block. What compiles graphs is ``hologram.dask``."""

from __future__ import annotations

from typing import Any

import numpy as np
from dask.array import register_chunk_type
from dask.array.chunk_types import is_valid_chunk_type
from dask.array.dispatch import einsum_lookup, percentile_lookup
from dask.array.percentile import _percentile

from hologram.trace.tensor import Tensor, namespace


def register() -> None:
    """Tells Dask about Tensors. Called again it does nothing."""
    if not is_valid_chunk_type(Tensor):
        register_chunk_type(Tensor)
        percentile_lookup.register(Tensor, _percentile_of_block)
        einsum_lookup.register(Tensor, _einsum_of_blocks)


def _percentile_of_block(block: Tensor, q: Any, method: str = "linear") -> Any:
    """What Dask merges to the percentiles of an array: those of one block, and its size."""
    return _percentile(np.asarray(block), q, method)


def _einsum_of_blocks(subscripts: str, *blocks: Tensor, dtype: Any = None, casting: str = "safe", **options: Any) -> Tensor:
    """``einsum`` of blocks, which Dask gives NumPy's options. ``dtype`` is what they promote to, unless a user widens it."""
    hnp = namespace()
    if dtype is not None:
        blocks = tuple(x if hnp.asarray(x).dtype == dtype else hnp.astype(hnp.asarray(x), dtype) for x in blocks)
    result: Tensor = hnp.einsum(subscripts, *blocks)
    return result
