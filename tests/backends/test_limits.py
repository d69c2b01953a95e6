"""The limits of the machine: measured, kept, and what they say of a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from hologram.backends import limits as module
from hologram.backends.limits import Limits, known, limits
from hologram.settings import override


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Limits]:
    """What is measured next, from the last on; each time as another process."""
    left: list[Limits] = []

    def take(threads: int) -> Limits:
        module._best.cache_clear()
        return left.pop()

    monkeypatch.setattr(module, "_measured", take)
    return left


def test_what_is_measured_is_plausible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 1 << 24)
    module._best.cache_clear()
    with override(cache_dir=tmp_path):
        assert known() is None
        found = limits()
        assert limits() is found and known() == found
    module._best.cache_clear()
    sizes, times = zip(*found.levels, strict=True)
    assert list(sizes) == sorted(sizes) and list(times) == sorted(times)
    assert 0 < found.operation < 10 and 0 < found.cached_byte <= found.byte < 100 and found.launch == 0


def test_the_best_of_all_processes_is_kept(tmp_path: Path, measured: list[Limits]) -> None:
    measured += [Limits(0.1, ((1, 9.0), (8, 9.0))), Limits(1.0, ((1, 1.0), (8, 3.0))), Limits(0.5, ((1, 2.0), (8, 2.0)))]
    with override(cache_dir=tmp_path):
        for expected in (Limits(0.5, ((1, 2.0), (8, 2.0))), Limits(0.5, ((1, 1.0), (8, 2.0))), Limits(0.1, ((1, 1.0), (8, 2.0)))):
            module._best.cache_clear()
            assert limits() == known() == expected
    module._best.cache_clear()


def test_measuring_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: list[Limits]) -> None:
    monkeypatch.setattr(module, "MAX_MEASURED", 2)
    measured += [Limits(0.1, ((1, 1.0),)), Limits(0.2, ((1, 1.0),)), Limits(0.3, ((1, 1.0),))]
    with override(cache_dir=tmp_path):
        for _ in range(4):
            module._best.cache_clear()
            found = limits()
    module._best.cache_clear()
    assert found.operation == 0.2 and len(measured) == 1


def test_what_a_kernel_is_bound_by() -> None:
    machine = Limits(operation=0.01, levels=((1000, 0.05), (10_000, 0.1)))
    assert machine.seconds(1000, 10)[1] == "memory" and machine.seconds(10, 1000)[1] == "arithmetic"
    assert machine.seconds(0, 1000, itemsize=8)[0] == pytest.approx(2 * machine.seconds(0, 1000)[0])
    assert [machine.byte_of(n) for n in (1, 1000, 9999, 10_000, 1 << 30)] == [0.05, 0.05, 0.05, 0.1, 0.1]
    assert machine.as_dict()["byte"] == 0.1 and machine.as_dict()["cached_byte"] == 0.05
