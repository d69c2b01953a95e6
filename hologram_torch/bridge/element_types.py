"""Element types: from torch's to Hologram's and back."""

from __future__ import annotations

from typing import Any

import torch

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError

_TORCH: dict[DType, torch.dtype] = {d: getattr(torch, d.name) for d in dtypes.ALL}
_HOLOGRAM: dict[torch.dtype, DType] = {t: d for d, t in _TORCH.items()}


def dtype_of(dtype: torch.dtype) -> DType:
    """Hologram's element type for torch's. Raises DTypeError for one that Hologram lacks (quantised types, other 8-bit floats, complex32)."""
    found = _HOLOGRAM.get(dtype)
    if found is None:
        raise DTypeError(f"{dtype} has no counterpart in Hologram, which has {', '.join(d.name for d in dtypes.ALL)}")
    return found


def torch_dtype_of(dtype: Any) -> torch.dtype:
    """Torch's element type for anything that names an element type of Hologram. Raises TypeError for anything else."""
    return _TORCH[dtypes.of(dtype)]
