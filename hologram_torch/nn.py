"""Public name of :mod:`hologram_torch.api.nn`: modules that compute with Hologram."""

from hologram_torch.api.nn import *  # noqa: F403
from hologram_torch.api.nn import __all__ as __all__
