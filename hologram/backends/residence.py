"""Where values are: on the host, or on a device, where programs that read them then run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hologram.backends.device.storage import DeviceStorage
from hologram.errors import DeviceError, OutOfMemory
from hologram.support.user_lines import located


def home(storages: Iterable[Any]) -> str | None:
    """The device that ``storages`` are on; None where all are the host's, whose values go wherever they are wanted.

    Raises DeviceError for values of two devices.
    """
    found: str | None = None
    for s in storages:
        if type(s) is DeviceStorage:
            if found is None:
                found = s.device
            elif s.device != found:
                both = f"values on {found} and on {s.device} meet in one computation"
                raise located(DeviceError(f"{both}: hg.device_put brings one to the other's device"))
    return found


def on_host(storage: Any) -> Any:
    """A Storage of the host with the values of ``storage``. Raises DeviceError where the device that computes them failed."""
    if type(storage) is not DeviceStorage:
        return storage
    try:
        return storage.on_host()
    except (DeviceError, OutOfMemory) as e:
        raise located(e) from None
