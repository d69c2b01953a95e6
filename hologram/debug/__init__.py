"""Seeing values inside compiled programs: ``hg.debug``.

``print`` and ``callback`` show values, ``check`` stops where a condition does not hold, ``nans`` where the first NaN or Inf was made. All of them
work under ``jit``, in loops and branches, under ``vmap`` and ``grad``, and on devices: see docs/debugging.md.
"""

from hologram.debug.checks import check
from hologram.debug.nans import nans
from hologram.debug.printing import callback, print

__all__ = ["callback", "check", "nans", "print"]
