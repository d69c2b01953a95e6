"""Peaks of profiles that overlap."""

from __future__ import annotations

import gc

import numpy as np

import hologram as hg
from hologram.backends.native import storage

MEGABYTE = 1 << 20


def allocated(megabytes: int) -> None:
    """Allocates, and frees."""
    hg.tensor(np.zeros(megabytes * MEGABYTE, np.uint8))


def test_each_profile_sees_the_peak_of_its_time() -> None:
    gc.collect()
    allocated(40)
    before, live = storage.statistics()["peak"], storage.statistics()["live"]
    first, second, third = hg.profile(), hg.profile(), hg.profile()
    with first:
        allocated(20)
        second.__enter__()
        allocated(5)
    allocated(10)
    second.__exit__()
    with third:
        allocated(1)
    peaks = [(p.measured.memory["peak"] - live) / MEGABYTE for p in (first, second, third)]
    assert [round(x / 1.25) <= want <= round(x) for x, want in zip(peaks, (20, 10, 1), strict=True)] == [True] * 3, peaks
    assert storage.statistics()["peak"] >= before, "the process has the peak that it had"
