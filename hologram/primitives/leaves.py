"""Leaves of a graph: arguments, constants, realised values, and the counting array. Their shape and type are attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError
from hologram.primitives.elementwise import cast_reference
from hologram.primitives.op import Op, Shape, register


def as_array(storage: Any) -> np.ndarray:
    """The elements of a ``leaf``'s storage as a NumPy array, without a copy where the storage allows."""
    if isinstance(storage, np.ndarray) or hasattr(storage, "__array__"):
        return np.asarray(storage)
    from hologram.backends.cpu.runtime.storage import view  # a backend is loaded only where its memory is read

    return view(storage)


class Held:
    """Stands in a ``leaf`` for the storage of a value that is computed ahead, and marks the ``input`` of a loop's body that is one: its number among
    them. See :mod:`hologram.graph.ahead`."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


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
    """The indices as int64, cast."""
    column = (1,) * axis + (shape[axis],) + (1,) * (len(shape) - axis - 1)
    return np.broadcast_to(cast_reference(np.arange(shape[axis]), dtype).reshape(column), shape)


def _const(dtype: str, bits: bytes) -> np.ndarray:
    return np.frombuffer(bits, dtypes.of(dtype).np).reshape(())


def _leaf(storage: Any, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return as_array(storage).reshape(shape)


def _input(argument: np.ndarray, *attrs: Any) -> np.ndarray:
    """The interpreter hands over the argument itself."""
    return argument


def _row(name: str, infer: Any, reference: Any, attrs: tuple[str, ...], kinds: str = "biufc") -> Op:
    return register(Op(name, "leaf", 0, infer, reference, attrs=attrs, kinds=kinds, cost=0))


input_ = _row("input", _infer_input, _input, ("index", "shape", "dtype", "token"))
const = _row("const", _infer_const, _const, ("dtype", "bits"))
leaf = _row("leaf", _infer_leaf, _leaf, ("storage", "shape", "dtype"))
iota = _row("iota", _infer_iota, _iota, ("shape", "axis", "dtype"), "iuf")
