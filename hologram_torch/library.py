"""Public name of :mod:`hologram_torch.api.library`: importing it registers ``torch.ops.hologram.*``."""

from hologram_torch.api.library import *  # noqa: F403
from hologram_torch.api.library import __all__ as __all__
