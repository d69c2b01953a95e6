"""Names of ``jax.experimental``. See docs/scipy.md."""

from hologram import sparse
from hologram.experimental import ode

__all__ = ["ode", "sparse"]
