"""What the functions of this package do with their arguments: floats, computed wide enough."""

from __future__ import annotations

from typing import Any

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError
from hologram.numpy.arguments import array, wrap
from hologram.trace.recorder import cast_node, located
from hologram.trace.tensor import Tensor

__all__ = ["cast", "floats"]


def floats(x: Any, what: str) -> tuple[Tensor, DType]:
    """``x`` in the type it is computed in (float32 for 16-bit floats), and the type of the result. Raises DTypeError for complex numbers."""
    node = array(x, what)
    if node.dtype.is_complex:
        raise located(DTypeError(f"{what}: takes real numbers, not {node.dtype.name}"))
    node = cast_node(node, dtypes.to_inexact(node.dtype))
    return wrap(cast_node(node, dtypes.compute_type(node.dtype))), node.dtype


def cast(x: Tensor, dtype: DType) -> Tensor:
    return wrap(cast_node(array(x, "cast"), dtype))
