"""Programs of which kernels read elements that may not be there: borders, joins, rolls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

GUARDED: dict[str, Callable[[Any, Any], Any]] = {
    "pad": lambda xp, x: xp.pad(x, ((1, 1), (1, 2)), constant_values=1),
    "pad left": lambda xp, x: xp.pad(x, ((0, 2), (9, 0)), constant_values=1),
    "pad rows": lambda xp, x: xp.pad(x, ((2, 1), (0, 0)), constant_values=1),
    "pad and reduce": lambda xp, x: xp.max(xp.pad(x, ((1, 1), (1, 2)), constant_values=-1), axis=1),
    "pad and scan": lambda xp, x: xp.cumsum(xp.pad(x, ((1, 1), (1, 2)), constant_values=1), axis=0),
    "rows": lambda xp, x: xp.concatenate([x[:, ::-1], xp.zeros_like(x[:1]), x + 1]),
    "columns": lambda xp, x: xp.concatenate([x, x + 1], axis=1)[:, ::-1],
    "roll": lambda xp, x: xp.roll(x, (1, 2), (0, 1)),
}
