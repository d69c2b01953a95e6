"""Products and quotients that are rounded once, by themselves: neither fused with a sum nor replaced by a product with a reciprocal."""

from __future__ import annotations

from hologram.ir.node import Node
from hologram.primitives.markers import barrier
from hologram.primitives.scalar import elementwise as ew
from hologram.trace.recorder import record


def rounded_product(x: Node, y: Node) -> Node:
    """``x * y``, rounded before anything is added to it: what is added to a multiple of a step can be exactly its negative."""
    return record(barrier, (record(ew.mul, (x, y)), x))


def rounded_quotient(x: Node, y: Node) -> Node:
    """``x / y``, rounded once, also where many numbers are divided by one: for what is compared, or chooses elements, and for decimals."""
    return record(ew.div, (x, record(barrier, (y, x))))
