"""Names of ``jax.scipy.integrate``."""

from hologram.numpy import trapezoid

__all__ = ["trapezoid"]
