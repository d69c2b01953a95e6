"""Steps of random programs of a vector ``x`` of ``n`` elements, for Hologram's functions and for NumPy's (``xp``), that make use of the extent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

STEPS: list[Callable[[Any, Any, Any], Any]] = [
    lambda x, n, xp: x[n // 2 :],
    lambda x, n, xp: x[: n - 1],
    lambda x, n, xp: x[::-1],
    lambda x, n, xp: x[1:] + x[:-1],
    lambda x, n, xp: x * n - n // 3,
    lambda x, n, xp: x[n - 3 :],
    lambda x, n, xp: x[-2:],
    lambda x, n, xp: x[::2],
    lambda x, n, xp: x[n % 3 :],
    lambda x, n, xp: x[: -(n // 4)],
    lambda x, n, xp: x.sum() / n + x,
    lambda x, n, xp: xp.concatenate([x, x[: n // 2]]),
    lambda x, n, xp: xp.cumsum(x),
    lambda x, n, xp: xp.reshape(xp.stack([x, x]), (2 * n,)),
    lambda x, n, xp: x[n - 1] + xp.pad(x, (1, 2)),
    lambda x, n, xp: x[(n - 4) // 2 :],
    lambda x, n, xp: x + xp.arange(n),
    lambda x, n, xp: x[n - 5 : n - 2],
]
