"""Types for annotations: what functions take for an array, and for an element type. Names of ``jax.typing``."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram.trace.tensor import Tensor

__all__ = ["ArrayLike", "DTypeLike"]

ArrayLike = Tensor | np.ndarray | np.bool | np.number[Any] | bool | int | float | complex
DTypeLike = str | type[Any] | np.dtype[Any]
