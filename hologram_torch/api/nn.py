"""Modules that compute with Hologram. Each is the module of ``torch.nn`` of its name with another ``forward``.

Parameters, initial values, state dicts, options and ``repr`` are torch's. An :class:`hologram.Executor` may come before the other arguments; the
module then runs on its device.
"""

from __future__ import annotations

from typing import Any

import torch

from hologram.sdk.executor import Executor
from hologram_torch.api import functional as F
from hologram_torch.api.operation import Operation

__all__ = ["BCELoss", "Conv2d", "CrossEntropyLoss", "GELU", "LayerNorm", "Linear", "MSELoss", "ReLU", "Sigmoid", "Softmax", "Tanh"]


class Computed(torch.nn.Module):
    """A module whose ``forward`` calls operations, on the device of the executor that it was made with, if any."""

    _executor: Executor | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        if args and type(args[0]) is Executor:
            executor, *args = args  # type: ignore[assignment]
            super().__init__(*args, **options)
            self._executor = executor
        else:
            super().__init__(*args, **options)

    def _run(self, operation: Operation, *args: Any, **options: Any) -> torch.Tensor:
        return operation(*args, **options) if self._executor is None else operation(self._executor, *args, **options)


class ReLU(Computed, torch.nn.ReLU):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self._run(F.relu, input, self.inplace)


class Sigmoid(Computed, torch.nn.Sigmoid):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self._run(F.sigmoid, input)


class Tanh(Computed, torch.nn.Tanh):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self._run(F.tanh, input)


class GELU(Computed, torch.nn.GELU):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self._run(F.gelu, input, self.approximate)


class Softmax(Computed, torch.nn.Softmax):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self._run(F.softmax, input, self.dim)


class Linear(Computed, torch.nn.Linear):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self._run(F.linear, input, self.weight, self.bias)


class LayerNorm(Computed, torch.nn.LayerNorm):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self._run(F.layer_norm, input, self.normalized_shape, self.weight, self.bias, self.eps)


class Conv2d(Computed, torch.nn.Conv2d):
    """Padding other than with zeros is torch's own, before the convolution."""

    def _conv_forward(self, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = torch.nn.functional.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0, 0)
        return self._run(F.conv2d, input, weight, bias, self.stride, padding, self.dilation, self.groups)


class MSELoss(Computed, torch.nn.MSELoss):
    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self._run(F.mse_loss, input, target, self.reduction)


class BCELoss(Computed, torch.nn.BCELoss):
    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self._run(F.binary_cross_entropy, input, target, self.weight, self.reduction)


class CrossEntropyLoss(Computed, torch.nn.CrossEntropyLoss):
    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self._run(F.cross_entropy, input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


for _name in __all__:
    globals()[_name].__module__ = "hologram_torch.nn"  # the public module, which pickles name
