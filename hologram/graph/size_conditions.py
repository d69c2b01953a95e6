"""Conditions on symbolic sizes: the ranges in which static programs of the same graph sum in the same order.

The compiler chooses the order of some sums by sizes: that of products of matrices with few rows, of long sums of products, of attention. A program
with symbols has one order for all sizes. A pass that meets such a choice notes for which sizes a static program would choose alike. Only these have
the same last places in ``standard`` and ``fast``; ``exact`` has one order.
"""

from __future__ import annotations

from hologram.ir.symbolic import MAX_EXTENT, Int


class SizeConditions:
    """Symbolic sizes and the ranges in which they must be, both ends included. ``ranges`` may be empty for a size: then no value keeps the order."""

    def __init__(self) -> None:
        self.ranges: dict[Int, tuple[int, int]] = {}

    def require(self, n: Int, least: int = 0, most: int = MAX_EXTENT) -> None:
        """Notes that ``n`` must be in a range; of a number that is known nothing is noted."""
        if not isinstance(n, int):
            low, high = self.ranges.get(n, (0, MAX_EXTENT))
            self.ranges[n] = max(low, least), min(high, most)

    def never(self, n: Int) -> None:
        """Notes that no value of ``n`` keeps the order."""
        self.require(n, MAX_EXTENT, 0)
