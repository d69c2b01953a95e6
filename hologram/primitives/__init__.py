"""The op table. Importing the package registers every family of rows; :data:`TABLE` maps names to rows."""

from hologram.ir.op import TABLE, Op
from hologram.primitives import (
    complexes,
    composite,
    control,
    division,
    elementwise,
    factorizations,
    fourier,
    host,
    indexing,
    iota,
    markers,
    mathematics,
    movement,
    reductions,
    sorting,
    special,
    windows,
)

__all__ = [
    "TABLE", "Op", "complexes", "composite", "control", "division", "elementwise", "factorizations", "fourier", "host", "indexing", "iota",
    "markers", "mathematics", "movement", "reductions", "sorting", "special", "windows",
]  # fmt: skip
