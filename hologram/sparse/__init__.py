"""Sparse matrices: compressed rows and coordinates, their products with dense arrays, transposes and derivatives. See docs/scipy.md."""

from hologram.sparse.coordinates import BCOO
from hologram.sparse.rows import CSR

__all__ = ["BCOO", "CSR"]
