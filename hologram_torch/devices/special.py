"""Ops that torch would do by kernels of an accelerator's own, in other ops."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch._ops import OpOverload

from hologram_torch.devices import host, variants

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


def _windows() -> dict[OpOverload, Callable[..., Any]]:
    """Kaiser's window, for which torch looks for a kernel of the device behind the dispatcher's back."""
    ops = [op for op in variants.overloads("kaiser_window") if not op._schema.is_mutable]
    return {op: functools.partial(host.run_on_host, op) for op in ops}


kernels: dict[OpOverload, Callable[..., Any]] = {
    aten.native_dropout.default: native_dropout,
    aten._fused_sdp_choice.default: choose_attention,
    **_windows(),
}
