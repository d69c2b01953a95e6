"""Public name of :mod:`hologram_torch.api.functional`: functions of torch's tensors, computed by Hologram."""

from hologram_torch.api.functional import *  # noqa: F403
from hologram_torch.api.functional import __all__ as __all__
