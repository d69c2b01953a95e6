"""Registers ``device="hologram"`` with torch. Importing this module takes the name."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from hologram_torch.eager.accelerator import generators, pinned_memory, torch_accelerator, torch_hologram
from hologram_torch.eager.identity import NAME
from hologram_torch.eager.kernels import dispatch
from hologram_torch.eager.recording import pending
from hologram_torch.eager.storage.storages import storage_of_bytes, teach_torch_to_make_storages


def _tag(storage: Any) -> None:
    """Torch's own tag for storages of a device outside of it serves."""


def _loaded(storage: Any, location: str) -> torch.UntypedStorage | None:
    """Moves a storage that ``torch.load`` has read to the device, if ``location`` is the device."""
    return storage_of_bytes(storage) if location.partition(":")[0] == NAME else None


def register() -> None:
    """Registers the device's storages, ops and accelerator functions, and makes an optimiser's step compute what is pending. To be called once."""
    # Torch's own hooks and guard, which say that there is one device without streams: Dynamo would trace methods of a guard of ours when torch calls
    # them, and compiled code would then outlive ``torch._dynamo.reset``.
    _setup_privateuseone_for_python_backend(NAME, backend_module=sys.modules[torch_hologram.__name__])
    torch.serialization.register_package(15, _tag, _loaded)
    dispatch.register()
    teach_torch_to_make_storages()
    pinned_memory.register()
    generators.install()
    torch_accelerator.install()
    register_optimizer_step_post_hook(lambda *_: pending.synchronize())
