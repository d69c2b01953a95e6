"""Fake quantisation, which rounds values to the steps of a quantised type, and products of 8-bit integers."""

from __future__ import annotations

from typing import Any

import torch

from hologram import numpy as hnp
from hologram.trace.tensor import Tensor
from hologram_torch.aten.registry import implements
from hologram_torch.aten.types import cast, tensor_of, type_of


def _rounded(x: Tensor, scale: Tensor, zero_point: Any, low: int, high: int) -> tuple[Tensor, Tensor]:
    """``x`` rounded to ``scale * (q - zero_point)`` with an integer q within ``low`` … ``high``, and where q was not beyond."""
    dtype = type_of(x)
    zero = cast(zero_point, torch.float32) if type(zero_point) is Tensor else float(zero_point)
    wide = cast(x, torch.float32)
    q = hnp.round(wide * (1 / cast(scale, torch.float32))) + zero
    return cast((hnp.clip(q, low, high) - zero) * cast(scale, torch.float32), dtype), (q >= low) & (q <= high)


@implements("fake_quantize_per_tensor_affine_cachemask")
def fake_quantize(x: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int) -> tuple[Tensor, Tensor]:
    return _rounded(x, tensor_of(scale, torch.float32), zero_point, quant_min, quant_max)


@implements("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def fake_quantize_by_tensors(
    x: Tensor, scale: Tensor, zero_point: Tensor, fake_quant_enabled: Tensor, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    off = hnp.reshape(fake_quant_enabled, ()) == 0
    found, inside = _rounded(x, hnp.reshape(scale, ()), hnp.reshape(zero_point, ()), quant_min, quant_max)
    return hnp.where(off, x, found), off | inside


@implements("fake_quantize_per_channel_affine_cachemask")
def fake_quantize_channels(x: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int) -> tuple[Tensor, Tensor]:
    shape = tuple(-1 if i == axis % x.ndim else 1 for i in range(x.ndim))
    return _rounded(x, hnp.reshape(scale, shape), hnp.reshape(zero_point, shape), quant_min, quant_max)


@implements("_int_mm")
def int_mm(a: Tensor, b: Tensor) -> Tensor:
    """The product of int8 matrices in int32."""
    return hnp.matmul(cast(a, torch.int32), cast(b, torch.int32))
