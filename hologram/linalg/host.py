"""Decompositions that run in SciPy, on the host."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from hologram.control.callbacks import pure_callback
from hologram.errors import UnsupportedError
from hologram.support.user_lines import located
from hologram.trace.call.abstract_eval import ShapeDtypeStruct
from hologram.trace.tensor import Tensor

__all__ = ["as_complex", "in_scipy"]

Results = Sequence[tuple[tuple[Any, ...], Any]]


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
