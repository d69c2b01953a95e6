"""Public name of :mod:`hologram_torch.bridge.interop`: tensors of torch as Tensors of Hologram, and back."""

from hologram_torch.bridge.interop import *  # noqa: F403
from hologram_torch.bridge.interop import __all__ as __all__
