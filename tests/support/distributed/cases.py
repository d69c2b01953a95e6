"""Every collective over a named axis, beside what it means for the stack of everyone's arrays, in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import hologram as hg

N = 4  # ranks or examples
SHAPE = (4, 8)  # of each one's array
PAIRS = [(0, 2), (2, 1), (3, 3)]


class Case(NamedTuple):
    """``run(x, name)`` is called for each; ``meaning(stack)`` gives the stack of what they get."""

    run: Callable[[Any, Any], Any]
    meaning: Callable[[np.ndarray], np.ndarray]
    linear: bool = True


def _everyone(x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x, (N, *x.shape))


def _wide_sum(x: np.ndarray) -> np.ndarray:
    """In the order of ranks; narrow floats in float32, rounded once."""
    wide = np.float32 if x.dtype.itemsize < 4 and x.dtype.kind not in "iu" else x.dtype
    total = x[0].astype(wide)
    for one in x[1:]:
        total = total + one.astype(wide)
    return total.astype(x.dtype)


def _permuted(x: np.ndarray) -> np.ndarray:
    out = np.zeros_like(x)
    for s, d in PAIRS:
        out[d] = x[s]
    return out


def _tiled_exchange(x: np.ndarray) -> np.ndarray:
    parts = x.reshape(N, SHAPE[0], N, SHAPE[1] // N)  # (from, rows, to, columns)
    return parts.transpose(2, 0, 1, 3).reshape(N, N * SHAPE[0], SHAPE[1] // N)


CASES = {
    "psum": Case(hg.lax.psum, lambda x: _everyone(_wide_sum(x))),
    "pmax": Case(hg.lax.pmax, lambda x: _everyone(x.max(0)), False),
    "pmin": Case(hg.lax.pmin, lambda x: _everyone(x.min(0)), False),
    "all_gather": Case(lambda x, i: hg.lax.all_gather(x, i, axis=1), lambda x: _everyone(x.swapaxes(0, 1))),
    "all_gather_tiled": Case(lambda x, i: hg.lax.all_gather(x, i, axis=0, tiled=True), lambda x: _everyone(x.reshape(-1, SHAPE[1]))),
    "psum_scatter": Case(hg.lax.psum_scatter, _wide_sum),
    "psum_scatter_tiled": Case(
        lambda x, i: hg.lax.psum_scatter(x, i, scatter_dimension=1, tiled=True), lambda x: _wide_sum(x).reshape(SHAPE[0], N, -1).swapaxes(0, 1)
    ),
    "all_to_all": Case(lambda x, i: hg.lax.all_to_all(x, i, 0, 1), lambda x: x.transpose(1, 2, 0)),
    "all_to_all_tiled": Case(lambda x, i: hg.lax.all_to_all(x, i, 1, 0, tiled=True), _tiled_exchange),
    "ppermute": Case(lambda x, i: hg.lax.ppermute(x, i, PAIRS), _permuted),
    "pbroadcast": Case(lambda x, i: hg.lax.pbroadcast(x, i, 2), lambda x: _everyone(x[2])),
    "axis_index": Case(
        lambda x, i: x * hg.lax.axis_index(i).astype(x.dtype), lambda x: x * np.arange(N).reshape(N, 1, 1).astype(x.dtype)
    ),
}  # fmt: skip
