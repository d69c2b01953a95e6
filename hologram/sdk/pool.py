"""The 96-class pool of an executor: one region of 96 pages of 12,288 bytes, each named by its class, each with one owner at a time."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from hologram import dtypes
from hologram.backends.cpu.runtime import storage
from hologram.errors import OutOfMemory
from hologram.trace.aval import aval
from hologram.trace.recorder import located

CLASSES = 96
PAGE_WIDTH, PAGE_HEIGHT = 48, 256  # a page seen as a rectangle of bytes
PAGE_BYTES = PAGE_WIDTH * PAGE_HEIGHT


class Lease:
    """The right to a page. It returns the page when nothing holds it any more: neither the buffer nor a view."""

    __slots__ = ("pool", "class_index")

    def __init__(self, pool: Pool, class_index: int) -> None:
        self.pool, self.class_index = pool, class_index

    def __del__(self) -> None:
        self.pool._returned.append(self.class_index)  # one atomic step: a finaliser may run while this thread takes a page


class Pool:
    """96 pages, 64-byte aligned. The region is allocated when the first page is taken, and lives as long as any page is leased."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: set[int] = set()
        self._returned: list[int] = []
        self._region: Any = None

    def take(self, class_index: int) -> tuple[Lease, int]:
        """The page of a class: its lease and its address. Raises OutOfMemory while the class has an owner."""
        with self._lock:
            self._collect()
            if class_index in self._taken:
                raise located(OutOfMemory(f"the page of class {class_index} is in use: free its buffer, and let go of arrays that view it"))
            if self._region is None:
                self._region = storage.mutable(aval(dtypes.uint8, (CLASSES * PAGE_BYTES,)))
            self._taken.add(class_index)
            return Lease(self, class_index), self._region.data + class_index * PAGE_BYTES

    def free_classes(self) -> list[int]:
        """The classes without an owner, ascending."""
        with self._lock:
            self._collect()
            return sorted(set(range(CLASSES)) - self._taken)

    def _collect(self) -> None:
        while self._returned:
            self._taken.discard(self._returned.pop())


def zero(memory: Any) -> Any:
    """The Storage ``memory`` with its bytes set to 0."""
    ctypes.memset(memory.data, 0, memory.nbytes)
    return memory
