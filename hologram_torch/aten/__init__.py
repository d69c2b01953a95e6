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

from hologram_torch.aten.registry import table

SUBJECTS = (
    "layers.bags", "layers.normalisation", "layers.pooling", "layers.sampling", "layers.transformers",
    "linear_algebra.distances", "linear_algebra.factorizations", "linear_algebra.fourier", "linear_algebra.products",
    "pointwise.complexes", "pointwise.elementwise", "pointwise.quantisation",
    "reduce.order", "reduce.reductions",
    "shapes.creation", "shapes.indexing", "shapes.movement",
)  # fmt: skip


@cache
def _table() -> dict[str, Callable[..., Any]]:
    """The table, whose rows are imported when one is first asked for."""
    for subject in SUBJECTS:
        import_module("hologram_torch.aten." + subject)
    return table


def lookup(op: OpOverload) -> Callable[..., Any] | None:
    """The function that computes ``op``, one of ATen's, on Hologram's Tensors; None where there is none.

    >>> row = hologram_torch.aten.lookup(torch.ops.aten.add.Tensor)
    >>> row(hg.tensor([1.0, 2.0]), hg.tensor([3.0, 4.0]))
    Tensor([4., 6.], dtype=float32)
    """
    return _table().get(op.name())


def names() -> list[str]:
    """The ops of ATen that have a row, sorted, as ``aten::op.overload``.

    >>> "aten::add.Tensor" in hologram_torch.aten.names()
    True
    """
    return sorted(_table())
