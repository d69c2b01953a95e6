"""Statistics of an array and its histogram, of a sample where the array is large."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SAMPLE = 2**20  # elements that are looked at
BINS = 48


class Statistics(NamedTuple):
    """``looked_at`` of all elements, of which ``nan`` and ``infinite`` have no place in the rest; of complex numbers their magnitudes. ``counts`` are
    those of equal bins from ``low`` to ``high``; None where there is no finite element."""

    size: int
    looked_at: int
    nan: int
    infinite: int
    zeros: int
    low: float
    high: float
    mean: float
    std: float
    counts: list[int] | None


def sample_of(view: np.ndarray) -> np.ndarray:
    """Elements of an array, all of them or about :data:`SAMPLE` from all over it, as float64."""
    if view.size > SAMPLE:
        step = -(-view.size // SAMPLE)
        step += step % 2 == 0  # axes are often powers of 2, in which an even step would see a few columns alone
        places = np.arange(0, view.size, step)
        view = view.reshape(-1)[places] if view.flags.c_contiguous else view[np.unravel_index(places, view.shape)]
    flat = view.reshape(-1)
    with np.errstate(all="ignore"):
        return np.abs(flat).astype(np.float64) if flat.dtype.kind == "c" else flat.astype(np.float64)


def statistics_of(view: np.ndarray) -> Statistics:
    """What there is to know of ``view``."""
    x = sample_of(view)
    nan, infinite = int(np.isnan(x).sum()), int(np.isinf(x).sum())
    finite = x[np.isfinite(x)] if nan or infinite else x
    zeros = int(finite.size - np.count_nonzero(finite))
    if not finite.size:
        none = float("nan")
        return Statistics(view.size, x.size, nan, infinite, zeros, none, none, none, none, None)
    low, high = float(finite.min()), float(finite.max())
    scale = max(abs(low), abs(high)) or 1.0  # differences of the largest numbers overflow
    scaled = finite / scale
    with np.errstate(all="ignore"):
        mean, std = float(scaled.mean()) * scale, float(scaled.std()) * scale
    return Statistics(view.size, x.size, nan, infinite, zeros, low, high, min(max(mean, low), high), std, _counts(scaled))


def _counts(x: np.ndarray) -> list[int]:
    """How many of ``x``, whose magnitudes are at most 1, are in each bin."""
    low, high = x.min(), x.max()
    if low == high:
        return [x.size]
    places = ((x - low) * (BINS / (high - low))).astype(np.int64)
    return np.bincount(np.clip(places, 0, BINS - 1), minlength=BINS).tolist()
