"""The one table from ATen's ops to Hologram's functions.

A row is a function with the arguments of the op's schema, with Hologram's Tensors for torch's and torch's dtypes as they are given; it returns a
Tensor, or a tuple of them, as the schema says. Rows are functional: in-place and ``out`` variants are their caller's to derive, and so are
strides, since a Tensor of Hologram has none. What torch decomposes into other ops (:mod:`hologram_torch.compile.decompositions`) needs no row.
Where values cannot be what torch gives (a mask as an index, an element type that Hologram lacks), a row raises a HologramError.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from torch._ops import OpOverload

SUBJECTS = (
    "bags", "complexes", "creation", "distances", "elementwise", "factorizations", "fourier", "indexing", "movement", "normalisation", "order",
    "pooling", "products", "quantisation", "reductions", "sampling", "transformers",
)  # fmt: skip


@cache
def _table() -> dict[str, Callable[..., Any]]:
    for subject in SUBJECTS:
        import_module("hologram_torch.aten." + subject)
    from hologram_torch.aten.registry import table

    return table


def lookup(op: OpOverload) -> Callable[..., Any] | None:
    """The function that computes ``op`` on Hologram's Tensors; None where there is none."""
    return _table().get(op.name())


def names() -> list[str]:
    """The ops that have a row, sorted, as ``aten::op.overload``."""
    return sorted(_table())
