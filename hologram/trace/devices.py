"""Where arrays live and programs run, and what is cached on their behalf."""

from __future__ import annotations

from typing import Any

from hologram.backends.devices import Devices
from hologram.backends.devices import devices as every_device
from hologram.trace import jit, lazy, tree
from hologram.trace.convert import asarray, check_device


def devices() -> Devices:
    """The names of the devices that ``jit(device=…)`` takes: a list, whose ``missing`` says why others are not there. ``print`` shows both."""
    return every_device()


def default_device() -> str:
    return "cpu"


def device_put(value: Any, device: Any = None) -> Any:
    """The pytree ``value`` as Tensors on ``device``. Raises DeviceError for one that is not there."""
    check_device(device)
    return tree.map(asarray, value)


def set_num_threads(n: int) -> None:
    """How many threads kernels may use. Results do not depend on it."""
    from hologram.backends.cpu.runtime.pool import set_num_threads

    set_num_threads(n)


def clear_caches() -> None:
    """Forgets compiled programs and gives back memory kept for results. The disk cache stays."""
    lazy.clear()
    jit.clear_all()
    from hologram.backends.cpu.runtime import storage

    storage.clear_caches()
