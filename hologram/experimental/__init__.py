"""Names of ``jax.experimental``. See docs/scipy.md."""

from hologram.experimental import ode

__all__ = ["ode"]
