"""Names of ``jax.scipy``: programs port by changing their imports. See docs/scipy.md."""

from hologram.scipy import linalg, stats

__all__ = ["linalg", "stats"]
