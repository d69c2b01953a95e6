"""``device="hologram"``: tensors of torch whose ops are recorded, and compiled and run when a value is read.

Torch has one accelerator, and a device that a library registers becomes it: ``torch.accelerator``, pinned memory and data loaders then mean that
device. Beside a GPU torch's autograd engine then fails in an internal assertion for tensors on the GPU. So the device is registered in three cases
alone: by ``import hologram_torch`` where torch has no GPU, by :func:`device`, and by :func:`enable`. Importing this module changes nothing, nor does
torch's lookup of the backend (:mod:`hologram_torch.discovery`).
"""

from __future__ import annotations

import torch

from hologram.errors import DeviceError
from hologram_torch.eager.identity import NAME, check_index

__all__ = ["device", "enable", "enable_beside_no_gpu", "get_backend", "is_available", "list_available_backends", "set_backend"]

_enabled = False


def gpu() -> str | None:
    """The kind of GPU that torch can use, such as ``cuda``; None where there is none."""
    kind = torch.accelerator.current_accelerator()  # that torch was built for, or a library's
    if kind is None or kind.type == NAME:
        return None
    # counted in a way that does not initialise CUDA, after which a process could not fork
    there = torch.cuda.device_count() > 0 if kind.type == "cuda" else torch.accelerator.is_available()
    return kind.type if there else None


def enable() -> None:
    """Registers ``device="hologram"`` with torch, once. Beside a GPU, differentiating tensors on the GPU fails from then on.

    >>> if hologram_torch.devices.enable_beside_no_gpu():
    ...     hologram_torch.devices.enable()  # a second time changes nothing
    """
    global _enabled
    if not _enabled:
        from hologram_torch.eager import registration  # late: importing it takes the name

        registration.register()
        _enabled = True


def enable_beside_no_gpu() -> bool:
    """Registers ``device="hologram"`` with torch where torch has no GPU. Whether it is registered then.

    >>> hologram_torch.devices.enable_beside_no_gpu() == hologram_torch.is_available()
    True
    """
    if not _enabled and gpu() is None:
        enable()
    return _enabled


def is_available() -> bool:
    """Whether ``device="hologram"`` is registered: once ``hologram_torch`` is imported, and where torch has a GPU once :func:`enable` was called.

    >>> isinstance(hologram_torch.is_available(), bool)
    True
    """
    return _enabled


def device(index: int = 0) -> torch.device:
    """The device ``hologram``, which is registered with torch if it was not yet.

    Raises DeviceError for another index than 0, and where torch has a GPU and :func:`enable` was not called.

    >>> x = torch.ones(3, device=hologram_torch.device())
    >>> (x * 2).cpu()
    tensor([2., 2., 2.])
    """
    if not enable_beside_no_gpu():
        raise DeviceError(
            f"device={NAME!r} is not registered, because torch has a GPU ({gpu()}), whose autograd fails beside another library's device: "
            "call hologram_torch.devices.enable() if no tensor on the GPU is differentiated"
        )
    check_index(index)
    return torch.device(NAME, 0)


def list_available_backends() -> list[str]:
    """The backends that tensors of the device can be computed on.

    >>> hologram_torch.list_available_backends()
    ['cpu']
    """
    return ["cpu"]


def get_backend() -> str:
    """The backend that tensors of the device are computed on.

    >>> hologram_torch.get_backend()
    'cpu'
    """
    return "cpu"


def set_backend(name: str) -> None:
    """Chooses the backend that tensors of the device are computed on: ``"cpu"``, or ``"auto"`` for the best there is. Raises DeviceError for others.

    >>> hologram_torch.set_backend("auto")
    """
    if name not in ("auto", *list_available_backends()):
        raise DeviceError(f"tensors of device={NAME!r} are not computed on {name!r}; there is {', '.join(map(repr, list_available_backends()))}")
