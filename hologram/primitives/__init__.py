"""The op table. Importing the package registers every family of rows; :data:`TABLE` maps names to rows."""

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
    leaves,
    marks,
    mathematics,
    movement,
    reductions,
    sorting,
    special,
    windows,
)
from hologram.primitives.op import TABLE, Op

__all__ = [
    "TABLE", "Op", "complexes", "composite", "control", "division", "elementwise", "factorizations", "fourier", "host", "indexing", "leaves", "marks",
    "mathematics", "movement", "reductions", "sorting", "special", "windows",
]  # fmt: skip
