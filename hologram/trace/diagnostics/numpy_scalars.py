"""NumPy's scalars beside arrays. ``np.sqrt(2)`` is a float64, and not weak as Python's numbers are: as in NumPy, an array of float32 becomes float64.

That is said once for each line of the user's; with ``settings.weak_numpy_scalars`` the scalar counts as Python's number instead.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import WideningWarning
from hologram.settings import settings
from hologram.support.user_lines import user_place

_told: set[tuple[str, int]] = set()


def beside_scalars(args: Sequence[Any], what: str) -> Sequence[Any]:
    """Operands, of which some are NumPy's floating or complex scalars: these as Python's numbers, where the setting says so; else as they are, with a
    warning where they widen an array."""
    arrays = [dtypes.of(x.dtype) for x in args if hasattr(x, "dtype") and not isinstance(x, np.generic) and not getattr(x, "_weak", False)]
    floats = [d for d in arrays if d.is_float or d.is_complex]
    if not floats:
        return args
    if settings.weak_numpy_scalars:
        return [x.item() if isinstance(x, np.inexact) else x for x in args]
    if any(d.bits == 8 for d in floats):
        return args  # which has no common type with the scalar
    array = functools.reduce(dtypes.promote, floats)
    for x in args:
        if isinstance(x, np.inexact):
            _tell_widened(what, array, dtypes.of(x.dtype))
    return args


def _tell_widened(what: str, array: DType, scalar: DType) -> None:
    if scalar.is_complex and not array.is_complex:
        return
    wide, place = dtypes.promote(array, scalar), user_place()
    if wide is array or place is None or place in _told:
        return
    _told.add(place)
    advice = "write float(x), give it the array's dtype, or set hg.settings.weak_numpy_scalars"
    text = f"{what}: a NumPy scalar of type {scalar} widens an array of {array} to {wide}, which a Python number does not: {advice}"
    warnings.warn_explicit(text, WideningWarning, *place)
