"""Names of ``jax.scipy.special``: those of :mod:`hologram.special`. See docs/special.md."""

from hologram import special

globals().update({name: getattr(special, name) for name in special.__all__})
__all__ = list(special.__all__)
