"""Decompositions: ops that torch writes as other ops before Hologram sees a graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, decomposition_table
from torch._ops import OpOverload

from hologram_torch.aten import lookup
from hologram_torch.aten.foreach import list_ops

aten = torch.ops.aten

_SEEDED = torch.Tag.nondeterministic_seeded  # ops that draw random numbers are left to PyTorch: their decompositions draw others


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """All decompositions: torch's own for ops without a row in the table of ATen ops, those of ops on lists, and a few of ours."""
    found = {op: write for op, write in {**decomposition_table, **core_aten_decompositions()}.items() if _wanted(op)}
    lists = {of.op: of.on_each(of.packets[0]) for of in list_ops() if not of.op._schema.is_mutable and of.op._schema.returns}
    return found | lists | {aten.native_dropout.default: _dropout, torch.ops.prims.fma.default: _multiply_add}


def _wanted(op: Any) -> bool:
    return isinstance(op, OpOverload) and op.namespace in ("aten", "prims") and _SEEDED not in op.tags and lookup(op) is None


def _multiply_add(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """A fused multiply-add as product and sum, which Hologram rounds once where the precision allows it."""
    return a * b + c


def _dropout(x: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Dropout with the random numbers of eager mode: one Bernoulli draw for each element."""
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(x), torch.zeros_like(x, dtype=torch.bool)
    kept = _drawn(x, 1 - p)
    return x * (kept * (1 / (1 - p))), kept.to(torch.bool)


def _drawn(x: torch.Tensor, p: float) -> torch.Tensor:
    """1 with probability ``p``, else 0, in the shape of ``x``, drawn in the order of eager mode.

    Eager mode draws in the memory order of a tensor like ``x``; ``bernoulli.p`` draws in C order.
    """
    steps = torch.empty_like(x).stride()
    order = sorted(range(x.ndim), key=lambda axis: -steps[axis])
    drawn = aten.bernoulli.p(aten.permute.default(x, order), p)
    return aten.permute.default(drawn, [order.index(axis) for axis in range(x.ndim)])
