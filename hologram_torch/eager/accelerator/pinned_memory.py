"""Pinned memory: ``t.pin_memory()`` and ``t.is_pinned()`` of CPU tensors, and data loaders with ``pin_memory=True``.

Torch asks its one accelerator, which is this device once it is registered. The device's memory is the CPU's, so copies need no locked pages: a pinned
tensor is a copy in plain memory whose storage is marked. Views of it are pinned too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._C import DispatchKey, DispatchKeySet
from torch.library import Library

from hologram_torch.eager.identity import NAME

_MARK = "_pinned_for_hologram"
_OWN = DispatchKeySet(DispatchKey.XLA)  # a key without kernels of its own: torch's for any device, which ask the device that is named
_libraries: list[Library] = []  # a kernel lives as long as its library


def _is_for_another(device: Any) -> bool:
    return device is not None and torch.device(device).type != NAME


def is_pinned(t: torch.Tensor, device: Any = None) -> bool:
    """Whether the memory of a CPU tensor is pinned."""
    if _is_for_another(device):
        return torch.ops.aten.is_pinned.default.redispatch(_OWN, t, device)
    return hasattr(t.untyped_storage(), _MARK)


def pin(t: torch.Tensor, device: Any = None) -> torch.Tensor:
    """A copy of a CPU tensor in pinned memory."""
    if _is_for_another(device):
        return torch.ops.aten._pin_memory.default.redispatch(_OWN, t, device)
    made = t.clone()
    setattr(made.untyped_storage(), _MARK, True)
    return made


def register() -> None:
    """Registers the kernels, which torch calls for CPU tensors alone."""
    library = Library("aten", "IMPL")
    _libraries.append(library)
    library.impl("is_pinned", is_pinned, "CPU")
    library.impl("_pin_memory", pin, "CPU")
