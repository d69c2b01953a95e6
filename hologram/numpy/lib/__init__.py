"""Functions that NumPy has in ``numpy.lib``."""

from hologram.numpy.lib import stride_tricks

__all__ = ["stride_tricks"]
