"""Leaves of a graph: arguments, constants, realised values, and the counting array. Their shape and type are attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError
from hologram.primitives.op import Op, Shape, register


def as_array(storage: Any) -> np.ndarray:
    """The elements of a ``leaf``'s storage as a NumPy array, without a copy where the storage allows."""
    if isinstance(storage, np.ndarray) or hasattr(storage, "__array__"):
        return np.asarray(storage)
    from hologram.backends.cpu.runtime.storage import view  # a backend is loaded only where its memory is read

    return view(storage)


def _infer_input(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    _, shape, dtype, _ = attrs
    return shape, dtypes.of(dtype)


def _infer_const(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    dtype, bits = dtypes.of(attrs[0]), attrs[1]
    if len(bits) != dtype.itemsize:
        raise ShapeError(f"const: {len(bits)} bytes do not make one {dtype}")
    return (), dtype


def _infer_leaf(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    _, shape, dtype = attrs
    return shape, dtypes.of(dtype)


def _infer_iota(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    shape, axis, name = attrs
    dtype = dtypes.of(name)
    if not 0 <= axis < len(shape):
        raise ShapeError(f"iota: axis {axis} of shape {list(shape)}")
    if dtype.kind not in "iuf":
        raise DTypeError(f"iota does not give {dtype}")
    return shape, dtype


def _iota(shape: tuple[int, ...], axis: int, dtype: str) -> np.ndarray:
    """Counts wrap in integer types and round, through float32 for the 16-bit ones, in float types."""
    d = dtypes.of(dtype)
    with np.errstate(all="ignore"):
        count = np.arange(shape[axis]).astype(dtypes.compute_type(d).np).astype(d.np)
    column = (1,) * axis + (shape[axis],) + (1,) * (len(shape) - axis - 1)
    return np.broadcast_to(count.reshape(column), shape)


# the interpreter hands over the argument itself; `token` is unique to a trace level
input_ = register(Op("input", "leaf", 0, _infer_input, lambda argument, *attrs: argument, attrs=("index", "shape", "dtype", "token"), kinds="biufc", cost=0))
const = register(
    Op("const", "leaf", 0, _infer_const, lambda dtype, bits: np.frombuffer(bits, dtypes.of(dtype).np).reshape(()), attrs=("dtype", "bits"), kinds="biufc", cost=0)
)
leaf = register(
    Op("leaf", "leaf", 0, _infer_leaf, lambda storage, shape, dtype: as_array(storage).reshape(shape), attrs=("storage", "shape", "dtype"), kinds="biufc", cost=0)
)
iota = register(Op("iota", "leaf", 0, _infer_iota, _iota, attrs=("shape", "axis", "dtype"), kinds="iuf"))
