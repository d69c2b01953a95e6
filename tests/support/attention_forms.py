"""Attention written out: in Hologram, and in NumPy as what it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import hologram.numpy as hnp
from hologram.graph.blocking import blocked_loops, score_regions

Array = np.ndarray


def by_hand(q: Any, k: Any, v: Any, finish: Callable[[Any], Any] = lambda s: s * 0.3) -> Any:
    s = finish(hnp.matmul(q, hnp.swapaxes(k, -1, -2)))
    e = hnp.exp(s - hnp.max(s, axis=-1, keepdims=True))
    return hnp.matmul(e / hnp.sum(e, axis=-1, keepdims=True), v)


def formula(q: Array, k: Array, v: Array, finish: Callable[[Array], Array] = lambda s: s * 0.3) -> Array:
    """In float64; rows without a key give NaN."""
    with np.errstate(invalid="ignore"):
        s = finish(q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2))
        e = np.exp(s - s.max(-1, keepdims=True))
        return np.asarray(e / e.sum(-1, keepdims=True) @ v.astype(np.float64))


@contextmanager
def eager(block: int) -> Iterator[None]:
    """Everything is large, and so many bytes of it are a block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(score_regions, "MIN_PRODUCT_BYTES", 1)
        patch.setattr(blocked_loops, "BLOCK_BYTES", block)
        patch.setattr(blocked_loops, "MIN_BLOCK_ROWS", 4)
        patch.setattr(blocked_loops, "MIN_SIZE_RATIO", 1)
        yield
