"""The namespace in the form of the Array API standard's versions up to 2024.12: :mod:`hologram.numpy`, with lists where 2025.12 has tuples.

``tensor.__array_namespace__(api_version="2024.12")`` gives it. Every other name is that of :mod:`hologram.numpy`.
"""

from __future__ import annotations

import functools
from typing import Any

from hologram import numpy as hnp
from hologram.numpy.introspection.inspection import Information
from hologram.trace.tensor import Tensor

__array_api_version__ = "2024.12"


class _Information(Information):
    def devices(self) -> list[str]:  # type: ignore[override]
        return list(super().devices())


def __array_namespace_info__() -> Information:
    """As :func:`hologram.numpy.__array_namespace_info__`; ``devices`` gives a list."""
    return _Information()


@functools.wraps(hnp.broadcast_arrays)
def broadcast_arrays(*arrays: Any) -> list[Tensor]:
    return list(hnp.broadcast_arrays(*arrays))


@functools.wraps(hnp.meshgrid)
def meshgrid(*arrays: Any, **options: Any) -> list[Tensor]:
    return list(hnp.meshgrid(*arrays, **options))


def __getattr__(name: str) -> Any:
    return getattr(hnp, name)


def __dir__() -> list[str]:
    return sorted({*dir(hnp), *globals()})
