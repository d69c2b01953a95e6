"""Names of ``jax.scipy.spatial``."""

from hologram.scipy.spatial import transform

__all__ = ["transform"]
