"""The ops on buffers: ``NAME(executor, buffers…, n=None)``, and ``NAME_f32`` for float32 alone, made from the rows of :mod:`hologram.sdk.table`.

A call that is like an earlier one in the types of its buffers and in ``n`` is native: no Python runs between the caller and the kernel. The
result may lie where an argument lies, or overlap it: it is as if it were written after everything was read.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hologram import dtypes
from hologram.sdk.operation import Operation
from hologram.sdk.table import ROWS

SUFFIX = "_f32"
SEGMENTS = ("segment_max", "segment_min", "segment_prod", "segment_sum")  # of arrays, under the names of ``jax.ops``


def __getattr__(name: str) -> Any:
    if name in SEGMENTS:
        return getattr(import_module("hologram.numpy"), name)
    row = ROWS.get(name.removesuffix(SUFFIX))
    if row is None:
        raise AttributeError(f"module 'hologram.ops' has no attribute {name!r}")
    function = globals()[name] = Operation(row, name, dtypes.float32 if name.endswith(SUFFIX) else None).call
    return function


def __dir__() -> list[str]:
    return [*SEGMENTS, *ROWS, *[name + SUFFIX for name in ROWS]]
