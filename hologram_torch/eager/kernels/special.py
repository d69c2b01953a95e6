"""Kernels of ops that accelerators usually have fused kernels for, written in other ops."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch._ops import OpOverload

from hologram_torch.eager.kernels import host, variants

aten = torch.ops.aten


def native_dropout(x: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Dropout. Torch's CPU generator draws the mask, as the CPU's dropout does; its use is recorded."""
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    keep = torch.empty_like(x, device="cpu").bernoulli_(1 - p).bool().to(x.device)
    return x * keep * (0.0 if p == 1 else 1 / (1 - p)), keep


def choose_attention(*args: Any, **options: Any) -> int:
    """Chooses attention as products and a softmax, which the compiler fuses."""
    return int(torch.nn.attention.SDPBackend.MATH.value)


def recurrent() -> dict[OpOverload, Callable[..., Any]]:
    """Recurrent layers and cells in differentiable ops: torch defines them for accelerators by fused ops."""
    ops = [getattr(packet, overload) for packet in (aten.lstm, aten.gru) for overload in packet.overloads()]
    layers = {op: decomposition_table[op] for op in ops if op in decomposition_table}
    return {**layers, aten.lstm_cell.default: lstm_cell, aten.gru_cell.default: gru_cell}


def lstm_cell(x: Tensor, state: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Any = None, b_hh: Any = None) -> tuple[Tensor, Tensor]:
    """Hochreiter and Schmidhuber 1997, with forget gates; gates are in torch's order: input, forget, cell, output."""
    hidden, cell = state
    gates = torch.nn.functional.linear(x, w_ih, b_ih) + torch.nn.functional.linear(hidden, w_hh, b_hh)
    enter, keep, new, leave = gates.chunk(4, dim=-1)
    cell = torch.sigmoid(keep) * cell + torch.sigmoid(enter) * torch.tanh(new)
    return torch.sigmoid(leave) * torch.tanh(cell), cell


def gru_cell(x: Tensor, hidden: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Any = None, b_hh: Any = None) -> Tensor:
    """Cho et al. 2014, with the reset gate after the product, as torch has it; gates are in its order: reset, update, new."""
    reset, update, new = torch.nn.functional.linear(x, w_ih, b_ih).chunk(3, dim=-1)
    reset_h, update_h, new_h = torch.nn.functional.linear(hidden, w_hh, b_hh).chunk(3, dim=-1)
    candidate = torch.tanh(new + torch.sigmoid(reset + reset_h) * new_h)
    return candidate + torch.sigmoid(update + update_h) * (hidden - candidate)


def _windows() -> dict[OpOverload, Callable[..., Any]]:
    """Kaiser's window: torch looks for a kernel of the device without asking the dispatcher."""
    ops = [op for op in variants.overloads("kaiser_window") if not op._schema.is_mutable]
    return {op: functools.partial(host.run_on_host, op) for op in ops}


kernels: dict[OpOverload, Callable[..., Any]] = {
    aten.native_dropout.default: native_dropout,
    aten._fused_sdp_choice.default: choose_attention,
    **_windows(),
}
