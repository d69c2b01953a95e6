"""Blocks of memory: regions of huge pages, of which blocks are parts, and what comes back to the system."""

from __future__ import annotations

import ctypes
import gc
import itertools
import random
import sys

import numpy as np
import pytest

from hologram import dtypes
from hologram.backends.native import storage
from hologram.backends.native.code.blocks import COLOURED, HUGE, REGION_BYTES, REGIONAL
from hologram.backends.native.module import module
from hologram.ir.aval import aval
from tests.support.runtime_programs import natively

pytestmark = natively

SIZES = (1, 64, REGIONAL - 64, REGIONAL, COLOURED, 3 << 20, HUGE - (1 << 20), HUGE, 3 * HUGE)


def view(s: object) -> np.ndarray:
    return np.frombuffer(s, np.uint8)  # type: ignore[call-overload]


def fill(s: object, value: int) -> None:
    """Views are read-only."""
    ctypes.memset(view(s).ctypes.data, value, view(s).nbytes)


def test_blocks_are_aligned_and_apart() -> None:
    random.seed(3)
    held = [(storage.empty(aval(dtypes.uint8, (n,))), k) for k, n in enumerate(random.choices(SIZES, k=60))]
    for s, k in held:
        assert view(s).ctypes.data % 64 == 0
        fill(s, k)
    for s, k in held:
        assert (view(s) == k).all()


def test_blocks_survive_the_release_of_their_neighbours() -> None:
    random.seed(4)
    trim = module().function("hg_heap_trim", None)
    held: list[tuple[object, int]] = []
    for k in range(200):
        s = storage.empty(aval(dtypes.uint8, (random.choice(SIZES[2:8]),)))
        fill(s, k)
        held.append((s, k))
        if len(held) > 12:
            random.shuffle(held)
            del held[6:]
            trim()
        assert all((view(s)[[0, -1]] == k).all() for s, k in held)


@pytest.mark.skipif(sys.platform != "linux", reason="the system's accounts of memory are those of Linux")
def test_released_memory_goes_back_to_the_system() -> None:
    """Also where a block of each region is still in use."""

    def resident() -> int:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * 4096

    gc.collect()
    trim = module().function("hg_heap_trim", None)
    trim()
    fillers = [storage.empty(aval(dtypes.uint8, (3 << 20,))) for _ in range(40)]  # of what earlier tests have left
    for s in fillers:
        fill(s, 1)
    before = resident()
    held = [storage.empty(aval(dtypes.uint8, (3 << 20,))) for _ in range(100)]
    for s in held:
        fill(s, 1)
    assert resident() - before > 290 << 20
    held = held[::50]
    trim()
    assert resident() - before < 40 << 20
    assert all((view(s) == 1).all() for s in held)


@pytest.mark.skipif(sys.platform != "linux", reason="regions of huge pages are for Linux")
def test_neighbours_share_a_region() -> None:
    if not module().heap.advise:
        pytest.skip("this kernel has no huge pages")
    module().function("hg_heap_trim", None)()
    held = [storage.empty(aval(dtypes.uint8, (1 << 20,))) for _ in range(80)]  # the first fill what earlier tests have left
    places = [view(s).ctypes.data for s in held[40:]]
    near = [0 < abs(second - first) < REGION_BYTES for first, second in itertools.pairwise(places)]
    assert sum(near) > len(near) * 3 // 4
