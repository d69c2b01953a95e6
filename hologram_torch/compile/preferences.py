"""Ops that PyTorch's kernels compute faster than Hologram's where sizes are symbolic.

A product of matrices is tiled for any number of rows. Its columns, and the axis that is summed, are tiled for known extents only; so are the rows of
attention.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from hologram.ir.symbolic import Expr

aten = torch.ops.aten
ATTENTION = (
    aten.scaled_dot_product_attention.default,
    aten._scaled_dot_product_flash_attention_for_cpu.default,
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
)
FACTORS = {aten.mm.default: 0, aten.bmm.default: 0, aten.addmm.default: 1, aten.baddbmm.default: 1}  # the place of the first of two arguments


def why_by_torch(node: fx.Node, types: Mapping[fx.Node, Any]) -> str | None:
    """Why PyTorch computes a node that Hologram could compute; None where Hologram does."""
    if node.target in ATTENTION:
        queries = types[node.args[0 if node.target not in ATTENTION[2:] else 1]]  # type: ignore[index]
        return "PyTorch has a kernel for a symbolic number of queries" if isinstance(queries.shape[-2], Expr) else None
    if node.target in FACTORS:
        first = FACTORS[node.target]
        x, y = (types[factor] for factor in node.args[first : first + 2])  # type: ignore[index]
        symbolic = isinstance(x.shape[-1], Expr) or isinstance(y.shape[-1], Expr)
        return "PyTorch has a kernel for symbolic columns and sums" if symbolic and x.shape[-2] != 1 else None
    return None
