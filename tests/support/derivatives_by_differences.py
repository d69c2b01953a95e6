"""Gradients by central differences, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def differences(f: Callable[[np.ndarray], Any], x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The gradient of a function with one scalar result."""
    found = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        moved = np.zeros_like(x)
        moved[at] = step
        found[at] = (float(f(x + moved)) - float(f(x - moved))) / (2 * step)
    return found
