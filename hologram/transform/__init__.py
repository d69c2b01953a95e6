"""Transforms of functions: derivatives and vmap. Importing the package attaches their rules to the op table."""

from hologram.control import choices, scans
from hologram.primitives import batching, derivatives, window_rules
from hologram.transform import custom

__all__ = ["batching", "choices", "custom", "derivatives", "scans", "window_rules"]
