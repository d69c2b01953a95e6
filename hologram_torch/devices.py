"""Public name of :mod:`hologram_torch.api.device`: ``device="hologram"``, which torch is told of on purpose alone."""

from hologram_torch.api.device import *  # noqa: F403
from hologram_torch.api.device import __all__ as __all__
