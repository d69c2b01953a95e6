"""The 96-class pool of an executor: one region of 96 pages of 12,288 bytes, each named by its class, each with one owner at a time."""

from __future__ import annotations

import ctypes
from typing import Any

from hologram import dtypes
from hologram.backends.native import storage
from hologram.errors import OutOfMemory
from hologram.ir.aval import aval
from hologram.support.cached_property import cached_property
from hologram.support.user_lines import located

CLASSES = 96
PAGE_WIDTH, PAGE_HEIGHT = 48, 256  # a page seen as a rectangle of bytes
PAGE_BYTES = PAGE_WIDTH * PAGE_HEIGHT


class Lease:
    """The right to a page. It returns the page when nothing holds it any more: neither the buffer nor a view."""

    __slots__ = ("_owners", "_region", "class_index")

    def __init__(self, owners: dict[int, object], region: Any, class_index: int) -> None:
        self._owners, self._region, self.class_index = owners, region, class_index

    def __del__(self) -> None:
        self._owners.pop(self.class_index, None)


class Pool:
    """96 pages, 64-byte aligned. The region is allocated when the first page is taken, and lives as long as any page is leased.

    Taking and returning a page are each one step of a dict: threads, and finalisers that run in between, need no lock.
    """

    def __init__(self) -> None:
        self._owners: dict[int, object] = {}

    @cached_property
    def _region(self) -> Any:
        return storage.mutable(aval(dtypes.uint8, (CLASSES * PAGE_BYTES,)))

    def take(self, class_index: int) -> tuple[Lease, int]:
        """The page of a class: its lease and its address. Raises OutOfMemory while the class has an owner."""
        region, mark = self._region, object()
        if self._owners.setdefault(class_index, mark) is not mark:
            raise located(OutOfMemory(f"the page of class {class_index} is in use: free its buffer, and let go of arrays that view it"))
        return Lease(self._owners, region, class_index), region.data + class_index * PAGE_BYTES

    def free_classes(self) -> list[int]:
        """The classes without an owner, ascending."""
        return sorted(set(range(CLASSES)) - set(self._owners))


def zero(memory: Any) -> Any:
    """The Storage ``memory`` with its bytes set to 0."""
    ctypes.memset(memory.data, 0, memory.nbytes)
    return memory
