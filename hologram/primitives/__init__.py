"""The op table. Importing the package registers every family of ops; :data:`TABLE` maps names to op definitions."""

from hologram.ir.op import TABLE, Op
from hologram.primitives import control, indexing, iota, markers, movement, reductions, sorted_scatter, sorting, windows
from hologram.primitives.complex import parts
from hologram.primitives.host import collectives, effects, factorizations, fourier, host_op
from hologram.primitives.scalar import composite, division, elementwise, mathematics, special

__all__ = [
    "TABLE", "Op", "collectives", "composite", "control", "division", "effects", "elementwise", "factorizations", "fourier", "host_op", "indexing",
    "iota", "markers", "mathematics", "movement", "parts", "reductions", "sorted_scatter", "sorting", "special", "windows",
]  # fmt: skip
