"""Where the values of Tensors are, or will be."""

from __future__ import annotations

from typing import Any

from hologram.backends.device.storage import DeviceStorage
from hologram.backends.residence import home
from hologram.graph.placement.device_parts import is_placed
from hologram.ir.devices import CPU
from hologram.ir.leaves import leaf
from hologram.ir.traversal import topological
from hologram.trace.recorder import Pending


def device_of(t: Any) -> str:
    """The name of the device that a Tensor's values are on, or will be: that of the values it is computed from, or the one it is placed on."""
    if t._storage is None and t._node is not None:
        nodes = topological([t._node])
        if type(t._node) is Pending and is_placed(nodes):
            t._realised("device")
        else:
            return home(n.attrs[0] for n in nodes if n.op is leaf) or CPU
    return t._storage.device if type(t._storage) is DeviceStorage else CPU
