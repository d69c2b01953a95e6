"""``device="hologram"``: tensors of torch whose ops are recorded, and compiled and run when a value is read.

Importing this package registers the device with torch.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from hologram.errors import DeviceError
from hologram_torch.devices import backend, pending, registration
from hologram_torch.devices.storage import NAME, storage_of_bytes, teach_torch_to_make_storages

__all__ = ["device", "get_backend", "is_available", "list_available_backends", "set_backend"]


class _Hooks(torch._C._acc.PrivateUse1Hooks):
    def is_available(self) -> bool:
        return True

    def has_primary_context(self, device_index: int) -> bool:
        return True

    def is_built(self) -> bool:
        return True


class _Guard(torch._C._acc.DeviceGuard):
    def type_(self) -> Any:
        return torch._C._autograd.DeviceType.PrivateUse1


def _tag(storage: Any) -> None:
    """Torch's own tag for storages of a device outside of it serves."""


def _loaded(storage: Any, location: str) -> torch.UntypedStorage | None:
    """What ``torch.load`` has read, on the device if that is where it was or is to be."""
    return storage_of_bytes(storage) if location.partition(":")[0] == NAME else None


def is_available() -> bool:
    """Whether ``device="hologram"`` can be had: always, once this package is imported."""
    return backend.is_available()


def device(index: int = 0) -> torch.device:
    """The device. Raises DeviceError for another index than 0."""
    backend.check_index(index)
    return torch.device(NAME, 0)


def list_available_backends() -> list[str]:
    """The backends that tensors of the device can be computed on."""
    return ["cpu"]


def get_backend() -> str:
    """The backend that tensors of the device are computed on."""
    return "cpu"


def set_backend(name: str) -> None:
    """Chooses the backend: ``"cpu"``, or ``"auto"`` for the best there is. Raises DeviceError for others."""
    if name not in ("auto", *list_available_backends()):
        raise DeviceError(f"tensors of device={NAME!r} are not computed on {name!r}; there is {', '.join(map(repr, list_available_backends()))}")


def _register() -> None:
    _setup_privateuseone_for_python_backend(NAME, backend_module=sys.modules[backend.__name__], hook=_Hooks(), device_guard=_Guard())
    torch.serialization.register_package(15, _tag, _loaded)
    registration.register()
    teach_torch_to_make_storages()
    register_optimizer_step_post_hook(lambda *_: pending.synchronize())


_register()
