"""What the functions of this package take: arrays of floats, vectors, stacks of matrices."""

from __future__ import annotations

from typing import Any

import hologram.numpy as hnp
from hologram import dtypes
from hologram.errors import ShapeError
from hologram.numpy.arguments import as_tensor
from hologram.support.user_lines import located
from hologram.trace.tensor import Tensor

__all__ = ["identity_like", "inexact", "vector"]


def inexact(x: Any, what: str) -> Tensor:
    """An array of floats or complex numbers; integers become the default float."""
    t = as_tensor(x, what)
    return t if t.dtype.kind in "fcV" else t.astype(dtypes.default_float)


def vector(x: Any, what: str, role: str = "the argument") -> Tensor:
    """An array of one axis. Raises ShapeError for others."""
    t = as_tensor(x, what)
    if t.ndim != 1:
        raise located(ShapeError(f"{what}: {role} is a vector, not an array of shape {list(t.shape)}"))
    return t


def identity_like(x: Tensor) -> Tensor:
    """The identity of the size of the matrices ``x``."""
    return hnp.eye(x.shape[-1], dtype=x.dtype)
