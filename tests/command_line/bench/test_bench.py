"""``hologram bench``: measures are plausible, take turns, and hold to one limit of a kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hologram.command_line import bench
from hologram.command_line.bench import measures, timing
from hologram.command_line.bench.timing import Call, Measure, measured
from hologram.command_line.main import main


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays and pauses for tests."""
    monkeypatch.setattr(measures, "LARGE", 1 << 18)
    monkeypatch.setattr(measures, "ROWS", 128)
    monkeypatch.setattr(timing, "PAUSE", 0.0)
    monkeypatch.setattr(timing, "ROUNDS", 1)


def test_every_measure(capsys: Any) -> None:
    assert main(["bench", "--seconds", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [m["name"] for m in found["measures"]] == ["call", "memory", "multiply-adds", "product", "fused chain", "compiling"]
    for m in found["measures"]:
        assert 0 < m["hologram"] < 1e6 and m["unit"] and m["about"]
        if m["limit"] is not None:
            share = m["hologram"] / m["limit"] if m["is_rate"] else m["limit"] / m["hologram"]
            assert m["share_of_limit"] == pytest.approx(share)
    rates = {m["name"]: m["limit"] for m in found["measures"]}
    assert rates["multiply-adds"] == rates["product"]  # one limit, whichever measured it
    assert found["machine"]["threads"] >= 1 and found["machine"]["NumPy"] == np.__version__


def test_the_table(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "MEASURES", (measures.dispatch, measures.compiling))
    assert main(["bench", "--seconds", "0"]) == 0
    out = capsys.readouterr().out
    assert "of the limit" in out and "call: a jitted sum" in out and "%" in out


class Clock:
    """In the place of the module ``time``: only sleeping takes time. ``asleep`` are the pauses between turns."""

    def __init__(self) -> None:
        self.now, self.asleep = 0.0, 0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.asleep += 1
        self.now += seconds

    def work(self, seconds: float) -> Call:
        """A call that takes so long, and the first time a hundred times as long."""
        first = [99 * seconds]

        def call() -> None:
            self.now += seconds + (first.pop() if first else 0.0)

        return Call(call)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(timing, "time", made)
    return made


def test_a_limit_is_a_call_or_seconds(clock: Clock) -> None:
    for limit in (clock.work(0.001), 0.001):
        (found,) = measured([lambda limit=limit: Measure("m", "", "ms", 1e-3, clock.work(0.002), clock.work(0.004), limit)], 0.0)  # type: ignore[misc]
        numbers = found.hologram, found.numpy, found.limit, found.share_of_limit
        assert numbers == pytest.approx((2.0, 4.0, 1.0, 0.5))


def test_rates_are_work_in_a_second(clock: Clock) -> None:
    (found,) = measured([lambda: Measure("m", "", "k/s", 1e3, clock.work(0.002), work=10.0, is_rate=True)], 0.0)
    assert found.hologram == pytest.approx(5.0) and found.limit is found.share_of_limit is found.numpy is None


@pytest.mark.parametrize(("seconds", "given"), [(1e-8, 0.05), (1e-5, 1.0), (0.01, 1.0)])
def test_contenders_take_turns_for_as_long_as_they_are_given(clock: Clock, seconds: float, given: float) -> None:
    """Short calls are timed many in a row."""
    measure = Measure("m", "", "s", 1.0, clock.work(seconds), clock.work(seconds))
    (found,) = measured([lambda: measure], given)
    assert found.hologram == found.numpy == pytest.approx(seconds)
    assert clock.now > given and clock.asleep % 2 == 0 and clock.asleep >= 2


@pytest.mark.parametrize(("load", "threads", "disturbed"), [(0.2, 2, False), (1.5, 2, True), (1.5, 16, False), (None, 2, False)])
def test_a_busy_machine_is_told_of(capsys: Any, monkeypatch: pytest.MonkeyPatch, load: float | None, threads: int, disturbed: bool) -> None:
    monkeypatch.setattr(measures, "MEASURES", ())
    monkeypatch.setattr(bench, "_machine", lambda: {"threads": threads, "load": load})
    assert main(["bench"]) == 0 and ("this machine can do better" in capsys.readouterr().out) == disturbed
    assert main(["bench", "--json"]) == 0 and json.loads(capsys.readouterr().out)["disturbed"] is disturbed


@pytest.mark.parametrize(("x", "text"), [(None, ""), (0.0, "0"), (1234.5, "1,234"), (12.345, "12.3"), (0.012345, "0.0123")])
def test_numbers_have_three_digits(x: float | None, text: str) -> None:
    assert bench._number(x) == text


def test_the_benchmarks_package_is_not_needed() -> None:
    """It is not in the wheel."""
    folder = Path(bench.__file__).parent
    assert not [p for p in folder.glob("*.py") if "from benchmarks" in p.read_text()]
