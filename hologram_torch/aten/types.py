"""Element types: torch's promotion rules, and casts to torch's types."""

from __future__ import annotations

import functools
from typing import Any

import torch

from hologram import dtypes
from hologram import numpy as hnp
from hologram.ir.symbolic import Expr
from hologram.trace import hooks
from hologram.trace.tensor import Tensor
from hologram_torch.bridge.element_types import dtype_of, torch_dtype_of

_OF_SCALAR = {bool: torch.bool, int: torch.int64}


def type_of(x: Any) -> torch.dtype:
    """The torch type of a Tensor, or of a Python scalar on its own, such as a symbolic size."""
    if type(x) is Tensor:
        return torch_dtype_of(x.dtype)
    if type(x) in _OF_SCALAR:
        return _OF_SCALAR[type(x)]
    if isinstance(x, Expr):
        return torch.int64
    default = torch.get_default_dtype()
    return default.to_complex() if isinstance(x, complex) else default


def cast(x: Any, dtype: torch.dtype | None) -> Any:
    """Casts a Tensor to ``dtype``, unless that is None. Imaginary parts are dropped where it has none; float8_e4m3fn saturates as in PyTorch, and
    floats wrap around in narrow integers."""
    if dtype is None or type_of(x) is dtype:
        return x
    if type_of(x).is_complex and not dtype.is_complex:
        x = hnp.real(x) if dtype is not torch.bool else x != 0
    if dtype is torch.float8_e4m3fn and _saturates():
        x = _within_e4m3fn(x)
    wide = _wide_integer(type_of(x), dtype)
    return hnp.astype(x if wide is None else hnp.astype(x, dtype_of(wide).np), dtype_of(dtype).np)


def _wide_integer(given: torch.dtype, dtype: torch.dtype) -> torch.dtype | None:
    """The signed integer by way of which PyTorch makes a float a narrow or unsigned one; None for other types. Hologram's own casts saturate."""
    if not given.is_floating_point:
        return None
    if dtype in (torch.uint8, torch.int8, torch.uint16, torch.int16):
        return torch.int32
    return torch.int64 if dtype is torch.uint32 else None


@functools.cache
def _saturates() -> bool:
    """Whether PyTorch's casts give the largest number for one that is beyond float8_e4m3fn's range: NaN, which Hologram gives, in other versions."""
    return not torch.full((1,), 1e4).to(torch.float8_e4m3fn).float().isnan().item()


def _within_e4m3fn(x: Tensor) -> Tensor:
    """``x`` with float8_e4m3fn's largest numbers for what is beyond them; NaNs stay."""
    of, most = dtype_of(type_of(x)), int(dtypes.float8_e4m3fn.format.largest)
    if not of.is_float and of.bits == 8:
        return x
    return hnp.clip(x, 0 if of.kind == "u" else -most, most)


def _combine(higher: torch.dtype | None, lower: torch.dtype | None) -> torch.dtype | None:
    """The type of operands of two ranks of priority: the lower one matters only where it is of a higher kind (bool, integer, float, complex)."""
    if higher is None or lower is None:
        return higher or lower
    if higher.is_complex:
        return higher
    if higher.is_floating_point:
        return torch.promote_types(higher, torch.complex32) if lower.is_complex else higher
    if higher is torch.bool or lower.is_floating_point or lower.is_complex:
        return torch.promote_types(higher, lower)
    return higher


def result_type(*args: Any) -> torch.dtype:
    """Torch's type promotion: Tensors with axes go before those without, and these before Python scalars."""
    ranks: list[torch.dtype | None] = [None, None, None]
    for x in args:
        if x is not None:
            rank = 2 if type(x) is not Tensor else int(x.ndim == 0)
            dtype, before = type_of(x), ranks[rank]
            ranks[rank] = dtype if before is None else torch.promote_types(before, dtype)
    found = _combine(_combine(ranks[0], ranks[1]), ranks[2])
    assert found is not None
    return found


def inexact(dtype: torch.dtype) -> torch.dtype:
    """The type that functions such as ``exp`` give: integers and bool become the default float."""
    return dtype if dtype.is_floating_point or dtype.is_complex else torch.get_default_dtype()


def opmath(dtype: torch.dtype) -> torch.dtype:
    """The type that ops of several steps compute in: float32 for narrow floats."""
    return torch.float32 if dtype.is_floating_point and dtype.itemsize < 4 else dtype


def tensor_of(value: Any, dtype: torch.dtype) -> Tensor:
    """A Python scalar, a symbolic size, or a Tensor as a Tensor of ``dtype``; integers wrap."""
    if type(value) is Tensor:
        return cast(value, dtype)
    if isinstance(value, Expr):
        return cast(hooks.tensor_of_extent(value), dtype)
    of = dtype_of(dtype)
    if of.is_integer:
        value = int(value) & ((1 << of.bits) - 1)
        if of.kind == "i" and value >> (of.bits - 1):
            value -= 1 << of.bits
    elif of.kind == "b":
        value = bool(value)
    return hnp.full((), value, dtype=of.np)
