"""Public name of :mod:`hologram_torch.api.buffers`: tensors and the SDK's buffers."""

from hologram_torch.api.buffers import *  # noqa: F403
from hologram_torch.api.buffers import __all__ as __all__
