"""Trials of loops: their steps come to run the way that is faster, shared among threads or not, and are tried anew after a while."""

from __future__ import annotations

import ctypes
import time

import numpy as np
import pytest

import hologram as hg
from hologram.backends.llvm.abi import TRIAL_BYTES
from hologram.backends.native.code.step_trials import LAST_KEPT, WINDOW, WINDOWS, StepTrial
from hologram.backends.native.module import Record, module
from tests.support.runtime_programs import CHUNK, natively, parallel, run_add

pytestmark = natively

SHORT, LONG = 20e-6, 400e-6  # seconds of a step: far enough apart for any machine


@pytest.fixture
def two_threads(threads):
    """Two threads, of which the second has been started."""
    threads(2)
    run_add(parallel(1), np.ones(20 * CHUNK, np.float32))


class _Loop:
    """A loop whose steps take so long, by the record of its trials."""

    def __init__(self, shared: float, serial: float) -> None:
        self.seconds = shared, serial
        self.memory = ctypes.create_string_buffer(TRIAL_BYTES)
        self.record = Record(StepTrial, ctypes.addressof(self.memory))
        self.begin, self.end = (module().function(f"hg_{n}_trial", None, ctypes.c_void_p) for n in ("begin", "end"))
        self.asks = module().function("hg_runs_serially", ctypes.c_int64, ctypes.c_void_p)

    def step(self) -> int:
        serial = self.asks(self.record.address)
        end = time.perf_counter() + self.seconds[serial]
        while time.perf_counter() < end:
            pass
        return serial

    def run(self, steps: int) -> list[int]:
        self.begin(self.record.address)
        ways = [self.step() for _ in range(steps)]
        self.end(self.record.address)
        return ways

    def run_trial(self, steps: int) -> list[int]:
        """Runs of so many steps until the trial is over."""
        ways = self.run(steps)
        while self.record.window != WINDOWS:
            ways += self.run(steps)
        return ways


@pytest.mark.parametrize("steps", [1, 3, 1000])
@pytest.mark.parametrize("times", [(SHORT, LONG), (LONG, SHORT)])
def test_the_faster_way_is_kept(times, steps, two_threads):
    loop = _Loop(*times)
    ways = loop.run_trial(steps)
    assert set(ways) == {0, 1}
    assert min(ways.count(0), ways.count(1)) >= WINDOW
    assert loop.run(50) == [int(times[1] < times[0])] * 50


def test_the_choice_is_made_anew(two_threads):
    loop = _Loop(SHORT, LONG)
    loop.run_trial(100)
    assert loop.record.is_serial == 0
    loop.seconds, kept = (LONG, SHORT), loop.record.kept
    loop.record.left = 0  # the time for which it was kept is over
    loop.run_trial(100)
    assert loop.record.is_serial == 1
    assert loop.record.kept == 2 * kept <= LAST_KEPT


def test_time_between_runs_does_not_count(two_threads):
    loop = _Loop(SHORT, SHORT)
    loop.run(1)
    time.sleep(0.05)
    loop.run(1)
    assert loop.record.window == 0


def test_one_thread_tries_nothing(threads):
    threads(1)
    assert _Loop(SHORT, SHORT).run(100) == [0] * 100


def _sums(steps, n):
    x = np.random.default_rng(0).standard_normal((n, n))

    def f(x):
        return hg.fori_loop(0, steps, lambda i, c: c + c.sum() / n**3, x)

    return hg.jit(f), x


def test_loops_ask_where_threads_share_their_steps():
    large, small = (f.lower(x).as_text("llvm") for f, x in (_sums(50, 400), _sums(50, 4)))
    assert large.count("call i64 @hg_runs_serially(") == large.count("call void @hg_end_trial(") == 1
    assert "call i64 @hg_runs_serially(" not in small


def test_trials_do_not_show_in_results(threads):
    threads(1)
    f, x = _sums(200, 300)
    expected = np.asarray(f(x))
    threads(3)
    assert all((np.asarray(f(x)) == expected).all() for _ in range(20))
