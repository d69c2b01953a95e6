"""Names of ``jax.scipy.cluster``."""

from hologram.scipy.cluster import vq

__all__ = ["vq"]
