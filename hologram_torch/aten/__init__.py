"""The table of ATen ops: from each op to the function that computes it on Hologram's Tensors.

A row is a function with the arguments of the op's schema: Hologram's Tensors for torch's, torch's dtypes as they are. It returns a Tensor, or a tuple
of them, as the schema says. Rows are functional, and know no strides: callers derive in-place and ``out`` variants. Ops that torch decomposes
(:mod:`hologram_torch.compile.decompositions`) need no row. A row raises a HologramError where it cannot compute what torch does (a mask as an index,
an element type that Hologram lacks).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from torch._ops import OpOverload

from hologram_torch.aten.registry import table

SUBJECTS = (
    "layers.bags", "layers.losses", "layers.normalisation", "layers.pooling", "layers.sampling", "layers.transformers",
    "linear_algebra.distances", "linear_algebra.factorizations", "linear_algebra.fourier", "linear_algebra.products",
    "pointwise.complexes", "pointwise.elementwise", "pointwise.quantisation",
    "reduce.order", "reduce.reductions",
    "shapes.creation", "shapes.indexing", "shapes.movement",
)  # fmt: skip


@cache
def _table() -> dict[str, Callable[..., Any]]:
    """The table; the modules of its rows are imported when a row is first asked for."""
    for subject in SUBJECTS:
        import_module("hologram_torch.aten." + subject)
    return table


def lookup(op: OpOverload) -> Callable[..., Any] | None:
    """The function that computes ``op``, one of ATen's or its primitives, on Hologram's Tensors; None where there is none.

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
    return sorted(name for name in _table() if name.startswith("aten::"))
