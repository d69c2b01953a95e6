"""Derivatives of the op table's rows: how tangents go through them, and how cotangents go back through those that are linear; and how they batch.

Conventions where mathematics leaves a choice are JAX's: half of the tangent each for equal operands of max and min, equal shares among the extremes
of a reduction, 0 for ``abs`` at 0, infinity for ``sqrt`` at 0, 0 for the roundings and for ``sign`` of real numbers.
"""

from hologram.transform.rules import batching, collectives, complexes, convolution, elementwise, indexing, movement, none, reductions

__all__ = ["batching", "collectives", "complexes", "convolution", "elementwise", "indexing", "movement", "none", "reductions"]
