"""Transforms of functions: derivatives and vmap. Importing the package attaches their rules to the op table."""

from hologram.primitives import batching, derivatives

__all__ = ["batching", "derivatives"]
