"""Ops that torch would do by kernels of an accelerator's own, in other ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch._ops import OpOverload

aten = torch.ops.aten


def native_dropout(x: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    """The mask is drawn by torch's CPU generator, as the CPU's dropout draws it; what it does is recorded."""
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    keep = torch.empty(x.shape, dtype=x.dtype).bernoulli_(1 - p).bool().to(x.device)
    return x * keep * (0.0 if p == 1 else 1 / (1 - p)), keep


def choose_attention(*args: Any, **options: Any) -> int:
    """Attention is written out in products and a softmax, which the compiler fuses."""
    return int(torch.nn.attention.SDPBackend.MATH.value)


def recurrent() -> dict[OpOverload, Callable[..., Any]]:
    """Layers that torch defines, for accelerators, by fused cells; their decompositions are in ops that differentiate."""
    ops = [getattr(packet, overload) for packet in (aten.lstm, aten.gru) for overload in packet.overloads()]
    return {op: decomposition_table[op] for op in ops if op in decomposition_table}


kernels: dict[OpOverload, Callable[..., Any]] = {
    aten.native_dropout.default: native_dropout,
    aten._fused_sdp_choice.default: choose_attention,
}
