"""What the functions of this package share: options of SciPy's that ask for nothing here, stacks of matrices, and calls of SciPy itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

import hologram.numpy as hnp
from hologram import dtypes
from hologram.control.callbacks import pure_callback
from hologram.errors import ShapeError, UnsupportedError
from hologram.numpy.arguments import as_tensor
from hologram.support.user_lines import located
from hologram.trace.call.abstract_eval import ShapeDtypeStruct
from hologram.trace.tensor import Tensor

__all__ = ["as_complex", "in_scipy", "inexact", "vector"]

Results = Sequence[tuple[tuple[Any, ...], Any]]


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


def as_complex(x: Tensor) -> Tensor:
    return x if x.dtype.kind == "c" else x.astype("complex128" if x.dtype == np.float64 else "complex64")


def in_scipy(what: str, routine: Callable[..., Any], x: Tensor, results: Results) -> list[Tensor]:
    """The results of ``routine(scipy.linalg, matrix)`` for every matrix of a stack, on the host: shapes and types of one matrix.

    NaNs for a matrix that the routine fails on. Raises UnsupportedError where SciPy is not installed.
    """
    try:
        library = import_module("scipy.linalg")
    except ImportError:
        raise located(UnsupportedError(f"{what} runs in SciPy, which is not installed: pip install scipy")) from None

    def on_stack(matrices: np.ndarray) -> tuple[np.ndarray, ...]:
        stack = matrices.shape[:-2]
        out = tuple(np.full((*stack, *shape), np.nan, dtype) for shape, dtype in results)
        for at in np.ndindex(stack):
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")  # of singular matrices
                    found = routine(library, matrices[at])
            except (np.linalg.LinAlgError, ValueError):
                continue
            for to, value in zip(out, found, strict=True):
                to[at] = value
        return out

    types = tuple(ShapeDtypeStruct((*x.shape[:-2], *shape), dtype) for shape, dtype in results)
    return list(pure_callback(on_stack, types, x, vmap_method="expand_dims"))


def identity_like(x: Tensor) -> Tensor:
    """The identity of the size of the matrices ``x``."""
    return hnp.eye(x.shape[-1], dtype=x.dtype)
