"""``torch.hologram``: what torch asks of the module of a device."""

from __future__ import annotations

from typing import Any

import torch

from hologram.errors import DeviceError
from hologram_torch.devices import NAME, pending
from hologram_torch.devices.storage import DEVICE


def check_index(device: Any = None) -> None:
    """Raises DeviceError unless ``device``, an index, a torch.device, a string or None, means the one there is."""
    try:
        found = torch.device(NAME, device) if isinstance(device, int) else torch.device(NAME if device is None else device)
    except (RuntimeError, TypeError, ValueError) as e:
        raise DeviceError(f"{device!r} is no device of {NAME}: {str(e).splitlines()[0]}") from None
    if found.type != NAME or found.index not in (None, 0):
        raise DeviceError(f"there is no device {str(found)!r}: the one there is has the index 0")


def is_available() -> bool:
    """Whether tensors can be made on the device: always, once it is registered."""
    return True


def is_initialized() -> bool:
    return True


def _is_in_bad_fork() -> bool:
    return False


def device_count() -> int:
    return 1


def current_device() -> int:
    return 0


def set_device(device: Any) -> None:
    """Does nothing for the one device. Raises DeviceError for another."""
    check_index(device)


def get_device_name(device: Any = None) -> str:
    """What the device is."""
    check_index(device)
    return "Hologram, native code on the CPU"


def synchronize(device: Any = None) -> None:
    """Computes everything that is pending."""
    check_index(device)
    pending.synchronize()


def manual_seed(seed: int) -> None:
    """Seeds the generator that the device's random numbers come from: torch's CPU generator."""
    torch.default_generator.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    manual_seed(seed)


def seed() -> int:
    """Seeds that generator from the system, and tells the seed."""
    return torch.default_generator.seed()


def initial_seed() -> int:
    return torch.default_generator.initial_seed()


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types that ``torch.autocast("hologram", dtype=…)`` takes. Autocast asks before it is entered, and finds its kernels registered."""
    from hologram_torch.devices import autocast

    autocast.require()
    return list(autocast.TYPES)


def get_rng_state(device: Any = None) -> torch.Tensor:
    """The state of that generator, a CPU tensor of uint8."""
    check_index(device if device is not None else DEVICE)
    return torch.default_generator.get_state()


def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    check_index(device if device is not None else DEVICE)
    torch.default_generator.set_state(state)
