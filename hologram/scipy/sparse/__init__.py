"""Names of ``jax.scipy.sparse``. Sparse matrices themselves are in :mod:`hologram.sparse`."""

from hologram.scipy.sparse import linalg

__all__ = ["linalg"]
