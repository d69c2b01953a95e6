"""Subclasses of NumPy's arrays: masked arrays, whose masks would be lost, are refused wherever values are taken."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram.errors import ArgumentError
from hologram.support.user_lines import located

__all__ = ["check_sequence", "check_unmasked", "known_array"]


def check_unmasked(x: Any, what: str) -> None:
    """Raises ArgumentError for a masked array, whose mask would be lost."""
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray and isinstance(x, np.ma.MaskedArray):
        raise located(ArgumentError(f"{what}: masked arrays are not supported: pass x.filled(value), or x.data and x.mask"))


def known_array(x: Any, what: str, dtype: Any = None) -> np.ndarray:
    """The values of anything array-like that is no Tensor. Raises ArgumentError for masked arrays, in sequences too, whose masks would be lost."""
    if type(x) is not np.ndarray:
        check_sequence(x, what) if isinstance(x, (list, tuple)) else check_unmasked(x, what)
    return np.asarray(x, dtype)


def check_sequence(values: Any, what: str) -> None:
    """As :func:`check_unmasked`, for what a nested sequence holds."""
    for x in values:
        if isinstance(x, (list, tuple)):
            check_sequence(x, what)
        elif isinstance(x, np.ndarray):
            check_unmasked(x, what)
