"""What placement reckons with: how fast the devices of this machine are, measured once and kept in the disk cache.

Of the CPU, operations and bytes are those of :mod:`hologram.backends.limits`; what a kernel costs before it does anything is measured here, and all
of devices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields
from functools import cache
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.backends import object_cache as disk
from hologram.backends.build import build
from hologram.backends.device.runtime import Device
from hologram.backends.limits import Limits, fastest, limits
from hologram.backends.native import storage
from hologram.backends.native.processors import usable_processors
from hologram.graph.placement.min_cut import Rates
from hologram.ir.devices import CPU, backend, find
from hologram.ir.graph import Graph
from hologram.ir.leaves import const, input_
from hologram.ir.node import Builder, Node, const_attrs
from hologram.ir.op import TABLE

SMALL, LARGE = 16, 1 << 22  # elements of float32
BUSY, ROUNDS = 1 << 18, 32  # elements, and multiply-adds of each
CHAIN = 16  # kernels, one after the other
REPEATS, ATTEMPTS = 5, 4
_FIELDS = {f.name for f in fields(Rates)}
NULL = Rates(20_000.0, 5_000.0, 2e-5, 1e-3, 10_000.0, 0.05)  # what a device that computes nothing passes for: a GPU on a PCI Express bus


@cache
def rates(name: str) -> Rates:
    """Of the device ``name``; measured where no process on this machine has done so yet, which takes some tenths of a second."""
    found = known(name)
    if found is None:
        found = _measured(_device(name))
        disk.store(_key(name), b"", asdict(found), kind="rates")
    return found


def known(name: str) -> Rates | None:
    """The rates of a device that have been measured; None where none have."""
    device = _device(name)
    if device is not None and not getattr(device, "has_values", True):
        return NULL
    found = disk.load_entry(_key(name), lambda data, meta: meta.keys() == _FIELDS and all(type(x) is float for x in meta.values()))
    return None if found is None else Rates(**found[1])


def limits_of(name: str) -> Limits:
    """What the device ``name`` can do at most. Of devices only what programs usually reach is known."""
    if name == CPU:
        return limits()
    found = rates(name)
    return Limits(found.operation, ((0, found.byte),), found.launch)


def _device(name: str) -> Any:
    """The device of common/driver.py; None for the CPU."""
    return None if name == CPU else find(name)


def _key(name: str) -> str:
    device = _device(name)
    return disk.key("rates", f"cpu, {usable_processors()} threads" if device is None else device.describe())


def _measured(device: Device | None) -> Rates:
    """Again where other work on the machine disturbed it so much that operations seem to take no time."""
    for _ in range(ATTEMPTS):
        found = _once(device)
        if found.operation > 0:
            break
    return found


def _once(device: Device | None) -> Rates:
    small, chain = (fastest(_runner(device, g), REPEATS) for g in (_increment(SMALL), _sums()))
    launch = max(0.0, chain - small) / (CHAIN - 1)
    if device is None:
        most = limits()
        return Rates(0.0, launch, most.operation, most.byte)  # native code is called by native code: next to nothing
    large, idle, busy = (fastest(_runner(device, g), REPEATS) for g in (_increment(LARGE), _increment(BUSY), _polynomial()))
    byte = max(0.0, large - small) / (2 * 4 * LARGE)
    operation = max(0.0, busy - idle) / ((2 * ROUNDS - 1) * BUSY)  # of the same bytes, which caches may hold
    latency = fastest(_carrier(device, SMALL), REPEATS) / 2
    transfer_byte = max(0.0, fastest(_carrier(device, LARGE), REPEATS) / 2 - latency) / (4 * LARGE)
    return Rates(max(0.0, small - launch), launch, operation, byte, latency, transfer_byte)


def _runner(device: Device | None, graph: Graph) -> Callable[[], Any]:
    """A call of a program on zeros, and the wait for it."""
    x = storage.copy_of(np.zeros(graph.inputs[0].shape, np.float32))
    executable = build(backend(CPU if device is None else device.name), graph, "standard")
    if device is None:
        return lambda: executable.run([x])
    there = device.runtime.put(x)
    return lambda: executable.run([there])[0].wait()


def _carrier(device: Device, n: int) -> Callable[[], Any]:
    """``n`` elements to the device and back, in turn."""
    x = storage.copy_of(np.zeros(n, np.float32))
    out = np.empty(n, np.float32)

    def run() -> None:
        there = device.runtime.put(x)
        there.wait()
        device.runtime.read(out, there)

    return run


def _increment(n: int) -> Graph:
    b = Builder()
    x = b(input_, (), (0, (n,), "float32", None))
    return Graph([x], [b(TABLE["add"], (x, _number(b, 1.0)))])


def _sums() -> Graph:
    """Running sums along one axis and the other in turn, a kernel each."""
    b = Builder()
    x = y = b(input_, (), (0, (4, 4), "float32", None))
    for i in range(CHAIN):
        y = b(TABLE["cumsum"], (y,), (i % 2, False))
    return Graph([x], [y])


def _polynomial() -> Graph:
    """A chain of products and sums, a value each."""
    b = Builder()
    x = b(input_, (), (0, (BUSY,), "float32", None))
    y = x
    for i in range(ROUNDS):
        y = b(TABLE["add"], (b(TABLE["mul"], (y, x)), _number(b, i + 0.5)))
    return Graph([x], [y])


def _number(b: Builder, value: float) -> Node:
    return b(const, (), const_attrs(value, dtypes.float32))
