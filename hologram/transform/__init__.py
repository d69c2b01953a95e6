"""Transforms of functions: derivatives and vmap. Importing the package attaches their rules to the op table."""

from hologram.control import choices, scans
from hologram.transform import custom, rules

__all__ = ["choices", "custom", "rules", "scans"]
