"""Creation ops: tensors made of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from hologram import numpy as hnp
from hologram.ir.symbolic import Expr
from hologram.trace.tensor import Tensor
from hologram_torch.aten.pointwise.elementwise import require_cpu
from hologram_torch.aten.registry import implements
from hologram_torch.aten.types import cast, opmath, tensor_of, type_of


def _filled(what: str, size: Sequence[int], value: Any, dtype: torch.dtype, options: dict[str, Any]) -> Tensor:
    require_cpu(what, options.get("device"))
    return hnp.broadcast_to(tensor_of(value, dtype), tuple(size))


@implements("full")
def full(size: Sequence[int], value: Any, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    return _filled("full", size, value, dtype or type_of(value), options)


@implements("full_like")
def full_like(x: Tensor, value: Any, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    return _filled("full_like", x.shape, value, dtype or type_of(x), options)


@implements("zeros", "empty.memory_format", "_efficientzerotensor")
def zeros(size: Sequence[int], *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    """Zeros, for uninitialised tensors too."""
    return _filled("zeros", size, 0, dtype or torch.get_default_dtype(), options)


@implements("empty_strided")
def empty_strided(size: Sequence[int], stride: Sequence[int], *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    return _filled("empty_strided", size, 0, dtype or torch.get_default_dtype(), options)


@implements("ones")
def ones(size: Sequence[int], *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    return _filled("ones", size, 1, dtype or torch.get_default_dtype(), options)


@implements("zeros_like", "empty_like")
def zeros_like(x: Tensor, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    return _filled("zeros_like", x.shape, 0, dtype or type_of(x), options)


@implements("ones_like")
def ones_like(x: Tensor, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    return _filled("ones_like", x.shape, 1, dtype or type_of(x), options)


@implements("scalar_tensor")
def scalar_tensor(value: Any, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    return _filled("scalar_tensor", (), value, dtype or torch.get_default_dtype(), options)


@implements("fill.Scalar", "fill.Tensor")
def fill(x: Tensor, value: Any) -> Tensor:
    return hnp.broadcast_to(tensor_of(value, type_of(x)), x.shape)


@implements("arange.start_step")
def arange(start: Any, end: Any, step: Any = 1, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    require_cpu("arange", options.get("device"))
    of = dtype or (torch.int64 if all(isinstance(v, (int, Expr)) for v in (start, end, step)) else torch.get_default_dtype())
    if of is torch.int64:  # whose bounds torch truncates before it counts
        start, end, step = (v if isinstance(v, Expr) else int(v) for v in (start, end, step))
    whole = all(isinstance(v, (int, Expr)) for v in (start, end, step))
    count = max(-((start - end) // step) if whole else math.ceil((end - start) / step), 0)
    computed = torch.int64 if not of.is_floating_point else torch.float64 if of is torch.float64 else torch.float32
    steps = cast(hnp.arange(count), computed)
    return cast(tensor_of(start, computed) + steps * tensor_of(step, computed), of)


def _truncated(value: Any) -> Any:
    if type(value) is Tensor:
        return cast(value, torch.int64)
    return value if isinstance(value, Expr) else int(value)


@implements("linspace", "linspace.Tensor_Tensor", "linspace.Tensor_Scalar", "linspace.Scalar_Tensor")
def linspace(start: Any, end: Any, steps: int, *, dtype: torch.dtype | None = None, **options: Any) -> Tensor:
    """Counts from both ends, which are met exactly. Those of integers are truncated first; torch's decomposition does not."""
    require_cpu("linspace", options.get("device"))
    is_complex = any(isinstance(v, complex) or (type(v) is Tensor and type_of(v).is_complex) for v in (start, end))
    of = dtype or (torch.get_default_dtype().to_complex() if is_complex else torch.get_default_dtype())
    computed = torch.float64
    if of.is_floating_point or of.is_complex:
        computed = opmath(of)
    else:
        start, end = _truncated(start), _truncated(end)
    first, last = tensor_of(start, computed), tensor_of(end, computed)
    if steps < 2:
        return hnp.broadcast_to(cast(first, of), (steps,))
    step = (last - first) / (steps - 1)
    place = hnp.arange(steps)
    from_first, to_last = cast(place, computed), cast(steps - 1 - place, computed)
    return cast(hnp.where(place < steps // 2, first + step * from_first, last - step * to_last), of)


@implements("tril_indices")
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: torch.dtype | None = torch.int64, **options: Any) -> Tensor:
    return cast(hnp.asarray(np.stack(np.tril_indices(row, offset, col))), dtype or torch.int64)
