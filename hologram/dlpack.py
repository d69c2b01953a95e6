"""DLPack capsules of arrays, by way of NumPy: version 2.0 knows only what came before DLPack 1.0, which has no flag for memory that is read-only."""

from __future__ import annotations

from typing import Any

import numpy as np

VERSIONED = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


def capsule(array: np.ndarray, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
    """``array.__dlpack__``. Raises BufferError for memory that cannot be handed out so."""
    if VERSIONED:
        return array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
    if dl_device is not None and tuple(dl_device) != array.__dlpack_device__():
        raise BufferError(f"the array is not on the device {dl_device}")
    return (array.copy() if copy else array).__dlpack__(stream=stream)
