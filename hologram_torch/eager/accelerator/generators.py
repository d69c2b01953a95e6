"""``torch.Generator(device="hologram")``: generators of random numbers for the device.

Torch's CPU kernels draw the device's numbers, so its generators are CPU generators that report the device. Torch's constructor cannot make one, and
its type has no other constructor. So ``torch.Generator`` is replaced by a type of that name: it makes torch's generators for torch's devices, and all
generators are its instances.
"""

from __future__ import annotations

from typing import Any

import torch

from hologram_torch.eager.identity import NAME, check_index
from hologram_torch.eager.storage.storages import DEVICE

Native: Any = torch._C.Generator


def _is_here(device: Any) -> bool:
    """Whether ``device`` is this one. Torch's own constructor refuses what is no device."""
    try:
        return torch.device(device).type == NAME
    except (RuntimeError, TypeError):
        return False


class _Kind(type(Native)):  # type: ignore[misc]
    """Metaclass: torch's own generators count as instances of their replacement."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Native) if cls is Generator else super().__instancecheck__(x)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, Native) if cls is Generator else super().__subclasscheck__(kind)


class Generator(Native, metaclass=_Kind):
    """``torch.Generator(device="cpu")``: a generator of random numbers for tensors of a device.

    One of ``device="hologram"`` gives the numbers that a CPU generator of the same seed gives, and the two take each other's states.
    """

    def __new__(cls, device: Any = "cpu") -> Any:
        if _is_here(device):
            check_index(device)
            return Native.__new__(cls)
        return Native(device=device) if cls is Generator else Native.__new__(cls, device=device)

    @property
    def device(self) -> torch.device:
        return DEVICE

    def clone_state(self) -> Any:
        """Another generator of the device in the same state."""
        return Generator(DEVICE).set_state(self.get_state())

    def __reduce__(self) -> Any:
        _, _, state = super().__reduce__()
        return Generator, (DEVICE,), state


Generator.__module__, Generator.__doc__ = "torch", Native.__doc__  # pickles of all generators name torch.Generator


def install() -> None:
    """Replaces ``torch.Generator``. Code that imported the type before keeps torch's, which still works for torch's devices."""
    torch.Generator = Generator  # type: ignore[misc]
