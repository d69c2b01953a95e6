"""Leaves of a graph: arguments, constants and realised values. Their shape and type are attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ShapeError
from hologram.ir.op import Op, Shape, register
from hologram.ir.storage import as_array


class FoldedConstant:
    """Stands in a ``leaf`` for the storage of a folded constant, which the initializer computes, and marks the ``input`` of a loop's body that is
    one. ``index`` is its number among them. See :mod:`hologram.graph.constants.fold`."""

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


def _const(dtype: str, bits: bytes) -> np.ndarray:
    return np.frombuffer(bits, dtypes.of(dtype).np).reshape(())


def _leaf(storage: Any, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return as_array(storage).reshape(shape)


def _input(argument: np.ndarray, *attrs: Any) -> np.ndarray:
    """The interpreter hands over the argument itself."""
    return argument


def _define(name: str, infer: Any, reference: Any, attrs: tuple[str, ...], kinds: str = "biufc") -> Op:
    return register(Op(name, "leaf", 0, infer, reference, attrs=attrs, kinds=kinds, cost=0))


input_ = _define("input", _infer_input, _input, ("index", "shape", "dtype", "token"))
const = _define("const", _infer_const, _const, ("dtype", "bits"))
leaf = _define("leaf", _infer_leaf, _leaf, ("storage", "shape", "dtype"))
