"""The op table. Importing the package registers every family of rows; :data:`TABLE` maps names to rows."""

from importlib.util import find_spec

from hologram.primitives import composite, division, elementwise, indexing, leaves, movement, reductions
from hologram.primitives.op import TABLE, Op

if find_spec("hologram.primitives.mathematics"):
    from hologram.primitives import mathematics  # noqa: F401

__all__ = ["TABLE", "Op", "composite", "division", "elementwise", "indexing", "leaves", "movement", "reductions"]
