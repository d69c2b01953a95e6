"""Movement of symbolic sizes: ops whose result's shape is known from the graph, and need not follow from their arguments.

ATen clamps the ends of slices, and divides extents; with symbolic sizes the graph says what comes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from hologram import numpy as hnp
from hologram.ir.symbolic import Expr, Int, bounds
from hologram.trace.symbolic_extent import extent
from hologram.trace.tensor import Tensor
from hologram_torch.aten.types import cast, type_of
from hologram_torch.compile.fx_types import TensorType
from hologram_torch.compile.symbolic_sizes import NotSymbolic

aten = torch.ops.aten


def is_symbolic(of: Any) -> bool:
    """Whether the type of a value, or one of a list, has a symbolic shape."""
    if isinstance(of, list):
        return any(map(is_symbolic, of))
    return isinstance(of, TensorType) and any(isinstance(n, Expr) for n in of.shape)


def _shape(of: TensorType) -> tuple[Any, ...]:
    return tuple([extent(n) for n in of.shape])


def _reshape(of: TensorType, x: Tensor, *size: Any) -> Tensor:
    return hnp.reshape(x, _shape(of))


def _expand(of: TensorType, x: Tensor, size: Sequence[Any], *, implicit: bool = False) -> Tensor:
    return hnp.broadcast_to(x, _shape(of))


def _part(x: Tensor, dim: int, start: Any, length: Int, step: int = 1) -> tuple[Any, ...]:
    """The key of ``length`` elements along an axis. Raises NotSymbolic for a start that may be on either side of 0."""
    if start is None:
        start = 0
    least, most = bounds(start)
    if most is not None and most < 0:
        start = x.shape[dim] + start
    elif least is None or least < 0:
        raise NotSymbolic(f"whether {start} is negative")
    last = start + (extent(length) - 1) * step
    return (slice(None),) * (dim % x.ndim) + (slice(start, last + 1, step),)


def _slice(of: TensorType, x: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    if 0 in of.shape:
        return hnp.zeros(_shape(of), dtype=x.dtype)
    return x[_part(x, dim, start, of.shape[dim], step)]


def _slice_scatter(of: TensorType, x: Tensor, source: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    return x.at[_part(x, dim, start, source.shape[dim], step)].set(cast(source, type_of(x)))


def _split(of: list[TensorType], x: Tensor, sizes: Any, dim: int = 0) -> list[Tensor]:
    parts, start = [], 0
    for part in of:
        parts.append(x[_part(x, dim, start, part.shape[dim])])
        start = start + extent(part.shape[dim])  # type: ignore[assignment]
    return parts


# from the type of the result and the arguments to the result
FORMS: dict[Any, Callable[..., Any]] = {
    aten.view.default: _reshape,
    aten._unsafe_view.default: _reshape,
    aten.reshape.default: _reshape,
    aten.expand.default: _expand,
    aten.slice.Tensor: _slice,
    aten.slice_scatter.default: _slice_scatter,
    aten.split.Tensor: _split,
    aten.split_with_sizes.default: _split,
}
