"""Kernels of determinants, whose factors depend on the memory order of their matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload

from hologram_torch import aten as table
from hologram_torch.eager.kernels import variants

aten = torch.ops.aten


def kernels() -> dict[OpOverload, Callable[..., Any]]:
    """The kernels of determinants."""
    return {op: _in_order(op) for op in (aten._linalg_det.default, aten._linalg_slogdet.default)}


def _in_order(op: OpOverload) -> Callable[..., Any]:
    """The kernel of a row that expects matrices in C order: others are transposed, which does not change a determinant."""
    row = table.lookup(op)
    assert row is not None
    kernel = variants.kernel(op, row)

    def run(a: torch.Tensor) -> Any:
        return kernel(a if a.is_contiguous() or a.is_complex() else a.mT)

    return run
