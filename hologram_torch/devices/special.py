"""Kernels that prepare an op's arguments before the table's function has them, and those that draw numbers on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch._ops import OpOverload

from hologram_torch import aten as table
from hologram_torch.devices import values
from hologram_torch.devices.storage import make

aten = torch.ops.aten


def _indices(given: list[torch.Tensor | None]) -> list[Any]:
    """The indices of ``x[...]`` with each mask as the coordinates of its true elements; CPU tensors may index, as they may on any device."""
    found: list[Any] = []
    for i in given:
        if i is None:
            found.append(None)
        elif i.dtype in (torch.bool, torch.uint8):
            mask = values.host(i) if values.is_here(i) else i
            found += [values.upload(place) for place in mask.nonzero(as_tuple=True)]
        else:
            found.append(values.read(i) if values.is_here(i) else values.upload(i))
    return found


def _fills(indices: list[torch.Tensor | None], value: torch.Tensor) -> bool:
    """Whether ``x[mask] = number``, which needs no coordinates."""
    return len(indices) == 1 and indices[0] is not None and indices[0].dtype is torch.bool and value.ndim == 0


def index(op: OpOverload, function: Callable[..., Any]) -> Callable[..., Any]:
    def run(t: torch.Tensor, indices: list[torch.Tensor | None]) -> torch.Tensor:
        return make(function(values.read(t), _indices(indices)))

    return run


def _put(function: Callable[..., Any], t: torch.Tensor, indices: list[torch.Tensor | None], new: torch.Tensor, accumulate: bool) -> Any:
    mask = indices[0]
    places = [values.operand(mask)] if _fills(indices, new) and values.is_here(mask) else _indices(indices)
    return function(values.read(t), places, values.read(new) if values.is_here(new) else values.upload(new), accumulate)


def index_put(op: OpOverload, function: Callable[..., Any]) -> Callable[..., Any]:
    def run(t: torch.Tensor, indices: Any, new: torch.Tensor, accumulate: bool = False, unsafe: bool = False) -> torch.Tensor:
        return make(_put(function, t, indices, new, accumulate))

    return run


def index_put_(op: OpOverload, function: Callable[..., Any]) -> Callable[..., Any]:
    def run(t: torch.Tensor, indices: Any, new: torch.Tensor, accumulate: bool = False, unsafe: bool = False) -> torch.Tensor:
        values.store(op, t, _put(function, t, indices, new, accumulate))
        return t

    return run


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


def kernels() -> dict[OpOverload, Callable[..., Any]]:
    """The kernels of this module."""
    read, put = table.lookup(aten.index.Tensor), table.lookup(aten.index_put.default)
    assert read is not None and put is not None
    return {
        aten.index.Tensor: index(aten.index.Tensor, read),
        aten.index_put.default: index_put(aten.index_put.default, put),
        aten.index_put_.default: index_put_(aten.index_put_.default, put),
        aten._index_put_impl_.default: index_put_(aten._index_put_impl_.default, put),
        aten.native_dropout.default: native_dropout,
        aten._fused_sdp_choice.default: choose_attention,
    }
