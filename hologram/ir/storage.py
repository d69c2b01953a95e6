"""Storages: the memory of realised values, as graphs see it: NumPy arrays, and storages of backends, which say how they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_view: list[Callable[[Any], np.ndarray]] = []  # how storages that are no arrays are read, once there are any


def read_storages_by(view: Callable[[Any], np.ndarray]) -> None:
    """``view(storage)`` gives the array in a storage, without a copy where it is in the host's memory."""
    _view[:] = [view]


def as_array(storage: Any) -> np.ndarray:
    """The elements of a storage as a NumPy array, without a copy where the storage allows."""
    if isinstance(storage, np.ndarray) or hasattr(storage, "__array__"):
        return np.asarray(storage)
    return _view[0](storage)
