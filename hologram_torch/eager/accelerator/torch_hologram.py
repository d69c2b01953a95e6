"""``torch.hologram``: the functions that torch expects of a device's module."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import torch

from hologram.backends.llvm.toolchain import target
from hologram.backends.native import storage
from hologram.backends.native.processors import usable_processors
from hologram.errors import UnsupportedError
from hologram.settings import settings
from hologram_torch.eager.accelerator import autocast
from hologram_torch.eager.identity import NAME, check_index
from hologram_torch.eager.recording import pending
from hologram_torch.eager.storage.impl import TYPES
from hologram_torch.eager.storage.storages import DEVICE


class DeviceProperties(NamedTuple):
    """The result of :func:`get_device_properties`.

    ``multi_processor_count`` is the number of threads, ``architecture`` LLVM's name of the processor, ``total_memory`` the machine's memory in bytes,
    None where the system does not tell; ``L2_cache_size`` is in bytes per core.
    """

    name: str
    type: str
    architecture: str
    multi_processor_count: int
    total_memory: int | None
    L2_cache_size: int
    vector_bytes: int


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
    """The device's name."""
    check_index(device)
    return "Hologram, native code on the CPU"


def get_device_properties(device: Any = None) -> DeviceProperties:
    """The processor that the device computes on."""
    host, threads = target.host(), settings.num_threads or usable_processors()
    return DeviceProperties(get_device_name(device), NAME, host.cpu, threads, _total_memory(), host.l2_bytes, host.vector_bytes)


def get_device_capability(device: Any = None) -> dict[str, Any]:
    """``{"supported_dtypes": …}``: the set of the types that tensors on the device may have."""
    check_index(device)
    return {"supported_dtypes": set(TYPES.values())}


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the device computes in bfloat16: always; without emulation, whether the processor multiplies it."""
    return including_emulation or any(map(target.host().has, ("avx512bf16", "bf16")))


def _total_memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """The machine's available and total memory in bytes. Raises UnsupportedError on systems other than Linux."""
    check_index(device)
    try:
        rows = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        free, total = (int(rows[name].split()[0]) << 10 for name in ("MemAvailable", "MemTotal"))
    except (OSError, KeyError, ValueError):
        raise UnsupportedError("mem_get_info: this system has no /proc/meminfo to read") from None
    return free, total


def empty_cache() -> None:
    """Frees memory that is kept for reuse."""
    storage.clear_caches()


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
    """Seeds the generator from the system, and returns the seed."""
    return torch.default_generator.seed()


def initial_seed() -> int:
    return torch.default_generator.initial_seed()


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types that ``torch.autocast("hologram", dtype=…)`` takes. Autocast asks for them before it is entered, so its kernels are registered
    here."""
    autocast.require()
    return list(autocast.TYPES)


def get_rng_state(device: Any = None) -> torch.Tensor:
    """The state of the generator, a CPU tensor of uint8."""
    check_index(device if device is not None else DEVICE)
    return torch.default_generator.get_state()


def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    check_index(device if device is not None else DEVICE)
    torch.default_generator.set_state(state)
