"""``torch.accelerator``: its functions for this device.

They call functions of ``torch._C``, which ask C++ classes that Python cannot derive from: for synchronisation, capabilities and memory these raise or
crash. Once the device is registered it is torch's one accelerator, and the functions here replace those of ``torch._C``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from hologram.backends.native import storage
from hologram_torch.eager.accelerator import torch_hologram
from hologram_torch.eager.identity import check_index


def _set_index(index: int) -> None:
    if index >= 0:  # torch's rule
        torch_hologram.set_device(index)


def _exchange_index(index: int) -> int:
    _set_index(index)
    return torch_hologram.current_device()


def _is_allocator_there() -> bool:
    return True


def _statistics(index: int) -> dict[str, dict[str, dict[str, int]]]:
    """Bytes of computed values, those of Hologram's own Tensors too, and bytes kept for reuse, in the format of torch's allocators."""
    check_index(index)
    found = storage.statistics()
    reserved = found["live"] + found["cached"]
    return {
        "allocated_bytes": {"all": {"current": found["live"], "peak": found["peak"]}},
        "reserved_bytes": {"all": {"current": reserved, "peak": max(found["peak"], reserved)}},
    }


def _reset_peak(index: int) -> None:
    check_index(index)
    storage.reset_peak()


def _reset_accumulated(index: int) -> None:
    """Does nothing: there are no accumulated counts."""
    check_index(index)


def _empty_host_cache() -> None:
    """Does nothing: no pinned memory is kept for reuse."""


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "_accelerator_setDeviceIndex": _set_index,
    "_accelerator_exchangeDevice": _exchange_index,
    "_accelerator_maybeExchangeDevice": _exchange_index,
    "_accelerator_synchronizeDevice": torch_hologram.synchronize,
    "_accelerator_getDeviceCapability": torch_hologram.get_device_capability,
    "_accelerator_isAllocatorInitialized": _is_allocator_there,
    "_accelerator_getDeviceStats": _statistics,
    "_accelerator_getMemoryInfo": torch_hologram.mem_get_info,
    "_accelerator_resetPeakStats": _reset_peak,
    "_accelerator_resetAccumulatedStats": _reset_accumulated,
    "_accelerator_emptyCache": torch_hologram.empty_cache,
    "_accelerator_emptyHostCache": _empty_host_cache,
}


def install() -> None:
    """Replaces these functions of ``torch._C``, as far as this version of torch has them."""
    for name, function in FUNCTIONS.items():
        if hasattr(torch._C, name):
            setattr(torch._C, name, function)
