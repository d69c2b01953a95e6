"""What ``precision`` may be.

The guarantees of rewrite rules are ordered from the strongest to the weakest. ``tf32`` is ``standard``, and lets devices with matrix units round the
factors of float32 products to TF32 (10 bits of fraction); where there are none it is as good as ``standard``.
"""

from __future__ import annotations

GUARANTEES = ("exact", "standard", "fast")
TF32 = "tf32"
PRECISIONS = (*GUARANTEES, TF32)


def guarantee(precision: str) -> str:
    """That of :data:`GUARANTEES` which everything keeps but the products of matrix units."""
    return "standard" if precision == TF32 else precision
