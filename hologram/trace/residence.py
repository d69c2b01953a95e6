"""Where values are: on the host, or on a device, where programs that read them then run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hologram.backends.common.storage import DeviceStorage
from hologram.backends.devices import CPU
from hologram.errors import DeviceError, OutOfMemory
from hologram.graph.partition import is_placed
from hologram.primitives.leaves import leaf
from hologram.trace.node import topological
from hologram.trace.recorder import Pending, located


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


def device_of(t: Any) -> str:
    """The name of the device that a Tensor's values are on, or will be: that of the values it is computed from, or the one it is placed on."""
    if t._storage is None and t._node is not None:
        nodes = topological([t._node])
        if type(t._node) is Pending and is_placed(nodes):
            t._realised("device")
        else:
            return home(n.attrs[0] for n in nodes if n.op is leaf) or CPU
    return t._storage.device if type(t._storage) is DeviceStorage else CPU


def on_host(storage: Any) -> Any:
    """A Storage of the host with the values of ``storage``. Raises DeviceError where the device that computes them failed."""
    if type(storage) is not DeviceStorage:
        return storage
    try:
        return storage.on_host()
    except (DeviceError, OutOfMemory) as e:
        raise located(e) from None
