"""The device's name and index."""

from __future__ import annotations

from typing import Any

import torch

from hologram.errors import DeviceError

NAME = "hologram"


def check_index(device: Any = None) -> None:
    """Raises DeviceError unless ``device``, an index, a torch.device, a string or None, means the one there is. For use once it is registered."""
    try:
        found = torch.device(NAME, device) if isinstance(device, int) else torch.device(NAME if device is None else device)
    except (RuntimeError, TypeError, ValueError) as e:
        raise DeviceError(f"{device!r} is no device of {NAME}: {str(e).splitlines()[0]}") from None
    if found.type != NAME or found.index not in (None, 0):
        raise DeviceError(f"there is no device {str(found)!r}: the one there is has the index 0")
