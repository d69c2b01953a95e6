"""The limits of the machine: measured, kept, and what they say of a kernel."""

from __future__ import annotations

import pytest

from hologram.backends.limits import FIELDS, Limits, limits


def test_the_best_limits_are_kept() -> None:
    found = limits("cpu")
    assert limits("cpu") is found
    limits.cache_clear()  # as another process
    assert all(getattr(limits("cpu"), name) <= getattr(found, name) for name in FIELDS)
    assert 0 < found.operation < 10 and 0 < found.cached_byte <= found.byte < 100 and found.launch == 0


def test_what_a_kernel_is_bound_by() -> None:
    machine = Limits(operation=0.01, byte=0.1, cached_byte=0.05)
    assert machine.seconds(1000, 10)[1] == "memory" and machine.seconds(10, 1000)[1] == "arithmetic"
    assert machine.seconds(0, 1000, itemsize=8)[0] == pytest.approx(2 * machine.seconds(0, 1000)[0])
    assert machine.seconds(2**23, 0)[0] > 2 * machine.seconds(2**22, 0)[0]
