"""Sorted scatters: updates that are sorted by index, as devices scatter many of them.

*Pairs* (shared, m), sorted unsigned numbers, hold the index of an update from bit ``low`` on and, in the lowest ``index_bits``, which one it is; with
no such bits all updates are alike, and any is that. A *run* is the pairs of one index. Indices beyond the array's end are dropped. ``op`` names the
scatter that is meant; ``cut``, if it is not 0, the positions, its multiples, at which runs are cut in pieces.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram.dtypes import DType
from hologram.errors import ShapeError
from hologram.ir.op import TABLE, Op, Shape, register

_ATTRS = ("op", "low", "index_bits", "cut")


def _update_of(pairs: np.ndarray, index_bits: int) -> np.ndarray:
    return (pairs & pairs.dtype.type((1 << index_bits) - 1)).astype(np.int64)


def _infer_sums(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    pairs, updates = inputs
    if len(updates.shape) != 4 or pairs.shape != (updates.shape[0], updates.shape[2]):
        raise ShapeError(f"run_sums: pairs {list(pairs.shape)} of updates {list(updates.shape)}")
    return updates.shape, updates.dtype


def _run_sums(pairs: np.ndarray, updates: np.ndarray, op: str, low: int, index_bits: int, cut: int) -> np.ndarray:
    combine, out = TABLE[op].monoid.reference, np.zeros_like(updates)  # type: ignore[union-attr]
    indices, update = pairs >> pairs.dtype.type(low), _update_of(pairs, index_bits)
    for s, m in enumerate(np.full(pairs.shape[0], pairs.shape[1])):
        first = 0
        for k in range(m):
            part = updates[s, :, update[s, k]]
            begins = k == 0 or indices[s, k] != indices[s, k - 1] or k % cut == 0
            first = k if begins else first
            out[s, :, first] = part if begins else combine(out[s, :, first], part)
    return out


def _infer_runs(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    x, *rest = inputs
    shape, d = _infer_sums(tuple(rest), attrs)
    if (*x.shape[:2], x.shape[3]) != (*shape[:2], shape[3]) or x.dtype is not d:
        raise ShapeError(f"scatter_runs: values {d}{list(shape)} into {x.dtype}{list(x.shape)}")
    return x.shape, x.dtype


def _scatter_runs(x: np.ndarray, pairs: np.ndarray, values: np.ndarray, op: str, low: int, index_bits: int, cut: int) -> np.ndarray:
    out, monoid = x.copy(), TABLE[op].monoid
    indices, update = (pairs >> pairs.dtype.type(low)).astype(np.int64), _update_of(pairs, index_bits)
    for s, k in np.ndindex(*pairs.shape):
        index, begins = indices[s, k], k == 0 or indices[s, k] != indices[s, k - 1]
        if index < x.shape[2] and (cut == 0 or begins or k % cut == 0):
            value = values[s, :, k if cut else update[s, k]]
            out[s, :, index] = value if monoid is None else monoid.reference(out[s, :, index], value)
    return out


# (shared, outer, m, inner): at the beginning of every piece of a run its updates, combined in order; what is elsewhere has no meaning
run_sums: Op = register(Op("run_sums", "runs", 2, _infer_sums, _run_sums, attrs=_ATTRS, kinds="u", cost=20))
# x (shared, outer, n, inner), combined with the updates of every run in order, or, where runs are cut, with what ``run_sums`` gave
scatter_runs: Op = register(Op("scatter_runs", "runs", 3, _infer_runs, _scatter_runs, attrs=_ATTRS, kinds="biuf", cost=20))
