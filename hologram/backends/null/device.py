"""Devices that plan, render and count, and compute nothing: ``null:0``, ``null:1``, … as many as one asks for.

A program for a null device is compiled as for any other, up to its text; what it launches, copies and allocates is counted
(:attr:`~hologram.backends.device.driver.Device.counts`, and its runtime's ``pool``). Reading a value from one raises DeviceError.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from hologram.backends.c.dialects import OPENCL
from hologram.backends.device import driver, runtime
from hologram.backends.device.driver import Launch, Place

MEMORY_BYTES = 16 * 2**30  # of one, as far as it pretends


class Event(driver.Event):
    def is_done(self) -> bool:
        return True

    def wait(self) -> None:
        return


class Queue(driver.Queue):
    def _write(self, to: Place, array: np.ndarray) -> None:
        return

    def _read(self, array: np.ndarray, source: Place) -> None:
        return

    def _copy(self, to: Place, source: Place, nbytes: int) -> None:
        return

    def _launch(self, launch: Launch, slots: Sequence[Place], workspace: Any) -> None:
        return

    def record(self) -> Event:
        return Event()

    def wait_for(self, event: driver.Event) -> None:
        return

    def finish(self) -> None:
        return


class Device(runtime.Device):
    """``taken``: bytes that are allocated."""

    dialect = OPENCL  # any would do
    kind = "null"
    units = 64
    has_values = False
    survives_forks = True

    def __init__(self, number: int) -> None:
        super().__init__()
        self.name = f"null:{number}"
        self.largest_buffer = self.memory_bytes = MEMORY_BYTES
        self.taken = 0

    def describe(self) -> str:
        return "computes nothing: plans, renders and counts"

    def why_not(self, precision: str, double: bool) -> str | None:
        return None

    def build(self, source: str, names: Sequence[str]) -> dict[str, Any]:
        return {name: name for name in names}

    def allocate(self, nbytes: int) -> Any:
        if self.taken + nbytes > self.memory_bytes:
            raise MemoryError(f"of {self.memory_bytes:,} bytes {self.taken:,} are taken")
        self.taken += nbytes
        return _Block(nbytes)

    def release(self, handle: Any) -> None:
        self.taken -= handle.nbytes

    def new_queue(self) -> Queue:
        return Queue(self)


class _Block:
    """What stands for memory."""

    __slots__ = ("nbytes",)

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


def found() -> tuple[list[Device], str | None]:
    """The first device: there is no last."""
    return [numbered(0)], None


@cache
def numbered(number: int) -> Device:
    return Device(number)
