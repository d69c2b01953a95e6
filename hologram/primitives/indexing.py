"""Reading at computed places."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError
from hologram.primitives.op import Op, Shape, register


def _infer_take(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    (x, indices), (axis,) = inputs, attrs
    if not indices.dtype.is_integer:
        raise DTypeError(f"take: indices are integers, not {indices.dtype}")
    if not 0 <= axis < len(x.shape):
        raise ShapeError(f"take: axis {axis} of shape {list(x.shape)}")
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    if x.shape[axis] == 0 and 0 not in shape:
        raise ShapeError(f"take: axis {axis} of shape {list(x.shape)} holds no element to take")
    return shape, x.dtype


def _take(x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    if x.shape[axis] == 0:  # np.take refuses even where nothing is read
        return np.empty((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
    last = min(x.shape[axis] - 1, int(np.iinfo(indices.dtype).max))
    return np.take(x, np.clip(indices, 0, last).astype(np.intp), axis)


# Indices are in range by construction: the front end wraps negative ones and clamps. A backend that clamps again is right too.
take = register(Op("take", "gather", 2, _infer_take, _take, attrs=("axis",), kinds="biufc"))
