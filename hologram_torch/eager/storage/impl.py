"""Storage implementation: what a storage of the device holds, one immutable Tensor of Hologram in C order.

A write replaces the Tensor by another one, computed from the old one, so that every torch tensor over the storage sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import hologram as hg
from hologram import dtypes
from hologram.primitives.movement import broadcast
from hologram.trace.apply import wrap
from hologram.trace.recorder import constant, record
from hologram_torch.bridge.element_types import dtype_of, torch_dtype_of
from hologram_torch.bridge.interop import to_numpy, to_torch
from hologram_torch.eager.recording import pending
from hologram_torch.eager.recording.templates import strong

TYPES = {d: torch_dtype_of(d) for d in dtypes.ALL}


def _nothing() -> None:
    return None


class StorageImpl:
    """The elements of one storage.

    - ``shape``: the shape of ``value``.
    - ``viewed``: whether tensors of another shape or other strides may share the storage.
    - ``unwritten``: whether the memory is uninitialised, so that copies of it need not be made.
    - ``sized``: a weak reference to the storage that torch knows by its size, if one has been made.
    """

    __slots__ = ("value", "shape", "dtype", "viewed", "unwritten", "sized", "__weakref__")

    def __init__(self, value: hg.Tensor, unwritten: bool = False) -> None:
        value = strong(value)
        shape, dtype = value._aval()
        self.value, self.dtype = value, TYPES[dtype]
        self.shape: Any = shape
        self.viewed, self.unwritten = False, unwritten
        self.sized: Callable[[], torch.UntypedStorage | None] = _nothing
        pending.note(self)

    @property
    def nbytes(self) -> int:
        return self.value.nbytes

    def write(self, value: hg.Tensor) -> None:
        """Replaces the elements by ``value``, of as many elements and of its type."""
        self.value, self.shape, self.unwritten = value, value.shape, False
        pending.note(self)

    def typed(self, dtype: torch.dtype) -> StorageImpl:
        """Reinterprets the bytes as elements of ``dtype``, from now on."""
        if dtype is not self.dtype:
            elements = self.host().reshape(-1).view(dtype)
            self.value, self.shape, self.dtype = hg.tensor(to_numpy(elements)), tuple(elements.shape), dtype
        return self

    def host(self) -> torch.Tensor:
        """The elements as a CPU tensor over memory that must not be written."""
        if self.value._storage is None:
            pending.synchronize()
        return to_torch(self.value)


def empty_value(shape: Any, dtype: torch.dtype) -> hg.Tensor:
    """Uninitialised elements: zeros, which cost nothing until they are read."""
    return wrap(record(broadcast, (constant(0, dtype_of(dtype)),), (tuple(shape), ())))
