"""Distances from true values in units of the last place."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Distance of ``got`` from a reference in a wider type, in units of the last place of the reference; infinite where classes differ."""
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        exponent = np.maximum(np.frexp(want)[1] - 1, info.minexp)
        distance = np.ldexp(np.abs(got.astype(want.dtype) - want), info.nmant - exponent).astype(np.float64)
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        return np.where(np.isfinite(got) & np.isfinite(rounded), distance, np.where(same, 0.0, np.inf))


def ulps_of_float64(got: float, want: Any) -> float:
    if want == 0:
        return 0.0 if got == 0 else np.inf
    exponent = max(int(mpmath.frexp(want)[1]) - 1, -1022)
    if not np.isfinite(got):
        return 0.0 if exponent > 1023 else np.inf
    with mpmath.workprec(120):
        return float(abs(mpmath.mpf(got) - want) / mpmath.mpf(2) ** (exponent - 52))
