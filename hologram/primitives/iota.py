"""``iota``: the indices along an axis. Its shape, axis and type are attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError
from hologram.ir.op import Op, Shape, register
from hologram.primitives.scalar.elementwise import cast_reference


def _infer_iota(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    shape, axis, name = attrs
    dtype = dtypes.of(name)
    if not 0 <= axis < len(shape):
        raise ShapeError(f"iota: axis {axis} of shape {list(shape)}")
    if dtype.kind not in "iuf":
        raise DTypeError(f"iota does not give {dtype}")
    return shape, dtype


def _iota(shape: tuple[int, ...], axis: int, dtype: str) -> np.ndarray:
    """The indices as int64, cast."""
    column = (1,) * axis + (shape[axis],) + (1,) * (len(shape) - axis - 1)
    return np.broadcast_to(cast_reference(np.arange(shape[axis]), dtype).reshape(column), shape)


iota = register(Op("iota", "leaf", 0, _infer_iota, _iota, attrs=("shape", "axis", "dtype"), sizes=("shape",), kinds="iuf", cost=0))
