"""Functions of torch's tensors computed by Hologram, with the names and meanings of ``torch`` and ``torch.nn.functional``.

Each may be called with an :class:`hologram.Executor` before its arguments, and then runs on that executor's device. All can be differentiated to any
order (:func:`hologram_torch.wrap`) and return new, contiguous tensors.

The bodies are written in Hologram and see its Tensors; the annotations are those of the functions that the decorator makes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from hologram import dtypes
from hologram import nn as hnn
from hologram import numpy as hnp
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.support.user_lines import located
from hologram_torch import aten
from hologram_torch.api.operation import operation

__all__ = [
    "abs", "add", "binary_cross_entropy", "conv2d", "cross_entropy", "div", "gelu", "layer_norm", "linear", "matmul", "mse_loss", "mul", "relu",
    "sigmoid", "softmax", "sub", "tanh",
]  # fmt: skip

_ATEN, _F = torch.ops.aten, torch.nn.functional
_REDUCTIONS = ("none", "mean", "sum")


# --- arithmetic ------------------------------------------------------------------------------------------------------


def _row(op: Any, *args: Any, **options: Any) -> Any:
    """Calls the row of ``op`` in the table of ATen's ops."""
    row = aten.lookup(op)
    assert row is not None
    return row(*args, **options)


@operation(torch.add)
def add(a: torch.Tensor, b: torch.Tensor | complex, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Sum ``a + b``, broadcast and promoted as torch does; in ``out``, if it is given.

    Raises ShapeError where the shapes do not broadcast, ArgumentError for what is no tensor or number; with ``out`` ArgumentError where an argument
    requires a gradient, ShapeError and DTypeError where it does not fit.

    >>> hologram_torch.functional.add(torch.tensor([1.0, 2.0]), 10)
    tensor([11., 12.])
    """
    return _row(_ATEN.add.Tensor, a, b)


@operation(torch.sub)
def sub(a: torch.Tensor, b: torch.Tensor | complex, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Difference ``a - b``: arguments, types and errors are those of :func:`add`.

    >>> hologram_torch.functional.sub(torch.tensor([5.0, 2.0]), torch.tensor([1.0, 2.0]))
    tensor([4., 0.])
    """
    return _row(_ATEN.sub.Tensor, a, b)


@operation(torch.mul)
def mul(a: torch.Tensor, b: torch.Tensor | complex, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Product ``a * b``: arguments, types and errors are those of :func:`add`.

    >>> hologram_torch.functional.mul(torch.tensor([1.0, 2.0]), 10)
    tensor([10., 20.])
    """
    return _row(_ATEN.mul.Tensor, a, b)


@operation(torch.div)
def div(a: torch.Tensor, b: torch.Tensor | complex, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Quotient ``a / b``, of integers a float: arguments and errors are those of :func:`add`.

    >>> hologram_torch.functional.div(torch.tensor([1, 2]), 4)
    tensor([0.2500, 0.5000])
    """
    return _row(_ATEN.div.Tensor, a, b)


@operation(torch.abs)
def abs(x: torch.Tensor) -> torch.Tensor:
    """Absolute value of each element, in the type of ``x``.

    >>> hologram_torch.functional.abs(torch.tensor([-1.0, 2.0]))
    tensor([1., 2.])
    """
    return _row(_ATEN.abs.default, x)


# --- activations -----------------------------------------------------------------------------------------------------


@operation(_F.relu)
def relu(x: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """Rectified linear unit: ``max(x, 0)``, of the type of ``x``; NaN stays. The derivative at 0 is 0. ``inplace`` writes it to ``x``.

    >>> hologram_torch.functional.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return _row(_ATEN.relu.default, x)


@operation(torch.sigmoid)
def sigmoid(x: torch.Tensor) -> torch.Tensor:
    """Logistic function: ``1 / (1 + exp(-x))``. Shape and float type are those of ``x``; integers become float32.

    >>> hologram_torch.functional.sigmoid(torch.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """
    return _row(_ATEN.sigmoid.default, x)


@operation(torch.tanh)
def tanh(x: torch.Tensor) -> torch.Tensor:
    """Hyperbolic tangent. Shape and float type are those of ``x``; integers become float32.

    >>> hologram_torch.functional.tanh(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """
    return _row(_ATEN.tanh.default, x)


@operation(_F.gelu)
def gelu(x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """Gaussian error linear unit: ``x`` times the normal distribution function at ``x``, by erf or with ``approximate="tanh"``.

    The approximation is that of :func:`hologram.nn.gelu`, at most 5e-4 away. Raises ArgumentError for another ``approximate``.

    >>> hologram_torch.functional.gelu(torch.tensor([-1.0, 1.0]))
    tensor([-0.1587,  0.8413])
    """
    return _row(_ATEN.gelu.default, x, approximate=approximate)


@operation(_F.softmax)
def softmax(x: torch.Tensor, dim: int | None = None) -> torch.Tensor:
    """Softmax: ``exp(x) / sum(exp(x))`` over ``dim``. None stands for 0 where ``x`` has 0, 1 or 3 axes and for 1 elsewhere, as in torch.

    Shape and type are those of ``x``. Raises AxisOutOfRange.

    >>> hologram_torch.functional.softmax(torch.tensor([0.0, 1.0]), dim=0)
    tensor([0.2689, 0.7311])
    """
    if dim is None:
        dim = 0 if x.ndim in (0, 1, 3) else 1
    return _row(_ATEN._softmax.default, x, dim, False)


# --- layers ----------------------------------------------------------------------------------------------------------


@operation(torch.matmul, autocast="lower")
def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Product of matrices, of stacks of them, and of vectors, as ``torch.matmul``. Raises ShapeError where the extents do not fit.

    >>> hologram_torch.functional.matmul(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """
    return hnp.matmul(a, b)


@operation(_F.linear, autocast="lower")
def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Linear layer ``x @ weight.T + bias``: ``x`` (…, in), ``weight`` (out, in) or (in), ``bias`` (out) or none at all give (…, out), or (…).

    Raises ShapeError where the shapes do not fit.

    >>> hologram_torch.functional.linear(torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 1.0], [0.0, 3.0]]), torch.tensor([0.5, 0.0]))
    tensor([3.5000, 6.0000])
    """
    if not 1 <= weight.ndim <= 2:
        raise located(ShapeError(f"linear: weight has 1 or 2 axes, not shape {list(weight.shape)}"))
    if x.ndim > 1 and weight.ndim == 2 and x.size == x.shape[-1] == weight.shape[1]:  # one row: rows of a matrix by a vector are read as they lie
        y = hnp.reshape(hnp.matmul(weight, hnp.reshape(x, (-1,))), (*x.shape[:-1], weight.shape[0]))
    else:
        y = hnp.matmul(x, weight.T)
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise located(ShapeError(f"linear: a bias of shape {list(bias.shape)} for weights of {list(weight.shape)}"))
    return y if bias is None else y + bias


@operation(_F.layer_norm)
def layer_norm(
    x: torch.Tensor, normalized_shape: Sequence[int], weight: torch.Tensor | None = None, bias: torch.Tensor | None = None, eps: float = 1e-5
) -> torch.Tensor:
    """Layer normalization: ``x`` less its mean, over its standard deviation, along the last axes, of ``normalized_shape``.

    Then times ``weight`` and plus ``bias`` of that shape. ``eps`` is added to the variance. Raises ShapeError where the shapes do not fit.

    >>> hologram_torch.functional.layer_norm(torch.tensor([1.0, 2.0, 3.0]), (3,))
    tensor([-1.2247,  0.0000,  1.2247])
    """
    shape = tuple(normalized_shape)
    if not shape or tuple(x.shape[-len(shape) :]) != shape:
        raise located(ShapeError(f"layer_norm: normalized_shape {list(shape)} is not the end of an input's shape {list(x.shape)}"))
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and tuple(value.shape) != shape:
            raise located(ShapeError(f"layer_norm: {name} has shape {list(value.shape)}, not {list(shape)}"))
    return _row(_ATEN.native_layer_norm.default, x, shape, weight, bias, eps)[0]


@operation(_F.conv2d, autocast="lower")
def conv2d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Sequence[int] = (1, 1),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1),
    groups: int = 1,
) -> torch.Tensor:
    """Convolution of images: sums over windows of ``x`` (N, C, H, W) or (C, H, W), as :func:`hologram.nn.conv2d`.

    One integer stands for both space axes; ``padding`` may be ``"same"`` or ``"valid"``. Raises ShapeError where the shapes do not fit.

    >>> hologram_torch.functional.conv2d(torch.ones(1, 3, 3), torch.ones(1, 1, 2, 2))
    tensor([[[4., 4.],
             [4., 4.]]])
    """
    padding = padding if isinstance(padding, (str, int)) else tuple(padding)
    steps, dilations = (n if isinstance(n, int) else tuple(n) for n in (stride, dilation))
    found: Any = hnn.conv2d(x, weight, bias, stride=steps, padding=padding, dilation=dilations, groups=groups)
    return found


# --- losses ----------------------------------------------------------------------------------------------------------


def _reduced(losses: Any, reduction: str, what: str, count: Any = None) -> Any:
    """Reduces the losses: to their sum, or to the sum over ``count``, by default their number."""
    if reduction not in _REDUCTIONS:
        raise located(ArgumentError(f"{what}: reduction is one of {', '.join(_REDUCTIONS)}, not {reduction!r}"))
    if reduction == "none":
        return losses
    total = hnp.sum(losses)
    return total if reduction == "sum" else total / (losses.size if count is None else count)


@operation(_F.mse_loss, autocast="float32")
def mse_loss(pred: torch.Tensor, target: torch.Tensor, reduction: str = "mean") -> torch.Tensor:
    """Squared error ``(pred - target)**2``: its mean, its sum, or each (``"none"``). Raises ArgumentError for another reduction.

    >>> hologram_torch.functional.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """
    return _reduced(_row(_ATEN.sub.Tensor, pred, target) ** 2, reduction, "mse_loss")


@operation(_F.binary_cross_entropy, autocast="float32")
def binary_cross_entropy(pred: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None = None, reduction: str = "mean") -> torch.Tensor:
    """Binary cross entropy: ``-(target * log(pred) + (1 - target) * log(1 - pred))``, times ``weight``. As in torch, logarithms are at least -100.

    ``pred`` is from 0 to 1; the loss of anything else is NaN. ``reduction``: ``mean``, ``sum`` or ``none``. Raises ShapeError where ``target`` has
    another shape, ArgumentError for another reduction.

    >>> hologram_torch.functional.binary_cross_entropy(torch.tensor([0.5, 0.9]), torch.tensor([1.0, 1.0]), reduction="none")
    tensor([0.6931, 0.1054])
    """
    if target.shape != pred.shape:
        raise located(ShapeError(f"binary_cross_entropy: a target of shape {list(target.shape)} for predictions of {list(pred.shape)}"))
    losses = -(target * hnp.maximum(hnp.log(pred), -100.0) + (1 - target) * hnp.maximum(hnp.log1p(-pred), -100.0))
    return _reduced(losses if weight is None else losses * weight, reduction, "binary_cross_entropy")


@operation(_F.cross_entropy, autocast="float32")
def cross_entropy(
    pred: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> torch.Tensor:
    """Cross entropy of ``softmax(pred)`` over the classes, axis 1 of (N, C, …) or the only one of (C), and ``target``.

    ``target`` is integers, the numbers of classes, of the shape of ``pred`` without that axis, or floats of the shape of ``pred``, probabilities.
    ``weight`` (C) weighs classes. Targets equal to ``ignore_index`` count for nothing; any other that is no class has the loss NaN. The mean is over
    what counts, by its weight. ``label_smoothing`` is the part of a target that is spread evenly over all classes. Raises ShapeError for a target of
    another shape, DTypeError for one of another kind, ArgumentError for another reduction.

    >>> hologram_torch.functional.cross_entropy(torch.tensor([[0.0, 0.0], [0.0, 5.0]]), torch.tensor([0, 1]), reduction="none")
    tensor([0.6931, 0.0067])
    """
    axis = 1 if pred.ndim > 1 else 0
    _check_target(pred, target, axis)
    logs = hnn.log_softmax(pred, axis=axis)
    along = [1] * pred.ndim
    along[axis] = classes = pred.shape[axis]
    weights = None if weight is None else hnp.reshape(weight, tuple(along))
    if not _by_number(target):
        return _soft_cross_entropy(logs, target, weights, axis, reduction, label_smoothing)
    here = hnp.expand_dims(target, axis=axis) == hnp.reshape(hnp.arange(classes), tuple(along))
    counted = target != ignore_index
    shares = hnp.where(here, 1.0 if weights is None else weights, 0.0).astype(logs.dtype)
    losses = -hnp.sum(hnp.where(here, logs if weights is None else logs * weights, 0.0), axis=axis)
    if label_smoothing:
        spread = -hnp.sum(logs if weights is None else logs * weights, axis=axis) / classes
        losses = (1 - label_smoothing) * losses + label_smoothing * spread
    losses = hnp.where((target >= 0) & (target < classes), losses, hnp.nan)
    share = hnp.where(counted, hnp.sum(shares, axis=axis), 0.0)
    return _reduced(hnp.where(counted, losses, 0.0), reduction, "cross_entropy", hnp.sum(share))


def _soft_cross_entropy(logs: Any, target: Any, weights: Any, axis: int, reduction: str, smoothing: float) -> Any:
    classes = logs.shape[axis]
    shares = target * (1 - smoothing) + smoothing / classes if smoothing else target
    losses = -hnp.sum(logs * shares if weights is None else logs * shares * weights, axis=axis)
    return _reduced(losses, reduction, "cross_entropy")


def _by_number(target: Any) -> bool:
    return dtypes.of(target.dtype).is_integer


def _check_target(pred: Any, target: Any, axis: int) -> None:
    expected = tuple(pred.shape[:axis]) + tuple(pred.shape[axis + 1 :]) if _by_number(target) else tuple(pred.shape)
    if pred.ndim == 0 or tuple(target.shape) != expected:
        raise located(ShapeError(f"cross_entropy: a target of shape {list(target.shape)} for predictions of {list(pred.shape)}"))
    if not (_by_number(target) or dtypes.of(target.dtype).is_float):
        raise located(DTypeError(f"cross_entropy: a target is integers or floats, not {target.dtype}"))
