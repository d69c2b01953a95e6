"""What the tests of complex numbers share: the types, the rows that take them, and values to try them on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hologram.primitives import TABLE, Op

TYPES = [np.complex64, np.complex128]
each_type = pytest.mark.parametrize("dtype", TYPES, ids=["complex64", "complex128"])
ELEMENTWISE = [r for r in TABLE.values() if r.split is not None and r.kind == "elementwise" and r.name not in ("select", "barrier", "complex")]


def tame_values(dtype: Any, shape: Any, rng: np.random.Generator) -> np.ndarray:
    return (rng.uniform(0.5, 2, shape) * np.exp(1j * rng.uniform(-np.pi, np.pi, shape))).astype(dtype)


def attributes(row: Op) -> list[tuple[Any, ...]]:
    if row.attrs == ("n",):
        return [(n,) for n in (-3, -1, 0, 1, 2, 5, 9)]
    return [("complex64",), ("complex128",), ("bool",), ("float32",)] if row.attrs == ("dtype",) else [()]
