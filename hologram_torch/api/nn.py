"""Modules that compute with Hologram: the modules of ``torch.nn`` of the same names with another ``forward``.

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
    """``torch.nn.ReLU``, computed by :func:`hologram_torch.functional.relu`.

    >>> hologram_torch.nn.ReLU()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self._run(F.relu, input, self.inplace)


class Sigmoid(Computed, torch.nn.Sigmoid):
    """``torch.nn.Sigmoid``, computed by :func:`hologram_torch.functional.sigmoid`.

    >>> hologram_torch.nn.Sigmoid()(torch.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self._run(F.sigmoid, input)


class Tanh(Computed, torch.nn.Tanh):
    """``torch.nn.Tanh``, computed by :func:`hologram_torch.functional.tanh`.

    >>> hologram_torch.nn.Tanh()(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self._run(F.tanh, input)


class GELU(Computed, torch.nn.GELU):
    """``torch.nn.GELU``, computed by :func:`hologram_torch.functional.gelu`.

    >>> hologram_torch.nn.GELU(approximate="tanh")(torch.tensor([-1.0, 1.0]))
    tensor([-0.1588,  0.8412])
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self._run(F.gelu, input, self.approximate)


class Softmax(Computed, torch.nn.Softmax):
    """``torch.nn.Softmax``, computed by :func:`hologram_torch.functional.softmax`.

    >>> hologram_torch.nn.Softmax(dim=0)(torch.tensor([0.0, 1.0]))
    tensor([0.2689, 0.7311])
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self._run(F.softmax, input, self.dim)


class Linear(Computed, torch.nn.Linear):
    """``torch.nn.Linear``, computed by :func:`hologram_torch.functional.linear`.

    >>> layer = hologram_torch.nn.Linear(3, 2)
    >>> layer(torch.ones(5, 3)).shape
    torch.Size([5, 2])
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self._run(F.linear, input, self.weight, self.bias)


class LayerNorm(Computed, torch.nn.LayerNorm):
    """``torch.nn.LayerNorm``, computed by :func:`hologram_torch.functional.layer_norm`.

    >>> hologram_torch.nn.LayerNorm(3)(torch.tensor([1.0, 2.0, 3.0])).detach()
    tensor([-1.2247,  0.0000,  1.2247])
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self._run(F.layer_norm, input, self.normalized_shape, self.weight, self.bias, self.eps)


class Conv2d(Computed, torch.nn.Conv2d):
    """``torch.nn.Conv2d``, computed by :func:`hologram_torch.functional.conv2d`.

    Padding other than with zeros is torch's own, before the convolution.

    >>> hologram_torch.nn.Conv2d(1, 4, kernel_size=3)(torch.ones(2, 1, 8, 8)).shape
    torch.Size([2, 4, 6, 6])
    """

    def _conv_forward(self, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = torch.nn.functional.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0, 0)
        return self._run(F.conv2d, input, weight, bias, self.stride, padding, self.dilation, self.groups)


class MSELoss(Computed, torch.nn.MSELoss):
    """``torch.nn.MSELoss``, computed by :func:`hologram_torch.functional.mse_loss`.

    >>> hologram_torch.nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self._run(F.mse_loss, input, target, self.reduction)


class BCELoss(Computed, torch.nn.BCELoss):
    """``torch.nn.BCELoss``, computed by :func:`hologram_torch.functional.binary_cross_entropy`.

    >>> hologram_torch.nn.BCELoss()(torch.tensor([0.5]), torch.tensor([1.0]))
    tensor(0.6931)
    """

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self._run(F.binary_cross_entropy, input, target, self.weight, self.reduction)


class CrossEntropyLoss(Computed, torch.nn.CrossEntropyLoss):
    """``torch.nn.CrossEntropyLoss``, computed by :func:`hologram_torch.functional.cross_entropy`.

    >>> hologram_torch.nn.CrossEntropyLoss()(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
    tensor(0.6931)
    """

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self._run(F.cross_entropy, input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


for _name in __all__:
    globals()[_name].__module__ = "hologram_torch.nn"  # the public module, which pickles name
