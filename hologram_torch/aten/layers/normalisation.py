"""Softmax and normalisation. Narrow floats are computed in float32 and rounded once."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from hologram import nn
from hologram import numpy as hnp
from hologram.trace.tensor import Tensor
from hologram_torch.aten.registry import implements
from hologram_torch.aten.types import cast, opmath, type_of


def _rows(x: Tensor) -> Tensor:
    return hnp.reshape(x, (1,)) if x.ndim == 0 else x


@implements("_softmax")
def softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    values = cast(_rows(x), torch.float32 if half_to_float else None)
    return hnp.reshape(nn.softmax(values, dim), x.shape) if values.size else values


@implements("_log_softmax")
def log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    values = cast(_rows(x), torch.float32 if half_to_float else None)
    return hnp.reshape(nn.log_softmax(values, dim), x.shape) if values.size else values


def _moments(values: Tensor, axes: tuple[int, ...], epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """The standardised values, their mean, and the reciprocal of their standard deviation; the last two with axes of extent 1."""
    centre = hnp.mean(values, axis=axes, keepdims=True)
    deviation = values - centre
    reciprocal = hnp.rsqrt(hnp.mean(deviation * deviation, axis=axes, keepdims=True) + epsilon)
    return deviation * reciprocal, centre, reciprocal


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Sequence[int]) -> Tensor:
    """``x * weight + bias``, the parameters reshaped to ``shape``."""
    dtype = type_of(x)
    if weight is not None:
        x = x * hnp.reshape(cast(weight, dtype), tuple(shape))
    return x if bias is None else x + hnp.reshape(cast(bias, dtype), tuple(shape))


@implements("native_layer_norm")
def layer_norm(x: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    dtype = type_of(x)
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    found, centre, reciprocal = _moments(cast(x, opmath(dtype)), axes, eps)
    found = _affine(found, weight, bias, normalized_shape)
    stored = dtype if weight is None else type_of(weight)
    return cast(found, dtype), cast(centre, stored), cast(reciprocal, stored)


@implements("native_group_norm")
def group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    dtype = type_of(x)
    grouped = hnp.reshape(cast(x, opmath(dtype)), (N, group, C // group * HxW))
    found, centre, reciprocal = _moments(grouped, (2,), eps)
    found = _affine(hnp.reshape(found, x.shape), weight, bias, (C, *(1,) * (x.ndim - 2)))
    stored = dtype if weight is None else type_of(weight)
    return cast(found, dtype), cast(hnp.reshape(centre, (N, group)), stored), cast(hnp.reshape(reciprocal, (N, group)), stored)


def _along_channels(x: Tensor) -> tuple[int, ...]:
    return (1, x.shape[1], *(1,) * (x.ndim - 2))


@implements("_native_batch_norm_legit.no_stats")
def batch_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, training: bool, momentum: float, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """With the statistics of the batch, and no running ones."""
    dtype, channels = type_of(x), x.shape[1]
    found, centre, reciprocal = _moments(cast(x, opmath(dtype)), (0, *range(2, x.ndim)), eps)
    found = _affine(found, weight, bias, _along_channels(x))
    return cast(found, dtype), hnp.reshape(centre, (channels,)), hnp.reshape(reciprocal, (channels,))


@implements("_weight_norm_interface_backward")
def weight_norm_backward(gradient: Tensor, v: Tensor, g: Tensor, norms: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """The gradients of ``g v / |v|`` in ``v`` and ``g``; norms are over all axes but ``dim``."""
    axes = tuple(i for i in range(v.ndim) if i != dim % v.ndim)
    along = hnp.sum(gradient * v, axis=axes, keepdims=True) / norms
    return (gradient - v * (along / norms)) * (g / norms), along


@implements("_native_batch_norm_legit_no_training")
def batch_norm_no_training(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    dtype, shape = type_of(x), _along_channels(x)
    values = cast(x, opmath(dtype))
    reciprocal = hnp.rsqrt(cast(running_var, type_of(values)) + eps)
    found = (values - hnp.reshape(cast(running_mean, type_of(values)), shape)) * hnp.reshape(reciprocal, shape)
    nothing = hnp.zeros((0,), dtype=x.dtype)
    return cast(_affine(found, weight, bias, shape), dtype), nothing, nothing
