"""Names of ``jax.experimental``. See docs/scipy.md."""

from hologram import sparse
from hologram.experimental import checkify, jet, ode

__all__ = ["checkify", "jet", "ode", "sparse"]
