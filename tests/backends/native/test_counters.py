"""Counters of profiled programs: their code on every architecture, rings of events, lanes of threads, clocks."""

from __future__ import annotations

import gc
import time
from typing import Any

import numpy as np
import pytest

import hologram as hg
from hologram.backends.llvm.toolchain import target
from hologram.backends.native import counters
from hologram.backends.native.code.counters import EVENTS, LANES
from hologram.backends.native.code.records import CACHE_LINE
from hologram.backends.native_lang.intrinsics import ARCHITECTURES
from hologram.backends.native_lang.translate import module_ir

X = np.ones(8, np.float32)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_code_for_every_architecture(architecture: str) -> None:
    text, externals = module_ir(counters._routines(), architecture)
    made = target.Target(f"{architecture}-unknown-linux-gnu")
    assert target.compile_ir(text, made, "quick") and "PyThread_get_thread_ident" in externals
    assert {"x86_64": "rdtsc", "aarch64": "cntvct_el0"}[architecture] in target.assembly(text, made, "quick").lower()


def test_rings_keep_the_latest_events_and_counters_all() -> None:
    f, calls = hg.jit(lambda x: x + 1), EVENTS  # of two events each
    f(X)
    with hg.profile() as p:
        for _ in range(calls):
            f(X)
    assert p.programs[0].calls == p.kernels[0].calls == calls
    assert len(p.events) + p.measured.lost_events == 2 * calls and 0 < EVENTS - 2 <= len(p.events) <= EVENTS
    assert "older events" in str(p.table().plain())
    starts = [e.start for e in p.events]
    assert starts == sorted(starts) and p.events[-1].start + p.events[-1].seconds <= p.seconds


def test_lanes_share_no_line_of_the_cache() -> None:
    for steps in (1, 2, 3, 17):
        made = counters.ProgramCounters(steps, lambda: None, "f")
        assert made.address % CACHE_LINE == 0 and (made.end - made.first) % CACHE_LINE == 0
        assert made.step_at(made.first) == 0 and made.step_at(made.first + (steps - 1) * counters.COUNTER_BYTES) == steps - 1
        assert made.step_at(made.first - 1) is None and made.step_at(made.end) is None
    assert counters.recorder().lanes.shape[0] == LANES and counters.recorder().lanes.strides[0] % CACHE_LINE == 0


def test_counters_go_with_their_program() -> None:
    """And stay as long as somebody watches."""
    gc.collect()
    before = len(counters.programs())
    with hg.profile() as p:
        f = hg.jit(lambda x: x * 3)
        f(X)
        f.clear_cache()
        del f
        gc.collect()
    assert [(x.calls, x.name) for x in p.programs] == [(1, "<lambda>")]
    gc.collect()
    hg.clear_caches()
    assert len(counters.programs()) <= before


def test_ticks_are_seconds() -> None:
    start = counters.recorder().both_clocks()
    time.sleep(0.05)
    end = counters.recorder().both_clocks()
    per_second = counters.ticks_per_second(start, end)
    assert (end[0] - start[0]) / per_second == pytest.approx((end[1] - start[1]) * 1e-9, rel=1e-6)
    assert counters.ticks_per_second(end, counters.recorder().both_clocks()) == pytest.approx(per_second, rel=1e-3), "of a short time"


def test_the_longest_call_is_that_of_the_profile() -> None:
    """Also where profiles overlap, and none is in another."""
    nap = [0.0]

    def sleeps(x: Any) -> Any:
        time.sleep(nap[0])
        return x

    f = hg.jit(lambda x: hg.pure_callback(sleeps, hg.ShapeDtypeStruct((8,), "float32"), x))
    first, second, third = hg.profile(), hg.profile(), hg.profile()
    with first:
        nap[0] = 0.06
        f(X)
        nap[0] = 0.03
        second.__enter__()
        f(X)
    nap[0] = 0.0
    f(X)
    second.__exit__()
    with third:
        f(X)

    def longest(p: Any) -> float:
        return next(float(k.longest_seconds) for k in p.kernels if k.kind == "host")

    assert longest(first) >= 0.06 and 0.03 <= longest(second) < 0.06 and longest(third) < 0.03
    assert [p.programs[0].calls for p in (first, second, third)] == [2, 2, 1]
