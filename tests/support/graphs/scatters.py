"""Scatters of many updates, with arguments."""

from __future__ import annotations

import numpy as np

from hologram import dtypes
from hologram.ir.graph import Graph
from tests.support.building import Draft
from tests.support.optable import seeded

# op, type, shape of x, updates, axis, batch, how many places are hit
SCATTERS: dict[str, tuple[str, str, tuple[int, ...], tuple[int, ...], int, int, int]] = {
    "sums": ("scatter_add", "float32", (50,), (1000,), 0, 0, 60),
    "one_place": ("scatter_add", "float32", (9,), (700,), 0, 0, 1),
    "in_pieces": ("scatter_add", "float32", (40,), (16_500,), 0, 0, 45),
    "rows": ("scatter_add", "float16", (20, 3), (400,), 0, 0, 22),
    "batches": ("scatter_mul", "int32", (2, 3, 7, 2), (2, 150), 2, 1, 7),
    "extremes": ("scatter_max", "float32", (300,), (2000,), 0, 0, 8),
    "last_stays": ("scatter_set", "float32", (6, 30), (40, 10), 1, 0, 33),
    "integers": ("scatter_add", "int8", (1000,), (3000,), 0, 0, 1100),
    "symbols": ("scatter_min", "uint8", (5,), (333,), 0, 0, 5),
}


def scattered(name: str, uniform: bool = False) -> tuple[Graph, list[np.ndarray]]:
    op, dtype, shape, indices, axis, batch, hit = SCATTERS[name]
    d, rng = Draft(), seeded(name)
    updates = (*shape[:axis], *indices[batch:], *shape[axis + 1 :])
    x, i = d.input(*shape, dtype=dtype), d.input(*indices, dtype="int32")
    u = d.spread(d.const(3, dtype), updates) if uniform else d.input(*updates, dtype=dtype)
    arrays = [rng.integers(1, 100, shape).astype(dtypes.of(dtype).np), rng.integers(-1, hit, indices).astype(np.int32)]
    arrays += [] if uniform else [(rng.standard_normal(updates) * 10).astype(dtypes.of(dtype).np)]
    return d.graph(d.scatter(op, x, i, u, axis, batch)), arrays
