"""What the namespace says of itself: the Array API's inspection functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.ir.devices import devices
from hologram.numpy.introspection.types import isdtype
from hologram.trace.convert import device_name
from hologram.trace.recorder import current

__all__ = ["__array_namespace_info__"]

_STANDARD = tuple(d for d in dtypes.ALL if not d.is_narrow_float)


class Information:
    """Capabilities, defaults, element types and devices."""

    def capabilities(self) -> dict[str, Any]:
        """Masks and functions like ``nonzero`` give shapes that depend on values, but not while tracing; axes are not limited in number."""
        has_values = current() is None
        return {"boolean indexing": has_values, "data-dependent shapes": has_values, "max dimensions": None}

    def default_device(self) -> str:
        return "cpu"

    def devices(self) -> tuple[str, ...]:
        return tuple(devices())

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        device_name(device)
        return {
            "real floating": dtypes.default_float.np,
            "complex floating": dtypes.default_complex.np,
            "integral": dtypes.default_int.np,
            "indexing": dtypes.default_int.np,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        """The standard's element types, or those of one kind or of several."""
        device_name(device)
        return {d.name: d.np for d in _STANDARD if kind is None or isdtype(d.np, kind)}


def __array_namespace_info__() -> Information:
    """What the namespace can do, as the Array API asks: capabilities, default device, devices, default types, types.

    >>> hnp.__array_namespace_info__().default_dtypes()["real floating"]
    dtype('float32')
    """
    return Information()
