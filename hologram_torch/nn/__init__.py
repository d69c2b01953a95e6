"""Modules that compute with Hologram. Each is the module of ``torch.nn`` of its name with another ``forward``.

Parameters, initial values, state dicts, options and ``repr`` are torch's. An :class:`hologram.Executor` may come before the other arguments; the
module then runs on its device.
"""

from hologram_torch.nn.modules import (
    GELU,
    BCELoss,
    Conv2d,
    CrossEntropyLoss,
    LayerNorm,
    Linear,
    MSELoss,
    ReLU,
    Sigmoid,
    Softmax,
    Tanh,
)

__all__ = ["BCELoss", "Conv2d", "CrossEntropyLoss", "GELU", "LayerNorm", "Linear", "MSELoss", "ReLU", "Sigmoid", "Softmax", "Tanh"]
